/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: one device that is several real ones. How many commands each real device ran is
 * told by Tutti's own extension function.
 */
#include "native.h"
#include "task_counts.h"
#include "traffic.h"

enum { MANY = 64, N = 2048, BYTES = N * sizeof(cl_int) };

START_TEST(the_extension_function) {
    task_counts_function function = task_counts();
    cl_uint number = 0;
    cl_ulong counts[REAL];
    char names[REAL][64];

    ck_assert_ptr_nonnull(function);
    ck_ok(function(device, 0, NULL, NULL, &number));
    ck_assert_uint_ge(number, 1);
    ck_ok(function(device, REAL, counts, names, NULL));
    for (cl_uint i = 0; i < number && i < REAL; i++)
        ck_assert_msg(memchr(names[i], 0, 64) && names[i][0], "real device %u has no name", i);
    ck_assert_cl(function(NULL, REAL, counts, names, &number), CL_INVALID_DEVICE);
}
END_TEST

START_TEST(both_devices_work) {
    cl_program program = make_program(common_source);
    cl_kernel slow = make_kernel(program, "slow"), add = make_kernel(program, "add");
    cl_mem buffers[MANY];
    cl_ulong before[REAL], after[REAL];
    cl_int *values = calloc(1, BYTES), rounds = 20000, one = 1;
    cl_uint number = read_counts(before);

    skip_if(number < 2, "one real device only");
    skip_if(!equal_devices(), "a slower device gets work only if that pays");
    for (int i = 0; i < MANY; i++) {
        for (int j = 0; j < N; j++)
            values[j] = i;
        buffers[i] = make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, values);
    }
    for (int i = 0; i < MANY; i++) {
        ck_ok(clSetKernelArg(slow, 0, sizeof(cl_mem), &buffers[i]));
        ck_ok(clSetKernelArg(slow, 1, sizeof(rounds), &rounds));
        launch(slow, N);
        ck_ok(clSetKernelArg(add, 0, sizeof(cl_mem), &buffers[i]));
        ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
        launch(add, N);
    }
    ck_ok(clFinish(queue));
    for (int i = 0; i < MANY; i++) {
        uint32_t x = (uint32_t)i;

        for (int j = 0; j < rounds; j++)
            x = x * 1664525u + 1013904223u;
        read_ints(buffers[i], values, N);
        for (int j = 0; j < N; j++)
            ck_assert_int_eq(values[j], (cl_int)(x + 1));
        ck_ok(clReleaseMemObject(buffers[i]));
    }
    read_counts(after);
    for (cl_uint i = 0; i < number; i++)
        ck_assert_msg(after[i] > before[i], "real device %u of %u ran nothing", i, number);
    free(values);
    ck_ok(clReleaseKernel(slow));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(data_follow_the_commands) {
    enum { CHAIN = 8, STEPS = 40 };
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add"), copy = make_kernel(program, "copy");
    cl_mem buffers[CHAIN];
    cl_int *values = calloc(1, BYTES), expected[CHAIN], value;

    for (int i = 0; i < CHAIN; i++) {
        for (int j = 0; j < N; j++)
            values[j] = 100 * i;
        expected[i] = 100 * i;
        buffers[i] = make_buffer(CL_MEM_COPY_HOST_PTR, BYTES, values);
    }
    /* Each copy may find its source on one device and its target on another. */
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < CHAIN; i++) {
            int from = (i + 3 * step + 1) % CHAIN;

            value = step + i;
            ck_ok(clSetKernelArg(add, 0, sizeof(cl_mem), &buffers[i]));
            ck_ok(clSetKernelArg(add, 1, sizeof(value), &value));
            launch(add, N);
            expected[i] += value;
            if (from == i)
                continue;
            ck_ok(clSetKernelArg(copy, 0, sizeof(cl_mem), &buffers[from]));
            ck_ok(clSetKernelArg(copy, 1, sizeof(cl_mem), &buffers[i]));
            launch(copy, N);
            expected[i] = expected[from];
            if (step % 4 == 0) {
                ck_ok(clEnqueueCopyBuffer(queue, buffers[i], buffers[from], 0, 0, BYTES / 2, 0,
                                          NULL, NULL));
            }
        }
    }
    for (int i = 0; i < CHAIN; i++) {
        read_ints(buffers[i], values, N);
        for (int j = 0; j < N; j++)
            ck_assert_msg(values[j] == expected[i], "buffer %d element %d is %d, expected %d", i, j,
                          values[j], expected[i]);
        ck_ok(clReleaseMemObject(buffers[i]));
    }
    free(values);
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseKernel(copy));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/* Do all real devices work in the host's memory? PoCL's do, if they need not seem to be GPUs. */
static bool all_at_home(void) {
    task_counts_function function = task_counts();
    char names[REAL][64];
    cl_ulong counts[REAL];
    cl_uint number = 0;
    bool all = !getenv("TUTTI_TRANSFER") && !getenv("TUTTI_DEVICE_MEMORY");

    ck_ok(function(device, REAL, counts, names, &number));
    for (cl_uint i = 0; i < number && i < REAL; i++)
        all = all && (strncmp(names[i], "basic", 5) == 0 || strncmp(names[i], "pthread", 7) == 0);
    return all;
}

