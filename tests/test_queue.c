/* SPDX-License-Identifier: MIT */
#include "support.h"

static cl_command_queue_properties offered(void) {
    return get_info(cl_command_queue_properties, clGetDeviceInfo, device,
                    CL_DEVICE_QUEUE_PROPERTIES);
}

START_TEST(create_with_each_property) {
    const cl_command_queue_properties all[] = {
        0, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
        CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE};

    for (size_t i = 0; i < COUNT(all); i++) {
        cl_command_queue made;

        if (all[i] & ~offered()) {
            ck_refused(clCreateCommandQueue(context, device, all[i], &error),
                       CL_INVALID_QUEUE_PROPERTIES);
            continue;
        }
        made = ck_made(clCreateCommandQueue(context, device, all[i], &error));
        ck_assert(get_info(cl_command_queue_properties, clGetCommandQueueInfo, made,
                           CL_QUEUE_PROPERTIES) == all[i]);
        ck_ok(clReleaseCommandQueue(made));
    }
}
END_TEST

START_TEST(create_wrong) {
    ck_refused(clCreateCommandQueue(NULL, device, 0, &error), CL_INVALID_CONTEXT);
    ck_refused(clCreateCommandQueue(context, NULL, 0, &error), CL_INVALID_DEVICE);
    ck_refused(clCreateCommandQueue(context, device, (cl_command_queue_properties)1 << 40, &error),
               CL_INVALID_VALUE);
    ck_assert_ptr_null(clCreateCommandQueue(NULL, device, 0, NULL));
}
END_TEST

START_TEST(info) {
    ck_assert(get_info(cl_context, clGetCommandQueueInfo, queue, CL_QUEUE_CONTEXT) == context);
    ck_assert(get_info(cl_device_id, clGetCommandQueueInfo, queue, CL_QUEUE_DEVICE) == device);
    ck_assert_uint_eq(get_info(cl_uint, clGetCommandQueueInfo, queue, CL_QUEUE_REFERENCE_COUNT), 1);
    check_info_rules(clGetCommandQueueInfo, queue, CL_QUEUE_CONTEXT);
    check_info_rules(clGetCommandQueueInfo, queue, CL_QUEUE_DEVICE);
    check_info_rules(clGetCommandQueueInfo, queue, CL_QUEUE_REFERENCE_COUNT);
    check_info_rules(clGetCommandQueueInfo, queue, CL_QUEUE_PROPERTIES);
}
END_TEST

START_TEST(flush_and_finish_empty) {
    ck_ok(clFlush(queue));
    ck_ok(clFinish(queue));
    ck_ok(clFinish(queue));
    ck_ok(clFlush(queue));
}
END_TEST

START_TEST(a_queue_of_every_kind_works) {
    cl_command_queue made[2];
    cl_int in[64], out[64] = {0};

    for (int i = 0; i < 64; i++)
        in[i] = i * 3;
    made[0] = make_queue(0);
    made[1] = make_queue(offered() & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    for (size_t i = 0; i < COUNT(made); i++) {
        cl_mem buffer = make_buffer(CL_MEM_READ_WRITE, sizeof(in), NULL);

        ck_ok(clEnqueueWriteBuffer(made[i], buffer, CL_TRUE, 0, sizeof(in), in, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(made[i], buffer, CL_TRUE, 0, sizeof(out), out, 0, NULL, NULL));
        ck_assert_mem_eq(in, out, sizeof(in));
        ck_ok(clReleaseMemObject(buffer));
        ck_ok(clReleaseCommandQueue(made[i]));
    }
}
END_TEST

START_TEST(many_queues_of_one_context) {
    cl_command_queue some[64];
    cl_mem buffer = make_buffer(CL_MEM_READ_WRITE, COUNT(some) * sizeof(cl_int), NULL);
    cl_int out[COUNT(some)];

    for (cl_int i = 0; i < (cl_int)COUNT(some); i++) {
        some[i] = make_queue(0);
        ck_ok(clEnqueueFillBuffer(some[i], buffer, &i, sizeof(i), i * sizeof(i), sizeof(i), 0, NULL,
                                  NULL));
    }
    for (size_t i = 0; i < COUNT(some); i++) {
        ck_ok(clFinish(some[i]));
        ck_ok(clReleaseCommandQueue(some[i]));
    }
    read_ints(buffer, out, COUNT(some));
    for (cl_int i = 0; i < (cl_int)COUNT(some); i++)
        ck_assert_int_eq(out[i], i);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(release_with_work_pending) {
    cl_command_queue made = make_queue(0);
    cl_mem buffer = make_buffer(CL_MEM_READ_WRITE, 4096, NULL);
    cl_int value = 5, out[1024];
    cl_event event;

    /* Releasing a queue flushes it; its commands still run. */
    ck_ok(clEnqueueFillBuffer(made, buffer, &value, sizeof(value), 0, 4096, 0, NULL, &event));
    ck_ok(clReleaseCommandQueue(made));
    ck_ok(clWaitForEvents(1, &event));
    ck_ok(clReleaseEvent(event));
    read_ints(buffer, out, 1024);
    for (int i = 0; i < 1024; i++)
        ck_assert_int_eq(out[i], 5);
    ck_ok(clReleaseMemObject(buffer));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        create_with_each_property,
        create_wrong,
        info,
        flush_and_finish_empty,
        a_queue_of_every_kind_works,
        many_queues_of_one_context,
        release_with_work_pending,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
