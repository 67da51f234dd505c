# SPDX-License-Identifier: MIT

EXAMPLE_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/examples/common $(LIBPNG_CFLAGS)
EXAMPLE_LIBS = examples/common/libcommon.a $(OPENCL_LIBS) $(LIBPNG_LIBS) -lm

# What all examples share; a convenience library, so that each is compiled once.
noinst_LIBRARIES += examples/common/libcommon.a
examples_common_libcommon_a_CPPFLAGS = $(EXAMPLE_CPPFLAGS)
examples_common_libcommon_a_SOURCES = \
	examples/common/check.c \
	examples/common/check.h \
	examples/common/distribute.c \
	examples/common/distribute.h \
	examples/common/image.c \
	examples/common/image.h \
	examples/common/lanes.c \
	examples/common/lanes.h \
	examples/common/measure.c \
	examples/common/measure.h \
	examples/common/options.c \
	examples/common/options.h \
	examples/common/report.c \
	examples/common/report.h \
	examples/common/task_counts.c \
	examples/common/task_counts.h

# A kernel file as a C string, line by line, for #include in an initialiser.
SUFFIXES = .cl _cl.inc
.cl_cl.inc:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(SED) -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^.*$$/"&\\n"/' $< > $@.new && mv $@.new $@

noinst_PROGRAMS += examples/matmul/matmul
examples_matmul_matmul_CPPFLAGS = $(EXAMPLE_CPPFLAGS) -Iexamples/matmul
examples_matmul_matmul_LDADD = $(EXAMPLE_LIBS)
examples_matmul_matmul_SOURCES = examples/matmul/matmul.c
nodist_examples_matmul_matmul_SOURCES = examples/matmul/matmul_cl.inc
$(examples_matmul_matmul_OBJECTS): examples/matmul/matmul_cl.inc
CLEANFILES += examples/matmul/matmul_cl.inc
EXTRA_DIST += examples/matmul/matmul.cl examples/matmul/README.md examples/matmul/matmul.png

# The host repeats the kernel's operations one by one to check it.
noinst_PROGRAMS += examples/mandelbrot/mandelbrot
examples_mandelbrot_mandelbrot_CPPFLAGS = $(EXAMPLE_CPPFLAGS) -Iexamples/mandelbrot
examples_mandelbrot_mandelbrot_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
examples_mandelbrot_mandelbrot_LDADD = $(EXAMPLE_LIBS)
examples_mandelbrot_mandelbrot_SOURCES = \
	examples/mandelbrot/mandelbrot.c \
	examples/mandelbrot/view.c \
	examples/mandelbrot/view.h
nodist_examples_mandelbrot_mandelbrot_SOURCES = examples/mandelbrot/mandelbrot_cl.inc
$(examples_mandelbrot_mandelbrot_OBJECTS): examples/mandelbrot/mandelbrot_cl.inc
CLEANFILES += examples/mandelbrot/mandelbrot_cl.inc
EXTRA_DIST += \
	examples/mandelbrot/README.md \
	examples/mandelbrot/mandelbrot.cl \
	examples/mandelbrot/mandelbrot.png

noinst_PROGRAMS += examples/amr/amr
examples_amr_amr_CPPFLAGS = $(EXAMPLE_CPPFLAGS) -Iexamples/amr
examples_amr_amr_LDADD = $(EXAMPLE_LIBS)
examples_amr_amr_SOURCES = \
	examples/amr/amr.c \
	examples/amr/blocks.c \
	examples/amr/blocks.h \
	examples/amr/picture.c \
	examples/amr/picture.h \
	examples/amr/solver.c \
	examples/amr/solver.h \
	examples/amr/tree.c \
	examples/amr/tree.h
nodist_examples_amr_amr_SOURCES = examples/amr/euler_cl.inc
$(examples_amr_amr_OBJECTS): examples/amr/euler_cl.inc
CLEANFILES += examples/amr/euler_cl.inc
EXTRA_DIST += examples/amr/README.md examples/amr/amr.png examples/amr/euler.cl

# Runs the three; needs no building.
EXTRA_DIST += bench/paper
