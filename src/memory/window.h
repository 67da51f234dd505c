/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_WINDOW_H
#define TUTTI_WINDOW_H

#include "memory/mem.h"

/*
 * A part of a buffer as a *window*: commands that use it use the buffer's storage, of which drivers
 * give their kernels a sub-buffer. A part has storage of its own at first, so that disjoint ones
 * are independent, on several devices, too; but what is written to a part and then used as the
 * whole, or the other way round, has to be copied each time. Where one device does so again and
 * again the parts become windows, all of a buffer's at once, and what they have that is newer comes
 * into it; they are parts again once nothing uses them as a whole. Never are those of the program's
 * memory, which it may free while parts are left, or of shared virtual memory, nor, from then on,
 * those of a buffer with a part that was mapped or is an image: these have memory of their own that
 * the program sees.
 *
 * All is for the dispatching thread, but for what says otherwise.
 */

/* The buffer whose storage commands use that use the memory object: maybe itself. */
static inline cl_mem tutti_window_storage_of(cl_mem mem) {
    return mem->parent && mem->parent->view->open ? mem->parent : mem;
}

static inline bool tutti_window_is(cl_mem mem) { return tutti_window_storage_of(mem) != mem; }

/* For tutti_device_use: the part that it is of that storage; NULL: it is no window. */
static inline const struct tutti_view *tutti_window_of(cl_mem mem) {
    return tutti_window_is(mem) ? mem->view : NULL;
}

/*
 * A kernel is about to use the memory object, or the host or a copy to: may make windows of parts,
 * or parts of windows, before. `able` devices (bits) can execute it, and if it `shares` others
 * beside it, which disjoint parts allow. False when out of memory.
 */
bool tutti_window_note_kernel(cl_mem mem, unsigned able, bool shares);
bool tutti_window_note_transfer(cl_mem mem);

/* Something needs the part's own storage: no window, for now. False when out of memory. */
bool tutti_window_close(cl_mem mem);

/* The same, for good. In any thread but StarPU's. */
bool tutti_window_bar(cl_mem mem);

/*
 * The device's objects for the part, a window on a view of which it has `whole`: a driver's
 * sub-buffer, which stays for later. The driver's error. With the device's `enqueues` lock, until
 * it is used.
 */
cl_int tutti_window_find(struct tutti_view *view, const struct tutti_view *part,
                         const struct tutti_real_device *device, const struct tutti_storage *whole,
                         struct tutti_storage *storage);

/* Before it is asked for those of one command. With the same lock. */
void tutti_window_make_room(struct tutti_view *view, const struct tutti_real_device *device);

/* One command has so many memory objects at most if one of them is a window. */
#define TUTTI_WINDOWS_AT_ONCE 16

/* What the device has of the view goes: so do its windows. In any thread. */
void tutti_window_forget(struct tutti_view *view, const struct tutti_real_device *device);

#endif
