# SPDX-License-Identifier: MIT
TURNS = bench/common/turns.c bench/common/turns.h
TURNS_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/bench
noinst_PROGRAMS += bench/overhead bench/queues bench/shapes
bench_overhead_CPPFLAGS = $(TURNS_CPPFLAGS)
bench_overhead_SOURCES = bench/overhead.c $(TURNS)
bench_overhead_LDADD = $(OPENCL_LIBS)
bench_queues_CPPFLAGS = $(TURNS_CPPFLAGS)
bench_queues_SOURCES = bench/queues.c $(TURNS)
bench_queues_LDADD = $(OPENCL_LIBS)
bench_shapes_CPPFLAGS = $(TURNS_CPPFLAGS)
bench_shapes_SOURCES = bench/shapes.c $(TURNS)
bench_shapes_LDADD = $(OPENCL_LIBS)
noinst_PROGRAMS += bench/transfers/transfers
bench_transfers_transfers_SOURCES = \
	bench/transfers/between.c \
	bench/transfers/cases.c \
	bench/transfers/main.c \
	bench/transfers/target.c \
	bench/transfers/transfers.h
bench_transfers_transfers_LDADD = $(OPENCL_LIBS)

# Three workloads, each in three writings; bench/async runs and compares them.
BENCH_CPPFLAGS = $(EXAMPLE_CPPFLAGS) -I$(top_srcdir)/bench/common
BENCH_LIBS = bench/common/libbench.a $(EXAMPLE_LIBS)
noinst_LIBRARIES += bench/common/libbench.a
bench_common_libbench_a_CPPFLAGS = $(BENCH_CPPFLAGS)
bench_common_libbench_a_SOURCES = bench/common/bench.c bench/common/bench.h

noinst_PROGRAMS += bench/sobel/sobel
bench_sobel_sobel_CPPFLAGS = $(BENCH_CPPFLAGS) -Ibench/sobel
bench_sobel_sobel_LDADD = $(BENCH_LIBS)
bench_sobel_sobel_SOURCES = \
	bench/sobel/blocking.c \
	bench/sobel/by_hand.c \
	bench/sobel/main.c \
	bench/sobel/naive.c \
	bench/sobel/sobel.h
nodist_bench_sobel_sobel_SOURCES = bench/sobel/sobel_cl.inc
$(bench_sobel_sobel_OBJECTS): bench/sobel/sobel_cl.inc

noinst_PROGRAMS += bench/stencil/stencil
bench_stencil_stencil_CPPFLAGS = $(BENCH_CPPFLAGS) -Ibench/stencil

bench_stencil_stencil_LDADD = $(BENCH_LIBS)
bench_stencil_stencil_SOURCES = \
	bench/stencil/blocking.c \
	bench/stencil/by_hand.c \
	bench/stencil/main.c \
	bench/stencil/naive.c \
	bench/stencil/stencil.h
nodist_bench_stencil_stencil_SOURCES = bench/stencil/stencil_cl.inc
$(bench_stencil_stencil_OBJECTS): bench/stencil/stencil_cl.inc

noinst_PROGRAMS += bench/power/power
bench_power_power_CPPFLAGS = $(BENCH_CPPFLAGS) -Ibench/power
bench_power_power_LDADD = $(BENCH_LIBS)
bench_power_power_SOURCES = \
	bench/power/blocking.c \
	bench/power/by_hand.c \
	bench/power/main.c \
	bench/power/naive.c \
	bench/power/power.h
nodist_bench_power_power_SOURCES = bench/power/power_cl.inc
$(bench_power_power_OBJECTS): bench/power/power_cl.inc

CLEANFILES += bench/sobel/sobel_cl.inc bench/stencil/stencil_cl.inc bench/power/power_cl.inc
EXTRA_DIST += \
	bench/async \
	bench/common/results.py \
	bench/count-lines \
	bench/power/power.cl \
	bench/results/README.md \
	bench/sobel/sobel.cl \
	bench/stencil/stencil.cl \
	bench/transfers/sweep \
	bench/transfers/table
