/* SPDX-License-Identifier: MIT */
/* Only Tutti: what is appended (append.h) with all else among it that may be in a queue. */
#include "append_chance.h"

/* Halves of a buffer, and the whole; those of which each is measured by itself first. */
static void run_parts_in_turn(int count, bool apart) {
    for (int i = 0; i < count; i++) {
        if (i % 5 < 4) {
            launch_on_half(i % 2);
        } else {
            run(queues[0], turn, 0, i, NULL);
            for (int k = 0; k < N; k++)
                chance.now[0][k] = chance.now[0][k] * 3 + (cl_uint)i;
        }
        if (apart)
            ck_ok(clFinish(queues[0]));
    }
}

/* The parts become windows on the buffer (window.h). */
START_TEST(parts_in_turn) {
    int most = 0;
    begin();
    memset(&chance, 0, sizeof(chance));
    ck_ok(clEnqueueWriteBuffer(queues[0], buffer[0], CL_TRUE, 0, sizeof(chance.now[0]),
                               chance.now[0], 0, NULL, NULL));
    for (int attempt = 0; attempt < 5 && most < MANY / 2; attempt++) {
        cl_uint seen[N];
        run_parts_in_turn(MANY / 4, true);
        appended();
        for (int i = 0; i < MANY; i += SOME) {
            calm_down();
            keep_busy(queues[0], 10 * SLOW);
            run_parts_in_turn(SOME, false);
            ck_ok(clFinish(queues[0]));
        }
        int now = appended();
        most = now > most ? now : most;
        ck_ok(clEnqueueReadBuffer(queues[0], buffer[0], CL_TRUE, 0, sizeof(seen), seen, 0, NULL,
                                  NULL));
        ck_assert_mem_eq(seen, chance.now[0], sizeof(seen));
    }
    ck_assert_int_ge(most, MANY / 2);
    end();
}
END_TEST

START_TEST(all_else_among_them) {
    begin();
    ck_all_by_chance(NULL);
    ck_assert_int_gt(appended(), 0);
    end();
}
END_TEST

int main(int argc, char **argv) {
    const TTest *const tests[] = {parts_in_turn, all_else_among_them};
    return pocl_gpu_begin("pthread", change) ? test_main_logged(argc, argv, tests, COUNT(tests))
                                             : 0;
}
