/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_STAGING_H
#define TUTTI_STAGING_H

#include "memory/region.h"

#include <CL/cl.h>

/*
 * The device's end of a staged transfer: starts to move a part between the device and page-locked
 * memory, and waits for that.
 */
struct tutti_staging {
    cl_int (*start)(const struct tutti_staging *staging, const struct tutti_place *there,
                    void *pinned, const struct tutti_place *packed, const struct tutti_region *part,
                    cl_event *event);
    cl_int (*wait)(const struct tutti_staging *staging, cl_event event);
    bool to_device;
};

/*
 * Moves a region between the program's memory and a device in chunks through page-locked memory.
 * Several threads, the caller's among them, each take the next chunk, and copy it while the driver
 * moves their last one. `there` is the place on the device, `here` that in `memory`. Returns the
 * first error of the device's end, or CL_OUT_OF_HOST_MEMORY when there is no page-locked memory:
 * then nothing was done.
 */
cl_int tutti_staging_run(const struct tutti_staging *staging, unsigned threads,
                         const struct tutti_place *there, void *memory,
                         const struct tutti_place *here, const struct tutti_region *region);

/* tutti_region_copy, by several threads where the machine has cores for it and it pays. */
void tutti_staging_copy(void *target, const struct tutti_place *to, const void *source,
                        const struct tutti_place *from, const struct tutti_region *region);

#endif
