# SPDX-License-Identifier: MIT
noinst_PROGRAMS += bench/overhead
bench_overhead_SOURCES = bench/overhead.c
bench_overhead_LDADD = $(OPENCL_LIBS)
