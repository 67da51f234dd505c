# SPDX-License-Identifier: MIT

EXTRA_DIST += vendors/tutti.icd.in
vendor_DATA = vendors/installed/tutti.icd
CLEANFILES += vendors/installed/tutti.icd

vendors/installed/tutti.icd: $(top_srcdir)/vendors/tutti.icd.in Makefile
	$(AM_V_GEN)$(MKDIR_P) vendors/installed && \
	$(SED) 's|@library@|$(libdir)/libtutti.so|' $(top_srcdir)/vendors/tutti.icd.in > $@

# A vendors directory for the loader, out of the build tree: the fresh driver beside the machine's
# other ones, whose list may have changed since the last make.
system_vendordir = /etc/OpenCL/vendors

.PHONY: build-vendors
all-local: build-vendors
build-vendors: libtutti.la
	@$(MKDIR_P) vendors
	@for icd in vendors/*.icd; do \
	  case $$icd in vendors/tutti.icd) continue;; esac; \
	  test -e "$(system_vendordir)/$${icd#vendors/}" || rm -f "$$icd"; \
	done
	@for icd in $(system_vendordir)/*.icd; do \
	  test -f "$$icd" || continue; \
	  case `cat "$$icd"` in *libtutti*) continue;; esac; \
	  cmp -s "$$icd" "vendors/$${icd##*/}" || cp "$$icd" "vendors/$${icd##*/}"; \
	done
	@$(SED) 's|@library@|$(abs_builddir)/.libs/libtutti.so|' $(top_srcdir)/vendors/tutti.icd.in \
	  > vendors/tutti.icd.new
	@cmp -s vendors/tutti.icd.new vendors/tutti.icd && rm -f vendors/tutti.icd.new || \
	  mv -f vendors/tutti.icd.new vendors/tutti.icd

clean-local: clean-vendors
.PHONY: clean-vendors
clean-vendors:
	-rm -f vendors/*.icd
	-rmdir vendors/installed vendors 2>/dev/null
