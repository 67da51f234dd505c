/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_CONTEXT_H
#define TUTTI_CONTEXT_H

#include "object.h"
#include "sched/graph.h"
#include "sched/hold.h"

#include <pthread.h>
#include <starpu.h>

struct tutti_context_callback {
    struct tutti_context_callback *next;
    void(CL_CALLBACK *function)(cl_context, void *);
    void *user_data;
};

struct _cl_context {
    struct tutti_object object;
    cl_context_properties *properties; /* as given, the final 0 included; NULL when none */
    size_t property_bytes;
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *);
    void *notify_data;
    pthread_mutex_t lock;                     /* guards `callbacks` and `svm` */
    struct tutti_context_callback *callbacks; /* last registered first */
    cl_mem *svm; /* [svm_count], by address: allocations of shared virtual memory */
    size_t svm_count;
    struct tutti_graph graph;
    starpu_data_handle_t console;   /* written by each kernel that prints: keeps their order */
    struct tutti_resource printing; /* the same, for commands that are held */
};

#endif
