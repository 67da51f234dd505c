/* SPDX-License-Identifier: MIT */
#include "execute.h"

#include <stdarg.h>

static const char source[] =
    "uint work(uint value, uint rounds) {"
    "    for (uint r = 0; r < rounds; r++) value = value * 1664525u + 1013904223u;"
    "    return value;"
    "}\n"
    "#define TAIL uint count, uint value, uint rounds\n"
    "#define I get_global_id(0)\n"
    "kernel void add(global uint *a, uint x, TAIL) { a[x + I] += work(value, rounds); }\n"
    "kernel void copy(global const uint *a, uint x, global uint *b, uint y, TAIL) {"
    "    b[y + I] = a[x + I]; }\n"
    "kernel void paint(global const uint *a, uint x, write_only image2d_t b, uint y, TAIL) {"
    "    int p = y + I, width = get_image_width(b);"
    "    write_imageui(b, (int2)(p % width, p / width), (uint4)(a[x + I], 0, 0, 0)); }\n"
    "constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE |"
    "                             CLK_FILTER_NEAREST;\n"
    "kernel void pick(read_only image2d_t a, uint x, global uint *b, uint y, TAIL) {"
    "    int p = x + I, width = get_image_width(a);"
    "    b[y + I] = read_imageui(a, nearest, (int2)(p % width, p / width)).x; }\n"
    "kernel void permute(global const uint *a, uint x, global uint *b, uint y, TAIL) {"
    "    b[y + I] = a[x + (7 * I + value) % count]; }\n"
    "kernel void reduce(global const uint *a, uint x, global uint *b, uint y, TAIL) {"
    "    uint sum = 0; for (uint i = 0; i < count; i++) sum += a[x + i]; b[y] = sum; }\n"
    "kernel void set(global uint *a, uint x, TAIL) { a[x + I] = value + 3 * (uint)I; }\n"
    "kernel void stir(global uint *a, uint x, global uint *b, uint y, TAIL) {"
    "    a[x + I] += 3 * b[y + I]; b[y + I] ^= a[x + I]; }\n"
    "kernel void sum(global const uint *a, uint x, global const uint *b, uint y,"
    "                global uint *c, uint z, TAIL) { c[z + I] = a[x + I] + value * b[y + I]; }\n";

static const char *const kernels[KERNEL_KINDS] = {"add",    "copy", "paint", "pick", "permute",
                                                  "reduce", "set",  "stir",  "sum"};

/* One program for all runs, and a context that changes now and then. */
static cl_program built;
static unsigned runs;

void run_fault(struct run *run, const char *format, ...) {
    va_list arguments;
    pthread_mutex_lock(&run->lock);
    if (!run->outcome->fault[0]) {
        va_start(arguments, format);
        vsnprintf(run->outcome->fault, sizeof(run->outcome->fault), format, arguments);
        va_end(arguments);
    }
    pthread_mutex_unlock(&run->lock);
}

void run_must(struct run *run, int step, const char *what, cl_int code) {
    if (code != CL_SUCCESS)
        run_fault(run, "step %d: %s gave %s", step, what, cl_error_name(code));
}

