/* SPDX-License-Identifier: MIT */
#include "api/check.h"

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
