/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: small writes, fills and copies among short kernels of a GPU, whose events nobody
 * wants, go to the driver with the command before them (append.h).
 */
#include "append.h"

enum { SIZE = N * sizeof(cl_int), HALF = SIZE / 2, FAR = 10 * SLOW };

/* As many as may be under way at once, each with other contents. */
static cl_int bytes[MANY][N];
static unsigned next_bytes;

static atomic_int refused_fills; /* that the driver refuses */

static const cl_int *make_bytes(cl_int value) {
    cl_int *own = bytes[next_bytes++ % MANY];
    for (int k = 0; k < N; k++)
        own[k] = value;
    return own;
}

static void write_to(int i, cl_int value) {
    const cl_int *own = make_bytes(value);
    ck_ok(clEnqueueWriteBuffer(queues[0], buffer[i], CL_FALSE, 0, HALF, own, 0, NULL, NULL));
    ck_ok(clEnqueueWriteBuffer(queues[0], buffer[i], CL_FALSE, HALF, HALF, own, 0, NULL, NULL));
    want[i] = (cl_uint)value;
}

static void fill(int i, cl_int value) {
    ck_ok(clEnqueueFillBuffer(queues[0], buffer[i], &value, sizeof(value), 0, HALF, 0, NULL, NULL));
    ck_ok(clEnqueueFillBuffer(queues[0], buffer[i], &value, sizeof(value), HALF, HALF, 0, NULL,
                              NULL));
    want[i] = (cl_uint)value;
}

static void copy_whole(int from, int to) {
    ck_ok(clEnqueueCopyBuffer(queues[0], buffer[from], buffer[to], 0, 0, SIZE, 0, NULL, NULL));
    want[to] = want[from];
}

/* The halves change places. */
static void copy_halves(int from, int to) {
    ck_ok(clEnqueueCopyBuffer(queues[0], buffer[from], buffer[to], 0, HALF, HALF, 0, NULL, NULL));
    ck_ok(clEnqueueCopyBuffer(queues[0], buffer[from], buffer[to], HALF, 0, HALF, 0, NULL, NULL));
    want[to] = want[from];
}

/* Of each 32 bytes the first half, and then the other one. */
static void copy_boxes(int from, int to) {
    const size_t region[] = {16, SIZE / 32, 1};
    for (size_t i = 0; i < 2; i++) {
        const size_t origin[] = {16 * i, 0, 0};
        ck_ok(clEnqueueCopyBufferRect(queues[0], buffer[from], buffer[to], origin, origin, region,
                                      32, 0, 32, 0, 0, NULL, NULL));
    }
    want[to] = want[from];
}

static int appended_transfers(void) { return test_log_count("behind other commands"); }

enum kind { WRITES, FILLS, COPIES, PARTS, BOXES, KINDS };

/* Number i of them. */
static void move(enum kind kind, int i) {
    int from = 1 + i % 3, to = 4 + i % 4; /* the first buffer has parts */
    switch (kind) {
    case WRITES:
        write_to(to, i);
        break;
    case FILLS:
        fill(to, i);
        break;
    case COPIES:
        copy_whole(from, to);
        break;
    case PARTS:
        copy_halves(from, to);
        break;
    default:
        copy_boxes(from, to);
    }
}

/* Many of that kind are, with kernels between them or without. */
static void ck_appended(enum kind kind, bool kernels) {
    int most = 0;
    begin();
    for (int attempt = 0; attempt < 5 && most < MANY / 2; attempt++) {
        appended_transfers();
        for (int i = 1; i < MANY; i += SOME) {
            calm_down();
            keep_busy(queues[0], FAR);
            for (int k = i; k < i + SOME; k++) {
                move(kind, k);
                if (kernels)
                    run(queues[0], turn, 1 + k % 7, k, NULL);
            }
            ck_ok(clFinish(queues[0]));
        }
        int now = appended_transfers();
        most = now > most ? now : most;
        ck_buffers(queues[0], MOST);
    }
    ck_assert_int_ge(most, MANY / 2);
    end();
}

START_TEST(writes) { ck_appended(WRITES, true); }
END_TEST

START_TEST(fills) { ck_appended(FILLS, true); }
END_TEST

START_TEST(copies) { ck_appended(COPIES, true); }
END_TEST

START_TEST(copies_of_parts) { ck_appended(PARTS, true); }
END_TEST

START_TEST(copies_of_boxes) { ck_appended(BOXES, true); }
END_TEST

START_TEST(no_kernels_between_them) { ck_appended(FILLS, false); }
END_TEST

