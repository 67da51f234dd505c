/* SPDX-License-Identifier: MIT */
/* Many of everything, and nothing that stays behind. */
#include "resident.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

/* Runs the step many times, the first quarter to warm up, and checks that memory has stayed. */
static void check_flat(void (*step)(void), size_t count, size_t allowed) {
    size_t start, grown;

    for (size_t i = 0; i < count / 4; i++)
        step();
    ck_ok(clFinish(queue));
    start = resident();
    for (size_t i = count / 4; i < count; i++)
        step();
    ck_ok(clFinish(queue));
    grown = resident() > start ? resident() - start : 0;
    ck_assert_msg(!MEMORY_IS_MEASURED || grown <= allowed,
                  "%zu rounds grew the process by %zu kB, %zu kB allowed", count - count / 4,
                  grown >> 10, allowed >> 10);
}

static cl_program program;
static cl_kernel add;
static cl_mem buffer;
static size_t gated_rounds, gated_rounds_wanted;

static void begin(void) {
    cl_int zero[16] = {0}, one = 1;

    program = make_program(common_source);
    add = make_kernel(program, "add");
    buffer = make_buffer(CL_MEM_COPY_HOST_PTR, sizeof(zero), zero);
    ck_ok(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(add, 1, sizeof(one), &one));
}

static void end(void) {
    ck_ok(clReleaseMemObject(buffer));
    ck_ok(clReleaseKernel(add));
    ck_ok(clReleaseProgram(program));
}

START_TEST(contexts_at_once) {
    enum { MANY = 300 };
    cl_context contexts[MANY];
    cl_command_queue queues[MANY];
    cl_int seen;

    for (cl_int i = 0; i < MANY; i++) {
        cl_mem made;

        contexts[i] = ck_made(clCreateContext(NULL, 1, &device, NULL, NULL, &error));
        queues[i] = ck_made(clCreateCommandQueue(contexts[i], device, 0, &error));
        made = ck_made(clCreateBuffer(contexts[i], 0, 64, NULL, &error));
        ck_ok(clEnqueueFillBuffer(queues[i], made, &i, 4, 0, 64, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(queues[i], made, CL_TRUE, 0, 4, &seen, 0, NULL, NULL));
        ck_assert_int_eq(seen, i);
        ck_ok(clReleaseMemObject(made));
    }
    for (int i = 0; i < MANY; i++) {
        ck_ok(clReleaseCommandQueue(queues[i]));
        ck_ok(clReleaseContext(contexts[i]));
    }
}
END_TEST

static void batch_of_kernels(void) {
    for (int i = 0; i < 1000; i++)
        launch(add, 16);
    ck_ok(clFinish(queue));
}

START_TEST(kernels_and_finish) {
    size_t batches = test_size("TUTTI_TEST_COMMANDS", 1000000) / 1000;
    cl_int seen;

    begin();
    check_flat(batch_of_kernels, batches, 8 << 20);
    read_ints(buffer, &seen, 1);
    ck_assert_int_eq(seen, (cl_int)(batches * 1000));
    end();
}
END_TEST

START_TEST(kernels_without_finish) {
    cl_int count = (cl_int)test_size("TUTTI_TEST_COMMANDS", 1000000) / 2, seen;

    begin();
    for (cl_int i = 0; i < count; i++)
        launch(add, 16);
    read_ints(buffer, &seen, 1);
    ck_assert_int_eq(seen, count);
    end();
}
END_TEST

static void every_kind(void) {
    cl_int host[16];
    cl_event events[4];
    void *mapped;

    for (int i = 0; i < 50; i++) {
        ck_ok(clEnqueueFillBuffer(queue, buffer, &i, 4, 0, 64, 0, NULL, &events[0]));
        ck_ok(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, 64, host, 1, &events[0], &events[1]));
        ck_ok(clEnqueueMarkerWithWaitList(queue, 2, events, &events[2]));
        events[3] = make_user_event();
        ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, 64, host, 1, &events[3], NULL));
        ck_ok(clSetUserEventStatus(events[3], CL_COMPLETE));
        mapped = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                            64, 0, NULL, NULL, &error));
        ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
        ck_ok(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
        for (size_t j = 0; j < COUNT(events); j++)
            ck_ok(clReleaseEvent(events[j]));
    }
}

START_TEST(every_kind_of_command) {
    begin();
    check_flat(every_kind, test_size("TUTTI_TEST_COMMANDS", 1000000) / 2000, 8 << 20);
    end();
}
END_TEST

