/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_INVOCATION_H
#define TUTTI_INVOCATION_H

#include "memory/mem.h"
#include "sched/model.h"
#include "virtual_device/kernel.h"
#include "virtual_device/pocl.h"

/* The index space of clEnqueueNDRangeKernel (5.8). */
struct tutti_range {
    cl_uint dimensions;
    size_t offset[3], global[3], local[3];
    bool local_given;
};

/* What a launch of the kernel of that name with it is to PoCL. */
struct tutti_pocl_launch tutti_range_for_pocl(const struct tutti_range *range, const char *kernel);

/* What a launch is to a real device. */
struct tutti_invocation {
    cl_kernel kernel;
    struct tutti_arguments *arguments;
    const struct tutti_range *range;
    unsigned count;   /* memory objects, each once */
    cl_mem *mem;      /* those; room for one of each argument */
    unsigned *mem_of; /* [arguments->count]: which of them the memory argument is */
};

/* Adds the memory object, which is what that argument uses, if it is not there yet: which one? */
static inline unsigned tutti_invocation_add_object(struct tutti_invocation *call, unsigned index,
                                                   cl_mem mem) {
    unsigned i = 0;
    while (i < call->count && call->mem[i] != mem)
        i++;
    if (i == call->count)
        call->mem[call->count++] = mem;
    return call->mem_of[index] = i;
}

/* That of the argument. A part of shared virtual memory stands for all of it. */
unsigned tutti_invocation_add(struct tutti_invocation *call, unsigned index);

/*
 * May the kernel write to that argument's memory object? Not if it is `const` or `__constant`. It
 * must not write to a CL_MEM_READ_ONLY buffer either, but no driver minds, and programs do
 * (hashcat): that is taken at its word only where the source agrees, or there is none.
 */
bool tutti_invocation_may_write(const struct tutti_invocation *call, unsigned index);

/*
 * A buffer over shared virtual memory is that memory for kernels, by its address: pointers into it
 * may lie in what they read.
 */
bool tutti_invocation_has_address(cl_mem mem);

/*
 * Fills in all but the kernel and the range, with room for TUTTI_PLAIN_ARGUMENTS: false if some of
 * the arguments lack, or are others than plain buffers and values. A sampler is: only a command
 * keeps it until the kernel is over, as PoCL 3.1 needs it. Takes devices that can't hold the
 * buffers out of `able`. With the kernel's lock, as long as it is used.
 */
#define TUTTI_PLAIN_ARGUMENTS 16
bool tutti_invocation_take_plain(struct tutti_invocation *call, cl_context context, unsigned *able);

/* Does any of its arguments let the kernel write to the memory object? */
bool tutti_invocation_writes(const struct tutti_invocation *call, cl_mem mem);

/*
 * Of a part, or what has parts: false if it must be brought up to date first. Notes what the
 * kernel, which `able` devices can execute, is about to write. By the dispatching thread.
 */
bool tutti_invocation_settle_part(const struct tutti_invocation *call, cl_mem mem, unsigned able);

/* With all memory objects added. NULL when out of memory. */
struct tutti_model *tutti_invocation_model(const struct tutti_invocation *call);

/* The devices that have the kernel and allow the work-group size, as bits. */
unsigned tutti_invocation_devices(const struct tutti_invocation *call);

/*
 * Both, remembered from the kernel object's last launch if that was like it: the same index space,
 * memory objects as large. With the kernel's lock.
 */
struct tutti_model *tutti_invocation_recall(const struct tutti_invocation *call, unsigned *devices);

/* Host's clock; of a device that executes the kernel in the call. */
struct tutti_invocation_times {
    cl_ulong start, end;
};

/*
 * Gives the kernel to the device. `storage`: its copy of each memory object; `waited`: the driver's
 * events to wait for, so many; `event` and `times` may be NULL. `alone`: no other device executes
 * anything meanwhile. Returns the driver's error. With the device's `enqueues` lock.
 */
cl_int tutti_invocation_enqueue(const struct tutti_invocation *call,
                                struct tutti_real_device *device, cl_command_queue queue,
                                const struct tutti_storage *const *storage, bool alone,
                                cl_uint count, const cl_event *waited, cl_event *event,
                                struct tutti_invocation_times *times);

#endif
