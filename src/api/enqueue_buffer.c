/* SPDX-License-Identifier: MIT */
/* Reading, writing, copying and filling buffers: OpenCL 1.2, sections 5.2.2 to 5.2.4. */
#include "api/check.h"
#include "entry_points.h"
#include "sched/transfer_command.h"
#include "virtual_device/device_info.h"

/* Since OpenCL 2.1 a transfer of no bytes is a command that does nothing; before, an error. */
static bool may_be_empty(void) { return tutti_device_limits()->version >= 210; }

static cl_int check_span(cl_mem buffer, size_t offset, size_t size, bool empty) {
    if (size == 0 && empty)
        return offset > buffer->size ? CL_INVALID_VALUE : CL_SUCCESS;
    return tutti_check_range(buffer, offset, size);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueReadBuffer(cl_command_queue command_queue,
                                                          cl_mem buffer, cl_bool blocking_read,
                                                          size_t offset, size_t size, void *ptr,
                                                          cl_uint num_events_in_wait_list,
                                                          const cl_event *event_wait_list,
                                                          cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    RETURN_IF(tutti_check_buffer(command_queue, buffer));
    RETURN_IF(ptr ? check_span(buffer, offset, size, may_be_empty()) : CL_INVALID_VALUE);
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    RETURN_IF(tutti_check_host_read(buffer));
    struct tutti_place from = tutti_place_linear(offset, size), to = tutti_place_linear(0, size);
    struct tutti_region region = tutti_region_linear(size);
    return tutti_enqueue(size ? tutti_transfer_read(buffer, &from, ptr, &to, &region)
                              : tutti_command_create_empty(),
                         command_queue, CL_COMMAND_READ_BUFFER, list, blocking_read, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueWriteBuffer(
    cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_write, size_t offset,
    size_t size, const void *ptr, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
    cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    RETURN_IF(tutti_check_buffer(command_queue, buffer));
    RETURN_IF(ptr ? check_span(buffer, offset, size, may_be_empty()) : CL_INVALID_VALUE);
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    RETURN_IF(tutti_check_host_write(buffer));
    struct tutti_place to = tutti_place_linear(offset, size), from = tutti_place_linear(0, size);
    struct tutti_region region = tutti_region_linear(size);
    return tutti_enqueue(size ? tutti_transfer_write(buffer, &to, ptr, &from, &region)
                              : tutti_command_create_empty(),
                         command_queue, CL_COMMAND_WRITE_BUFFER, list, blocking_write, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueReadBufferRect(
    cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_read,
    const size_t *buffer_origin, const size_t *host_origin, const size_t *region,
    size_t buffer_row_pitch, size_t buffer_slice_pitch, size_t host_row_pitch,
    size_t host_slice_pitch, void *ptr, cl_uint num_events_in_wait_list,
    const cl_event *event_wait_list, cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct tutti_place from, to;
    RETURN_IF(tutti_check_buffer(command_queue, buffer));
    RETURN_IF(tutti_check_rect(&from, buffer_origin, buffer_row_pitch, buffer_slice_pitch, region,
                               buffer->size));
    RETURN_IF(
        tutti_check_rect(&to, host_origin, host_row_pitch, host_slice_pitch, region, SIZE_MAX));
    RETURN_IF(ptr ? CL_SUCCESS : CL_INVALID_VALUE);
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    RETURN_IF(tutti_check_host_read(buffer));
    struct tutti_region box = {{region[0], region[1], region[2]}};
    return tutti_enqueue(tutti_transfer_read(buffer, &from, ptr, &to, &box), command_queue,
                         CL_COMMAND_READ_BUFFER_RECT, list, blocking_read, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueWriteBufferRect(
    cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_write,
    const size_t *buffer_origin, const size_t *host_origin, const size_t *region,
    size_t buffer_row_pitch, size_t buffer_slice_pitch, size_t host_row_pitch,
    size_t host_slice_pitch, const void *ptr, cl_uint num_events_in_wait_list,
    const cl_event *event_wait_list, cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct tutti_place from, to;
    RETURN_IF(tutti_check_buffer(command_queue, buffer));
    RETURN_IF(tutti_check_rect(&to, buffer_origin, buffer_row_pitch, buffer_slice_pitch, region,
                               buffer->size));
    RETURN_IF(
        tutti_check_rect(&from, host_origin, host_row_pitch, host_slice_pitch, region, SIZE_MAX));
    RETURN_IF(ptr ? CL_SUCCESS : CL_INVALID_VALUE);
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    RETURN_IF(tutti_check_host_write(buffer));
    struct tutti_region box = {{region[0], region[1], region[2]}};
    return tutti_enqueue(tutti_transfer_write(buffer, &to, ptr, &from, &box), command_queue,
                         CL_COMMAND_WRITE_BUFFER_RECT, list, blocking_write, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueFillBuffer(
    cl_command_queue command_queue, cl_mem buffer, const void *pattern, size_t pattern_size,
    size_t offset, size_t size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
    cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    RETURN_IF(tutti_check_buffer(command_queue, buffer));
    RETURN_IF(check_span(buffer, offset, size, true)); /* in all versions */
    if (!pattern || pattern_size == 0 || pattern_size > 128 || pattern_size & (pattern_size - 1) ||
        offset % pattern_size || size % pattern_size)
        return CL_INVALID_VALUE;
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    return tutti_enqueue(size ? tutti_transfer_fill(buffer, offset, size, pattern, pattern_size)
                              : tutti_command_create_empty(),
                         command_queue, CL_COMMAND_FILL_BUFFER, list, false, event);
}

/* Two buffers whose bytes may be the same ones: equal, or parts of one buffer. */
static bool related(cl_mem a, cl_mem b) { return tutti_mem_whole(a) == tutti_mem_whole(b); }

/* Where the buffer begins in the one that it is, in the end, a part of. */
static size_t origin_of(cl_mem mem) {
    size_t origin = 0;
    for (; mem; mem = mem->parent)
        origin += mem->origin;
    return origin;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueCopyBuffer(
    cl_command_queue command_queue, cl_mem src_buffer, cl_mem dst_buffer, size_t src_offset,
    size_t dst_offset, size_t size, cl_uint num_events_in_wait_list,
    const cl_event *event_wait_list, cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    RETURN_IF(tutti_check_buffer(command_queue, src_buffer));
    RETURN_IF(tutti_check_buffer(command_queue, dst_buffer));
    RETURN_IF(check_span(src_buffer, src_offset, size, may_be_empty()));
    RETURN_IF(check_span(dst_buffer, dst_offset, size, may_be_empty()));
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    if (related(src_buffer, dst_buffer)) {
        size_t source = origin_of(src_buffer) + src_offset,
               target = origin_of(dst_buffer) + dst_offset;
        if (source < target + size && target < source + size)
            return CL_MEM_COPY_OVERLAP;
    }
    struct tutti_place from = tutti_place_linear(src_offset, size);
    struct tutti_place to = tutti_place_linear(dst_offset, size);
    struct tutti_region region = tutti_region_linear(size);
    return tutti_enqueue(size ? tutti_transfer_copy(src_buffer, &from, dst_buffer, &to, &region)
                              : tutti_command_create_empty(),
                         command_queue, CL_COMMAND_COPY_BUFFER, list, false, event);
}

/*
 * Do two boxes of equal size and pitches share a byte? A row of one meets a row of the other when
 * they start less than a row's width apart; for each distance in slices only two distances in rows
 * come near that.
 */
static bool boxes_overlap(size_t a, size_t b, const struct tutti_place *pitches,
                          const size_t region[3]) {
    long long width = (long long)region[0], rows = (long long)region[1];
    long long slices = (long long)region[2], row = (long long)pitches->row_pitch;
    for (long long e = 1 - slices; e < slices; e++) {
        long long distance = (long long)b - (long long)a + e * (long long)pitches->slice_pitch;
        long long nearest = -distance / row;
        for (long long d = nearest - 1; d <= nearest + 1; d++) {
            long long apart = distance + d * row;
            if (d > -rows && d < rows && apart > -width && apart < width)
                return true;
        }
    }
    return false;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueCopyBufferRect(
    cl_command_queue command_queue, cl_mem src_buffer, cl_mem dst_buffer, const size_t *src_origin,
    const size_t *dst_origin, const size_t *region, size_t src_row_pitch, size_t src_slice_pitch,
    size_t dst_row_pitch, size_t dst_slice_pitch, cl_uint num_events_in_wait_list,
    const cl_event *event_wait_list, cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct tutti_place from, to;
    RETURN_IF(tutti_check_buffer(command_queue, src_buffer));
    RETURN_IF(tutti_check_buffer(command_queue, dst_buffer));
    RETURN_IF(tutti_check_rect(&from, src_origin, src_row_pitch, src_slice_pitch, region,
                               src_buffer->size));
    RETURN_IF(tutti_check_rect(&to, dst_origin, dst_row_pitch, dst_slice_pitch, region,
                               dst_buffer->size));
    if (src_buffer == dst_buffer &&
        (from.row_pitch != to.row_pitch || from.slice_pitch != to.slice_pitch))
        return CL_INVALID_VALUE;
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    if (related(src_buffer, dst_buffer) && from.row_pitch == to.row_pitch &&
        from.slice_pitch == to.slice_pitch &&
        boxes_overlap(origin_of(src_buffer) + tutti_place_first(&from),
                      origin_of(dst_buffer) + tutti_place_first(&to), &from, region))
        return CL_MEM_COPY_OVERLAP;
    struct tutti_region box = {{region[0], region[1], region[2]}};
    return tutti_enqueue(tutti_transfer_copy(src_buffer, &from, dst_buffer, &to, &box),
                         command_queue, CL_COMMAND_COPY_BUFFER_RECT, list, false, event);
}
