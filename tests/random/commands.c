/* SPDX-License-Identifier: MIT */
#include "execute.h"

#include <unistd.h>

struct call {
    struct run *run;
    const struct step *step;
    int number;
    cl_command_queue queue;
    cl_uint wait_count;
    cl_event waits[MAX_LIST + MAX_GATES];
    const cl_event *list; /* NULL if there are none */
    cl_event *event;      /* NULL if nobody wants it */
    cl_bool blocking;
};

static cl_int transfer(const struct call *call) {
    const struct step *s = call->step;
    const struct box *a = &s->box[0], *b = &s->box[1];
    cl_mem mem = run_object(call->run, s->object[0]);
    uint8_t *host = s->host >= 0 ? call->run->outcome->host[s->host] : NULL;
    if (s->kind == STEP_READ)
        return s->rect
                   ? clEnqueueReadBufferRect(call->queue, mem, call->blocking, a->origin, b->origin,
                                             s->region, a->row, a->slice, b->row, b->slice, host,
                                             call->wait_count, call->list, call->event)
                   : clEnqueueReadBuffer(call->queue, mem, call->blocking, a->origin[0],
                                         s->region[0], host + b->origin[0], call->wait_count,
                                         call->list, call->event);
    if (s->kind == STEP_WRITE)
        return s->rect ? clEnqueueWriteBufferRect(call->queue, mem, call->blocking, a->origin,
                                                  b->origin, s->region, a->row, a->slice, b->row,
                                                  b->slice, host, call->wait_count, call->list,
                                                  call->event)
                       : clEnqueueWriteBuffer(call->queue, mem, call->blocking, a->origin[0],
                                              s->region[0], host + b->origin[0], call->wait_count,
                                              call->list, call->event);
    if (s->kind == STEP_COPY) {
        cl_mem target = run_object(call->run, s->object[1]);
        return s->rect
                   ? clEnqueueCopyBufferRect(call->queue, mem, target, a->origin, b->origin,
                                             s->region, a->row, a->slice, b->row, b->slice,
                                             call->wait_count, call->list, call->event)
                   : clEnqueueCopyBuffer(call->queue, mem, target, a->origin[0], b->origin[0],
                                         s->region[0], call->wait_count, call->list, call->event);
    }
    uint8_t pattern[16];
    for (size_t i = 0; i < s->pattern; i++)
        pattern[i] = step_byte(s, i);
    return clEnqueueFillBuffer(call->queue, mem, pattern, s->pattern, a->origin[0], s->region[0],
                               call->wait_count, call->list, call->event);
}

static cl_int map(const struct call *call) {
    const struct step *s = call->step;
    cl_int code = CL_SUCCESS;
    if (object_is_image(call->run->program, s->object[0]))
        return image_map(call->run, call->number, call->queue, call->wait_count, call->list,
                         call->event);
    call->run->mapped[call->number] = clEnqueueMapBuffer(
        call->queue, run_object(call->run, s->object[0]), call->blocking, s->map_flags,
        s->box[0].origin[0], s->region[0], call->wait_count, call->list, call->event, &code);
    return code;
}

static cl_int unmap(const struct call *call) {
    const struct step *mapped = &call->run->program->step[call->step->map];
    return clEnqueueUnmapMemObject(call->queue, run_object(call->run, mapped->object[0]),
                                   call->run->mapped[call->step->map], call->wait_count, call->list,
                                   call->event);
}

static cl_int kernel(const struct call *call, cl_kernel chosen) {
    const struct step *s = call->step;
    cl_int code = CL_SUCCESS;
    cl_uint at = 0, count = (cl_uint)s->count;
    for (int k = 0; k < s->objects; k++) {
        cl_mem mem = run_object(call->run, s->object[k]);
        cl_uint first = (cl_uint)s->at[k];
        code |= clSetKernelArg(chosen, at++, sizeof(mem), &mem);
        code |= clSetKernelArg(chosen, at++, sizeof(first), &first);
    }
    cl_uint value = s->kernel == KERNEL_PERMUTE ? s->value % 1024 : s->value, rounds = s->rounds;
    code |= clSetKernelArg(chosen, at++, sizeof(count), &count);
    code |= clSetKernelArg(chosen, at++, sizeof(value), &value);
    code |= clSetKernelArg(chosen, at++, sizeof(rounds), &rounds);
    if (code != CL_SUCCESS)
        return code;
    size_t global = s->kernel == KERNEL_REDUCE ? 1 : s->count, local = 4;
    return clEnqueueNDRangeKernel(call->queue, chosen, 1, NULL, &global,
                                  global % local || s->value & 1 ? NULL : &local, call->wait_count,
                                  call->list, call->event);
}

struct native {
    uint32_t *memory[2];
    uint8_t *host;
    size_t at[2], count;
    uint32_t value;
};