/* Commands behind a gate, others that may pass them, and a loop through one buffer. */
static void gates_and_loops(void) {
    static cl_mem other;
    static cl_int in[16], out[16];
    cl_event gate = make_user_event();

    if (!other)
        other = make_buffer(0, 64, NULL);
    for (int i = 0; i < 20; i++) {
        ck_ok(
            clEnqueueFillBuffer(queue, buffer, &i, 4, 0, 64, i == 0, i == 0 ? &gate : NULL, NULL));
        launch(add, 16);
        ck_ok(clEnqueueWriteBuffer(queue, other, CL_FALSE, 0, 64, in, 0, NULL, NULL));
        ck_ok(clEnqueueCopyBuffer(queue, other, buffer, 0, 0, 32, 0, NULL, NULL));
        ck_ok(clEnqueueReadBuffer(queue, other, CL_FALSE, 0, 64, out, 0, NULL, NULL));
    }
    ck_ok(clSetUserEventStatus(gate, CL_COMPLETE));
    ck_ok(clFinish(queue));
    ck_ok(clReleaseEvent(gate));
    if (++gated_rounds == gated_rounds_wanted) {
        ck_ok(clReleaseMemObject(other));
        other = NULL;
    }
}

START_TEST(held_commands_and_versions) {
    begin();
    gated_rounds = 0;
    gated_rounds_wanted = test_size("TUTTI_TEST_COMMANDS", 1000000) / 1000 * 4;
    check_flat(gates_and_loops, gated_rounds_wanted, 8 << 20);
    end();
}
END_TEST

static void some_buffers(void) {
    for (int i = 0; i < 50; i++) {
        cl_mem made = make_buffer(0, 1 << 20, NULL);
        cl_int value = i;

        ck_ok(clEnqueueFillBuffer(queue, made, &value, 4, 0, 1 << 20, 0, NULL, NULL));
        ck_ok(clFinish(queue));
        ck_ok(clReleaseMemObject(made));
    }
}

START_TEST(buffers_come_and_go) {
    begin();
    check_flat(some_buffers, 40, 32 << 20);
    end();
}
END_TEST

/* Each time of another size, so that nothing is fit to be used again. */
static void kernel_on_new_sizes(void) {
    static size_t size = 1 << 20;

    for (int i = 0; i < 8; i++, size += 4096) {
        cl_mem made = make_buffer(0, size, NULL);

        ck_ok(clSetKernelArg(add, 0, sizeof(made), &made));
        launch(add, size / sizeof(cl_int));
        ck_ok(clFinish(queue));
        ck_ok(clReleaseMemObject(made));
    }
}

START_TEST(device_memory_is_given_back) {
    begin();
    check_flat(kernel_on_new_sizes, 40, 128 << 20);
    end();
}
END_TEST

/* Nobody reads what the next one overwrites: storage for each of them is memory for nothing. */
START_TEST(writes_behind_writes) {
    enum { SIZE = 32 << 20, MANY = 6 };
    skip_if(!no_device_memory(), "a device has memory of its own");

    cl_mem made = make_buffer(0, SIZE, NULL);
    char *data = malloc(SIZE), *back = calloc(1, SIZE);
    size_t start;

    memset(data, 1, SIZE);
    ck_ok(clEnqueueWriteBuffer(queue, made, CL_TRUE, 0, SIZE, data, 0, NULL, NULL));
    start = resident();
    for (int i = 0; i < MANY; i++)
        ck_ok(clEnqueueWriteBuffer(queue, made, CL_FALSE, 0, SIZE, data, 0, NULL, NULL));
    ck_ok(clFinish(queue));
    if (MEMORY_IS_MEASURED)
        ck_assert_msg(resident() < start + SIZE, "%zu MiB more", (resident() - start) >> 20);
    ck_ok(clEnqueueReadBuffer(queue, made, CL_TRUE, 0, SIZE, back, 0, NULL, NULL));
    ck_assert(!memcmp(data, back, SIZE));
    ck_ok(clReleaseMemObject(made));
    free(data);
    free(back);
}
END_TEST

static void one_context(void) {
    for (int i = 0; i < 20; i++) {
        cl_context made = ck_made(clCreateContext(NULL, 1, &device, NULL, NULL, &error));
        cl_command_queue own = ck_made(clCreateCommandQueue(made, device, 0, &error));

        ck_ok(clReleaseCommandQueue(own));
        ck_ok(clReleaseContext(made));
    }
}

