/* SPDX-License-Identifier: MIT */
#include "virtual_device/selection.h"

#include "env.h"
#include "log.h"
#include "virtual_device/uuid.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Of cl_nv_device_attribute_query; headers of some ages lack them. */
#ifndef CL_DEVICE_PCI_BUS_ID_NV
#define CL_DEVICE_PCI_BUS_ID_NV 0x4008
#endif
#ifndef CL_DEVICE_PCI_SLOT_ID_NV
#define CL_DEVICE_PCI_SLOT_ID_NV 0x4009
#endif
#ifndef CL_DEVICE_PCI_DOMAIN_ID_NV
#define CL_DEVICE_PCI_DOMAIN_ID_NV 0x400A
#endif

/* Of cl_amd_device_attribute_query. */
#ifndef CL_DEVICE_TOPOLOGY_AMD
#define CL_DEVICE_TOPOLOGY_AMD 0x4037
#endif
struct amd_topology {
    cl_uint kind; /* 1: PCIe */
    cl_char unused[17];
    cl_char bus, device, function;
};

/* The PCI address by the vendors' older extensions and by Khronos', in one form; 0: unknown. */
static uint64_t pci_address(const struct tutti_real_device *device) {
    cl_device_pci_bus_info_khr khr;
    cl_uint bus = 0, slot = 0;
    const cl_icd_dispatch *driver = device->dispatch;
    if (strstr(device->extensions, " cl_khr_pci_bus_info ") &&
        driver->clGetDeviceInfo(device->id, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof(khr), &khr, NULL) ==
            CL_SUCCESS)
        return 1ull << 63 | (uint64_t)khr.pci_domain << 32 | khr.pci_bus << 8 |
               khr.pci_device << 3 | khr.pci_function;
    cl_uint domain = 0;
    if (strstr(device->extensions, " cl_nv_device_attribute_query ") &&
        driver->clGetDeviceInfo(device->id, CL_DEVICE_PCI_BUS_ID_NV, sizeof(bus), &bus, NULL) ==
            CL_SUCCESS &&
        driver->clGetDeviceInfo(device->id, CL_DEVICE_PCI_SLOT_ID_NV, sizeof(slot), &slot, NULL) ==
            CL_SUCCESS) {
        driver->clGetDeviceInfo(device->id, CL_DEVICE_PCI_DOMAIN_ID_NV, sizeof(domain), &domain,
                                NULL);
        return 1ull << 63 | (uint64_t)domain << 32 | bus << 8 | slot;
    }
    struct amd_topology amd;
    if (strstr(device->extensions, " cl_amd_device_attribute_query ") &&
        driver->clGetDeviceInfo(device->id, CL_DEVICE_TOPOLOGY_AMD, sizeof(amd), &amd, NULL) ==
            CL_SUCCESS &&
        amd.kind == 1)
        return 1ull << 63 | (cl_uint)(cl_uchar)amd.bus << 8 | (cl_uint)(cl_uchar)amd.device << 3 |
               (cl_uint)(cl_uchar)amd.function;
    return 0;
}

static bool same_uuid(const struct tutti_real_device *a, const struct tutti_real_device *b) {
    cl_uchar x[CL_UUID_SIZE_KHR], y[CL_UUID_SIZE_KHR];
    return tutti_real_device_uuid(a, x) && tutti_real_device_uuid(b, y) &&
           memcmp(x, y, sizeof(x)) == 0;
}

bool tutti_candidates_has_same(const struct tutti_candidates *candidates,
                               const struct tutti_real_device *device) {
    uint64_t address = pci_address(device);
    for (unsigned c = 0; c < candidates->count; c++) {
        const struct tutti_real_device *other = candidates->device[c];
        /* One driver shows one device once, however alike its devices answer. */
        if (other->platform == device->platform || device->type & CL_DEVICE_TYPE_CPU)
            continue;
        if ((address && address == pci_address(other)) || same_uuid(device, other)) {
            tutti_log(INFO, "%s (%s) is left out: it is %s (%s)", device->name,
                      device->platform_name, other->name, other->platform_name);
            return true;
        }
    }
    return false;
}

bool tutti_candidates_add(struct tutti_candidates *candidates, struct tutti_real_device *device) {
    if (candidates->count == TUTTI_MAX_CANDIDATES)
        return false;
    candidates->device[candidates->count++] = device;
    return true;
}

/* Oclgrind says that it is of every type, and runs on the CPU. */
static int rank(const struct tutti_real_device *device) {
    return device->type & CL_DEVICE_TYPE_CPU ? 2 : device->type & CL_DEVICE_TYPE_GPU ? 0 : 1;
}

static bool before(const struct tutti_real_device *a, const struct tutti_real_device *b) {
    if (rank(a) != rank(b))
        return rank(a) < rank(b);
    return (uint64_t)a->compute_units * (a->clock_mhz ? a->clock_mhz : 1) >
           (uint64_t)b->compute_units * (b->clock_mhz ? b->clock_mhz : 1);
}

