# SPDX-License-Identifier: MIT
noinst_PROGRAMS += bench/overhead
bench_overhead_SOURCES = bench/overhead.c
bench_overhead_LDADD = $(OPENCL_LIBS)
noinst_PROGRAMS += bench/link
bench_link_SOURCES = bench/link.c
bench_link_LDADD = $(OPENCL_LIBS)