static void CL_CALLBACK run_native(void *arguments) {
    struct native *native = arguments;
    uint32_t *a = native->memory[0] + native->at[0];
    const uint32_t *b = native->memory[1] ? native->memory[1] + native->at[1] : NULL;
    for (size_t i = 0; i < native->count; i++)
        a[i] += b ? b[i] : native->value;
    if (native->host)
        memcpy(native->host, a, native->count * 4);
}

static cl_int native(const struct call *call) {
    const struct step *s = call->step;
    struct native arguments = {.at = {s->at[0], s->at[1]}, .count = s->count, .value = s->value};
    cl_mem mems[2];
    const void *places[2] = {&arguments.memory[0], &arguments.memory[1]};
    for (int k = 0; k < s->objects; k++)
        mems[k] = run_object(call->run, s->object[k]);
    if (s->host >= 0)
        arguments.host = call->run->outcome->host[s->host] + box_first(&s->box[1]);
    return clEnqueueNativeKernel(call->queue, run_native, &arguments, sizeof(arguments),
                                 (cl_uint)s->objects, mems, places, call->wait_count, call->list,
                                 call->event);
}

static cl_int command(const struct call *call, struct run_thread *thread) {
    switch (call->step->kind) {
    case STEP_MAP:
        return map(call);
    case STEP_UNMAP:
        return unmap(call);
    case STEP_KERNEL:
        return kernel(call, thread->kernel[call->step->kernel]);
    case STEP_NATIVE:
        return native(call);
    case STEP_MARKER:
        return clEnqueueMarkerWithWaitList(call->queue, call->wait_count, call->list, call->event);
    case STEP_BARRIER:
        return clEnqueueBarrierWithWaitList(call->queue, call->wait_count, call->list, call->event);
    default:
        break;
    }
    for (int k = 0; k < call->step->objects; k++)
        if (object_is_image(call->run->program, call->step->object[k]))
            return image_transfer(call->run, call->step, call->queue, call->wait_count, call->list,
                                  call->event);
    return transfer(call);
}

/* The wait list; commands of another queue must have been flushed (5.13). */
static void collect_waits(struct call *call) {
    struct run *run = call->run;
    const struct step *s = call->step;
    for (int k = 0; k < s->wait_count; k++) {
        const struct step *other = &run->program->step[s->waits[k]];
        if (!run->event[s->waits[k]])
            continue;
        call->waits[call->wait_count++] = run->event[s->waits[k]];
        if (!step_has_queue(s) || other->queue != s->queue)
            run_must(run, call->number, "clFlush", clFlush(run->queue[other->queue]));
    }
    for (int g = 0; g < run->program->gates; g++)
        if (s->gates >> g & 1)
            call->waits[call->wait_count++] = run->gate[g];
    call->list = call->wait_count ? call->waits : NULL;
}

static void host_step(struct run *run, int i) {
    const struct step *s = &run->program->step[i];
    uint8_t *bytes = s->kind == STEP_HOST_SET || s->kind == STEP_HOST_SEE
                         ? run->outcome->host[s->host]
                         : run->mapped[s->map];
    if (s->kind == STEP_PAUSE) {
        usleep(s->value % 300);
        return;
    }
    if (!bytes)
        return; /* the map failed, which is a fault already */
    if (s->kind == STEP_HOST_SEE || s->kind == STEP_MAP_SEE) {
        run->outcome->seen[i] = hash_bytes(bytes + s->at[0], s->count);
        return;
    }
    for (size_t b = 0; b < s->count; b++)
        bytes[s->at[0] + b] = step_byte(s, b);
}

void run_call(struct run_thread *thread, int i) {
    struct run *run = thread->run;
    const struct step *s = &run->program->step[i];
    bool fails = run->order->of[i].fails;
    cl_int expected = fails && (s->blocking || s->kind == STEP_WAIT)
                          ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
                          : CL_SUCCESS;
    cl_int code;
    struct call call = {.run = run, .step = s, .number = i, .blocking = s->blocking};
    if (step_has_queue(s))
        call.queue = run->queue[s->queue];
    if (run->event_uses[i])
        call.event = &run->event[i];
    collect_waits(&call);
    if (step_is_command(s)) {
        code = command(&call, thread);
    } else if (s->kind == STEP_FLUSH) {
        code = clFlush(call.queue);
    } else if (s->kind == STEP_FINISH) {
        code = clFinish(call.queue);
    } else if (s->kind == STEP_WAIT) {
        code = call.wait_count ? clWaitForEvents(call.wait_count, call.waits) : CL_SUCCESS;
    } else if (s->kind == STEP_OPEN) {
        code = clSetUserEventStatus(run->gate[s->gate], run->program->gate_status[s->gate]);
    } else {
        host_step(run, i);
        return;
    }
    if (code != expected)
        run_fault(run, "step %d returned %s, expected %s", i, cl_error_name(code),
                  expected ? "an error" : "success");
}
