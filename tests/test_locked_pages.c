/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: pages that reads and writes use are locked for a GPU's driver, and not any more once
 * munmap, madvise or mremap gave some of them away and the driver is to move what came there: it
 * would move the old pages' bytes. PoCL stands in for the GPU, and the calls in its table tell
 * which memory is locked. With TUTTI_LOCK_PAGES=always, but for `pays`.
 */
#define _GNU_SOURCE
#include "pocl_gpu.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, MOST = 64, MOST_GONE = 8, MIB = 1 << 20, LIMIT = 64 * MIB };

static struct {
    pthread_mutex_t lock; /* guards what follows */
    struct {
        cl_mem mem;
        char *bytes;
        size_t size;
        struct {
            const char *first, *end;
        } gone[MOST_GONE]; /* which parts of it the program gave away */
        unsigned parts;
    } locked[MOST];
    unsigned made, refused, misled; /* moved old pages' bytes */
    bool slow;                      /* the driver does not answer for two seconds */
    void *kept;                     /* what the driver frees as it unlocks pages; NULL: nothing */
} pages = {.lock = PTHREAD_MUTEX_INITIALIZER};

static cl_mem CL_API_CALL create(cl_context in, cl_mem_flags flags, size_t size, void *host,
                                 cl_int *result) {
    cl_mem mem = real.clCreateBuffer(in, flags, size, host, result);
    pthread_mutex_lock(&pages.lock);
    for (unsigned i = 0; i < MOST && mem && flags & CL_MEM_USE_HOST_PTR; i++) {
        if (pages.locked[i].mem)
            continue;
        pages.locked[i].mem = mem;
        pages.locked[i].bytes = host;
        pages.locked[i].size = size;
        pages.locked[i].parts = 0;
        pages.made++;
        break;
    }
    pthread_mutex_unlock(&pages.lock);
    return mem;
}

static cl_int CL_API_CALL release(cl_mem mem) {
    unsigned found = MOST;
    pthread_mutex_lock(&pages.lock);
    for (unsigned i = 0; i < MOST; i++)
        found = pages.locked[i].mem == mem ? i : found;
    bool slow = pages.slow && found < MOST;
    void *kept = found < MOST ? pages.kept : NULL;
    if (kept)
        pages.kept = NULL;
    pthread_mutex_unlock(&pages.lock);
    if (slow)
        sleep(2);
    free(kept);
    cl_int result = real.clReleaseMemObject(mem);
    pthread_mutex_lock(&pages.lock);
    if (found < MOST)
        pages.locked[found].mem = NULL;
    pthread_mutex_unlock(&pages.lock);
    return result;
}

static bool has_some(unsigned which, const char *first, const char *end) {
    return pages.locked[which].mem && pages.locked[which].bytes < end &&
           first < pages.locked[which].bytes + pages.locked[which].size;
}

/* The program is about to give them away. */
static void leave(char *first, size_t size) {
    pthread_mutex_lock(&pages.lock);
    for (unsigned i = 0; i < MOST; i++) {
        unsigned part = pages.locked[i].parts;
        if (!has_some(i, first, first + size) || part == MOST_GONE)
            continue;
        pages.locked[i].gone[part].first = first;
        pages.locked[i].gone[part].end = first + size;
        pages.locked[i].parts++;
    }
    pthread_mutex_unlock(&pages.lock);
}

static void unmap(void *first, size_t size) {
    leave(first, size);
    ck_assert_int_eq(munmap(first, size), 0);
}

/* The driver is to move them. */
static void check_moved(const char *first, const char *end) {
    pthread_mutex_lock(&pages.lock);
    for (unsigned i = 0; i < MOST; i++)
        for (unsigned part = 0; part < pages.locked[i].parts && has_some(i, first, end); part++)
            pages.misled +=
                pages.locked[i].gone[part].first < end && first < pages.locked[i].gone[part].end;
    pthread_mutex_unlock(&pages.lock);
}

