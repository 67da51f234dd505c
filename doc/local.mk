# SPDX-License-Identifier: MIT

EXTRA_DIST += doc/architecture.md doc/clients.md doc/evaluation.md doc/overhead.md doc/tutti.7.in doc/environment.awk src/env.def
nodist_man_MANS = doc/tutti.7
CLEANFILES += doc/tutti.7

doc/tutti.7: $(top_srcdir)/doc/tutti.7.in $(top_srcdir)/doc/environment.awk $(top_srcdir)/src/env.def Makefile
	$(AM_V_GEN)$(MKDIR_P) doc && \
	$(AWK) -f $(top_srcdir)/doc/environment.awk $(top_srcdir)/src/env.def $(top_srcdir)/doc/tutti.7.in > $@.tmp && \
	$(SED) -e 's|@VERSION[@]|$(VERSION)|' -e 's|@vendordir[@]|$(vendordir)|' \
	  -e 's|@libdir[@]|$(libdir)|' $@.tmp > $@ && rm -f $@.tmp
