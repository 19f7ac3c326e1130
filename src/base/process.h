/* The process that the library's state belongs to. A child made by _Fork() or a raw
   clone() runs no fork handlers: it is known by a page that the kernel empties in children. A child
   of vfork() shares all memory, and counts as its parent. */
#ifndef PROF_BASE_PROCESS_H
#define PROF_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Calls `become_child` in each child of this process, once, before anything else of prof is used
   there. The call must be signal-safe. */
void prof_i_process_watch(void (*become_child)(void));

/* True if the state belongs to the calling process. A child becomes its owner first. False: another
   thread, or the code that this handler interrupted, is doing so: the caller must return. Costs two
   loads otherwise. Signal-safe. */
bool prof_i_process_is_own(void);

/* The same from a fork handler: some emulators empty no page. */
void prof_i_process_after_fork(void);

/* The process's number, also in a child of vfork(). become_child() sets it. */
pid_t prof_i_process_id(void);
void prof_i_process_set_id(pid_t id);

/* ---- this copy ----

   The library may be in a process more than once, inside several shared objects or beside
   libprof.so. */

/* Whether the call sites of this copy use this copy. If another copy comes first in the dynamic
   linker's search order, all call sites use that one. Then this copy must not change the level that
   they read. Any thread. */
bool prof_i_duplicate_is_in_force(void);

/* PROF_OK, or a refusal that names the copy that is in force. Any thread. */
int prof_i_duplicate_check(void);

/* Whether dlclose() may unmap this copy. It never unmaps libprof.so, a program, or a library linked
   with -z nodelete. For the static library, the pkg-config file and CMake's target set that
   option. */
bool prof_i_duplicate_can_unload(void);

#endif