/* Is the first of the bytes in locked pages that have not all of them? */
static bool is_over_edge(const char *first, const char *end) {
    bool over = false;
    check_moved(first, end);
    pthread_mutex_lock(&pages.lock);
    for (unsigned i = 0; i < MOST && !over; i++) {
        uintptr_t locked = (uintptr_t)pages.locked[i].bytes;
        uintptr_t begins = locked / PAGE * PAGE;
        uintptr_t ends = (locked + pages.locked[i].size + PAGE - 1) / PAGE * PAGE;
        over = pages.locked[i].mem && begins <= (uintptr_t)first && (uintptr_t)first < ends &&
               (uintptr_t)end > ends;
    }
    pages.refused += over;
    pthread_mutex_unlock(&pages.lock);
    return over;
}

static const char *last_of(const char *host, const size_t *origin, const size_t *region,
                           size_t pitch) {
    return host + (origin[1] + region[1] - 1) * pitch + origin[0] + region[0];
}

/* NVIDIA's driver refuses rows, and images, of such memory. */
static cl_int CL_API_CALL read_rows(cl_command_queue on, cl_mem from, cl_bool blocking,
                                    const size_t *there, const size_t *here, const size_t *region,
                                    size_t row, size_t slice, size_t host_row, size_t host_slice,
                                    void *host, cl_uint waits, const cl_event *list,
                                    cl_event *event) {
    const char *first = (char *)host + here[1] * host_row + here[0];
    if (is_over_edge(first, last_of(host, here, region, host_row)))
        return CL_INVALID_VALUE;
    return real.clEnqueueReadBufferRect(on, from, blocking, there, here, region, row, slice,
                                        host_row, host_slice, host, waits, list, event);
}

static cl_int CL_API_CALL write_rows(cl_command_queue on, cl_mem to, cl_bool blocking,
                                     const size_t *there, const size_t *here, const size_t *region,
                                     size_t row, size_t slice, size_t host_row, size_t host_slice,
                                     const void *host, cl_uint waits, const cl_event *list,
                                     cl_event *event) {
    const char *first = (const char *)host + here[1] * host_row + here[0];
    if (is_over_edge(first, last_of(host, here, region, host_row)))
        return CL_INVALID_VALUE;
    return real.clEnqueueWriteBufferRect(on, to, blocking, there, here, region, row, slice,
                                         host_row, host_slice, host, waits, list, event);
}

static cl_int CL_API_CALL read_bytes(cl_command_queue on, cl_mem from, cl_bool blocking,
                                     size_t offset, size_t size, void *host, cl_uint waits,
                                     const cl_event *list, cl_event *event) {
    check_moved(host, (char *)host + size);
    return real.clEnqueueReadBuffer(on, from, blocking, offset, size, host, waits, list, event);
}

static cl_int CL_API_CALL write_bytes(cl_command_queue on, cl_mem to, cl_bool blocking,
                                      size_t offset, size_t size, const void *host, cl_uint waits,
                                      const cl_event *list, cl_event *event) {
    check_moved(host, (const char *)host + size);
    return real.clEnqueueWriteBuffer(on, to, blocking, offset, size, host, waits, list, event);
}

static void change(cl_icd_dispatch *table) {
    table->clEnqueueReadBuffer = read_bytes;
    table->clEnqueueWriteBuffer = write_bytes;
    table->clCreateBuffer = create;
    table->clReleaseMemObject = release;
    table->clEnqueueReadBufferRect = read_rows;
    table->clEnqueueWriteBufferRect = write_rows;
}

/* Is one of these bytes? */
static bool is_locked(const void *bytes, size_t size) {
    const char *first = bytes;
    bool found = false;
    pthread_mutex_lock(&pages.lock);
    for (unsigned i = 0; i < MOST && !found; i++)
        found = has_some(i, first, first + size);
    pthread_mutex_unlock(&pages.lock);
    return found;
}

/* Soon: whoever gives them away does not wait for long. */
static bool gets_unlocked(const void *bytes, size_t size) {
    for (unsigned look = 0; look < 10000 && is_locked(bytes, size); look++)
        usleep(1000);
    return !is_locked(bytes, size);
}

