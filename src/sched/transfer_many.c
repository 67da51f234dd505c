/* SPDX-License-Identifier: MIT */
/* Commands on many memory objects: migrate and native kernels. */
#include "memory/coherence.h"
#include "memory/relay.h"
#include "memory/svm_home.h"
#include "memory/version.h"
#include "memory/window.h"
#include "sched/transfer.h"

#include <stdlib.h>
#include <string.h>

/* NULL when out of memory. A window would be no object of its own. */
static struct tutti_view *take(struct tutti_transfer *transfer, cl_uint i) {
    if (tutti_window_is(transfer->mems[i]) && !tutti_window_close(transfer->mems[i]))
        return NULL;
    return transfer->views[i] = tutti_version_take(transfer->mems[i], false, transfer->user);
}

static bool prepare_migrate(struct tutti_transfer *transfer) {
    for (cl_uint i = 0; i < transfer->mem_count; i++) {
        struct tutti_view *view = take(transfer, i);
        if (!view || !tutti_coherence_read(view, 0, view->size))
            return false;
        tutti_acquisition_add(&transfer->acquisition, view,
                              transfer->to_host ? TUTTI_HOME_READS : TUTTI_READS);
    }
    return true;
}

static cl_int execute_migrate(struct tutti_transfer *transfer) {
    for (cl_uint i = 0; i < transfer->mem_count && transfer->to_host; i++)
        tutti_relay_settle(transfer->views[i]);
    return CL_SUCCESS;
}

bool tutti_transfer_is_settled(const struct tutti_transfer *transfer) {
    bool settled = transfer->execute == execute_migrate;
    for (cl_uint i = 0; i < transfer->mem_count && settled && transfer->to_host; i++)
        settled = !tutti_relay_debtor(transfer->views[i]);
    return settled;
}

struct tutti_command *tutti_transfer_migrate(cl_uint count, const cl_mem *mems, bool to_host) {
    struct tutti_transfer *transfer =
        tutti_transfer_create(execute_migrate, prepare_migrate, NULL, NULL);
    if (!transfer)
        return NULL;
    transfer->to_host = to_host;
    if (!tutti_transfer_add_mems(transfer, count, mems)) {
        tutti_transfer_destroy(&transfer->command);
        return NULL;
    }
    return &transfer->command;
}

static void destroy_native(struct tutti_command *command) {
    struct tutti_transfer *transfer = (struct tutti_transfer *)command;
    free(transfer->native.arguments);
    free(transfer->native.places);
    tutti_transfer_destroy(command);
}

static bool prepare_native(struct tutti_transfer *transfer) {
    for (cl_uint i = 0; i < transfer->mem_count; i++) {
        struct tutti_view *view = take(transfer, i);
        if (!view || !tutti_coherence_write(view, 0, view->size, false))
            return false;
        view->defined = true;
        tutti_acquisition_add(&transfer->acquisition, view, TUTTI_HOME_WRITES);
    }
    return true;
}

static cl_int execute_native(struct tutti_transfer *transfer) {
    for (cl_uint i = 0; i < transfer->mem_count; i++) {
        void *home = tutti_view_home(transfer->views[i]);
        tutti_relay_settle(transfer->views[i]);
        if (!home || tutti_svm_home_use(transfer->views[i], NULL, true) != CL_SUCCESS)
            return CL_OUT_OF_HOST_MEMORY;
        memcpy((char *)transfer->native.arguments + transfer->native.places[i], &home,
               sizeof(home));
    }
    transfer->native.function(transfer->native.arguments);
    return CL_SUCCESS;
}

struct tutti_command *tutti_transfer_native(const struct tutti_native *native) {
    struct tutti_transfer *transfer =
        tutti_transfer_create(execute_native, prepare_native, NULL, NULL);
    if (!transfer)
        return NULL;
    transfer->command.destroy = destroy_native;
    /* It may look at, and change, all memory that other commands of its queue use on the host. */
    transfer->command.host = (const char *)1;
    transfer->command.host_size = SIZE_MAX - 1;
    transfer->command.host_written = true;
    transfer->writes = true;
    transfer->native.function = native->function;
    if (native->argument_bytes)
        transfer->native.arguments = malloc(native->argument_bytes);
    transfer->native.places = calloc(native->mem_count + 1, sizeof(*transfer->native.places));
    if ((native->argument_bytes && !transfer->native.arguments) || !transfer->native.places ||
        !tutti_transfer_add_mems(transfer, native->mem_count, native->mems)) {
        destroy_native(&transfer->command);
        return NULL;
    }
    if (native->argument_bytes)
        memcpy(transfer->native.arguments, native->arguments, native->argument_bytes);
    for (cl_uint i = 0; i < native->mem_count; i++)
        transfer->native.places[i] =
            (size_t)((const char *)native->places[i] - (const char *)native->arguments);
    return &transfer->command;
}
