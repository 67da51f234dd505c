/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "sched/runtime.h"

#include "brief_lock.h"
#include "clock.h"
#include "env.h"
#include "log.h"
#include "memory/block.h"
#include "memory/kept_home.h"
#include "memory/locked_pages.h"
#include "memory/peers.h"
#include "memory/pinned.h"
#include "memory/storage.h"
#include "sched/direct_end.h"
#include "sched/environment.h"
#include "sched/idle.h"
#include "sched/model.h"
#include "sched/policy.h"
#include "sched/row.h"
#include "sched/statistics.h"
#include "signals.h"
#include "virtual_device/build.h"
#include "virtual_device/free_memory.h"
#include "virtual_device/pocl.h"

#include <CL/cl_ext.h>
#include <errno.h>
#include <pthread.h>
#include <starpu_opencl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* StarPU has room for as many platforms; with more it reads past its array (1.3 and 1.4). */
#define STARPU_PLATFORMS 4

static struct {
    pthread_mutex_t lock; /* guards the start */
    atomic_bool started, starting;
    atomic_bool exiting;
    cl_int result; /* of the first start */
    bool tried;
    bool spare_cores;
    struct tutti_real_device *of_worker[STARPU_NMAXWORKERS];
    struct tutti_real_device *of_node[STARPU_MAXNODES];
} runtime = {.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * Pausing. What is atomic is read without the lock: who counts itself as busy looks at `paused`
 * after it, and who pauses looks at `busy` after saying so; likewise `watchers`.
 */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t idle; /* `busy` reached zero, or the program exits */
    pthread_cond_t drained;
    atomic_long busy;
    atomic_bool paused;   /* or about to be */
    atomic_bool worked;   /* since the keeper looked last */
    atomic_uint watchers; /* threads that wait for `busy` to be zero: few commands wake one */
    bool trimming;        /* drivers get memory back right now */
} pause_state = {.lock = PTHREAD_MUTEX_INITIALIZER,
                 .idle = PTHREAD_COND_INITIALIZER,
                 .drained = PTHREAD_COND_INITIALIZER};

cl_ulong tutti_runtime_now(void) { return tutti_clock_now(); }

cl_ulong tutti_runtime_about_now(void) { return tutti_clock_read(CLOCK_MONOTONIC_COARSE); }

bool tutti_runtime_started(void) { return atomic_load(&runtime.started); }

bool tutti_runtime_starting(void) { return atomic_load(&runtime.starting); }

bool tutti_runtime_usable(void) {
    return atomic_load(&runtime.started) && !atomic_load(&runtime.exiting) &&
           !tutti_devices_forked();
}

bool tutti_runtime_has_spare_cores(void) { return runtime.spare_cores; }

struct tutti_real_device *tutti_runtime_device_of_worker(int workerid) {
    return workerid >= 0 && workerid < STARPU_NMAXWORKERS ? runtime.of_worker[workerid] : NULL;
}

struct tutti_real_device *tutti_runtime_device_of_node(unsigned node) {
    return node < STARPU_MAXNODES ? runtime.of_node[node] : NULL;
}

void tutti_runtime_busy(void) {
    atomic_fetch_add(&pause_state.busy, 1);
    if (!atomic_load_explicit(&pause_state.worked, memory_order_relaxed))
        atomic_store_explicit(&pause_state.worked, true, memory_order_relaxed);
    if (!atomic_load(&pause_state.paused))
        return;
    pthread_mutex_lock(&pause_state.lock);
    if (atomic_load(&pause_state.paused)) {
        starpu_resume();
        atomic_store(&pause_state.paused, false);
    }
    pthread_mutex_unlock(&pause_state.lock);
}

void tutti_runtime_idle(unsigned count) {
    if (atomic_fetch_sub(&pause_state.busy, (long)count) != (long)count ||
        atomic_load(&pause_state.watchers) == 0)
        return;
    pthread_mutex_lock(&pause_state.lock);
    pthread_cond_signal(&pause_state.idle);
    pthread_cond_broadcast(&pause_state.drained);
    pthread_mutex_unlock(&pause_state.lock);
}

long tutti_runtime_in_flight(void) { return atomic_load(&pause_state.busy); }