cl_mem run_object(struct run *run, int object) {
    const struct object *o = &run->program->object[object];
    cl_mem_flags inherited = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY |
                             CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS;
    cl_buffer_region region = {o->origin, o->size};
    cl_int code = CL_SUCCESS;
    pthread_mutex_lock(&run->lock);
    if (!run->mem[object])
        run->mem[object] = clCreateSubBuffer(run->mem[o->root], o->flags & inherited,
                                             CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    cl_mem mem = run->mem[object];
    pthread_mutex_unlock(&run->lock);
    run_must(run, -1, "clCreateSubBuffer", code);
    return mem;
}

static void count_uses(struct run *run) {
    const struct program *program = run->program;
    for (int i = 0; i < program->steps; i++) {
        const struct step *s = &program->step[i];
        if (s->gone)
            continue;
        if (step_is_command(s) && outcome_keeps_event(program, i))
            run->event_uses[i]++; /* until the end */
        for (int k = 0; k < s->wait_count; k++) {
            run->event_uses[s->waits[k]]++;
            run->queue_uses[program->step[s->waits[k]].queue]++; /* clFlush */
        }
        if (step_has_queue(s))
            run->queue_uses[s->queue]++;
        for (int k = 0; k < s->objects; k++)
            run->object_uses[s->object[k]]++;
        if (s->kind == STEP_MAP) /* until unmapped */
            run->object_uses[s->object[0]]++;
    }
    for (int q = 0; q < program->queues; q++)
        run->queue_uses[q] += !program->queue_early[q] || run->queue_uses[q] == 0;
    for (int o = 0; o < program->objects; o++) {
        run->object_uses[o] += !program->object[o].early;
        run->object_uses[program->object[o].root] += program->object[o].root != o;
    }
}

/* Releases what was used for the last time; the work may still be under way. */
static void less(struct run *run, int i) {
    const struct program *program = run->program;
    const struct step *s = &program->step[i];
    cl_event events[MAX_LIST];
    cl_command_queue queues[MAX_LIST + 1];
    cl_mem mems[8];
    int event_count = 0, queue_count = 0, mem_count = 0, objects = 0, object[8];
    pthread_mutex_lock(&run->lock);
    for (int k = 0; k < s->wait_count; k++) {
        int other = s->waits[k], q = program->step[other].queue;
        if (--run->event_uses[other] == 0 && run->event[other]) {
            events[event_count++] = run->event[other];
            run->event[other] = NULL;
        }
        if (--run->queue_uses[q] == 0)
            queues[queue_count++] = run->queue[q];
    }
    if (step_has_queue(s) && --run->queue_uses[s->queue] == 0)
        queues[queue_count++] = run->queue[s->queue];
    for (int k = 0; k < s->objects; k++)
        object[objects++] = s->object[k];
    if (s->kind == STEP_UNMAP)
        object[objects++] = program->step[s->map].object[0];
    for (int k = 0; k < objects; k++) {
        int root = program->object[object[k]].root;
        if (--run->object_uses[object[k]] > 0)
            continue;
        mems[mem_count++] = run->mem[object[k]];
        run->mem[object[k]] = NULL;
        if (root != object[k])
            object[objects++] = root;
    }
    pthread_mutex_unlock(&run->lock);
    for (int k = 0; k < event_count; k++)
        run_must(run, i, "clReleaseEvent", clReleaseEvent(events[k]));
    for (int k = 0; k < queue_count; k++)
        run_must(run, i, "clReleaseCommandQueue", clReleaseCommandQueue(queues[k]));
    for (int k = 0; k < mem_count; k++)
        run_must(run, i, "clReleaseMemObject", clReleaseMemObject(mems[k]));
}

/* Until the calls are made that this one must follow. Called with the lock held. */
static bool may_go(const struct run *run, int i) {
    const struct program *program = run->program;
    const struct step *s = &program->step[i];
    for (int k = 0; k < s->wait_count; k++)
        if (!run->done[s->waits[k]])
            return false;
    for (int k = 0; k < s->after_count; k++)
        if (!run->done[s->after[k]])
            return false;
    if ((s->kind == STEP_UNMAP || s->kind == STEP_MAP_SET || s->kind == STEP_MAP_SEE) &&
        !run->done[s->map])
        return false;
    for (int j = 0; j < i && program->turns && step_has_queue(s); j++)
        if (!program->step[j].gone && step_has_queue(&program->step[j]) &&
            program->step[j].queue == s->queue && !run->done[j])
            return false;
    return true;
}

static void *run_steps(void *argument) {
    struct run_thread *thread = argument;
    struct run *run = thread->run;
    for (int i = 0; i < run->program->steps; i++) {
        const struct step *s = &run->program->step[i];
        if (s->gone || s->thread != thread->number)
            continue;
        pthread_mutex_lock(&run->lock);
        while (!may_go(run, i))
            pthread_cond_wait(&run->returned, &run->lock);
        pthread_mutex_unlock(&run->lock);
        run_call(thread, i);
        less(run, i);
        pthread_mutex_lock(&run->lock);
        run->done[i] = true;
        pthread_cond_broadcast(&run->returned);
        pthread_mutex_unlock(&run->lock);
    }
    return NULL;
}

static void make_context(struct run *run) {
    cl_int code = CL_SUCCESS;
    const char *text = source;
    if (context && runs++ % 32)
        return;
    if (context) {
        clReleaseProgram(built);
        clReleaseContext(context);
    }
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    run_must(run, -1, "clCreateContext", code);
    built = clCreateProgramWithSource(context, 1, &text, NULL, &code);
    run_must(run, -1, "clCreateProgramWithSource", code);
    run_must(run, -1, "clBuildProgram", clBuildProgram(built, 0, NULL, NULL, NULL, NULL));
}

static void make_objects(struct run *run) {
    const struct program *program = run->program;
    cl_int code = CL_SUCCESS;
    for (int q = 0; q < program->queues; q++) {
        run->queue[q] = clCreateCommandQueue(
            context, device, program->out_of_order[q] ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0,
            &code);
        run_must(run, -1, "clCreateCommandQueue", code);
    }
    for (int g = 0; g < program->gates; g++) {
        run->gate[g] = clCreateUserEvent(context, &code);
        run_must(run, -1, "clCreateUserEvent", code);
    }
    for (int o = 0; o < program->objects; o++) {
        const struct object *object = &program->object[o];
        bool given = object->flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
        if (object->root != o)
            continue;
        if (object->flags & CL_MEM_USE_HOST_PTR) {
            run->users[o] = malloc(object->size);
            memcpy(run->users[o], run->outcome->object[o], object->size);
        }
        void *content = run->users[o] ? run->users[o] : given ? run->outcome->object[o] : NULL;
        if (object->pixel) {
            cl_image_format format = image_format(object);
            cl_image_desc desc = image_desc(object);
            run->mem[o] = clCreateImage(context, object->flags, &format, &desc, content, &code);
        } else {
            run->mem[o] = clCreateBuffer(context, object->flags, object->size, content, &code);
        }
        run_must(run, -1, object->pixel ? "clCreateImage" : "clCreateBuffer", code);
    }
}

/* All commands over, all maps closed. */
static void come_to_rest(struct run *run) {
    const struct program *program = run->program;
    for (int g = 0; g < program->gates; g++) {
        if (!(run->order->opened >> g & 1))
            run_must(run, -1, "clSetUserEventStatus",
                     clSetUserEventStatus(run->gate[g], program->gate_status[g]));
        run_must(run, -1, "clReleaseEvent", clReleaseEvent(run->gate[g]));
    }
    for (int q = 0; q < program->queues; q++)
        if (run->queue_uses[q] > 0)
            run_must(run, -1, "clFlush", clFlush(run->queue[q]));
    for (int q = 0; q < program->queues; q++)
        if (run->queue_uses[q] > 0)
            run_must(run, -1, "clFinish", clFinish(run->queue[q]));
    for (int i = 0; i < program->steps; i++) {
        if (!run->event[i])
            continue;
        clWaitForEvents(1, &run->event[i]); /* fails if the command did, which status tells */
        run_must(run, i, "clGetEventInfo",
                 clGetEventInfo(run->event[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(cl_int),
                                &run->outcome->status[i], NULL));
        run_must(run, i, "clReleaseEvent", clReleaseEvent(run->event[i]));
    }
}

static void close_maps(struct run *run) {
    for (int i = 0; i < run->program->steps; i++) {
        const struct step *s = &run->program->step[i];
        if (s->gone || s->kind != STEP_MAP || run->order->of[i].closed || !run->mapped[i])
            continue;
        if (s->map_flags & CL_MAP_WRITE_INVALIDATE_REGION && !run->order->of[i].written)
            memset(run->mapped[i], UNWRITTEN, s->region[0]);
        run_must(
            run, i, "clEnqueueUnmapMemObject",
            clEnqueueUnmapMemObject(queue, run->mem[s->object[0]], run->mapped[i], 0, NULL, NULL));
    }
    run_must(run, -1, "clFinish", clFinish(queue));
}

static void look(struct run *run, int object) {
    const struct object *o = &run->program->object[object];
    const size_t origin[3] = {0, 0, 0};
    cl_mem mem = run->mem[object], stage = NULL;
    cl_int code = CL_SUCCESS;
    if (o->flags & (CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_WRITE_ONLY)) {
        stage = clCreateBuffer(context, 0, o->size, NULL, &code);
        run_must(run, -1, "clCreateBuffer", code);
        code = o->pixel ? clEnqueueCopyImageToBuffer(queue, mem, stage, origin, o->shape, 0, 0,
                                                     NULL, NULL)
                        : clEnqueueCopyBuffer(queue, mem, stage, 0, 0, o->size, 0, NULL, NULL);
        run_must(run, -1, "a copy at the end", code);
    }
    if (o->pixel && !stage)
        run_must(run, -1, "clEnqueueReadImage",
                 clEnqueueReadImage(queue, mem, CL_TRUE, origin, o->shape, 0, 0,
                                    run->outcome->object[object], 0, NULL, NULL));
    else
        run_must(run, -1, "clEnqueueReadBuffer",
                 clEnqueueReadBuffer(queue, stage ? stage : mem, CL_TRUE, 0, o->size,
                                     run->outcome->object[object], 0, NULL, NULL));
    if (stage)
        clReleaseMemObject(stage);
}

static void finish(struct run *run) {
    const struct program *program = run->program;
    cl_int code = CL_SUCCESS;
    queue = clCreateCommandQueue(context, device, 0, &code);
    run_must(run, -1, "clCreateCommandQueue", code);
    come_to_rest(run);
    close_maps(run);
    for (int o = 0; o < program->objects; o++)
        if (outcome_shows(program, run->order, o) && run->mem[o])
            look(run, o);
    for (int o = program->objects - 1; o >= 0; o--)
        if (run->mem[o])
            run_must(run, -1, "clReleaseMemObject", clReleaseMemObject(run->mem[o]));
    for (int q = 0; q < program->queues; q++)
        if (run->queue_uses[q] > 0)
            run_must(run, -1, "clReleaseCommandQueue", clReleaseCommandQueue(run->queue[q]));
    run_must(run, -1, "clReleaseCommandQueue", clReleaseCommandQueue(queue));
    for (int o = 0; o < program->objects; o++)
        free(run->users[o]);
}

void outcome_execute(struct outcome *outcome, const struct program *program,
                     const struct order *order) {
    struct run run = {.program = program, .order = order, .outcome = outcome};
    struct run_thread threads[MAX_THREADS];
    pthread_t handles[MAX_THREADS];
    pthread_mutex_init(&run.lock, NULL);
    pthread_cond_init(&run.returned, NULL);
    make_context(&run);
    make_objects(&run);
    count_uses(&run);
    for (int t = 0; t < program->threads; t++) {
        threads[t].run = &run;
        threads[t].number = t;
        for (int k = 0; k < KERNEL_KINDS; k++) {
            cl_int code = CL_SUCCESS;
            threads[t].kernel[k] = clCreateKernel(built, kernels[k], &code);
            run_must(&run, -1, kernels[k], code);
        }
    }
    for (int t = 1; t < program->threads; t++)
        pthread_create(&handles[t], NULL, run_steps, &threads[t]);
    run_steps(&threads[0]);
    for (int t = 1; t < program->threads; t++)
        pthread_join(handles[t], NULL);
    for (int t = 0; t < program->threads; t++)
        for (int k = 0; k < KERNEL_KINDS; k++)
            clReleaseKernel(threads[t].kernel[k]);
    finish(&run);
    pthread_mutex_destroy(&run.lock);
    pthread_cond_destroy(&run.returned);
}
