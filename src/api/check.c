/* SPDX-License-Identifier: MIT */
#include "api/check.h"

static bool at_most_one(cl_mem_flags flags) { return (flags & (flags - 1)) == 0; }

cl_int tutti_check_mem_flags(cl_mem_flags flags) {
    const cl_mem_flags known = TUTTI_ACCESS_FLAGS | TUTTI_HOST_PTR_FLAGS | TUTTI_HOST_ACCESS_FLAGS;
    if (flags & ~known)
        return CL_INVALID_VALUE;
    if (!at_most_one(flags & TUTTI_ACCESS_FLAGS) || !at_most_one(flags & TUTTI_HOST_ACCESS_FLAGS))
        return CL_INVALID_VALUE;
    if (flags & CL_MEM_USE_HOST_PTR && flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR))
        return CL_INVALID_VALUE;
    return CL_SUCCESS;
}

cl_mem_flags tutti_inherit_mem_flags(cl_mem_flags whole, cl_mem_flags flags) {
    cl_mem_flags access = flags & TUTTI_ACCESS_FLAGS, host = flags & TUTTI_HOST_ACCESS_FLAGS;
    if ((whole & CL_MEM_WRITE_ONLY && access & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY)) ||
        (whole & CL_MEM_READ_ONLY && access & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY)) ||
        (whole & CL_MEM_HOST_WRITE_ONLY && host & CL_MEM_HOST_READ_ONLY) ||
        (whole & CL_MEM_HOST_READ_ONLY && host & CL_MEM_HOST_WRITE_ONLY) ||
        (whole & CL_MEM_HOST_NO_ACCESS && host & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY)))
        return 0;
    return (access ? access : whole & TUTTI_ACCESS_FLAGS) |
           (host ? host : whole & TUTTI_HOST_ACCESS_FLAGS) | (whole & TUTTI_HOST_PTR_FLAGS);
}

cl_int tutti_check_buffer(cl_command_queue queue, cl_mem buffer) {
    if (!TUTTI_IS_QUEUE(queue))
        return CL_INVALID_COMMAND_QUEUE;
    if (!TUTTI_IS_MEM(buffer) || tutti_mem_is_image(buffer))
        return CL_INVALID_MEM_OBJECT;
    if (buffer->context != queue->context)
        return CL_INVALID_CONTEXT;
    return CL_SUCCESS;
}

cl_int tutti_check_range(cl_mem buffer, size_t offset, size_t size) {
    if (size == 0 || offset > buffer->size || size > buffer->size - offset)
        return CL_INVALID_VALUE;
    return CL_SUCCESS;
}

cl_int tutti_check_rect(struct tutti_place *place, const size_t origin[3], size_t row_pitch,
                        size_t slice_pitch, const size_t region[3], size_t limit) {
    if (!origin || !region || !region[0] || !region[1] || !region[2])
        return CL_INVALID_VALUE;
    if (row_pitch == 0)
        row_pitch = region[0];
    size_t least_slice;
    if (row_pitch < region[0] || __builtin_mul_overflow(region[1], row_pitch, &least_slice))
        return CL_INVALID_VALUE;
    if (slice_pitch == 0)
        slice_pitch = least_slice;
    if (slice_pitch < least_slice || slice_pitch % row_pitch)
        return CL_INVALID_VALUE;
    for (int i = 0; i < 3; i++)
        place->origin[i] = origin[i];
    place->row_pitch = row_pitch;
    place->slice_pitch = slice_pitch;

    size_t slices, rows, end, last_slice, last_row;
    if (__builtin_add_overflow(origin[2], region[2] - 1, &last_slice) ||
        __builtin_add_overflow(origin[1], region[1] - 1, &last_row) ||
        __builtin_mul_overflow(last_slice, slice_pitch, &slices) ||
        __builtin_mul_overflow(last_row, row_pitch, &rows) ||
        __builtin_add_overflow(slices, rows, &end) ||
        __builtin_add_overflow(end, origin[0], &end) ||
        __builtin_add_overflow(end, region[0], &end) || end > limit)
        return CL_INVALID_VALUE;
    return CL_SUCCESS;
}

cl_int tutti_check_image(cl_command_queue queue, cl_mem image) {
    if (!TUTTI_IS_QUEUE(queue))
        return CL_INVALID_COMMAND_QUEUE;
    if (!TUTTI_IS_MEM(image) || !tutti_mem_is_image(image))
        return CL_INVALID_MEM_OBJECT;
    if (image->context != queue->context)
        return CL_INVALID_CONTEXT;
    return CL_SUCCESS;
}

cl_int tutti_check_image_box(cl_mem image, const size_t *origin, const size_t *region,
                             struct tutti_place *place, struct tutti_region *box) {
    const struct tutti_shape *shape = &image->view->shape;
    if (!origin || !region)
        return CL_INVALID_VALUE;
    for (int i = 0; i < 3; i++)
        if (region[i] == 0 || region[i] > shape->size[i] || origin[i] > shape->size[i] - region[i])
            return CL_INVALID_VALUE;
    *place = (struct tutti_place){.origin = {origin[0] * shape->element, origin[1], origin[2]}};
    *place = tutti_view_packed(image->view, place);
    *box = (struct tutti_region){{region[0] * shape->element, region[1], region[2]}};
    return CL_SUCCESS;
}

cl_int tutti_check_host_read(cl_mem mem) {
    return mem->flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS) ? CL_INVALID_OPERATION
                                                                         : CL_SUCCESS;
}

cl_int tutti_check_host_write(cl_mem mem) {
    return mem->flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS) ? CL_INVALID_OPERATION
                                                                        : CL_SUCCESS;
}

cl_int tutti_enqueue(struct tutti_command *command, cl_command_queue queue, cl_command_type type,
                     struct tutti_wait_list list, bool blocking, cl_event *event) {
    if (!command)
        return CL_OUT_OF_HOST_MEMORY;
    return tutti_command_enqueue(command, queue, type, list, blocking, event);
}