/* The host and both devices use a buffer in turn: there is one copy of it, and nothing moves. */
START_TEST(one_copy_in_home_memory) {
    enum { ROUNDS = 20 };
    static cl_int memory[N] __attribute__((aligned(4096)));
    cl_program program = make_program(common_source);
    cl_kernel add = make_kernel(program, "add");
    const cl_mem_flags kinds[] = {0, CL_MEM_ALLOC_HOST_PTR, CL_MEM_USE_HOST_PTR};
    cl_int one = 1, part = 7, *mapped;

    skip_if(!all_at_home(), "a device has memory of its own");
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        cl_mem buffer =
            make_buffer(kinds[kind], BYTES, kinds[kind] == CL_MEM_USE_HOST_PTR ? memory : NULL);
        memset(memory, 0, BYTES);
        ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
        ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
        for (cl_int round = 0; round < ROUNDS; round++) {
            mapped =
                ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION,
                                           0, BYTES, 0, NULL, NULL, &error));
            for (int i = 0; i < N; i++)
                mapped[i] = round;
            ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
            launch(add, N);
            ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 4, 4, &part, 0, NULL, NULL));
            launch(add, N);
            mapped = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, BYTES, 0,
                                                NULL, NULL, &error));
            for (int i = 0; i < N; i++)
                ck_assert_int_eq(mapped[i], i == 1 ? part + 1 : round + 2);
            ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
        }
        struct traffic seen = traffic_of(buffer);
        ck_assert_uint_eq(seen.bytes_to_device, 0);
        ck_assert_uint_eq(seen.bytes_from_device, 0);
        ck_ok(clReleaseMemObject(buffer));
    }
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}
END_TEST

START_TEST(readers_of_one_buffer_everywhere) {
    cl_program program = make_program(common_source);
    cl_kernel copy = make_kernel(program, "copy");
    cl_int *values = calloc(1, BYTES);
    cl_mem source, targets[MANY];

    for (int j = 0; j < N; j++)
        values[j] = 3 * j;
    source = make_buffer(CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, BYTES, values);
    for (int i = 0; i < MANY; i++) {
        targets[i] = make_buffer(CL_MEM_WRITE_ONLY, BYTES, NULL);
        ck_ok(clSetKernelArg(copy, 0, sizeof(source), &source));
        ck_ok(clSetKernelArg(copy, 1, sizeof(cl_mem), &targets[i]));
        launch(copy, N);
    }
    for (int i = 0; i < MANY; i++) {
        read_ints(targets[i], values, N);
        for (int j = 0; j < N; j++)
            ck_assert_int_eq(values[j], 3 * j);
        ck_ok(clReleaseMemObject(targets[i]));
    }
    free(values);
    ck_ok(clReleaseMemObject(source));
    ck_ok(clReleaseKernel(copy));
    ck_ok(clReleaseProgram(program));
}
END_TEST

/*
 * PoCL 3.1 miscounts who uses its machine code when two devices execute one kernel at once, one of
 * them with the widest index space so far.
 */