/* With the lock held. */
static void pause_workers(bool even_if_busy) {
    if (atomic_load(&pause_state.paused))
        return;
    atomic_store(&pause_state.paused, true);
    if (even_if_busy || atomic_load(&pause_state.busy) == 0)
        starpu_pause();
    else
        atomic_store(&pause_state.paused, false);
}

#define MILLISECOND 1000000u
#define LONGEST_DRAIN (5000ul * MILLISECOND) /* at the process's end */

/* Waits while there is work, or the workers sleep; after two seconds of sleep gives memory back. */
static void wait_for_idleness(void) {
    bool trimmed = false;
    atomic_fetch_add(&pause_state.watchers, 1);
    while (atomic_load(&pause_state.busy) > 0 || pause_state.paused) {
        if (trimmed || !pause_state.paused) {
            pthread_cond_wait(&pause_state.idle, &pause_state.lock);
            continue;
        }
        struct timespec deadline = tutti_clock_deadline(2000u * MILLISECOND);
        if (pthread_cond_timedwait(&pause_state.idle, &pause_state.lock, &deadline) == ETIMEDOUT &&
            pause_state.paused && !atomic_load(&runtime.exiting)) {
            pause_state.trimming = true;
            pthread_mutex_unlock(&pause_state.lock);
            tutti_pinned_trim();
            tutti_storage_trim();
            tutti_kept_home_trim();
            tutti_block_trim(); /* what the others freed is kept there */
            pthread_mutex_lock(&pause_state.lock);
            pause_state.trimming = false;
            pthread_cond_broadcast(&pause_state.drained);
            trimmed = true;
        }
    }
    atomic_fetch_sub(&pause_state.watchers, 1);
}

/* Puts the workers to sleep when nothing was in flight for 10 to 20 ms. */
static void *keeper(void *unused) {
    (void)unused;
    pthread_mutex_lock(&pause_state.lock);
    for (;;) {
        wait_for_idleness();
        atomic_store(&pause_state.worked, false);
        struct timespec deadline = tutti_clock_deadline(10 * MILLISECOND);
        while (pthread_cond_timedwait(&pause_state.idle, &pause_state.lock, &deadline) != ETIMEDOUT)
            ;
        if (!atomic_load(&pause_state.worked))
            pause_workers(false);
    }
    return NULL;
}

/*
 * Lets what is in flight end, within bounds: a command behind a user event never would. True if it
 * all ended. With the lock held.
 */
static bool drain(unsigned long most /* ns */) {
    struct timespec deadline = tutti_clock_deadline(most);
    bool late = false;
    atomic_fetch_add(&pause_state.watchers, 1);
    while (atomic_load(&pause_state.busy) > 0 && !late)
        late =
            pthread_cond_timedwait(&pause_state.drained, &pause_state.lock, &deadline) == ETIMEDOUT;
    atomic_fetch_sub(&pause_state.watchers, 1);
    return !late;
}

bool tutti_runtime_await_idle(unsigned long most) {
    if (atomic_load(&pause_state.busy) == 0)
        return true;
    pthread_mutex_lock(&pause_state.lock);
    bool idle = drain(most);
    pthread_mutex_unlock(&pause_state.lock);
    return idle;
}

static bool is_main(void) { return gettid() == getpid(); }

/* The main thread ended with work under way. */
static bool waited_in_vain;

/*
 * The main thread ends, which mostly is the process's end: nothing may be compiled, nor executed,
 * when the first handler at exit runs. LLVM, in PoCL, registers handlers when it first does this or
 * that, later than ours, and they take away what a worker is compiling a kernel with. Nothing is
 * closed yet: the program's own handlers, and destructors, may still use OpenCL.
 */
static void main_ends(void *unused) {
    (void)unused;
    if (tutti_devices_forked())
        return;
    tutti_build_stop();
    pthread_mutex_lock(&pause_state.lock);
    waited_in_vain = !drain(LONGEST_DRAIN);
    tutti_row_settle();
    pthread_mutex_unlock(&pause_state.lock);
}

/* glibc's: the function runs when the thread ends, or the process by it, before all handlers. */
extern int __cxa_thread_atexit_impl(void (*function)(void *), void *object, void *library)
    __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static void watch_main(void) {
    static atomic_flag watched = ATOMIC_FLAG_INIT;
    if (is_main() && __cxa_thread_atexit_impl && !atomic_flag_test_and_set(&watched))
        __cxa_thread_atexit_impl(main_ends, NULL, &__dso_handle);
}

