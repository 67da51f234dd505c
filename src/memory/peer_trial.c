/* SPDX-License-Identifier: MIT */
#include "memory/peer_trial.h"

#include "clock.h"

#define REPEATS 3 /* the least counts */
#define TOLL_REPEATS 50
#define CHUNK ((size_t)1 << 20)
#define MOST_CHUNKS (TUTTI_LARGEST_TRIAL / CHUNK)
/* Times of two small commands differ so much without a reason: by that factor, and so many ns. */
#define TOLL_SHARE 2
#define TOLL 10000

/* A device with a memory object in one of its contexts. */
struct side {
    const cl_icd_dispatch *driver;
    cl_command_queue queue;
    cl_mem mem;
};

static bool open_side(struct side *side, const struct tutti_real_device *device, cl_context context,
                      size_t size) {
    cl_int error;
    side->driver = device->dispatch;
    side->queue = side->driver->clCreateCommandQueue(context, device->id, 0, &error);
    side->mem = side->driver->clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &error);
    return side->queue && side->mem;
}

static void close_side(const struct side *side) {
    if (side->mem)
        side->driver->clReleaseMemObject(side->mem);
    if (side->queue)
        side->driver->clReleaseCommandQueue(side->queue);
}

/* As a kernel there would: what the driver moves for it is moved afterwards. */
static bool use(const struct side *side) {
    cl_int word;
    return side->driver->clEnqueueReadBuffer(side->queue, side->mem, CL_TRUE, 0, sizeof(word),
                                             &word, 0, NULL, NULL) == CL_SUCCESS;
}

static bool change(const struct side *side) {
    const cl_int word = 1;
    return side->driver->clEnqueueWriteBuffer(side->queue, side->mem, CL_TRUE, 0, sizeof(word),
                                              &word, 0, NULL, NULL) == CL_SUCCESS &&
           side->driver->clFinish(side->queue) == CL_SUCCESS;
}

static bool move_directly(const struct side *source, const struct side *target, char *unused,
                          size_t size) {
    (void)unused;
    return target->driver->clEnqueueCopyBuffer(target->queue, source->mem, target->mem, 0, 0, size,
                                               0, NULL, NULL) == CL_SUCCESS &&
           target->driver->clFinish(target->queue) == CL_SUCCESS;
}

/* As stream.c does. */
static bool move_through_host(const struct side *source, const struct side *target, char *memory,
                              size_t size) {
    const cl_icd_dispatch *driver = source->driver;
    cl_event down[MOST_CHUNKS] = {NULL};
    size_t chunks = (size + CHUNK - 1) / CHUNK;
    bool good = true;
    for (size_t i = 0; i < chunks && good; i++) {
        size_t at = i * CHUNK, part = size - at < CHUNK ? size - at : CHUNK;
        good = driver->clEnqueueReadBuffer(source->queue, source->mem, CL_FALSE, at, part,
                                           memory + at, 0, NULL, &down[i]) == CL_SUCCESS;
    }
    driver->clFlush(source->queue);
    for (size_t i = 0; i < chunks; i++) {
        size_t at = i * CHUNK, part = size - at < CHUNK ? size - at : CHUNK;
        good = good && driver->clWaitForEvents(1, &down[i]) == CL_SUCCESS &&
               driver->clEnqueueWriteBuffer(target->queue, target->mem, CL_FALSE, at, part,
                                            memory + at, 0, NULL, NULL) == CL_SUCCESS;
        if (down[i])
            driver->clReleaseEvent(down[i]);
    }
    driver->clFinish(source->queue);
    return driver->clFinish(target->queue) == CL_SUCCESS && good;
}

/* The least time of some runs; the first one, in which a driver makes what it needs, is not one. */
static cl_ulong measure(bool (*move)(const struct side *source, const struct side *target,
                                     char *memory, size_t size),
                        const struct side *source, const struct side *target, char *memory,
                        size_t size) {
    cl_ulong least = 0;
    for (int i = 0; i <= REPEATS; i++) {
        if (!change(target) || !change(source))
            return 0;
        cl_ulong start = tutti_clock_now();
        if (!move(source, target, memory, size) || !use(target) || !use(source))
            return 0;
        cl_ulong time = tutti_clock_now() - start;
        if (i > 0 && (least == 0 || time < least))
            least = time;
    }
    return least;
}

static cl_ulong measure_through_host(const struct side *source, const struct side *target,
                                     cl_context context, size_t size) {
    const cl_icd_dispatch *driver = source->driver;
    cl_int error;
    cl_ulong time = 0;
    cl_mem locked = driver->clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size,
                                           NULL, &error);
    char *memory = locked ? driver->clEnqueueMapBuffer(source->queue, locked, CL_TRUE,
                                                       CL_MAP_READ | CL_MAP_WRITE, 0, size, 0, NULL,
                                                       NULL, &error)
                          : NULL;
    if (memory) {
        time = measure(move_through_host, source, target, memory, size);
        driver->clEnqueueUnmapMemObject(source->queue, locked, memory, 0, NULL, NULL);
        driver->clFinish(source->queue);
    }
    if (locked)
        driver->clReleaseMemObject(locked);
    return time;
}

struct tutti_peer_times tutti_peer_try(const struct tutti_peer *source,
                                       const struct tutti_peer *target, cl_context both,
                                       size_t size) {
    struct tutti_peer_times times = {0, 0};
    struct side from = {NULL, NULL, NULL}, to = from;
    if (open_side(&from, source->device, both, size) && open_side(&to, target->device, both, size))
        times.direct = measure(move_directly, &from, &to, NULL, size);
    close_side(&from);
    close_side(&to);
    from = to = (struct side){NULL, NULL, NULL};
    if (open_side(&from, source->device, source->context, size) &&
        open_side(&to, target->device, target->context, size))
        times.through_host = measure_through_host(&from, &to, source->context, size);
    close_side(&from);
    close_side(&to);
    return times;
}

/* The least time of both, in turns: whatever else the machine does disturbs them alike. */
bool tutti_peer_pays_toll(const struct tutti_peer *peer, cl_context both) {
    struct side side[2] = {{NULL, NULL, NULL}, {NULL, NULL, NULL}};
    cl_ulong least[2] = {0, 0};
    bool good = open_side(&side[0], peer->device, peer->context, sizeof(cl_int)) &&
                open_side(&side[1], peer->device, both, sizeof(cl_int));
    for (unsigned i = 0; i < 2 * TOLL_REPEATS && good; i++) {
        cl_ulong start = tutti_clock_now(), *least_there = &least[i % 2];
        good = change(&side[i % 2]) && use(&side[i % 2]);
        cl_ulong time = tutti_clock_now() - start;
        if (*least_there == 0 || time < *least_there)
            *least_there = time;
    }
    close_side(&side[0]);
    close_side(&side[1]);
    return !good || (double)least[1] > TOLL_SHARE * (double)least[0] + TOLL;
}
