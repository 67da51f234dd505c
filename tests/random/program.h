/* SPDX-License-Identifier: MIT */
/*
 * A random OpenCL program as plain data: objects, and one array of steps whose order is the serial
 * meaning of the program. Only programs are made whose result OpenCL defines (order.h), so the
 * serial interpreter (outcome.h) knows it, whatever overlaps when it runs.
 */
#ifndef TUTTI_TESTS_RANDOM_PROGRAM_H
#define TUTTI_TESTS_RANDOM_PROGRAM_H

#include "../support.h"

enum {
    MAX_STEPS = 160,
    MAX_OBJECTS = 12,
    MAX_HOSTS = 3,
    MAX_QUEUES = 4,
    MAX_THREADS = 3,
    MAX_GATES = 4,
    MAX_LIST = 8,
    HOST_SIZE = 4096, /* of a host array; and of a large program's: */
    LARGE_HOST_SIZE = 3 << 20,
    SUB_ALIGN = 512, /* bytes; no less than any device's CL_DEVICE_MEM_BASE_ADDR_ALIGN */
};

enum step_kind {
    /* commands */
    STEP_READ,
    STEP_WRITE,
    STEP_COPY,
    STEP_FILL,
    STEP_MAP,
    STEP_UNMAP,
    STEP_KERNEL,
    STEP_NATIVE,
    STEP_MARKER,
    STEP_BARRIER,
    /* calls about a queue */
    STEP_FLUSH,
    STEP_FINISH,
    /* the host alone */
    STEP_WAIT,     /* clWaitForEvents */
    STEP_OPEN,     /* clSetUserEventStatus */
    STEP_HOST_SET, /* writes bytes of a host array */
    STEP_HOST_SEE, /* looks at bytes of a host array */
    STEP_MAP_SET,  /* writes bytes of a map */
    STEP_MAP_SEE,  /* looks at bytes of a map */
    STEP_PAUSE,
};

enum kernel_kind {
    KERNEL_ADD,     /* a[i] += value, after some work */
    KERNEL_COPY,    /* b[i] = a[i] */
    KERNEL_PAINT,   /* the same, b is an image */
    KERNEL_PICK,    /* the same, a is an image */
    KERNEL_PERMUTE, /* b[i] = a[(7 i + value) mod count] */
    KERNEL_REDUCE,  /* b[0] = sum of a */
    KERNEL_SET,     /* a[i] = value + 3 i */
    KERNEL_STIR,    /* a[i] += 3 b[i]; b[i] ^= a[i] */
    KERNEL_SUM,     /* c[i] = a[i] + value b[i] */
    KERNEL_KINDS,
};

/* How an argument is used; W writes all of the range that the step names. */
enum use { USE_NONE, USE_R, USE_W, USE_RW };

struct object {
    int root; /* itself for a buffer or image, the parent of a sub-buffer */
    size_t origin, size;
    size_t pixel;    /* bytes; 0: a buffer. All else sees an image as its bytes without padding */
    int dimensions;  /* of an image */
    size_t shape[3]; /* in pixels, 1 past the dimensions */
    cl_mem_flags flags; /* a sub-buffer's: its own and what it inherits */
    bool early;         /* released right after the last call that uses it */
};

/* One side of a transfer; a linear one has pitches 0. What is mapped of an image is in one row. */
struct box {
    size_t origin[3], row, slice;
};

struct step {
    enum step_kind kind;
    int thread;
    int queue; /* of commands, flush and finish */
    bool blocking, rect;
    int objects, object[3];
    struct box box[2]; /* of object[0]; of the host array or of object[1] */
    size_t region[3];
    int host;        /* host array, or -1 */
    size_t at[3];    /* of kernels, native kernels: first word; [0] of steps on host memory: byte */
    size_t count;    /* words; of steps on host memory: bytes */
    unsigned rounds; /* of work per work-item */
    uint32_t value;
    enum kernel_kind kernel;
    size_t pattern; /* bytes of a fill's pattern */
    cl_map_flags map_flags;
    int map;                          /* the step that mapped */
    int gate;                         /* of STEP_OPEN */
    unsigned gates;                   /* user events in the wait list, a bit each */
    int waits[MAX_LIST], wait_count;  /* steps in the wait list */
    int after[MAX_LIST], after_count; /* steps of other threads that must have returned */
    bool gone;                        /* shrunk away */
};

struct program {
    uint32_t seed;
    int threads, queues, objects, hosts, gates;
    bool large; /* some buffers, and transfers, of up to 3 MiB */
    size_t host_size;
    bool out_of_order[MAX_QUEUES], queue_early[MAX_QUEUES];
    /* The calls on a queue are made in the order of the steps, also those of several threads. */
    bool turns;
    cl_int gate_status[MAX_GATES]; /* CL_COMPLETE or an error, whoever opens it */
    bool expects_errors;
    struct object object[MAX_OBJECTS];
    struct step step[MAX_STEPS];
    int steps;
};

/* What the platform under test may be asked. */
struct abilities {
    bool gates, errors, out_of_order, threads;
    bool native;        /* with more than one buffer, or sub-buffers */
    bool sub_rects;     /* rectangles copied from and to sub-buffers */
    bool early_release; /* of memory objects that commands still use */
    bool images;
};

void program_generate(struct program *program, uint32_t seed, struct abilities abilities);
void program_print(const struct program *program, FILE *out);

static inline bool object_is_image(const struct program *program, int object) {
    return program->object[object].pixel != 0;
}

/* A box of an image as part of its bytes. */
struct box image_box(const struct object *image);

/* Keeps only these steps, and of those only what still makes sense. */
void program_keep(struct program *program, const bool *keep);

/* How kernel argument i is used, USE_NONE past the last. */
enum use kernel_use(enum kernel_kind kernel, int i);
/* Words of argument i that the step uses. */
size_t kernel_words(const struct step *step, int i);

static inline bool step_is_command(const struct step *step) { return step->kind <= STEP_BARRIER; }
static inline bool step_has_queue(const struct step *step) { return step->kind <= STEP_FINISH; }
static inline bool map_writes(cl_map_flags flags) {
    return flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION);
}

size_t box_first(const struct box *box);
size_t box_end(const struct box *box, const size_t *region);

/* Where the bytes of steps on host memory come from. */
uint8_t step_byte(const struct step *step, size_t i);
uint32_t hash_bytes(const void *bytes, size_t size);
/* `size` bytes of content that a buffer or host array starts with. */
void initial_bytes(const struct program *program, int which, uint8_t *bytes, size_t size);

#endif