static unsigned times_locked(void) {
    pthread_mutex_lock(&pages.lock);
    unsigned made = pages.made;
    pthread_mutex_unlock(&pages.lock);
    return made;
}

static const char source[] = "kernel void touch(global int *x, int y) {\n"
                             "    x[get_global_id(0)] += y;\n"
                             "}\n";

static cl_program program;
static cl_kernel touch;

static void begin(void) {
    program = make_program(source);
    touch = make_kernel(program, "touch");
}

static void end(void) {
    ck_assert_uint_eq(pages.misled, 0);
    ck_ok(clReleaseKernel(touch));
    ck_ok(clReleaseProgram(program));
}

/* The first ints of a buffer are added to on the GPU, which has its content then. */
static void use(cl_kernel kernel, cl_command_queue on, cl_mem buffer, cl_int what) {
    size_t items = 64;
    ck_ok(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
    ck_ok(clSetKernelArg(kernel, 1, sizeof(what), &what));
    ck_ok(clEnqueueNDRangeKernel(on, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
}

static cl_mem make_used(size_t size) {
    cl_mem buffer = make_buffer(0, size, NULL);
    cl_int zero = 0;
    ck_ok(clEnqueueFillBuffer(queue, buffer, &zero, sizeof(zero), 0, size, 0, NULL, NULL));
    use(touch, queue, buffer, 1);
    ck_ok(clFinish(queue));
    return buffer;
}

static char *map_with(void *at, size_t size, int flags) {
    return mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* There, unless another thread of the process has got that memory since it was unmapped. */
static char *map_at(void *at, size_t size) {
    char *bytes = at ? map_with(at, size, MAP_FIXED_NOREPLACE) : MAP_FAILED;
    if (bytes == MAP_FAILED)
        bytes = map_with(NULL, size, 0);
    ck_assert_ptr_ne(bytes, MAP_FAILED);
    return bytes;
}

static void receive(cl_mem buffer, size_t offset, size_t size, void *bytes) {
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, offset, size, bytes, 0, NULL, NULL));
}

static void send(cl_mem buffer, size_t offset, size_t size, const void *bytes) {
    ck_ok(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, offset, size, bytes, 0, NULL, NULL));
}

static size_t count_wrong(const char *bytes, size_t size, int value) {
    size_t wrong = 0;
    for (size_t i = 0; i < size; i++)
        wrong += bytes[i] != (char)value;
    return wrong;
}

/* Sent, used, and received; the rest of the program's memory may be locked or not. */
static void check_round(cl_mem buffer, size_t size, char *bytes, int value) {
    memset(bytes, value, size);
    send(buffer, 0, size, bytes);
    use(touch, queue, buffer, 0);
    memset(bytes, ~value, size);
    receive(buffer, 0, size, bytes);
    ck_assert_uint_eq(count_wrong(bytes, size, value), 0);
}

/* New memory that is locked, as the buffer was sent from it, and received. */
static char *map_locked(cl_mem buffer, size_t size) {
    char *bytes = map_at(NULL, size);
    check_round(buffer, size, bytes, 1);
    ck_assert(is_locked(bytes, size));
    return bytes;
}

static bool may_watch(void) {
    long descriptor = syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */);
    if (descriptor >= 0)
        close((int)descriptor);
    return descriptor >= 0;
}

#define skip_unless_watched() skip_if(!may_watch(), "Linux does not let us watch pages")

