/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_KERNEL_H
#define TUTTI_KERNEL_H

#include "object.h"
#include "virtual_device/device.h"

#include <pthread.h>

struct tutti_overwrite;

enum tutti_argument_kind {
    TUTTI_ARGUMENT_VALUE,   /* bytes, passed as they are */
    TUTTI_ARGUMENT_LOCAL,   /* a size, no bytes */
    TUTTI_ARGUMENT_BUFFER,  /* __global or __constant pointer: a cl_mem or NULL */
    TUTTI_ARGUMENT_IMAGE,   /* a cl_mem that is an image */
    TUTTI_ARGUMENT_SAMPLER, /* a cl_sampler */
};

/* What is known of one argument before it is set (clGetKernelArgInfo, 5.7.4). */
struct tutti_argument_info {
    enum tutti_argument_kind kind;
    bool reads_only;  /* const or __constant pointer, read_only image: the kernel can't write it */
    bool writes_only; /* write_only image */
    bool may_be_integer; /* a value, by the name of its type: how long it takes may depend on it */
    cl_kernel_arg_address_qualifier address;
    cl_kernel_arg_access_qualifier access;
    cl_kernel_arg_type_qualifier type_qualifier;
    char *type_name;
    char *name;
};

/*
 * One argument as it was set. A copy for a launch retains its objects; a kernel keeps a sampler,
 * but of a memory object only the bytes.
 */
struct tutti_argument {
    bool set;
    size_t size;        /* as given to clSetKernelArg */
    void *value;        /* owned copy of the bytes; NULL for local memory */
    cl_mem mem;         /* BUFFER, IMAGE: may be NULL */
    void *pointer;      /* BUFFER: into shared virtual memory that is `mem`; else NULL */
    cl_sampler sampler; /* SAMPLER */
};

/*
 * A set of arguments, copied at enqueue (clEnqueueNDRangeKernel takes the values of that time).
 * Behind those that the kernel declares come allocations of shared virtual memory that it reaches
 * through pointers in its data (clSetKernelExecInfo).
 */
struct tutti_arguments {
    unsigned count;
    uint64_t integers; /* hash of those that may be integers; 0: there is none */
    struct tutti_argument argument[];
};

/*
 * A kernel function of a build, shared by the kernel objects of that name: programs make one for
 * each launch, and PoCL takes as long to release one as its program has others.
 */
struct tutti_function {
    struct tutti_function *next; /* of the program; guarded by the program's lock */
    atomic_uint references;      /* the program's, until it is built again, and each kernel's */
    char *name;
    unsigned argument_count;
    struct tutti_argument_info *info;   /* [argument_count] */
    bool takes_images;                  /* one of them is an image */
    struct tutti_overwrite *overwrites; /* [argument_count], what is proven of each (overwrite.h) */
    pthread_mutex_t lock;               /* guards `checker` */
    cl_kernel checker; /* the lead's kernel, for checking sizes of values; never launched */
    /*
     * The real kernels, NULL where the program or the kernel isn't there. Arguments are set on
     * them, and they are launched, with the device's `enqueues` lock.
     */
    cl_kernel real[TUTTI_MAX_DEVICES];
    atomic_uint devices; /* bit d: real device d has one, and all else that is needed of it */
    struct tutti_given *given[TUTTI_MAX_DEVICES]; /* their arguments (given.h) */
    bool reaches[TUTTI_MAX_DEVICES]; /* real[d] was told of further shared virtual memory */
    /* The work-items that a group may have, and their CL_KERNEL_COMPILE_WORK_GROUP_SIZE. */
    struct {
        size_t most, required[3];
    } work_group[TUTTI_MAX_DEVICES];
};

struct _cl_kernel {
    struct tutti_object object;
    cl_program program;              /* retained */
    struct tutti_function *function; /* a reference */
    /* The function's. */
    const char *name;
    unsigned argument_count;
    const struct tutti_argument_info *info;
    const struct tutti_overwrite *overwrites;
    bool prints;          /* its program uses printf: its launches keep their order */
    pthread_mutex_t lock; /* guards what follows */
    struct tutti_arguments *arguments;
    void
        *recent; /* what its last launch was found to be (sched/invocation.h): one block, or NULL */
};

/*
 * Copies the arguments; mem objects and samplers are retained by the copy.
 * Returns CL_INVALID_KERNEL_ARGS when one is not set, CL_INVALID_MEM_OBJECT when one was released
 * since, CL_OUT_OF_HOST_MEMORY.
 */
cl_int tutti_kernel_copy_arguments(cl_kernel kernel, struct tutti_arguments **copy);
void tutti_arguments_free(struct tutti_arguments *arguments);

/*
 * Identity of the code for performance models: program source or binary, options, kernel name.
 * The same on the next run.
 */
uint64_t tutti_kernel_identity(cl_kernel kernel);

#endif
