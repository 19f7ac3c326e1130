/* The state that all of the recorder reads: the arena in force, the session, the calling thread and
   the list of threads. Their headers say who writes each. It stands apart from the functions that
   work on it, so this file needs none of them. */
#include "../../base/process.h"
#include "arena.h"
#include "internal.h"
#include "session.h"

prof_i_arena prof_i_the_arena PROF_I_BEHIND_DATA = {.fd = -1};
prof_i_header prof_i_no_header;

prof_i_session prof_i_the_session = {.epoch = 1};
uint32_t prof_i_memory_on;

/* Where every thread begins: no room, nothing open, no epoch. Read only. It is full, so that no
   begin takes an entry in it, even if it was interrupted between its loads of slot and epoch. */
prof_i_thread_slot prof_i_no_slot PROF_I_BEHIND_DATA = {.depth = PROF_I_OPEN_COUNT,
                                                        .payload_top = PROF_I_TEXT_END};
prof_i_thread prof_i_no_thread PROF_I_BEHIND_DATA = {.fast = &prof_i_no_slot,
                                                     .slot = &prof_i_no_slot,
                                                     .epoch = (uint32_t)PROF_I_NO_EPOCH,
                                                     .chunk = &prof_i_no_thread.full,
                                                     .tag = PROF_I_TAG_NONE};
/* The model is repeated, because gcc forgets that of the declaration. Otherwise a handler's first
   scope would call the dynamic linker. */
__thread prof_i_thread *prof_i_this_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden"))) = &prof_i_no_thread;

prof_i_thread_registry prof_i_threads = {.process = 1, .search_at = PROF_I_THREAD_SEARCH_MIN};

void prof_i_session_ensure(void) {
  if (!prof_i_process_is_own() ||
      !__atomic_load_n(&prof_i_the_session.child_waits, __ATOMIC_RELAXED))
    return;
  prof_i_the_session.make_child();
}
