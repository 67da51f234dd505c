/* SPDX-License-Identifier: MIT */
/*
 * Each entry point of OpenCL 1.2 given a NULL handle, and an object of another kind. Both must be
 * refused with the error of the specification, and the process goes on.
 */
#include "support.h"

static const size_t zero[3], one[3] = {1, 1, 1};
static cl_int host[16];
static char room[256];

static void CL_CALLBACK on_event(cl_event event, cl_int status, void *data) {
    (void)event;
    (void)status;
    (void)data;
}

static void CL_CALLBACK on_destroy(cl_mem buffer, void *data) {
    (void)buffer;
    (void)data;
}

static void CL_CALLBACK native(void *data) { (void)data; }

/* The questions with a handle in first place, which the loader may refuse by itself if NULL. */
static void check_contexts(cl_context bad) {
    const char *text = common_source;
    size_t length = 4;
    const unsigned char *binary = (const unsigned char *)"1234";
    cl_program program = make_program(common_source);

    ck_assert_cl(clRetainContext(bad), CL_INVALID_CONTEXT);
    ck_assert_cl(clReleaseContext(bad), CL_INVALID_CONTEXT);
    ck_assert_cl(clGetContextInfo(bad, CL_CONTEXT_DEVICES, sizeof(room), room, NULL),
                 CL_INVALID_CONTEXT);
    ck_refused(clCreateCommandQueue(bad, device, 0, &error), CL_INVALID_CONTEXT);
    ck_refused(clCreateBuffer(bad, 0, 64, NULL, &error), CL_INVALID_CONTEXT);
    ck_refused(clCreateUserEvent(bad, &error), CL_INVALID_CONTEXT);
    ck_refused(clCreateProgramWithSource(bad, 1, &text, NULL, &error), CL_INVALID_CONTEXT);
    ck_refused(clCreateProgramWithBinary(bad, 1, &device, &length, &binary, NULL, &error),
               CL_INVALID_CONTEXT);
    ck_refused(clCreateProgramWithBuiltInKernels(bad, 1, &device, "x", &error), CL_INVALID_CONTEXT);
    ck_refused(clLinkProgram(bad, 0, NULL, NULL, 1, &program, NULL, NULL, &error),
               CL_INVALID_CONTEXT);
    ck_ok(clReleaseProgram(program));
}