START_TEST(unmapped) {
    enum { BYTES = MIB };
    skip_unless_watched();
    begin();
    cl_mem buffer = make_used(BYTES);
    char *bytes = map_locked(buffer, BYTES);
    unsigned made = times_locked();
    for (int i = 0; i < 5; i++) {
        check_round(buffer, BYTES, bytes, i);
        receive(buffer, BYTES / 2, BYTES / 4, bytes + BYTES / 2);
    }
    ck_assert_uint_eq(times_locked(), made);
    for (int i = 0; i < 20; i++) {
        unmap(bytes, BYTES);
        if (i % 2)
            ck_assert(gets_unlocked(bytes, BYTES));
        bytes = map_at(bytes, BYTES);
        check_round(buffer, BYTES, bytes, i);
        ck_assert(is_locked(bytes, BYTES));
    }
    /* By what comes to the same place, too. */
    leave(bytes, BYTES);
    ck_assert_ptr_eq(map_with(bytes, BYTES, MAP_FIXED), bytes);
    ck_assert(gets_unlocked(bytes, BYTES));
    check_round(buffer, BYTES, bytes, 7);
    unmap(bytes, BYTES);
    ck_assert(gets_unlocked(bytes, BYTES));
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

START_TEST(dropped) {
    enum { BYTES = MIB };
    skip_unless_watched();
    begin();
    cl_mem buffer = make_used(BYTES);
    char *bytes = map_locked(buffer, BYTES), *back = map_at(NULL, BYTES);
    leave(bytes + 5 * PAGE, PAGE);
    ck_assert_int_eq(madvise(bytes + 5 * PAGE, PAGE, MADV_DONTNEED), 0);
    ck_assert(gets_unlocked(bytes, BYTES));
    send(buffer, 0, BYTES, bytes);
    use(touch, queue, buffer, 0);
    receive(buffer, 0, BYTES, back);
    ck_assert_int_eq(memcmp(bytes, back, BYTES), 0);
    ck_assert_int_eq(back[5 * PAGE], 0);
    ck_assert_int_eq(back[6 * PAGE], 1);
    unmap(bytes, BYTES);
    unmap(back, BYTES);
    ck_assert(gets_unlocked(back, BYTES));
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

START_TEST(moved) {
    enum { BYTES = MIB };
    skip_unless_watched();
    begin();
    cl_mem buffer = make_used(BYTES);
    char *bytes = map_locked(buffer, BYTES), *place = map_at(NULL, 2 * BYTES);
    leave(bytes, BYTES);
    ck_assert_ptr_eq(mremap(bytes, BYTES, 2 * BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, place), place);
    ck_assert(gets_unlocked(bytes, BYTES));
    ck_assert(gets_unlocked(place, 2 * BYTES));
    check_round(buffer, BYTES, place, 2);
    ck_assert(is_locked(place, BYTES));
    unmap(place, 2 * BYTES);
    ck_assert(gets_unlocked(place, BYTES));
    /* What moved is not watched where it went, if nothing uses it there. */
    bytes = map_locked(buffer, BYTES);
    place = map_at(NULL, 2 * BYTES);
    leave(bytes, BYTES);
    ck_assert_ptr_eq(mremap(bytes, BYTES, 2 * BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, place), place);
    unmap(place, 2 * BYTES);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* Blocks of an array become one that is locked; a part of it that goes takes the lock of all. */
START_TEST(parts) {
    enum { BYTES = 4 * MIB, BLOCK = MIB / 2 };
    skip_unless_watched();
    begin();
    cl_mem buffer = make_used(BYTES);
    char *bytes = map_at(NULL, BYTES);
    for (size_t at = 0; at < BYTES; at += BLOCK) {
        memset(bytes + at, (int)(at / BLOCK), BLOCK);
        send(buffer, at, BLOCK, bytes + at);
    }
    send(buffer, 0, BYTES, bytes);
    receive(buffer, 0, BYTES, bytes);
    for (size_t at = 0; at < BYTES; at += BLOCK)
        ck_assert(is_locked(bytes + at, BLOCK));
    unsigned made = times_locked();
    for (size_t at = 0; at < BYTES; at += BLOCK)
        receive(buffer, at, BLOCK, bytes + at);
    ck_assert_uint_eq(times_locked(), made);
    for (size_t at = 0; at < BYTES; at += BLOCK)
        ck_assert_int_eq(bytes[at + BLOCK - 1], (int)(at / BLOCK));
    unmap(bytes + 2 * BLOCK, BLOCK);
    ck_assert(gets_unlocked(bytes + 2 * BLOCK, BLOCK));
    receive(buffer, 0, 2 * BLOCK, bytes);
    ck_assert_int_eq(bytes[2 * BLOCK - 1], 1);
    unmap(bytes, 2 * BLOCK);
    unmap(bytes + 3 * BLOCK, BYTES - 3 * BLOCK);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/*
 * Arrays that free() gives back to a heap, and the heap to Linux now and then: with a lock of the C
 * library's, which a driver may need to unlock them.
 */
static void *use_heap(void *given) {
    enum { ROUNDS = 40, ARRAYS = 4, BYTES = MIB };
    cl_mem buffer = given;
    cl_int result;
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &result);
    cl_kernel kernel = clCreateKernel(program, "touch", &result);
    for (int i = 0; i < ROUNDS; i++) {
        char *array[ARRAYS];
        for (int j = 0; j < ARRAYS; j++) {
            array[j] = malloc(BYTES);
            memset(array[j], i + j, BYTES);
            use(kernel, own, buffer, 0);
            ck_ok(clEnqueueWriteBuffer(own, buffer, CL_TRUE, 0, BYTES, array[j], 0, NULL, NULL));
            memset(array[j], 0, BYTES);
            use(kernel, own, buffer, 0);
            ck_ok(clEnqueueReadBuffer(own, buffer, CL_TRUE, 0, BYTES, array[j], 0, NULL, NULL));
        }
        for (int j = 0; j < ARRAYS; j++) {
            ck_assert_uint_eq(count_wrong(array[j], BYTES, i + j), 0);
            free(array[j]);
        }
    }
    clReleaseKernel(kernel);
    clReleaseCommandQueue(own);
    return NULL;
}

/* Rows that begin in locked pages and end behind them, so few bytes that they are not locked. */
START_TEST(rows_over_an_edge) {
    enum { ROWS = 16, ROW = 64, PITCH = 8 << 10, BEFORE = 5 * PITCH };
    skip_unless_watched();
    begin();
    cl_mem buffer = make_used(MIB);
    char *bytes = map_at(NULL, 2 * MIB);
    const size_t origin[3] = {0}, region[3] = {ROW, ROWS, 1};
    for (int writes = 0; writes < 2; writes++) {
        /* The first are among the locked bytes, or only in the last page of those. */
        size_t locked = writes ? MIB - 1000 : MIB;
        char *rows = bytes + (writes ? MIB - 500 : MIB - BEFORE);
        receive(buffer, 0, locked, bytes);
        ck_assert(is_locked(bytes, locked));
        memset(rows, 1 + writes, ROWS * PITCH);
        pages.refused = 0;
        ck_ok(writes ? clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, origin, origin, region,
                                                PITCH, 0, PITCH, 0, rows, 0, NULL, NULL)
                     : clEnqueueReadBufferRect(queue, buffer, CL_TRUE, origin, origin, region,
                                               PITCH, 0, PITCH, 0, rows, 0, NULL, NULL));
        ck_assert_uint_gt(pages.refused, 0);
        ck_assert(gets_unlocked(bytes, MIB));
    }
    char *seen = calloc(1, MIB);
    ck_ok(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, MIB, seen, 0, NULL, NULL));
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < ROW; x++)
            ck_assert_int_eq(seen[y * PITCH + x], 2);
    free(seen);
    unmap(bytes, 2 * MIB);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

START_TEST(of_a_heap) {
    enum { THREADS = 3 };
    pthread_t thread[THREADS];
    cl_mem buffer[THREADS + 1];
    skip_unless_watched();
    begin();
    free(malloc(2 * MIB)); /* so much comes from a heap from then on */
    unsigned made = times_locked();
    for (int i = 0; i <= THREADS; i++)
        buffer[i] = make_used(MIB);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, use_heap, buffer[i]), 0);
    use_heap(buffer[THREADS]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i <= THREADS; i++)
        ck_ok(clReleaseMemObject(buffer[i]));
    ck_assert_uint_gt(times_locked(), made);
    end();
}
END_TEST

