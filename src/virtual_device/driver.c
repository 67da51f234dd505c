/* SPDX-License-Identifier: MIT */
#include "virtual_device/driver.h"

#include "clock.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

/* ns: between two looks at an event, a share of the wait so far, first of all without sleep. */
#define SPIN 30000u
#define SHARE 16
#define LONGEST 20000u

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static bool needs_lock(const struct tutti_real_device *device) {
    return strcmp(device->platform_name, "Oclgrind") == 0;
}

void tutti_driver_lock(const struct tutti_real_device *device) {
    if (needs_lock(device))
        pthread_mutex_lock(&lock);
}

void tutti_driver_unlock(const struct tutti_real_device *device) {
    if (needs_lock(device))
        pthread_mutex_unlock(&lock);
}

static cl_int status_of(const cl_icd_dispatch *driver, cl_event event) {
    cl_int status = CL_COMPLETE;
    cl_int error = driver->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                          &status, NULL);
    return error == CL_SUCCESS ? status : error;
}

static cl_int look_until_over(const cl_icd_dispatch *driver, cl_event event) {
    cl_int status = status_of(driver, event);
    cl_ulong begin = status > CL_COMPLETE ? tutti_clock_now() : 0;
    int slack = -1; /* the thread may be the program's */
    for (; status > CL_COMPLETE; status = status_of(driver, event)) {
        cl_ulong waited = tutti_clock_now() - begin, length = waited / SHARE;
        if (waited < SPIN) {
            sched_yield();
            continue;
        }
        if (slack < 0) {
            slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
            prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
        }
        struct timespec sleep = {.tv_nsec = (long)(length < LONGEST ? length : LONGEST)};
        nanosleep(&sleep, NULL);
    }
    if (slack >= 0)
        prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
    return status;
}

cl_int tutti_driver_wait(const struct tutti_real_device *device, cl_event event) {
    const cl_icd_dispatch *driver = device->dispatch;
    cl_int error;
    if (device->type & CL_DEVICE_TYPE_GPU) {
        error = look_until_over(driver, event);
    } else {
        error = driver->clWaitForEvents(1, &event);
        cl_int status = CL_COMPLETE;
        if (error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
            status = status_of(driver, event);
        if (status < 0)
            error = status;
    }
    driver->clReleaseEvent(event);
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
