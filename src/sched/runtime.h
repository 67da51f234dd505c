/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_RUNTIME_H
#define TUTTI_RUNTIME_H

#include "virtual_device/device.h"

#include <starpu.h>

/*
 * StarPU's life inside the program's process: it starts at the first clCreateContext, sleeps
 * while no command is in flight, and is quiet from the program's exit on.
 */

/*
 * Starts StarPU over the real devices; later calls return at once. Fills `place` of each real
 * device that StarPU drives. Returns CL_DEVICE_NOT_AVAILABLE when StarPU can't start or drives
 * none of them, and in a child of fork (there are no workers there).
 */
cl_int tutti_runtime_start(void);

/* Did Tutti start StarPU in this process, or is it starting it now? */
bool tutti_runtime_started(void);
bool tutti_runtime_starting(void);

/*
 * May commands still be given to StarPU? False in a child of fork and once the program exits.
 */
bool tutti_runtime_usable(void);

/*
 * Around the life of everything that StarPU must work on: while the count is above zero its
 * workers are awake. Idle for 10 ms, they sleep and use no CPU.
 */
void tutti_runtime_busy(void);
void tutti_runtime_idle(unsigned count); /* so many less */
long tutti_runtime_in_flight(void);      /* how much there is */
/* Waits for its end, so many ns at most, as what waits for the program has none; true: it came. */
bool tutti_runtime_await_idle(unsigned long most);

/* Are there twice the cores that StarPU's workers and a thread of the program keep busy? */
bool tutti_runtime_has_spare_cores(void);

/* The real device that a StarPU worker or memory node belongs to; NULL for others. */
struct tutti_real_device *tutti_runtime_device_of_worker(int workerid);
struct tutti_real_device *tutti_runtime_device_of_node(unsigned node);

/* Host time in nanoseconds; the clock of profiling information (CL_PROFILING_COMMAND_*). */
cl_ulong tutti_runtime_now(void);

/* The same to some milliseconds, for a fraction of the price. */
cl_ulong tutti_runtime_about_now(void);

#endif
