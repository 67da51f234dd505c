/* SPDX-License-Identifier: MIT */
#ifndef TUTTI_ENQUEUE_MAP_H
#define TUTTI_ENQUEUE_MAP_H

#include "memory/mem.h"
#include "sched/command.h"

/*
 * What maps of buffers, images and shared virtual memory have in common, once the object and the
 * part of it are known to be right.
 */
cl_int tutti_check_map(cl_command_queue queue, cl_mem mem, cl_map_flags flags,
                       struct tutti_wait_list list);

/* `map` has place, region and flags; its pointer is filled in. */
cl_int tutti_enqueue_map(cl_command_queue queue, cl_mem mem, bool blocking, struct tutti_map *map,
                         cl_command_type type, struct tutti_wait_list list, cl_event *event);

#endif
