/* SPDX-License-Identifier: MIT */
#include "memory/carry.h"

#include <stdlib.h>

/* PoCL's basic devices execute what is ready in whichever thread touches an event: not theirs. */
bool tutti_carry_possible(const struct tutti_real_device *device) {
    return device->type & CL_DEVICE_TYPE_GPU || !device->place.synchronous;
}

static void run(struct tutti_job *job) {
    struct tutti_carry *carry = (struct tutti_carry *)(void *)job;
    carry->run(carry);
    carry->driver->clSetUserEventStatus(carry->done, CL_COMPLETE);
    carry->driver->clReleaseEvent(carry->done);
    free(carry);
}

bool tutti_carry_start(struct tutti_carry *carry, const struct tutti_real_device *device,
                       cl_event *event) {
    cl_int error;
    carry->driver = device->dispatch;
    carry->done = carry->driver->clCreateUserEvent(device->place.context, &error);
    if (error != CL_SUCCESS)
        return false;
    carry->job.run = run;
    carry->driver->clRetainEvent(carry->done);
    *event = carry->done;
    tutti_pool_run(&carry->job);
    return true;
}
