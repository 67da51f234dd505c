/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: what only moves bytes, as a map, moves them from where they are, also if that device
 * is busy and another one is not. PoCL stands in for two devices with memory of their own, of which
 * one takes far longer for each kernel.
 */
#include "slow_gpu.h"
#include "traffic.h"

enum { N = 64, TASKS = 32, ROUNDS = 20, TIME = 20, OTHER_TIME = 5000 /* µs */ };

static const char source[] = "kernel void advance(global const int *from, global int *to)"
                             "{ size_t i = get_global_id(0); to[i] = from[i] + 1; }\n"
                             "kernel void inspect(global const int *all, global int *found)"
                             "{ size_t i = get_global_id(0); found[i] = all[i] * 2; }\n";

static struct task {
    cl_int from[N], to[N], found[N];
    cl_mem mem[3];
    void *mapped[2];
} tasks[TASKS];

static void enqueue(struct task *task, cl_kernel advance, cl_kernel inspect) {
    const size_t items = N;
    cl_event advanced, inspected;
    cl_int *const host[] = {task->from, task->to, task->found};
    for (int i = 0; i < 3; i++)
        task->mem[i] = make_buffer(CL_MEM_USE_HOST_PTR, sizeof(task->from), host[i]);
    for (cl_uint i = 0; i < 2; i++) {
        ck_ok(clSetKernelArg(advance, i, sizeof(cl_mem), &task->mem[i]));
        ck_ok(clSetKernelArg(inspect, i, sizeof(cl_mem), &task->mem[i + 1]));
    }
    ck_ok(clEnqueueNDRangeKernel(queue, advance, 1, NULL, &items, NULL, 0, NULL, &advanced));
    ck_ok(clEnqueueNDRangeKernel(queue, inspect, 1, NULL, &items, NULL, 1, &advanced, &inspected));
    for (int i = 0; i < 2; i++)
        task->mapped[i] = ck_made(clEnqueueMapBuffer(
            queue, task->mem[2 - i], CL_FALSE, CL_MAP_READ, 0, sizeof(task->from), 1,
            i == 0 ? &inspected : &advanced, NULL, &error));
    ck_ok(clReleaseEvent(advanced));
    ck_ok(clReleaseEvent(inspected));
}

/* Gives the bytes that went to the other device. */
static cl_ulong finish(struct task *task, cl_int value) {
    struct traffic on[MOST_REAL];
    cl_ulong bytes = 0;
    for (int i = 0; i < 2; i++) {
        ck_all(task->mapped[i], N, i == 0 ? 2 * value : value);
        ck_ok(clEnqueueUnmapMemObject(queue, task->mem[2 - i], task->mapped[i], 0, NULL, NULL));
    }
    for (int i = 0; i < 3; i++) {
        ck_ok(find_traffic()(task->mem[i], MOST_REAL, on, NULL));
        bytes += on[1].bytes_to_device;
        ck_ok(clReleaseMemObject(task->mem[i]));
    }
    return bytes;
}

START_TEST(maps_stay_where_the_data_is) {
    cl_program program = make_program(source);
    cl_kernel advance = make_kernel(program, "advance"), inspect = make_kernel(program, "inspect");
    cl_ulong bytes = 0;
    for (cl_int round = 0; round < 2 * ROUNDS; round++) {
        for (int t = 0; t < TASKS; t++) {
            for (int i = 0; i < N; i++)
                tasks[t].from[i] = round;
            enqueue(&tasks[t], advance, inspect);
        }
        ck_ok(clFinish(queue));
        if (round == ROUNDS) /* by now it is known how long they take on each */
            bytes = 0;
        for (int t = 0; t < TASKS; t++)
            bytes += finish(&tasks[t], round + 1);
    }
    /* But for a kernel or two: a machine that is busy makes them seem longer where they are. */
    ck_assert_uint_le(bytes, ROUNDS * TASKS * sizeof(tasks->from) / 100);
    ck_ok(clReleaseKernel(advance));
    ck_ok(clReleaseKernel(inspect));
    ck_ok(clReleaseProgram(program));
}
END_TEST

static void change(cl_icd_dispatch *driver) {
    slow_change(driver);
    slow.length = TIME * 1000;
    slow.beside = OTHER_TIME * 1000;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {maps_stay_where_the_data_is};

    setenv("TUTTI_DEVICE_MEMORY", "256M", 1);
    return pocl_gpu_begin("pthread basic", change) ? test_main(argc, argv, tests, COUNT(tests)) : 0;
}