/* Others may change what is behind such pages, and nobody tells. */
START_TEST(not_of_a_file) {
    enum { BYTES = MIB };
    begin();
    cl_mem buffer = make_used(BYTES);
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(ftruncate(fileno(file), BYTES), 0);
    for (int i = 0; i < 3; i++) {
        char *bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                           i == 0   ? MAP_SHARED | MAP_ANONYMOUS
                           : i == 1 ? MAP_SHARED
                                    : MAP_PRIVATE,
                           i ? fileno(file) : -1, 0);
        ck_assert_ptr_ne(bytes, MAP_FAILED);
        check_round(buffer, BYTES, bytes, i);
        ck_assert(!is_locked(bytes, BYTES));
        unmap(bytes, BYTES);
    }
    fclose(file);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* Memory that buffers are made over again and again stays locked from one to the next. */
START_TEST(under_buffers) {
    enum { INTS = MIB, BYTES = INTS * sizeof(cl_int), ROUNDS = 5 };
    skip_unless_watched();
    begin();
    cl_int *ints = (cl_int *)(void *)map_at(NULL, BYTES);
    unsigned made = times_locked();
    for (int i = 0; i < ROUNDS; i++) {
        cl_mem buffer = make_buffer(CL_MEM_USE_HOST_PTR, BYTES, ints);
        use(touch, queue, buffer, 1);
        void *mapped = ck_made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, BYTES, 0,
                                                  NULL, NULL, &error));
        ck_assert_ptr_eq(mapped, ints);
        ck_assert_int_eq(ints[0], i + 1);
        ck_assert_int_eq(ints[INTS - 1], 0);
        ck_ok(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
        ck_ok(clFinish(queue));
        ck_ok(clReleaseMemObject(buffer));
        ck_assert(is_locked(ints, BYTES));
    }
    ck_assert_uint_eq(times_locked(), made + 1);
    unmap(ints, BYTES);
    ck_assert(gets_unlocked(ints, BYTES));
    end();
}
END_TEST