START_TEST(one_kernel_wider_and_wider) {
    enum { LAUNCHES = 400, STEP = 32, LARGEST = LAUNCHES * STEP };
    cl_program program = make_program(common_source);
    cl_kernel slow = make_kernel(program, "slow");
    cl_int *values = calloc(LARGEST, sizeof(cl_int)), rounds = 100;
    cl_mem buffers[REAL];
    size_t local = 4;

    for (int i = 0; i < REAL; i++)
        buffers[i] = make_buffer(CL_MEM_COPY_HOST_PTR, LARGEST * sizeof(cl_int), values);
    ck_ok(clSetKernelArg(slow, 1, sizeof(rounds), &rounds));
    for (int n = 0; n < LAUNCHES; n++) {
        size_t global = STEP * ((size_t)n + 1);

        ck_ok(clSetKernelArg(slow, 0, sizeof(cl_mem), &buffers[n % REAL]));
        ck_ok(clEnqueueNDRangeKernel(queue, slow, 1, NULL, &global, n / 64 % 2 ? NULL : &local, 0,
                                     NULL, NULL));
    }
    for (int i = 0; i < REAL; i++) {
        uint32_t x = 0;

        ck_ok(clEnqueueReadBuffer(queue, buffers[i], CL_TRUE, 0, LARGEST * sizeof(cl_int), values,
                                  0, NULL, NULL));
        for (int j = LARGEST - 1; j >= 0; j--) {
            if (j % (STEP * REAL) == STEP * (i + 1) - 1) /* one launch more reached this far */
                for (int r = 0; r < rounds; r++)
                    x = x * 1664525u + 1013904223u;
            ck_assert_int_eq(values[j], (cl_int)x);
        }
        ck_ok(clReleaseMemObject(buffers[i]));
    }
    free(values);
    ck_ok(clReleaseKernel(slow));
    ck_ok(clReleaseProgram(program));
}
END_TEST

enum { TURNS = 9, ROUNDS = 200000 };

/*
 * One kernel takes a hundred times as long as the others, which only its data tells. Do they begin
 * in their order? Two devices that are free at the same time may begin as they like.
 */
static bool begin_in_turn(cl_kernel work, cl_mem buffers[TURNS], cl_command_queue timed) {
    cl_int many[2] = {100 * ROUNDS, 1};
    cl_ulong start[TURNS];
    cl_event events[TURNS];
    cl_event gate = ck_made(clCreateUserEvent(context, &error));
    cl_mem other = make_buffer(0, sizeof(many), NULL);
    size_t items = 1;
    bool in_turn = true;

    ck_ok(clEnqueueWriteBuffer(queue, buffers[0], CL_TRUE, 0, sizeof(many), many, 0, NULL, NULL));
    for (int i = 0; i < TURNS; i++) {
        ck_ok(clSetKernelArg(work, 0, sizeof(cl_mem), &buffers[i]));
        ck_ok(clEnqueueNDRangeKernel(timed, work, 1, NULL, &items, NULL, 1, &gate, &events[i]));
    }
    occupy(other); /* what is alone goes past StarPU */
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clFinish(timed));
    vacate();
    for (int i = 0; i < TURNS; i++) {
        start[i] =
            get_info(cl_ulong, clGetEventProfilingInfo, events[i], CL_PROFILING_COMMAND_START);
        in_turn = in_turn && (i < 2 || start[i] >= start[i - 2]);
        ck_ok(clReleaseEvent(events[i]));
    }
    ck_ok(clReleaseEvent(gate));
    ck_ok(clReleaseMemObject(other));
    return in_turn;
}

START_TEST(long_ones_in_their_turn) {
    enum { WARM = 20, TRIES = 5 };
    static const char source[] =
        "kernel void work(global int *data) {"
        "    uint noise = data[1];"
        "    for (int i = 0; i < data[0]; i++) noise = noise * 1664525u + 1013904223u;"
        "    data[1] = (int)noise;"
        "}";
    cl_int rounds[2] = {ROUNDS, 1};
    cl_mem buffers[TURNS];
    cl_command_queue timed = make_queue(CL_QUEUE_PROFILING_ENABLE);
    cl_program program = make_program(source);
    cl_kernel work = make_kernel(program, "work");
    int tries = 0;

    skip_if(!all_are_pocl() || !equal_devices(), "devices of several kinds");
    for (int i = 0; i < TURNS; i++)
        buffers[i] = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(rounds), rounds);
    for (int i = 0; i < WARM; i++) {
        ck_ok(clSetKernelArg(work, 0, sizeof(cl_mem), &buffers[i % TURNS]));
        launch(work, 1);
        ck_ok(clFinish(queue));
    }
    /* A thread that took its turn may lose the processor before the kernel begins. */
    while (tries < TRIES && !begin_in_turn(work, buffers, timed))
        tries++;
    ck_assert_int_lt(tries, TRIES);
    for (int i = 0; i < TURNS; i++)
        ck_ok(clReleaseMemObject(buffers[i]));
    ck_ok(clReleaseKernel(work));
    ck_ok(clReleaseProgram(program));
    ck_ok(clReleaseCommandQueue(timed));
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        the_extension_function,           both_devices_work,          data_follow_the_commands,
        readers_of_one_buffer_everywhere, one_kernel_wider_and_wider, one_copy_in_home_memory,
        long_ones_in_their_turn,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