/*
 * Runs before the vendors' exit handlers that were there at the start, since it is registered after
 * them: lets what is in flight end, and keeps the workers from touching drivers that are about to
 * be torn down.
 */
static void at_exit(void) {
    if (tutti_devices_forked())
        return;
    tutti_build_stop();
    pthread_mutex_lock(&pause_state.lock);
    /* Not a second time for the same; what the main thread left to others gets its time. */
    if (!waited_in_vain || !is_main())
        drain(LONGEST_DRAIN);
    tutti_row_settle();
    atomic_store(&runtime.exiting, true);
    tutti_direct_stop();
    tutti_locked_pages_stop();
    while (pause_state.trimming)
        pthread_cond_wait(&pause_state.drained, &pause_state.lock);
    pause_workers(true);
    pthread_mutex_unlock(&pause_state.lock);
    tutti_model_keep();
    tutti_statistics_print();
}

/*
 * StarPU numbers OpenCL devices in the order in which it finds them: for each platform of the
 * loader, its devices. This does the same before it, so that only the real devices of our list
 * get a worker, and notes those that the loader does not show: they are handed over when StarPU
 * asks our own platform (OCL_ICD_VENDORS=…/libtutti.so).
 */
static bool number_devices(const struct tutti_device_list *list, struct tutti_hand_over *hand_over,
                           unsigned *seen_by_starpu) {
    cl_platform_id platform[STARPU_PLATFORMS];
    cl_uint platforms = 0;
    if (clGetPlatformIDs(STARPU_PLATFORMS, platform, &platforms) != CL_SUCCESS) {
        tutti_log(ERROR, "the OpenCL loader shows no platform");
        return false;
    }
    if (platforms > STARPU_PLATFORMS) {
        tutti_log(
            ERROR,
            "the loader shows %u platforms and StarPU has room for %d: set OCL_ICD_VENDORS to "
            "libtutti.so, or to a directory with fewer .icd files",
            platforms, STARPU_PLATFORMS);
        return false;
    }
    const cl_device_type types =
        CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CPU;
    bool elsewhere[TUTTI_MAX_DEVICES] = {false};
    cl_device_id ids[64];
    for (cl_uint p = 0; p < platforms; p++) {
        cl_uint count = 0;
        if (platform[p] == tutti_platform() ||
            clGetDeviceIDs(platform[p], types, 64, ids, &count) != CL_SUCCESS)
            continue;
        for (cl_uint i = 0; i < count && i < 64; i++)
            for (unsigned d = 0; d < list->count; d++)
                if (list->device[d]->id == ids[i])
                    elsewhere[d] = true;
    }
    hand_over->count = 0;
    for (unsigned d = 0; d < list->count; d++)
        if (!elsewhere[d])
            hand_over->id[hand_over->count++] = list->device[d]->id;

    unsigned next = 0;
    for (unsigned d = 0; d < list->count; d++)
        list->device[d]->place.devid = -1;
    for (cl_uint p = 0; p < platforms; p++) {
        const cl_device_id *found = ids;
        cl_uint count = 0;
        if (platform[p] == tutti_platform()) {
            found = hand_over->id;
            count = hand_over->count;
        } else if (clGetDeviceIDs(platform[p], types, 64, ids, &count) != CL_SUCCESS) {
            continue;
        }
        for (cl_uint i = 0; i < count && i < 64; i++, next++)
            for (unsigned d = 0; d < list->count; d++)
                if (list->device[d]->id == found[i] && next < STARPU_MAXOPENCLDEVS)
                    list->device[d]->place.devid = (int)next;
    }
    *seen_by_starpu = next < STARPU_MAXOPENCLDEVS ? next : STARPU_MAXOPENCLDEVS;
    return true;
}