/* A write of bytes that are only there once a read is over waits for that. */
START_TEST(of_what_is_read_before) {
    enum { FEW = 4 };
    static cl_int seen[FEW][N];
    begin();
    for (int r = 0; r < 20; r++) {
        calm_down();
        keep_busy(queues[0], SLOW);
        for (int k = 0; k < FEW; k++) {
            run(queues[0], turn, 1, k, NULL);
            ck_ok(clEnqueueReadBuffer(queues[0], buffer[1], CL_FALSE, 0, SIZE, seen[k], 0, NULL,
                                      NULL));
            for (int i = 0; i < 3; i++) /* others come behind these */
                run(queues[0], turn, 2, k, NULL);
            ck_ok(clEnqueueWriteBuffer(queues[0], buffer[3 + k], CL_FALSE, 0, SIZE, seen[k], 0,
                                       NULL, NULL));
            want[3 + k] = want[1];
        }
        ck_buffers(queues[0], MOST);
    }
    ck_assert_int_gt(appended(), 0);
    end();
}
END_TEST

/* What comes behind them waits for them, in this queue and, by an event, in another one. */
START_TEST(others_wait_for_them) {
    begin();
    for (int r = 0; r < 40; r++) {
        cl_event last;
        calm_down();
        keep_busy(queues[0], SLOW);
        for (int kind = 0; kind < KINDS; kind++) {
            run(queues[0], turn, 1 + kind % 3, r, NULL);
            move((enum kind)kind, r + kind);
        }
        ck_ok(clEnqueueMarkerWithWaitList(queues[0], 0, NULL, &last));
        if (r % 2)
            ck_ok(clEnqueueBarrierWithWaitList(queues[1], 1, &last, NULL));
        else
            ck_ok(clWaitForEvents(1, &last));
        ck_ok(clReleaseEvent(last));
        for (int i = 0; i < 7; i++)
            run(queues[1], turn, i, r, NULL);
        ck_buffers(queues[1], MOST);
    }
    ck_assert_int_gt(appended_transfers(), 0);
    end();
}
END_TEST

/* The program needs what one wrote to no more, and its bytes neither. */
START_TEST(an_object_is_released) {
    atomic_bool gone = false;
    cl_int *own = malloc(SIZE);
    ck_assert_ptr_nonnull(own);
    memset(own, 1, SIZE);
    begin();
    ck_ok(clSetMemObjectDestructorCallback(buffer[2], note_end, &gone));
    keep_busy(queues[0], SLOW);
    run(queues[0], turn, 3, 1, NULL);
    ck_ok(clEnqueueWriteBuffer(queues[0], buffer[2], CL_FALSE, 0, SIZE, own, 0, NULL, NULL));
    ck_ok(clEnqueueCopyBuffer(queues[0], buffer[2], buffer[3], 0, 0, SIZE, 0, NULL, NULL));
    ck_ok(clSetKernelArg(turn, 0, sizeof(cl_mem), &buffer[3])); /* it had the released one */
    ck_ok(clReleaseMemObject(buffer[2]));
    buffer[2] = NULL;
    ck_ok(clFinish(queues[0]));
    free(own);
    for (int ms = 0; ms < 10000 && !atomic_load(&gone); ms++)
        usleep(1000);
    ck_assert(atomic_load(&gone));
    cl_int seen[N];
    ck_ok(clEnqueueReadBuffer(queues[0], buffer[3], CL_TRUE, 0, SIZE, seen, 0, NULL, NULL));
    for (int k = 0; k < N; k++)
        ck_assert_int_eq(seen[k], 0x01010101);
    end();
}
END_TEST

/* Then it is a command, which the driver takes. */
START_TEST(one_is_refused) {
    begin();
    for (int r = 0; r < 20; r++) {
        calm_down();
        keep_busy(queues[0], SLOW);
        run(queues[0], turn, 1, r, NULL);
        atomic_store(&refused_fills, r % 2);
        fill(1, r);
        run(queues[0], turn, 1, r, NULL);
        ck_buffers(queues[0], MOST);
    }
    ck_assert_int_gt(appended_transfers(), 0);
    end();
}
END_TEST

static cl_int CL_API_CALL refuse_fill(cl_command_queue on, cl_mem mem, const void *pattern,
                                      size_t pattern_size, size_t offset, size_t size,
                                      cl_uint count, const cl_event *list, cl_event *event) {
    if (!event && atomic_load(&refused_fills) > 0 && atomic_fetch_sub(&refused_fills, 1) > 0)
        return CL_OUT_OF_RESOURCES;
    return real.clEnqueueFillBuffer(on, mem, pattern, pattern_size, offset, size, count, list,
                                    event);
}

static void change_fills(cl_icd_dispatch *driver) {
    change(driver);
    driver->clEnqueueFillBuffer = refuse_fill;
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        writes,
        fills,
        copies,
        copies_of_parts,
        copies_of_boxes,
        no_kernels_between_them,
        of_what_is_read_before,
        others_wait_for_them,
        an_object_is_released,
        one_is_refused,
    };
    return pocl_gpu_begin("pthread", change_fills)
               ? test_main_logged(argc, argv, tests, COUNT(tests))
               : 0;
}
