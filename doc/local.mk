# SPDX-License-Identifier: MIT

EXTRA_DIST += doc/architecture.md