static bool open_queues(struct tutti_real_device *device) {
    cl_int error = CL_SUCCESS;
    const cl_icd_dispatch *driver = device->dispatch;
    tutti_brief_lock_init(&device->place.enqueues);
    tutti_brief_lock_init(&device->place.ends);
    /* See struct tutti_real_device. */
    bool gpu = device->type & CL_DEVICE_TYPE_GPU;
    bool apart = gpu || tutti_device_executes_in_call(device);
    const struct {
        cl_command_queue *queue;
        cl_command_queue_properties properties;
        bool wanted;
    } queues[] = {{&device->place.uploads, 0, true},
                  {&device->place.downloads, 0, true},
                  {&device->place.measured, CL_QUEUE_PROFILING_ENABLE, true},
                  {&device->place.kernels, 0, apart},
                  {&device->place.takes, 0, gpu && !device->shares_host}};
    for (size_t i = 0; i < sizeof(queues) / sizeof(*queues); i++) {
        if (!queues[i].wanted)
            continue;
        *queues[i].queue = driver->clCreateCommandQueue(device->place.context, device->id,
                                                        queues[i].properties, &error);
        if (error != CL_SUCCESS) {
            tutti_log(ERROR, "%s: clCreateCommandQueue failed with %d", device->name, error);
            return false;
        }
    }
    if (!apart)
        device->place.kernels = device->place.measured;
    return true;
}

/* After starpu_init: which worker and memory node each real device got. */
static unsigned find_places(const struct tutti_device_list *list) {
    unsigned driven = 0;
    for (unsigned d = 0; d < list->count; d++) {
        struct tutti_real_device *device = list->device[d];
        int devid = device->place.devid;
        int worker = devid < 0 ? -1 : starpu_worker_get_by_devid(STARPU_OPENCL_WORKER, devid);
        cl_device_id id = NULL;
        if (worker >= 0)
            starpu_opencl_get_device(devid, &id);
        if (worker < 0 || id != device->id) {
            tutti_log(WARNING, "%s: StarPU does not drive it", device->name);
            device->place.devid = -1;
            continue;
        }
        device->place.workerid = worker;
        device->place.node = starpu_worker_get_memory_node((unsigned)worker);
        starpu_opencl_get_context(devid, &device->place.context);
        if (tutti_peers_context(device))
            device->place.context = tutti_peers_context(device);
        device->place.synchronous = tutti_pocl_is_basic(device) || tutti_device_interprets(device);
        if (!open_queues(device)) {
            device->place.devid = -1;
            continue;
        }
        runtime.of_worker[worker] = device;
        runtime.of_node[device->place.node] = device;
        driven++;
        tutti_log(INFO, "%s: StarPU's worker %d, memory node %u", device->name, worker,
                  device->place.node);
    }
    return driven;
}

/* Which devices have a context in common instead of one of StarPU's each? */
static void join_peers(const struct tutti_device_list *list) {
    struct tutti_peer alone[TUTTI_MAX_DEVICES];
    unsigned count = 0;
    for (unsigned d = 0; d < list->count; d++) {
        int devid = list->device[d]->place.devid;
        if (devid < 0 || starpu_worker_get_by_devid(STARPU_OPENCL_WORKER, devid) < 0)
            continue;
        alone[count].device = list->device[d];
        starpu_opencl_get_context(devid, &alone[count++].context);
    }
    sigset_t before;
    tutti_signals_block(&before); /* drivers may start threads */
    tutti_peers_start(alone, count, tutti_environment_directory());
    tutti_signals_restore(&before);
}

/* As StarPU does. */
static bool can_open(const struct tutti_real_device *device) {
    const cl_icd_dispatch *driver = device->dispatch;
    cl_int error;
    cl_context context = driver->clCreateContext(NULL, 1, &device->id, NULL, NULL, &error);
    cl_command_queue queue =
        context ? driver->clCreateCommandQueue(context, device->id, 0, &error) : NULL;
    if (queue)
        driver->clReleaseCommandQueue(queue);
    if (context)
        driver->clReleaseContext(context);
    return queue != NULL;
}

/*
 * StarPU ends the process where a driver makes no context: others may have all of a GPU's memory.
 * False: it would all the same, as it is the lead, or StarPU has yet to measure all links.
 */
