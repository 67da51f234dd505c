/* SPDX-License-Identifier: MIT */
/*
 * Only Tutti: more data than the memory of GPUs, which their driver moves to and fro. PoCL stands
 * in for two; TUTTI_DEVICE_MEMORY gives each of them one MiB.
 */
#include "pocl_gpu.h"

#include "full_memory.h"

/* As PoCL's device takes memory from the heap, which may have it. */
static cl_mem CL_API_CALL create(cl_context in, cl_mem_flags flags, size_t size, void *host,
                                 cl_int *result) {
    if (size != REFUSED || !atomic_load(&refusing))
        return real.clCreateBuffer(in, flags, size, host, result);
    atomic_store(&refused_some, true);
    *result = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return NULL;
}

static void change(cl_icd_dispatch *driver) { driver->clCreateBuffer = create; }

int main(int argc, char **argv) {
    const TTest *const tests[] = {FULL_MEMORY_TESTS};

    full_memory_set();
    return pocl_gpu_begin("pthread pthread", change) ? test_main(argc, argv, tests, COUNT(tests))
                                                     : 0;
}
