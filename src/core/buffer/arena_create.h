/* Where a new capture stands, in a file or in memory, and how large it may become. */
#ifndef PROF_CORE_BUFFER_ARENA_CREATE_H
#define PROF_CORE_BUFFER_ARENA_CREATE_H

#include <prof/profiler.h>
#include <stdbool.h>

#include "arena.h"

enum { PROF_I_OUTPUT_ROOM = 4096 }; /* bytes of an output's name, with its NUL */

/* Creates *fresh by complete options. It was zeros, and fd -1. has_default_cap: the program named
   no cap. output: options->path, PROF_I_OUTPUT_ROOM bytes; it gets another name if another process
   has it. An error leaves nothing behind. 0, or a status with its text. Control lock held.
   Signal-safe in a forked child. */
int prof_i_arena_create(prof_i_arena *fresh, const prof_options *options, bool has_default_cap,
                        char *output, bool is_child);

#endif
