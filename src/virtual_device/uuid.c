/* SPDX-License-Identifier: MIT */
#include "virtual_device/uuid.h"

#include "config.h"

#include <string.h>

/* Two FNV-1a hashes of the same bytes, from unlike starts. */
struct digest {
    uint64_t half[2];
};

static struct digest started(void) {
    return (struct digest){{0xcbf29ce484222325u, 0x6c62272e07bb0142u}};
}

static void add(struct digest *digest, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        for (unsigned h = 0; h < 2; h++)
            digest->half[h] = (digest->half[h] ^ ((const cl_uchar *)bytes)[i]) * 0x100000001b3u;
}

/* With its end, so that "ab", "c" and "a", "bc" differ. */
static void add_text(struct digest *digest, const char *text) {
    add(digest, text, strlen(text) + 1);
}

/* A UUID of version 8, which is for ways of its maker (RFC 9562, 5.8). */
static void write(const struct digest *digest, cl_uchar uuid[CL_UUID_SIZE_KHR]) {
    for (unsigned i = 0; i < CL_UUID_SIZE_KHR; i++)
        uuid[i] = (cl_uchar)(digest->half[i / 8] >> (8 * (i % 8)));
    uuid[6] = (cl_uchar)((uuid[6] & 0x0f) | 0x80);
    uuid[8] = (cl_uchar)((uuid[8] & 0x3f) | 0x80);
}

bool tutti_real_device_uuid(const struct tutti_real_device *device,
                            cl_uchar uuid[CL_UUID_SIZE_KHR]) {
    return strstr(device->extensions, " cl_khr_device_uuid ") &&
           device->dispatch->clGetDeviceInfo(device->id, CL_DEVICE_UUID_KHR, CL_UUID_SIZE_KHR, uuid,
                                             NULL) == CL_SUCCESS;
}

void tutti_device_uuid(cl_uchar uuid[CL_UUID_SIZE_KHR]) {
    const struct tutti_device_list *list = tutti_devices();
    struct digest digest = started();
    add_text(&digest, "Tutti device");
    for (unsigned d = 0; d < list->count; d++) {
        cl_uchar member[CL_UUID_SIZE_KHR];
        if (tutti_real_device_uuid(list->device[d], member))
            add(&digest, member, sizeof(member));
        add_text(&digest, list->device[d]->name);
        add_text(&digest, list->device[d]->platform_name);
    }
    write(&digest, uuid);
}

void tutti_driver_uuid(cl_uchar uuid[CL_UUID_SIZE_KHR]) {
    struct digest digest = started();
    add_text(&digest, "Tutti driver");
    add_text(&digest, PACKAGE_VERSION);
    write(&digest, uuid);
}