/* A child that has the descriptors, and never reads them, holds nobody. */
START_TEST(forked) {
    enum { BYTES = MIB };
    skip_unless_watched();
    begin();
    cl_mem buffer = make_used(BYTES);
    char *bytes = map_locked(buffer, BYTES);
    pid_t child = fork();
    if (child == 0) {
        unmap(bytes, BYTES);
        pause();
        _exit(0);
    }
    check_round(buffer, BYTES, bytes, 2);
    for (int i = 0; i < 5; i++) {
        unmap(bytes, BYTES);
        ck_assert(gets_unlocked(bytes, BYTES));
        bytes = map_at(bytes, BYTES);
        check_round(buffer, BYTES, bytes, 3);
    }
    unmap(bytes, BYTES);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* No more than half of TUTTI_PINNED_LIMIT: what was used longest ago goes. */
START_TEST(limit) {
    enum { ARRAYS = 8, BYTES = 8 * MIB };
    char *array[ARRAYS];
    size_t locked = 0;
    skip_unless_watched();
    begin();
    cl_mem buffer = make_used(BYTES);
    for (int i = 0; i < ARRAYS; i++) {
        array[i] = map_at(NULL, BYTES + 65536);
        check_round(buffer, BYTES, array[i], i);
        ck_assert(is_locked(array[i], BYTES));
    }
    for (int i = 0; i < ARRAYS; i++)
        locked += is_locked(array[i], BYTES) ? BYTES : 0;
    ck_assert_uint_le(locked, LIMIT / 2);
    ck_assert(gets_unlocked(array[0], BYTES));
    for (int i = 0; i < ARRAYS; i++)
        unmap(array[i], BYTES + 65536);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* Threads with arrays of their own, which come and go, often to where another one was. */
static void *come_and_go(void *given) {
    enum { ROUNDS = 60, MOST_BYTES = 2 * MIB, LEAST_BYTES = 64 << 10 };
    unsigned seed = (unsigned)(uintptr_t)given;
    cl_int result;
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &result);
    cl_kernel kernel = clCreateKernel(program, "touch", &result);
    cl_mem buffer = clCreateBuffer(context, 0, MOST_BYTES, NULL, &result);
    for (int i = 0; i < ROUNDS; i++) {
        size_t size = LEAST_BYTES + (size_t)rand_r(&seed) % (MOST_BYTES - LEAST_BYTES);
        size -= size % 4096;
        char *bytes = map_at(NULL, size);
        for (int j = 0; j < 3; j++) {
            memset(bytes, i + j, size);
            use(kernel, own, buffer, 0);
            ck_ok(clEnqueueWriteBuffer(own, buffer, CL_TRUE, 0, size, bytes, 0, NULL, NULL));
            memset(bytes, 0, size);
            use(kernel, own, buffer, 0);
            ck_ok(clEnqueueReadBuffer(own, buffer, CL_TRUE, 0, size, bytes, 0, NULL, NULL));
            ck_assert_uint_eq(count_wrong(bytes, size, i + j), 0);
            if (rand_r(&seed) % 4 == 0) {
                leave(bytes, PAGE);
                madvise(bytes, PAGE, MADV_DONTNEED);
            }
        }
        size_t half = size / 8192 * 4096;
        unmap(bytes + half, size - half);
        unmap(bytes, half); /* no more: the rest may be another thread's already */
    }
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
    clReleaseCommandQueue(own);
    return NULL;
}

START_TEST(by_several_threads) {
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    begin();
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, come_and_go, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    end();
}
END_TEST

static void be_slow(bool slow) {
    pthread_mutex_lock(&pages.lock);
    pages.slow = slow;
    pthread_mutex_unlock(&pages.lock);
}

/* A driver that takes its time holds nobody but who uses the same address. */
START_TEST(late) {
    enum { BYTES = MIB, LITTLE = 1000 };
    skip_unless_watched();
    skip_if(!getenv("LATE"), "in a process of its own");
    begin();
    cl_mem buffer = make_used(BYTES);
    for (int i = 0; i < 2; i++) {
        char *bytes = map_locked(buffer, BYTES), *other = map_at(NULL, BYTES);
        be_slow(true);
        unmap(bytes, BYTES);
        ck_assert(is_locked(bytes, BYTES));
        receive(buffer, 0, LITTLE, other);
        ck_assert(is_locked(bytes, BYTES));
        be_slow(false);
        bytes = map_at(bytes, BYTES);
        receive(buffer, 0, LITTLE, bytes + i * PAGE); /* waits for the driver */
        ck_assert(!is_locked(bytes, BYTES));
        check_round(buffer, BYTES, bytes, 2);
        ck_assert(is_locked(bytes, BYTES));
        unmap(bytes, BYTES);
        unmap(other, BYTES);
    }
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/*
 * free() makes the heap smaller with the heap's lock, which the driver wants as it unlocks the
 * array, for something that the program's thread allocated (NVIDIA's does).
 */
START_TEST(of_the_drivers_heap) {
    enum { ROUNDS = 5, BYTES = MIB, KEPT = 5000 };
    skip_unless_watched();
    skip_if(!getenv("LATE"), "in a process of its own");
    free(malloc(2 * MIB)); /* so much comes from the heap from then on */
    skip_if(mallopt(M_TRIM_THRESHOLD, BYTES / 2) != 1, "a sanitizer's allocator has no such heap");
    begin();
    cl_mem buffer = make_used(BYTES);
    for (int i = 0; i < ROUNDS; i++) {
        unsigned made = times_locked();
        void *kept = malloc(KEPT), *between = malloc(KEPT);
        char *array = malloc(BYTES);
        check_round(buffer, BYTES, array, i);
        ck_assert(is_locked(array, BYTES));
        ck_assert_uint_eq(times_locked(), made + 1);
        pthread_mutex_lock(&pages.lock);
        pages.kept = kept;
        pthread_mutex_unlock(&pages.lock);
        const void *volatile was = array;
        free(array);
        ck_assert(gets_unlocked(was, BYTES));
        free(between);
    }
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

START_TEST(late_in_a_process) {
    skip_unless_watched();
    test_run_again("LATE=1", "late");
    test_run_again("LATE=1", "of_the_drivers_heap");
}
END_TEST

/* By itself an array is locked when it was used some times, and by NVIDIA's driver alone. */
START_TEST(pays) {
    enum { BYTES = MIB, SOON = 2, MOST_TIMES = 8 };
    skip_unless_watched();
    skip_if(!getenv("LATE"), "in a process of its own");
    begin();
    bool nvidia = strcmp(getenv("LATE"), "nvidia") == 0;
    cl_mem buffer = make_used(BYTES);
    char *bytes = map_at(NULL, BYTES);
    int times = 0;
    do {
        receive(buffer, 0, BYTES, bytes);
    } while (++times < MOST_TIMES && !is_locked(bytes, BYTES));
    ck_assert_int_gt(times, SOON);
    ck_assert_int_eq(is_locked(bytes, BYTES), nvidia);
    unmap(bytes, BYTES);
    ck_assert(gets_unlocked(bytes, BYTES));
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

/* Arrays that are freed after some uses are locked less and less often. */
START_TEST(in_vain) {
    enum { BYTES = MIB, ARRAYS = 160, USES = 3, FEW = 15 };
    skip_unless_watched();
    skip_if(!getenv("LATE"), "in a process of its own");
    begin();
    cl_mem buffer = make_used(BYTES);
    char *bytes = map_at(NULL, BYTES);
    for (int i = 0; i < ARRAYS; i++) {
        for (int j = 0; j < USES; j++)
            receive(buffer, 0, BYTES, bytes);
        unmap(bytes, BYTES);
        bytes = map_at(bytes, BYTES);
    }
    ck_assert_uint_gt(times_locked(), 0);
    ck_assert_uint_le(times_locked(), FEW);
    for (int i = 0; i < ARRAYS * USES; i++)
        receive(buffer, 0, BYTES, bytes);
    ck_assert(is_locked(bytes, BYTES));
    unmap(bytes, BYTES);
    ck_ok(clReleaseMemObject(buffer));
    end();
}
END_TEST

START_TEST(pays_by_itself) {
    skip_unless_watched();
    test_run_again("TUTTI_LOCK_PAGES=auto LATE=nvidia", "pays");
    test_run_again("TUTTI_LOCK_PAGES=auto LATE=other", "pays");
    test_run_again("TUTTI_LOCK_PAGES=auto LATE=nvidia", "in_vain");
}
END_TEST

START_TEST(never) { test_run_again("TUTTI_LOCK_PAGES=never LATE=other", "pays"); }
END_TEST

START_TEST(neither) {
    const char *said =
        test_run_again("TUTTI_LOCK_PAGES=perhaps TUTTI_LOG=warning LATE=other", "pays");
    skip_unless_watched();
    ck_assert_msg(strstr(said, "TUTTI_LOCK_PAGES=perhaps is none of auto|never|always") != NULL,
                  "%s", said);
}
END_TEST

static cl_int CL_API_CALL get_platform_info(cl_platform_id of, cl_platform_info what, size_t size,
                                            void *value, size_t *size_ret) {
    static const char name[] = "NVIDIA CUDA";
    if (what != CL_PLATFORM_NAME || !value || size < sizeof(name))
        return real.clGetPlatformInfo(of, what, size, value, size_ret);
    memcpy(value, name, sizeof(name));
    return CL_SUCCESS;
}

static void change_all(cl_icd_dispatch *table) {
    const char *which = getenv("LATE");
    change(table);
    if (!which || strcmp(which, "nvidia") != 0)
        return;
    table->clGetPlatformInfo = get_platform_info;
    setenv("TUTTI_DEVICES", "pthread,cpu-", 1); /* PoCL's, whatever else is of that name */
}

int main(int argc, char **argv) {
    const TTest *const tests[] = {
        unmapped,
        dropped,
        moved,
        parts,
        rows_over_an_edge,
        of_a_heap,
        not_of_a_file,
        under_buffers,
        forked,
        limit,
        by_several_threads,
        late,
        of_the_drivers_heap,
        late_in_a_process,
        pays,
        in_vain,
        pays_by_itself,
        never,
        neither,
    };
    char text[32];
    snprintf(text, sizeof(text), "%d", LIMIT);
    setenv("TUTTI_PINNED_LIMIT", text, 1);
    setenv("TUTTI_LOCK_PAGES", "always", 0);
    return test_main_gpu(argc, argv, tests, COUNT(tests), change_all);
}