void tutti_candidates_sort(struct tutti_candidates *candidates) {
    /* By insertion: equals keep the order of discovery, which indexes in TUTTI_DEVICES count on. */
    for (unsigned i = 1; i < candidates->count; i++) {
        struct tutti_real_device *device = candidates->device[i];
        unsigned at = i;
        for (; at > 0 && before(device, candidates->device[at - 1]); at--)
            candidates->device[at] = candidates->device[at - 1];
        candidates->device[at] = device;
    }
}

static const struct {
    const char *name;
    cl_device_type type;
} types[] = {
    {"gpu", CL_DEVICE_TYPE_GPU},
    {"accelerator", CL_DEVICE_TYPE_ACCELERATOR},
    {"cpu", CL_DEVICE_TYPE_CPU},
    {"all", CL_DEVICE_TYPE_ALL},
};

static cl_device_type type_named(const char *name) {
    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcasecmp(name, types[i].name) == 0)
            return types[i].type;
    return 0;
}

/* One entry of TUTTI_DEVICES: an index, a type, or a part of a name. */
static bool matches(const struct tutti_real_device *device, unsigned index, const char *entry) {
    if (*entry && strspn(entry, "0123456789") == strlen(entry))
        return strtoul(entry, NULL, 10) == index;
    cl_device_type type = type_named(entry);
    if (type)
        return (device->type & type) != 0;
    return strcasestr(device->name, entry) || strcasestr(device->platform_name, entry);
}

static void move(struct tutti_candidates *candidates, unsigned index,
                 struct tutti_device_list *list) {
    if (list->count == TUTTI_MAX_DEVICES) {
        tutti_log(WARNING, "%s is left out: StarPU drives %d devices at most",
                  candidates->device[index]->name, TUTTI_MAX_DEVICES);
        return;
    }
    list->device[list->count++] = candidates->device[index];
    candidates->device[index] = NULL;
}

static char *trim(char *entry) {
    while (isspace((unsigned char)*entry))
        entry++;
    for (size_t end = strlen(entry); end > 0 && isspace((unsigned char)entry[end - 1]); end--)
        entry[end - 1] = 0;
    return entry;
}

void tutti_candidates_select(struct tutti_candidates *candidates, struct tutti_device_list *list) {
    const char *wanted_type = tutti_env_string(TUTTI_DEVICE_TYPE);
    cl_device_type type =
        wanted_type && *wanted_type ? type_named(wanted_type) : CL_DEVICE_TYPE_ALL;
    if (!type)
        tutti_log(WARNING, "TUTTI_DEVICE_TYPE=%s names no type", wanted_type);
    const char *setting = tutti_env_string(TUTTI_DEVICES);
    bool allowed[TUTTI_MAX_CANDIDATES], named = false;
    for (unsigned i = 0; i < candidates->count; i++)
        allowed[i] = (candidates->device[i]->type & type) != 0;

    char *copy = strdup(setting ? setting : ""), *rest = copy, *entry;
    while (copy && (entry = strsep(&rest, ","))) { /* first what must not join */
        entry = trim(entry);
        if (*entry != '-' && *entry != '!')
            continue;
        for (unsigned i = 0; i < candidates->count; i++)
            if (matches(candidates->device[i], i, trim(entry + 1)))
                allowed[i] = false;
    }
    free(copy);
    copy = rest = strdup(setting ? setting : "");
    while (copy && (entry = strsep(&rest, ","))) {
        entry = trim(entry);
        if (!*entry || *entry == '-' || *entry == '!')
            continue;
        named = true;
        unsigned before_entry = list->count;
        for (unsigned i = 0; i < candidates->count; i++)
            if (candidates->device[i] && allowed[i] && matches(candidates->device[i], i, entry))
                move(candidates, i, list);
        if (list->count == before_entry)
            tutti_log(WARNING, "TUTTI_DEVICES: \"%s\" adds no device", entry);
    }
    free(copy);
    for (unsigned i = 0; i < candidates->count && !named; i++)
        if (allowed[i])
            move(candidates, i, list);
}

/*
 * What a CPU device did in copies of its own, it would do on the cores of those that work in home
 * memory, where there are as many of them; and they would have their data moved for it. An
 * interpreter does a thousandth of what any other device does.
 */
static bool is_spare(const struct tutti_real_device *device, cl_uint units_at_home) {
    return tutti_device_interprets(device) ||
           (device->type & CL_DEVICE_TYPE_CPU && !device->shares_host &&
            device->compute_units <= units_at_home);
}

void tutti_selection_find_spare(struct tutti_device_list *list, bool decides) {
    cl_uint units_at_home = 0;
    for (unsigned d = 0; d < list->count; d++)
        units_at_home += list->device[d]->at_home ? list->device[d]->compute_units : 0;
    list->serving = list->count;
    for (unsigned d = 1; d < list->count; d++) {
        struct tutti_real_device *device = list->device[d];
        if (!decides || !is_spare(device, units_at_home))
            continue;
        device->spare = device->at_home = true;
        list->serving--;
        tutti_log(INFO, "%s is given nothing: others have its cores, and use them better",
                  device->name);
    }
}