START_TEST(contexts_come_and_go) {
    begin();
    check_flat(one_context, 40, 16 << 20);
    end();
}
END_TEST

START_TEST(events_kept) {
    enum { MANY = 5000 };
    cl_event *events = calloc(MANY, sizeof(cl_event));
    const size_t all = 16;

    begin();
    for (int i = 0; i < MANY; i++)
        ck_ok(clEnqueueNDRangeKernel(queue, add, 1, NULL, &all, NULL, 0, NULL, &events[i]));
    ck_ok(clWaitForEvents(MANY, events));
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(event_status(events[i]), CL_COMPLETE);
        ck_ok(clReleaseEvent(events[i]));
    }
    free(events);
    end();
}
END_TEST

START_TEST(an_idle_process_uses_no_processor) {
    double spent = 1;

    begin();
    launch(add, 16);
    ck_ok(clFinish(queue));
    /* On a loaded machine it may take a while until all threads have gone to sleep. */
    for (int tries = 0; tries < 5 && spent >= 0.2; tries++) {
        usleep(200000);
        clock_t before = clock();
        usleep(1000000);
        spent = (double)(clock() - before) / CLOCKS_PER_SEC;
    }
    ck_assert_msg(spent < 0.2, "an idle second cost %.2f s of processor time", spent);
    end();
}
END_TEST

/* Processor time of all threads, and of the busiest since `before`, in ns. */
struct spent {
    int count;
    struct {
        long tid;
        unsigned long long time;
    } thread[256];
};

static void look_at_threads(struct spent *spent) {
    DIR *threads = opendir("/proc/self/task");
    struct dirent *entry;

    ck_assert_ptr_nonnull(threads);
    spent->count = 0;
    while ((entry = readdir(threads)) && spent->count < 256) {
        char path[300];
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", entry->d_name);
        file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (!file)
            continue;
        spent->thread[spent->count].tid = atol(entry->d_name);
        if (fscanf(file, "%llu", &spent->thread[spent->count].time) == 1)
            spent->count++;
        fclose(file);
    }
    closedir(threads);
}

static unsigned long long busiest(const struct spent *before, const struct spent *after,
                                  unsigned long long *others) {
    unsigned long long most = 0, all = 0;

    for (int i = 0; i < after->count; i++) {
        unsigned long long time = after->thread[i].time;

        for (int j = 0; j < before->count; j++)
            if (before->thread[j].tid == after->thread[i].tid)
                time -= before->thread[j].time;
        all += time;
        most = time > most ? time : most;
    }
    *others = all - most;
    return most;
}

/* One work-item keeps one core; the driver's threads that have nothing to do must not. */
START_TEST(a_running_kernel_uses_one_core) {
    const char *source = "kernel void spin(global uint *p, uint count) {"
                         "    uint x = p[0];"
                         "    for (uint i = 0; i < count; i++)"
                         "        x = x * 1664525u + (x >> 7);"
                         "    p[0] = x;"
                         "}";
    cl_program made = make_program(source);
    cl_kernel spin = make_kernel(made, "spin");
    static struct spent before, after;
    unsigned long long one = 0, others = 0;
    cl_device_type type = get_info(cl_device_type, clGetDeviceInfo, device, CL_DEVICE_TYPE);

    skip_if(type & CL_DEVICE_TYPE_GPU, "the core is the GPU's, and threads ask for its end");
    begin();
    ck_ok(clSetKernelArg(spin, 0, sizeof(buffer), &buffer));
    for (cl_uint count = 1 << 14; one < 300000000; count *= 2) {
        look_at_threads(&before);
        ck_ok(clSetKernelArg(spin, 1, sizeof(count), &count));
        launch(spin, 1);
        ck_ok(clFinish(queue));
        look_at_threads(&after);
        one = busiest(&before, &after, &others);
    }
    ck_assert_msg(others < one / 2, "beside a thread at work for %llu ms the others took %llu ms",
                  one / 1000000, others / 1000000);
    ck_ok(clReleaseKernel(spin));
    ck_ok(clReleaseProgram(made));
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        contexts_at_once,
        kernels_and_finish,
        kernels_without_finish,
        every_kind_of_command,
        held_commands_and_versions,
        buffers_come_and_go,
        device_memory_is_given_back,
        writes_behind_writes,
        contexts_come_and_go,
        events_kept,
        an_idle_process_uses_no_processor,
        a_running_kernel_uses_one_core,
    };

    return test_main(argc, argv, tests, COUNT(tests));
}
