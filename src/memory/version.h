/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_VERSION_H
#define TUTTI_VERSION_H

#include "memory/mem.h"

/*
 * Renaming: a buffer that is overwritten as a whole while earlier commands still use it gets other
 * storage, so that nobody waits. Commands keep the storage that the buffer had when they were
 * dispatched. The versions of a buffer form a ring, which grows up to a number and a common limit
 * (TUTTI_RENAME_LIMIT); after that the oldest one is next, and the overwrite waits for its users.
 */

/* Who uses storage. */
enum tutti_user {
    TUTTI_USER_HOST, /* for as long as it likes: a native kernel; or what else may wait for one */
    TUTTI_USER_TRANSFER, /* the host moves the bytes of one memory object */
    TUTTI_USER_DEVICE,
};

/*
 * The storage of the object for a command that is being dispatched, which must give it back.
 * `overwrites`: the command writes every byte. By the dispatching thread. Fresh storage pays where
 * something still reads what there is; not behind a write of the host's that nobody reads, where
 * all devices work in home memory: that would only touch new memory.
 */
struct tutti_view *tutti_version_take(cl_mem mem, bool overwrites, enum tutti_user user);
/* The same for a transfer on a device, where the object was used last if there is such storage. */
struct tutti_view *tutti_version_take_there(cl_mem mem, bool overwrites);
/*
 * The same for a kernel. Fresh storage pays where the host still uses what there is, or, with
 * `elsewhere`, another device may: kernels of one device come one after the other anyway. It goes
 * with what else the kernel uses, which was used last at `seat` (NULL: anywhere), if it can.
 */
struct tutti_view *tutti_version_take_for_launch(cl_mem mem, bool overwrites, bool elsewhere,
                                                 const struct tutti_real_device *seat);
void tutti_version_give_back(struct tutti_view *view, enum tutti_user user); /* NULL is allowed */

/*
 * The bytes of a version that was free, and is taken, are moved in a call, of which StarPU knows
 * nothing, and other threads dispatch meanwhile. Whoever takes that version next waits for the end.
 */
void tutti_version_enter_call(struct tutti_view *view); /* by the dispatching thread */
void tutti_version_leave_call(struct tutti_view *view);
void tutti_version_await_calls(const struct tutti_view *view);

/* Commands that use the view now, and how many of them are devices' and the host's. */
struct tutti_version_users {
    unsigned all, of_devices, of_host;
};
struct tutti_version_users tutti_version_users(const struct tutti_view *view);

/*
 * Is the storage in home memory, to be used as it is without asking StarPU? No command uses it
 * then, or those on devices may. By the dispatching thread, like the next one.
 */
bool tutti_version_is_idle(cl_mem mem, bool but_devices);

/* May the host do so? It has no parts either, which might have to be brought up to date. */
bool tutti_version_is_free(cl_mem mem);

/*
 * While the program has, or is getting, a pointer into the storage, it is not replaced.
 * `overwrites`: the program will write every byte, and no command of the object is yet to be
 * dispatched: it gets other storage first if what there is is used. By the dispatching thread then.
 */
void tutti_version_pin(cl_mem mem, bool overwrites);
/* The same by any thread, if no command uses what there is; else false. */
bool tutti_version_pin_unused(cl_mem mem);
void tutti_version_unpin(cl_mem mem);
unsigned tutti_version_pins(cl_mem mem);

/* All storage of an object that nothing uses any more. Waits as tutti_view_destroy does. */
void tutti_version_destroy_all(cl_mem mem);

#endif
