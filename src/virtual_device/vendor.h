/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_VENDOR_H
#define TUTTI_VENDOR_H

#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <stdbool.h>

/*
 * Calls `found` for each platform of each real driver of the machine, without the loader: reads
 * the places where the loader would look (TUTTI_VENDORS, OCL_ICD_FILENAMES, OCL_ICD_VENDORS,
 * /etc/OpenCL/vendors) and opens each driver. Tutti itself, in any copy, and SOCL are left out.
 */
void tutti_vendors_visit(void (*found)(cl_platform_id platform, const cl_icd_dispatch *dispatch,
                                       const char *name, void *argument),
                         void *argument);

#endif
