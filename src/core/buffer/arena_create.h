/* Where a new capture stands, in a file or in memory, and how large it may become. */
#ifndef PROF_CORE_BUFFER_ARENA_CREATE_H
#define PROF_CORE_BUFFER_ARENA_CREATE_H

#include <prof/profiler.h>
#include <stdbool.h>

#include "arena.h"

enum { PROF_I_OUTPUT_ROOM = 4096 }; /* bytes of an output's name, with its NUL */

/* Makes *fresh, all zeros but for fd -1, as complete options say. has_default_cap: the program
   named no cap. output: options->path, PROF_I_OUTPUT_ROOM bytes, which gets another name where
   another process has it. Nothing is left behind on an error. 0, or a status with its text. Control
   lock held. Of a forked child: signal-safe. */
int prof_i_arena_create(prof_i_arena *fresh, const prof_options *options, bool has_default_cap,
                        char *output, bool is_child);

#endif
