/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_DRIVER_H
#define TUTTI_DRIVER_H

#include "virtual_device/device.h"

/*
 * Oclgrind's compiler and interpreter share tables without a lock, where OpenCL asks drivers to be
 * thread-safe (Appendix A.2), and so do two threads that wait for one queue. Around calls that
 * compile, create, release or execute programs and kernels, make or release memory objects, or move
 * bytes: one thread at a time for such a driver, nothing for any other. Nests. While it is held no
 * lock is taken but those of its driver.
 */
void tutti_driver_lock(const struct tutti_real_device *device);
void tutti_driver_unlock(const struct tutti_real_device *device);

/*
 * Around calls with a queue for kernels: one thread at a time for each GPU, nothing for other
 * devices. Two threads that call NVIDIA's driver with the same queue at the same time set a thread
 * of its own to work for that queue, which stays so for the rest of the process: it takes a core,
 * and makes each launch a third longer (580.159 on an H200: 3.9 -> 5 µs). Transfers are faster
 * with it: their queues are for all threads. Innermost; while it is held, nothing is waited for
 * but what the device ends soon.
 */
void tutti_driver_take(const struct tutti_real_device *device);
bool tutti_driver_try(const struct tutti_real_device *device);
void tutti_driver_give(const struct tutti_real_device *device);

/* Did a thread have to wait for that lately? Then nobody should keep the queue while it waits. */
bool tutti_driver_is_wanted(const struct tutti_real_device *device);

/* Such calls. */
cl_int tutti_driver_flush(const struct tutti_real_device *device, cl_command_queue queue);
cl_int tutti_driver_finish(const struct tutti_real_device *device, cl_command_queue queue);

/*
 * Waits for a real command that was flushed, and returns how it ended. Threads that wait in
 * NVIDIA's driver for one of several transfers return when all are over: so a GPU's event is looked
 * at again and again instead, most often around the end that is `expected` in so many µs; 0:
 * nothing is known of it.
 */
cl_int tutti_driver_await(const struct tutti_real_device *device, cl_event event, double expected);

/* The status of a real command (CL_EVENT_COMMAND_EXECUTION_STATUS), or the error of asking. */
cl_int tutti_driver_status(const struct tutti_real_device *device, cl_event event);

/* The same, and gives the event back. */
cl_int tutti_driver_wait(const struct tutti_real_device *device, cl_event event);

/* Calls with the lock of tutti_driver_lock. */
cl_kernel tutti_driver_create_kernel(const struct tutti_real_device *device, cl_program program,
                                     const char *name, cl_int *error);
void tutti_driver_release_kernel(const struct tutti_real_device *device, cl_kernel kernel);
void tutti_driver_release_program(const struct tutti_real_device *device, cl_program program);

#endif