static bool leave_out_full(const struct tutti_device_list *list,
                           const struct tutti_environment *environment) {
    bool some = false;
    sigset_t before;
    tutti_signals_block(&before); /* drivers may start threads */
    for (unsigned d = 0; d < list->count; d++) {
        struct tutti_real_device *device = list->device[d];
        if (device->place.devid < 0 || !(device->type & CL_DEVICE_TYPE_GPU) ||
            !tutti_free_memory_is_scarce(device) || can_open(device))
            continue;
        tutti_log(WARNING, "%s: left out, as it has no memory for a context", device->name);
        device->place.devid = -1;
        some = true;
    }
    tutti_signals_restore(&before);
    return !some || (list->device[0]->place.devid >= 0 && !environment->files.fresh);
}

static int start_starpu(const struct tutti_device_list *list, unsigned seen_by_starpu) {
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = 0;
    conf.ncuda = 0;
    conf.nopencl = 0;
    conf.catch_signals = 0;
    conf.precedence_over_environment_variables = 1;
    conf.use_explicit_workers_opencl_gpuid = 1;
    for (unsigned d = 0; d < list->count; d++)
        if (list->device[d]->place.devid >= 0)
            conf.workers_opencl_gpuid[conf.nopencl++] = (unsigned)list->device[d]->place.devid;
    /* StarPU cycles through the array when a driver shows more devices than we named. */
    for (unsigned i = (unsigned)conf.nopencl; i < seen_by_starpu && conf.nopencl; i++)
        conf.workers_opencl_gpuid[i] = conf.workers_opencl_gpuid[i % (unsigned)conf.nopencl];
    if (conf.nopencl == 0)
        return -ENODEV;
    tutti_policy_select(&conf);

    sigset_t before;
    tutti_signals_block(&before);
    int status = starpu_init(&conf);
    pthread_t thread;
    if (status == 0 && pthread_create(&thread, NULL, keeper, NULL) == 0)
        pthread_detach(thread);
    tutti_signals_restore(&before);
    return status;
}

static cl_int start(void) {
    const struct tutti_device_list *list = tutti_devices();
    if (list->count == 0)
        return CL_DEVICE_NOT_AVAILABLE;
    if (starpu_is_initialized()) {
        tutti_log(ERROR, "the program uses StarPU itself: Tutti can't");
        return CL_DEVICE_NOT_AVAILABLE;
    }
    struct tutti_hand_over hand_over;
    unsigned seen = 0;
    if (!number_devices(list, &hand_over, &seen))
        return CL_DEVICE_NOT_AVAILABLE;

    struct tutti_environment environment = {.set = 0};
    if (!tutti_environment_enter(&environment, list, seen))
        return CL_DEVICE_NOT_AVAILABLE;
    if (!leave_out_full(list, &environment)) {
        tutti_environment_leave(&environment, false);
        return CL_DEVICE_NOT_AVAILABLE;
    }
    atomic_store(&runtime.starting, true);
    tutti_devices_hand_over(&hand_over);
    int status = start_starpu(list, seen);
    tutti_devices_hand_over(NULL);
    atomic_store(&runtime.starting, false);
    if (status == 0)
        join_peers(list);
    tutti_environment_leave(&environment, status == 0);
    if (status) {
        tutti_log(ERROR, "starpu_init: %s", strerror(-status));
        return CL_DEVICE_NOT_AVAILABLE;
    }
    if (find_places(list) == 0 || list->device[0]->place.devid < 0) {
        tutti_log(ERROR, "StarPU drives no real device, or not the lead");
        return CL_DEVICE_NOT_AVAILABLE;
    }
    runtime.spare_cores =
        sysconf(_SC_NPROCESSORS_ONLN) >= 2 * (long)(starpu_worker_get_count() + 1);
    tutti_idle_start();
    atomic_store(&runtime.started, true);
    atexit(at_exit);
    pthread_mutex_lock(&pause_state.lock);
    pthread_cond_signal(&pause_state.idle);
    pthread_mutex_unlock(&pause_state.lock);
    return CL_SUCCESS;
}

cl_int tutti_runtime_start(void) {
    watch_main();
    if (tutti_runtime_usable())
        return CL_SUCCESS;
    if (tutti_devices_forked() || atomic_load(&runtime.exiting))
        return CL_DEVICE_NOT_AVAILABLE;
    pthread_mutex_lock(&runtime.lock);
    if (!runtime.tried) {
        runtime.result = start();
        runtime.tried = true;
    }
    cl_int result = runtime.result;
    pthread_mutex_unlock(&runtime.lock);
    return result;
}
