/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_TRANSFER_COMMAND_H
#define TUTTI_TRANSFER_COMMAND_H

#include "memory/mem.h"
#include "sched/command.h"

/*
 * The commands that the host's side executes on the valid copies of memory objects: read, write,
 * copy, fill, map, unmap, migrate, native kernels. Each function makes a command that is ready for
 * tutti_command_enqueue, or NULL when out of memory. Memory objects are retained until its end.
 */
struct tutti_command *tutti_transfer_read(cl_mem mem, const struct tutti_place *from, void *target,
                                          const struct tutti_place *to,
                                          const struct tutti_region *region);
struct tutti_command *tutti_transfer_write(cl_mem mem, const struct tutti_place *to,
                                           const void *source, const struct tutti_place *from,
                                           const struct tutti_region *region);
struct tutti_command *tutti_transfer_copy(cl_mem source, const struct tutti_place *from,
                                          cl_mem target, const struct tutti_place *to,
                                          const struct tutti_region *region);
/* The pattern is copied; at most 128 bytes. */
struct tutti_command *tutti_transfer_fill(cl_mem mem, size_t offset, size_t size,
                                          const void *pattern, size_t pattern_size);
/* The color as clEnqueueFillImage takes it (5.3.4): `color_size` bytes, at most 16, are copied. */
struct tutti_command *tutti_transfer_fill_image(cl_mem mem, const struct tutti_place *place,
                                                const struct tutti_region *region,
                                                const void *color, size_t color_size);
/*
 * Pins the object's storage for a map that is about to be enqueued (tutti_version_pin). Not for
 * StarPU's threads.
 */
void tutti_transfer_pin(cl_mem mem, const struct tutti_map *map, cl_command_queue queue,
                        struct tutti_wait_list list);
/* The map is booked (tutti_mem_add_map); it points into tutti_mem_map_base(mem). */
struct tutti_command *tutti_transfer_map(cl_mem mem, const struct tutti_map *map);
struct tutti_command *tutti_transfer_unmap(cl_mem mem, const struct tutti_map *map);
/* `to_host`: the home memory becomes valid. Else only the order among other commands is kept. */
struct tutti_command *tutti_transfer_migrate(cl_uint count, const cl_mem *mems, bool to_host);

/*
 * clEnqueueNativeKernel (5.8): `arguments` are copied; where `places` point into them, the copy
 * gets the host address of the memory object's bytes.
 */
struct tutti_native {
    void(CL_CALLBACK *function)(void *);
    const void *arguments;
    size_t argument_bytes;
    cl_uint mem_count;
    const cl_mem *mems;
    const void *const *places;
};
struct tutti_command *tutti_transfer_native(const struct tutti_native *native);

#endif
