/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_SVM_HOME_H
#define TUTTI_SVM_HOME_H

#include "memory/view.h"

/*
 * The home memory of shared virtual memory, in which every device works, as it has one address for
 * all. Where one joined device has memory of its own it is an allocation of that device's driver:
 * the host and CPU devices may use it only while it is mapped, that device while it is not, or
 * mapped for reading and only read (OpenCL 3.0, 5.6.1). With more than one such device there is
 * none.
 */
struct tutti_svm_home;

/* NULL when out of memory. */
struct tutti_svm_home *tutti_svm_home_create(size_t size);
void *tutti_svm_home_bytes(const struct tutti_svm_home *home);
void tutti_svm_home_destroy(struct tutti_svm_home *home); /* NULL is allowed */

/*
 * Maps or unmaps the view's home memory for its next use, by the device or with NULL by the host:
 * whoever calls holds the view for that use. Nothing is done for any other view.
 */
cl_int tutti_svm_home_use(struct tutti_view *view, const struct tutti_real_device *device,
                          bool writes);

#endif
