/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_PROGRAM_H
#define TUTTI_PROGRAM_H

#include "context.h"
#include "virtual_device/binary.h"
#include "virtual_device/device.h"

/* How a program was made. */
enum tutti_program_origin {
    TUTTI_PROGRAM_SOURCE,
    TUTTI_PROGRAM_BINARY,
    TUTTI_PROGRAM_IL,
    TUTTI_PROGRAM_LINKED,
};

/* A kernel object in its program's list. */
struct tutti_kernel_link {
    struct tutti_kernel_link *next;
    struct tutti_kernel_link **from; /* what points here */
    cl_kernel kernel;
};

struct tutti_specialization {
    struct tutti_specialization *next;
    cl_uint id;
    size_t size;
    unsigned char value[];
};

/*
 * One program object of the virtual device: a real program per real device, in the context of that
 * device. A build makes new real programs, so that kernels which commands in flight still use keep
 * the old ones.
 */
struct _cl_program {
    struct tutti_object object;
    cl_context context; /* retained */
    enum tutti_program_origin origin;
    char *source; /* SOURCE: the strings joined; otherwise "" */
    void *il;     /* IL */
    size_t il_size;
    struct tutti_binary *loaded; /* BINARY */

    pthread_mutex_t lock; /* guards the rest; taken after no other lock */
    struct tutti_specialization *specializations;
    cl_build_status status;
    cl_program_binary_type type;
    char *options;                     /* as given to the last build; NULL before */
    char *log;                         /* of the last build; NULL before */
    bool prints;                       /* its kernels may call printf */
    uint64_t identity;                 /* of the code: source or binary, and options */
    struct tutti_kernel_link *kernels; /* all that exist */
    struct tutti_function *functions;  /* of the last build, as far as kernels were made of them */
    cl_program real[TUTTI_MAX_DEVICES];
    unsigned build;                     /* counts them */
    atomic_uint_least64_t build_time;   /* of the last one, in ns */
    atomic_uint late;                   /* bit d: it is not built for device d yet (late_build.h) */
    atomic_bool builds_late;            /* a thread is at that */
    atomic_uint_least64_t waited;       /* ns that its kernels did, as long as one is late */
    atomic_bool pays;                   /* they are known to have waited as long as a build takes */
    struct tutti_signatures signatures; /* what is known for certain, as it was asked for */
    struct tutti_signatures hints;      /* read from sources; for drivers that don't tell */
    struct tutti_binary *binary;        /* made when CL_PROGRAM_BINARIES is asked for */
};

/*
 * A program stays valid as long as kernels of it exist, also when it was released (OpenCL 1.2,
 * 5.6.2, clReleaseProgram).
 */
static inline bool tutti_program_is_valid(cl_program program) {
    return program &&
           atomic_load_explicit(&program->object.type, memory_order_relaxed) == TUTTI_PROGRAM;
}

/* Does StarPU drive the device? Only then it has programs. */
static inline bool tutti_device_is_driven(const struct tutti_real_device *device) {
    return device->place.devid >= 0 && device->place.context;
}

/* The first driven device: what the program sees of builds and kernels is its. NULL: none. */
const struct tutti_real_device *tutti_program_lead(void);

/*
 * The new program retains the context. The bytes are copied. `error` is set when NULL is returned:
 * CL_OUT_OF_HOST_MEMORY, and for binaries CL_INVALID_BINARY, for intermediate language
 * CL_INVALID_OPERATION (the lead takes none), CL_INVALID_VALUE (not well formed).
 */
cl_program tutti_program_create(cl_context context, cl_int *error);
cl_program tutti_program_create_source(cl_context context, cl_uint count, const char **strings,
                                       const size_t *lengths, cl_int *error);
cl_program tutti_program_create_binary(cl_context context, const void *bytes, size_t size,
                                       cl_int *error);
cl_program tutti_program_create_il(cl_context context, const void *il, size_t size, cl_int *error);

/* What stands for that device's binary in the program's, if it is a source; else NULL. */
const struct tutti_binary_entry *tutti_program_source_entry(cl_program program,
                                                            const struct tutti_real_device *device);

/* A new real program from the source, binary or intermediate language, not built. */
cl_program tutti_program_make_real(cl_program program, const struct tutti_real_device *device,
                                   cl_int *error);

/* clSetProgramSpecializationConstant (5.8.3): the lead's answer. */
cl_int tutti_program_specialize(cl_program program, cl_uint id, size_t size, const void *value);

/*
 * The binary of the last build, or the one that was loaded. `*binary` is NULL when there is none;
 * it stays valid until the next build. Takes the lock.
 */
cl_int tutti_program_binary(cl_program program, const struct tutti_binary **binary);

/*
 * The names of the kernels, separated by semicolons (free). CL_INVALID_PROGRAM_EXECUTABLE when
 * there is no executable. Takes the lock.
 */
cl_int tutti_program_kernel_names(cl_program program, char **names, size_t *count);

/*
 * What is known of a kernel's arguments: the lead's answer, another device's, or read from the
 * source. `kernel[d]` is the real kernel of device d or NULL. With the lock held; the answer lives
 * as long. CL_INVALID_KERNEL_DEFINITION when nobody knows.
 */
cl_int tutti_program_signature(cl_program program, const char *name, const cl_kernel *kernel,
                               const struct tutti_signature **signature);

/*
 * May clGetKernelArgInfo tell what is known? Of a program from source only if it was built with
 * -cl-kernel-arg-info (5.9.3). Takes the lock.
 */
bool tutti_program_tells_arguments(cl_program program);

/* Gives up its `functions`; kernels keep theirs. With the lock held, or when nobody else has it. */
void tutti_function_forget_all(cl_program program);

/* Adds what the sources tell of the kernels, for a program linked from this one. Takes the lock. */
bool tutti_program_hints(cl_program program, struct tutti_signatures *hints);

#endif