static void check_queues(cl_command_queue bad) {
    cl_mem buffer = make_buffer(0, 64, NULL);
    cl_program program = make_program(common_source);
    cl_kernel kernel = make_kernel(program, "set");
    cl_event event = NULL;

    ck_assert_cl(clRetainCommandQueue(bad), CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clReleaseCommandQueue(bad), CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clGetCommandQueueInfo(bad, CL_QUEUE_CONTEXT, sizeof(room), room, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clFlush(bad), CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clFinish(bad), CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueReadBuffer(bad, buffer, CL_TRUE, 0, 4, host, 0, NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueWriteBuffer(bad, buffer, CL_TRUE, 0, 4, host, 0, NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueReadBufferRect(bad, buffer, CL_TRUE, zero, zero, one, 0, 0, 0, 0, host, 0,
                                         NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueWriteBufferRect(bad, buffer, CL_TRUE, zero, zero, one, 0, 0, 0, 0, host,
                                          0, NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueCopyBuffer(bad, buffer, buffer, 0, 32, 4, 0, NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(
        clEnqueueCopyBufferRect(bad, buffer, buffer, zero, one, one, 0, 0, 0, 0, 0, NULL, NULL),
        CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueFillBuffer(bad, buffer, host, 4, 0, 4, 0, NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_refused(clEnqueueMapBuffer(bad, buffer, CL_TRUE, CL_MAP_READ, 0, 4, 0, NULL, NULL, &error),
               CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueUnmapMemObject(bad, buffer, host, 0, NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueMigrateMemObjects(bad, 1, &buffer, 0, 0, NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueNDRangeKernel(bad, kernel, 1, NULL, one, NULL, 0, NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueTask(bad, kernel, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueNativeKernel(bad, native, NULL, 0, 0, NULL, NULL, 0, NULL, NULL),
                 CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueMarkerWithWaitList(bad, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueBarrierWithWaitList(bad, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueMarker(bad, &event), CL_INVALID_COMMAND_QUEUE);
    ck_assert_cl(clEnqueueBarrier(bad), CL_INVALID_COMMAND_QUEUE);
    if (!excused(POCL, "PoCL 3.1 aborts in clEnqueueWaitForEvents")) {
        cl_event user = make_user_event();

        ck_assert_cl(clEnqueueWaitForEvents(bad, 1, &user), CL_INVALID_COMMAND_QUEUE);
        ck_ok(clReleaseEvent(user));
    }
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}

static void check_buffers(cl_mem bad) {
    cl_mem buffer = make_buffer(0, 64, NULL);
    cl_buffer_region region = {0, 4};

    ck_assert_cl(clRetainMemObject(bad), CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clReleaseMemObject(bad), CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clGetMemObjectInfo(bad, CL_MEM_SIZE, sizeof(room), room, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clGetImageInfo(bad, CL_IMAGE_WIDTH, sizeof(room), room, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clSetMemObjectDestructorCallback(bad, on_destroy, NULL), CL_INVALID_MEM_OBJECT);
    ck_refused(clCreateSubBuffer(bad, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error),
               CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueReadBuffer(queue, bad, CL_TRUE, 0, 4, host, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueWriteBuffer(queue, bad, CL_TRUE, 0, 4, host, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueReadBufferRect(queue, bad, CL_TRUE, zero, zero, one, 0, 0, 0, 0, host, 0,
                                         NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueWriteBufferRect(queue, bad, CL_TRUE, zero, zero, one, 0, 0, 0, 0, host, 0,
                                          NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueCopyBuffer(queue, bad, buffer, 0, 0, 4, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueCopyBuffer(queue, buffer, bad, 0, 0, 4, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    if (!excused(POCL, "PoCL 3.1 crashes on a rectangle copied from a NULL buffer")) {
        ck_assert_cl(
            clEnqueueCopyBufferRect(queue, bad, buffer, zero, zero, one, 0, 0, 0, 0, 0, NULL, NULL),
            CL_INVALID_MEM_OBJECT);
        ck_assert_cl(
            clEnqueueCopyBufferRect(queue, buffer, bad, zero, zero, one, 0, 0, 0, 0, 0, NULL, NULL),
            CL_INVALID_MEM_OBJECT);
    }
    ck_assert_cl(clEnqueueFillBuffer(queue, bad, host, 4, 0, 4, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_refused(clEnqueueMapBuffer(queue, bad, CL_TRUE, CL_MAP_READ, 0, 4, 0, NULL, NULL, &error),
               CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueUnmapMemObject(queue, bad, host, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    ck_assert_cl(clEnqueueMigrateMemObjects(queue, 1, &bad, 0, 0, NULL, NULL),
                 CL_INVALID_MEM_OBJECT);
    ck_ok(clReleaseMemObject(buffer));
}

static void check_programs(cl_program bad) {
    cl_uint count;
    cl_kernel kernel;
    cl_program good = make_program(common_source);

    ck_assert_cl(clRetainProgram(bad), CL_INVALID_PROGRAM);
    ck_assert_cl(clReleaseProgram(bad), CL_INVALID_PROGRAM);
    ck_assert_cl(clGetProgramInfo(bad, CL_PROGRAM_CONTEXT, sizeof(room), room, NULL),
                 CL_INVALID_PROGRAM);
    ck_assert_cl(
        clGetProgramBuildInfo(bad, device, CL_PROGRAM_BUILD_STATUS, sizeof(room), room, NULL),
        CL_INVALID_PROGRAM);
    ck_assert_cl(clBuildProgram(bad, 0, NULL, NULL, NULL, NULL), CL_INVALID_PROGRAM);
    ck_assert_cl(clCompileProgram(bad, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL),
                 CL_INVALID_PROGRAM);
    ck_refused(clCreateKernel(bad, "set", &error), CL_INVALID_PROGRAM);
    ck_assert_cl(clCreateKernelsInProgram(bad, 1, &kernel, &count), CL_INVALID_PROGRAM);
    if (!excused(POCL, "PoCL 3.1 crashes on a NULL program to link"))
        ck_refused(clLinkProgram(context, 0, NULL, NULL, 1, &bad, NULL, NULL, &error),
                   CL_INVALID_PROGRAM);
    ck_ok(clReleaseProgram(good));
}

static void check_kernels(cl_kernel bad) {
    ck_assert_cl(clRetainKernel(bad), CL_INVALID_KERNEL);
    ck_assert_cl(clReleaseKernel(bad), CL_INVALID_KERNEL);
    ck_assert_cl(clSetKernelArg(bad, 0, 4, host), CL_INVALID_KERNEL);
    ck_assert_cl(clGetKernelInfo(bad, CL_KERNEL_NUM_ARGS, sizeof(room), room, NULL),
                 CL_INVALID_KERNEL);
    ck_assert_cl(clGetKernelArgInfo(bad, 0, CL_KERNEL_ARG_NAME, sizeof(room), room, NULL),
                 CL_INVALID_KERNEL);
    ck_assert_cl(
        clGetKernelWorkGroupInfo(bad, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(room), room, NULL),
        CL_INVALID_KERNEL);
    if (!excused(POCL, "PoCL 3.1 crashes on a NULL kernel")) {
        ck_assert_cl(clEnqueueNDRangeKernel(queue, bad, 1, NULL, one, NULL, 0, NULL, NULL),
                     CL_INVALID_KERNEL);
        ck_assert_cl(clEnqueueTask(queue, bad, 0, NULL, NULL), CL_INVALID_KERNEL);
    }
}

static void check_events(cl_event bad) {
    cl_mem buffer = make_buffer(0, 64, NULL);

    ck_assert_cl(clRetainEvent(bad), CL_INVALID_EVENT);
    ck_assert_cl(clReleaseEvent(bad), CL_INVALID_EVENT);
    ck_assert_cl(clWaitForEvents(1, &bad), CL_INVALID_EVENT);
    ck_assert_cl(clSetUserEventStatus(bad, CL_COMPLETE), CL_INVALID_EVENT);
    ck_assert_cl(clSetEventCallback(bad, CL_COMPLETE, on_event, NULL), CL_INVALID_EVENT);
    ck_assert_cl(clGetEventInfo(bad, CL_EVENT_CONTEXT, sizeof(room), room, NULL), CL_INVALID_EVENT);
    ck_assert_cl(clGetEventProfilingInfo(bad, CL_PROFILING_COMMAND_END, sizeof(room), room, NULL),
                 CL_INVALID_EVENT);
    ck_assert_cl(clEnqueueFillBuffer(queue, buffer, host, 4, 0, 4, 1, &bad, NULL),
                 CL_INVALID_EVENT_WAIT_LIST);
    ck_assert_cl(clEnqueueMarkerWithWaitList(queue, 1, &bad, NULL), CL_INVALID_EVENT_WAIT_LIST);
    ck_assert_cl(clEnqueueBarrierWithWaitList(queue, 1, &bad, NULL), CL_INVALID_EVENT_WAIT_LIST);
    if (!excused(POCL, "PoCL 3.1 aborts in clEnqueueWaitForEvents"))
        ck_assert_cl(clEnqueueWaitForEvents(queue, 1, &bad), CL_INVALID_EVENT);
    ck_ok(clReleaseMemObject(buffer));
}

static void check_devices(cl_device_id bad) {
    const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_program program = make_program(common_source);
    cl_device_id made;
    cl_uint count;

    ck_assert_cl(clRetainDevice(bad), CL_INVALID_DEVICE);
    ck_assert_cl(clReleaseDevice(bad), CL_INVALID_DEVICE);
    ck_assert_cl(clGetDeviceInfo(bad, CL_DEVICE_TYPE, sizeof(room), room, NULL), CL_INVALID_DEVICE);
    ck_assert_cl(clCreateSubDevices(bad, equally, 1, &made, &count), CL_INVALID_DEVICE);
    ck_refused(clCreateContext(NULL, 1, &bad, NULL, NULL, &error), CL_INVALID_DEVICE);
    ck_refused(clCreateCommandQueue(context, bad, 0, &error), CL_INVALID_DEVICE);
    ck_assert_cl(
        clGetProgramBuildInfo(program, bad, CL_PROGRAM_BUILD_STATUS, sizeof(room), room, NULL),
        CL_INVALID_DEVICE);
    if (!excused(POCL, "PoCL 3.1 crashes on a NULL device in a list")) {
        ck_assert_cl(clBuildProgram(program, 1, &bad, NULL, NULL, NULL), CL_INVALID_DEVICE);
        ck_assert_cl(clCompileProgram(program, 1, &bad, NULL, 0, NULL, NULL, NULL, NULL),
                     CL_INVALID_DEVICE);
    }
    ck_ok(clReleaseProgram(program));
}

START_TEST(null_context) { check_contexts(NULL); }
END_TEST

START_TEST(null_queue) { check_queues(NULL); }
END_TEST

START_TEST(null_buffer) { check_buffers(NULL); }
END_TEST

START_TEST(null_program) { check_programs(NULL); }
END_TEST

START_TEST(null_kernel) { check_kernels(NULL); }
END_TEST

START_TEST(null_event) { check_events(NULL); }
END_TEST

START_TEST(null_device) { check_devices(NULL); }
END_TEST

START_TEST(null_sampler) {
    ck_assert_cl(clRetainSampler(NULL), CL_INVALID_SAMPLER);
    ck_assert_cl(clReleaseSampler(NULL), CL_INVALID_SAMPLER);
    ck_assert_cl(clGetSamplerInfo(NULL, CL_SAMPLER_CONTEXT, sizeof(room), room, NULL),
                 CL_INVALID_SAMPLER);
}
END_TEST

/* Objects of another kind pass through the loader, which looks only at their first word. */
START_TEST(objects_of_another_kind) {
    cl_program program = make_program(common_source);
    cl_kernel kernel = make_kernel(program, "set");

    skip_on(POCL, "PoCL 3.1 takes any object for what it expects");
    skip_on(OCLGRIND, "Oclgrind takes any object for what it expects");
    check_contexts((cl_context)queue);
    check_queues((cl_command_queue)context);
    check_buffers((cl_mem)program);
    check_programs((cl_program)kernel);
    check_kernels((cl_kernel)program);
    check_events((cl_event)kernel);
    check_devices((cl_device_id)context);
    ck_ok(clReleaseKernel(kernel));
    ck_ok(clReleaseProgram(program));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        null_context, null_queue,   null_buffer,
        null_program, null_kernel,  null_event,
        null_device,  null_sampler, objects_of_another_kind,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
