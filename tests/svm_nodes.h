/* SPDX-License-Identifier: MIT */
/*
 * A list in shared virtual memory, whose nodes the host links and a kernel walks: addresses are the
 * same on both sides. Each node is an allocation of its own.
 */
#ifndef TUTTI_TESTS_SVM_NODES_H
#define TUTTI_TESTS_SVM_NODES_H

#include "support.h"

enum { NODES = 20 };

#define WALK_SOURCE                                                                                \
    "struct node { global struct node *next; int value; };"                                        \
    "kernel void walk(global struct node *first, int step) {"                                      \
    "  for (global struct node *n = first; n; n = n->next) n->value += step; }"

struct node {
    struct node *next;
    cl_int value;
};

/* Numbers them from 0, and makes them what the kernel walks. */
static inline void make_nodes(struct node *node[NODES], cl_kernel walk, cl_int step) {
    for (int i = 0; i < NODES; i++) {
        node[i] = clSVMAlloc(context, CL_MEM_READ_WRITE, sizeof(*node[i]), 0);
        ck_assert_ptr_nonnull(node[i]);
    }
    for (int i = 0; i < NODES; i++) {
        ck_ok(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, node[i],
                              sizeof(*node[i]), 0, NULL, NULL));
        *node[i] = (struct node){i + 1 < NODES ? node[i + 1] : NULL, i};
        ck_ok(clEnqueueSVMUnmap(queue, node[i], 0, NULL, NULL));
    }
    ck_ok(clSetKernelExecInfo(walk, CL_KERNEL_EXEC_INFO_SVM_PTRS, NODES * sizeof(*node), node));
    ck_ok(clSetKernelArgSVMPointer(walk, 0, node[0]));
    ck_ok(clSetKernelArg(walk, 1, sizeof(step), &step));
}

static inline void check_nodes(struct node *const node[NODES], cl_int added) {
    for (int i = 0; i < NODES; i++) {
        ck_ok(
            clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, node[i], sizeof(*node[i]), 0, NULL, NULL));
        ck_assert_int_eq(node[i]->value, i + added);
        ck_ok(clEnqueueSVMUnmap(queue, node[i], 0, NULL, NULL));
    }
}

static inline void free_nodes(struct node *const node[NODES]) {
    ck_ok(clFinish(queue));
    for (int i = 0; i < NODES; i++)
        clSVMFree(context, node[i]);
}

#endif
