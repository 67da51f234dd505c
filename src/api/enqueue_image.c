/* SPDX-License-Identifier: MIT */
/* Reading, writing, copying and filling images: OpenCL 1.2, sections 5.3.3 to 5.3.5. */
#include "api/check.h"
#include "entry_points.h"
#include "sched/transfer_command.h"

/* Where a box of the image lies in the program's memory; fills in pitches that are 0. */
static cl_int check_host_place(cl_mem image, const struct tutti_region *box, size_t row_pitch,
                               size_t slice_pitch, struct tutti_place *place) {
    bool layered_rows = image->type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
    if (row_pitch == 0)
        row_pitch = box->size[0];
    else if (row_pitch < box->size[0])
        return CL_INVALID_VALUE;
    if (tutti_image_dimensions(image->type) < 3 && !layered_rows && slice_pitch)
        return CL_INVALID_VALUE;
    size_t least = row_pitch * (layered_rows ? 1 : box->size[1]);
    if (slice_pitch == 0)
        slice_pitch = least;
    else if (slice_pitch < least)
        return CL_INVALID_VALUE;
    /* Layers of a 1D array are rows. */
    *place = (struct tutti_place){{0, 0, 0}, layered_rows ? slice_pitch : row_pitch, slice_pitch};
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueReadImage(
    cl_command_queue command_queue, cl_mem image, cl_bool blocking_read, const size_t *origin,
    const size_t *region, size_t row_pitch, size_t slice_pitch, void *ptr,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct tutti_place from, to;
    struct tutti_region box;
    RETURN_IF(tutti_check_image(command_queue, image));
    RETURN_IF(tutti_check_image_box(image, origin, region, &from, &box));
    RETURN_IF(check_host_place(image, &box, row_pitch, slice_pitch, &to));
    RETURN_IF(ptr ? CL_SUCCESS : CL_INVALID_VALUE);
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    RETURN_IF(tutti_check_host_read(image));
    return tutti_enqueue(tutti_transfer_read(image, &from, ptr, &to, &box), command_queue,
                         CL_COMMAND_READ_IMAGE, list, blocking_read, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueWriteImage(
    cl_command_queue command_queue, cl_mem image, cl_bool blocking_write, const size_t *origin,
    const size_t *region, size_t input_row_pitch, size_t input_slice_pitch, const void *ptr,
    cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct tutti_place from, to;
    struct tutti_region box;
    RETURN_IF(tutti_check_image(command_queue, image));
    RETURN_IF(tutti_check_image_box(image, origin, region, &to, &box));
    RETURN_IF(check_host_place(image, &box, input_row_pitch, input_slice_pitch, &from));
    RETURN_IF(ptr ? CL_SUCCESS : CL_INVALID_VALUE);
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    RETURN_IF(tutti_check_host_write(image));
    return tutti_enqueue(tutti_transfer_write(image, &to, ptr, &from, &box), command_queue,
                         CL_COMMAND_WRITE_IMAGE, list, blocking_write, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueFillImage(cl_command_queue command_queue,
                                                         cl_mem image, const void *fill_color,
                                                         const size_t *origin, const size_t *region,
                                                         cl_uint num_events_in_wait_list,
                                                         const cl_event *event_wait_list,
                                                         cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct tutti_place place;
    struct tutti_region box;
    RETURN_IF(tutti_check_image(command_queue, image));
    RETURN_IF(fill_color ? CL_SUCCESS : CL_INVALID_VALUE);
    RETURN_IF(tutti_check_image_box(image, origin, region, &place, &box));
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    bool depth = image->view->shape.format.image_channel_order == CL_DEPTH;
    size_t color_size = depth ? sizeof(cl_float) : sizeof(cl_float4);
    return tutti_enqueue(tutti_transfer_fill_image(image, &place, &box, fill_color, color_size),
                         command_queue, CL_COMMAND_FILL_IMAGE, list, false, event);
}

/* Boxes of one image; both are of one region. */
static bool overlap(const size_t *a, const size_t *b, const size_t *region) {
    for (int i = 0; i < 3; i++)
        if (a[i] >= b[i] + region[i] || b[i] >= a[i] + region[i])
            return false;
    return true;
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueCopyImage(
    cl_command_queue command_queue, cl_mem src_image, cl_mem dst_image, const size_t *src_origin,
    const size_t *dst_origin, const size_t *region, cl_uint num_events_in_wait_list,
    const cl_event *event_wait_list, cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct tutti_place from, to;
    struct tutti_region box;
    RETURN_IF(tutti_check_image(command_queue, src_image));
    RETURN_IF(tutti_check_image(command_queue, dst_image));
    const cl_image_format *source = &src_image->view->shape.format;
    const cl_image_format *target = &dst_image->view->shape.format;
    if (source->image_channel_order != target->image_channel_order ||
        source->image_channel_data_type != target->image_channel_data_type)
        return CL_IMAGE_FORMAT_MISMATCH;
    RETURN_IF(tutti_check_image_box(src_image, src_origin, region, &from, &box));
    RETURN_IF(tutti_check_image_box(dst_image, dst_origin, region, &to, &box));
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    if (src_image == dst_image && overlap(src_origin, dst_origin, region))
        return CL_MEM_COPY_OVERLAP;
    return tutti_enqueue(tutti_transfer_copy(src_image, &from, dst_image, &to, &box), command_queue,
                         CL_COMMAND_COPY_IMAGE, list, false, event);
}

/* The buffer's side of a copy: `box` without padding at `offset`. */
static cl_int check_buffer_place(cl_mem buffer, size_t offset, const struct tutti_region *box,
                                 struct tutti_place *place) {
    size_t row = box->size[0], slice = row * box->size[1];
    *place = (struct tutti_place){{offset, 0, 0}, row, slice};
    return tutti_check_range(buffer, offset, slice * box->size[2]);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueCopyImageToBuffer(
    cl_command_queue command_queue, cl_mem src_image, cl_mem dst_buffer, const size_t *src_origin,
    const size_t *region, size_t dst_offset, cl_uint num_events_in_wait_list,
    const cl_event *event_wait_list, cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct tutti_place from, to;
    struct tutti_region box;
    RETURN_IF(tutti_check_image(command_queue, src_image));
    RETURN_IF(tutti_check_buffer(command_queue, dst_buffer));
    RETURN_IF(src_image->parent == dst_buffer ? CL_INVALID_MEM_OBJECT : CL_SUCCESS);
    RETURN_IF(tutti_check_image_box(src_image, src_origin, region, &from, &box));
    RETURN_IF(check_buffer_place(dst_buffer, dst_offset, &box, &to));
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    return tutti_enqueue(tutti_transfer_copy(src_image, &from, dst_buffer, &to, &box),
                         command_queue, CL_COMMAND_COPY_IMAGE_TO_BUFFER, list, false, event);
}

CL_API_ENTRY cl_int CL_API_CALL tutti_clEnqueueCopyBufferToImage(
    cl_command_queue command_queue, cl_mem src_buffer, cl_mem dst_image, size_t src_offset,
    const size_t *dst_origin, const size_t *region, cl_uint num_events_in_wait_list,
    const cl_event *event_wait_list, cl_event *event) {
    struct tutti_wait_list list = {num_events_in_wait_list, event_wait_list};
    struct tutti_place from, to;
    struct tutti_region box;
    RETURN_IF(tutti_check_buffer(command_queue, src_buffer));
    RETURN_IF(tutti_check_image(command_queue, dst_image));
    RETURN_IF(dst_image->parent == src_buffer ? CL_INVALID_MEM_OBJECT : CL_SUCCESS);
    RETURN_IF(tutti_check_image_box(dst_image, dst_origin, region, &to, &box));
    RETURN_IF(check_buffer_place(src_buffer, src_offset, &box, &from));
    RETURN_IF(tutti_wait_list_check(command_queue->context, list));
    return tutti_enqueue(tutti_transfer_copy(src_buffer, &from, dst_image, &to, &box),
                         command_queue, CL_COMMAND_COPY_BUFFER_TO_IMAGE, list, false, event);
}
