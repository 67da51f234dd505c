/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "virtual_device/driver.h"

#include "brief_lock.h"
#include "clock.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/*
 * ns: between two looks at an event, a share of the wait so far; without sleep first of all, and so
 * long before and after the end that is expected, which may be off by a share of it.
 */
#define SPIN 30000u
#define SHARE_OFF 32
#define SHARE 16
#define LONGEST 20000u
#define LATELY 50000000u /* ns */

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static bool needs_lock(const struct tutti_real_device *device) {
    return tutti_device_interprets(device); /* there is but Oclgrind */
}

void tutti_driver_lock(const struct tutti_real_device *device) {
    if (needs_lock(device))
        pthread_mutex_lock(&lock);
}

void tutti_driver_unlock(const struct tutti_real_device *device) {
    if (needs_lock(device))
        pthread_mutex_unlock(&lock);
}

/* Each for one device. */
static pthread_mutex_t takers[TUTTI_MAX_DEVICES] = {[0 ... TUTTI_MAX_DEVICES - 1] =
                                                        TUTTI_BRIEF_LOCK};
static atomic_ullong wanted[TUTTI_MAX_DEVICES]; /* when a thread waited for it; 0: never */

static bool is_gpu(const struct tutti_real_device *device) {
    return device->type & CL_DEVICE_TYPE_GPU;
}

void tutti_driver_take(const struct tutti_real_device *device) {
    if (tutti_driver_try(device))
        return;
    atomic_store_explicit(&wanted[device->index], tutti_clock_now(), memory_order_relaxed);
    pthread_mutex_lock(&takers[device->index]);
}

bool tutti_driver_is_wanted(const struct tutti_real_device *device) {
    cl_ulong last = atomic_load_explicit(&wanted[device->index], memory_order_relaxed);
    return last && tutti_clock_now() - last < LATELY;
}

bool tutti_driver_try(const struct tutti_real_device *device) {
    return !is_gpu(device) || pthread_mutex_trylock(&takers[device->index]) == 0;
}

void tutti_driver_give(const struct tutti_real_device *device) {
    if (is_gpu(device))
        pthread_mutex_unlock(&takers[device->index]);
}

cl_int tutti_driver_flush(const struct tutti_real_device *device, cl_command_queue queue) {
    tutti_driver_take(device);
    cl_int error = device->dispatch->clFlush(queue);
    tutti_driver_give(device);
    return error;
}

cl_int tutti_driver_finish(const struct tutti_real_device *device, cl_command_queue queue) {
    tutti_driver_take(device);
    cl_int error = device->dispatch->clFinish(queue);
    tutti_driver_give(device);
    return error;
}

cl_int tutti_driver_status(const struct tutti_real_device *device, cl_event event) {
    cl_int status = CL_COMPLETE;
    cl_int error = device->dispatch->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                    sizeof(status), &status, NULL);
    return error == CL_SUCCESS ? status : error;
}

/* How long to sleep, in ns, who has waited so long, and was to wait for `expected`; 0: not at all.
 */
static cl_ulong choose_sleep(cl_ulong waited, cl_ulong expected) {
    cl_ulong length = waited / SHARE, near = SPIN + expected / SHARE_OFF;
    if (waited < SPIN || (waited + near >= expected && waited < expected + near))
        return 0;
    if (waited < expected && length > expected - near - waited)
        length = expected - near - waited;
    return length < LONGEST ? length : LONGEST;
}

static cl_int look_until_over(const struct tutti_real_device *device, cl_event event,
                              cl_ulong expected) {
    cl_int status = tutti_driver_status(device, event);
    cl_ulong begin = status > CL_COMPLETE ? tutti_clock_now() : 0;
    int slack = -1; /* the thread may be the program's */
    for (; status > CL_COMPLETE; status = tutti_driver_status(device, event)) {
        cl_ulong length = choose_sleep(tutti_clock_now() - begin, expected);
        if (length == 0) {
            sched_yield();
            continue;
        }
        if (slack < 0) {
            slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
            prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
        }
        struct timespec sleep = {.tv_nsec = (long)length};
        nanosleep(&sleep, NULL);
    }
    if (slack >= 0)
        prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
    return status;
}

cl_int tutti_driver_await(const struct tutti_real_device *device, cl_event event, double expected) {
    if (is_gpu(device))
        return look_until_over(device, event, (cl_ulong)(expected * 1000));
    cl_int error = device->dispatch->clWaitForEvents(1, &event), status = CL_COMPLETE;
    if (error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        status = tutti_driver_status(device, event);
    return status < 0 ? status : error;
}

cl_int tutti_driver_wait(const struct tutti_real_device *device, cl_event event) {
    cl_int error = tutti_driver_await(device, event, 0);
    device->dispatch->clReleaseEvent(event);
    return error;
}

cl_kernel tutti_driver_create_kernel(const struct tutti_real_device *device, cl_program program,
                                     const char *name, cl_int *error) {
    tutti_driver_lock(device);
    cl_kernel kernel = device->dispatch->clCreateKernel(program, name, error);
    tutti_driver_unlock(device);
    return kernel;
}

void tutti_driver_release_kernel(const struct tutti_real_device *device, cl_kernel kernel) {
    tutti_driver_lock(device);
    device->dispatch->clReleaseKernel(kernel);
    tutti_driver_unlock(device);
}

void tutti_driver_release_program(const struct tutti_real_device *device, cl_program program) {
    tutti_driver_lock(device);
    device->dispatch->clReleaseProgram(program);
    tutti_driver_unlock(device);
}
