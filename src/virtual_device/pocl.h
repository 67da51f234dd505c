/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_POCL_H
#define TUTTI_POCL_H

#include "virtual_device/device.h"

bool tutti_pocl_is(const struct tutti_real_device *device);

/* Is it a device of PoCL that executes in the thread that enqueues? */
bool tutti_pocl_is_basic(const struct tutti_real_device *device);

/*
 * PoCL (3.1) keeps the machine code of a kernel in its process once for each work-group size, width
 * of the index space and kind of offset, and counts the launches that use it. But it looks for what
 * a launch gives back by the kernel and the work-group size only, and aborts the process when the
 * first that it finds was not in use: so of two devices one must not execute a kernel while the
 * other executes it with another width, nor may a device that executes several kernels at once.
 */
struct tutti_pocl_launch {
    const char *kernel;
    size_t global[3]; /* 1 past the dimensions */
    size_t local[3];  /* 0: left to PoCL */
    bool offset;      /* other than zero */
};

/*
 * It compiles that code at the first launch, for each work-group size, kind of offset and whether
 * the index space has fewer than so many work-items in each dimension. If the size is left to it,
 * it chooses one by the index space. Its cache on disk keeps the code for other processes.
 */
#define TUTTI_POCL_SMALL 65535u

/* Is there no other device that it could be confused with? Then no need for the next two. */
bool tutti_pocl_is_safe(const struct tutti_real_device *device);

/*
 * Around the enqueue of a kernel on a device of PoCL that executes it in the call ("basic"): waits
 * until no other device executes it in a way that PoCL would confuse.
 */
void tutti_pocl_enter(const struct tutti_real_device *device,
                      const struct tutti_pocl_launch *launch);
void tutti_pocl_leave(const struct tutti_real_device *device);

/*
 * Was a kernel of that name ever launched on the device in a way that PoCL would confuse with this
 * one? Then it must not be executed beside others. Notes this one. For the one device that executes
 * several at once, with its `enqueues` lock.
 */
bool tutti_pocl_confuses(const struct tutti_pocl_launch *launch);

/*
 * PoCL (3.1) keeps programs in a cache on disk that processes share. Who has compiled one that
 * another put there meanwhile removes it before it writes it anew, and who found it there and
 * can't read it then fails, or aborts the process. So: around a build of a program of this
 * identity, for one of PoCL's devices at a time, among all of a user's processes with Tutti. Gives
 * what the second call takes. Another process is waited for within bounds.
 */
int tutti_pocl_begin_build(uint64_t identity);
void tutti_pocl_end_build(int lock);

#endif
