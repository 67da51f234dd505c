# SPDX-License-Identifier: MIT
libtutti_la_SOURCES += icd/door.c
nodist_libtutti_la_SOURCES += icd/entry_points.h icd/dispatch.c
EXTRA_DIST += icd/entry_points.list icd/generate.awk
BUILT_SOURCES += icd/entry_points.h
CLEANFILES += icd/entry_points.h icd/dispatch.c

icd/entry_points.h: $(top_srcdir)/icd/entry_points.list $(top_srcdir)/icd/generate.awk
	$(AM_V_GEN)$(MKDIR_P) icd && $(AWK) -v what=prototypes -f $(top_srcdir)/icd/generate.awk \
	  $(top_srcdir)/icd/entry_points.list > $@.tmp && mv $@.tmp $@

icd/dispatch.c: $(top_srcdir)/icd/entry_points.list $(top_srcdir)/icd/generate.awk
	$(AM_V_GEN)$(MKDIR_P) icd && $(AWK) -v what=table -f $(top_srcdir)/icd/generate.awk \
	  $(top_srcdir)/icd/entry_points.list > $@.tmp && mv $@.tmp $@
