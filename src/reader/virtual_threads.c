/* Moves vendor calls from the virtual threads on which the collector wrote them to the threads that
   made them. */
#include <stdlib.h>

#include "capture.h"

typedef struct virtual_thread {
  uint64_t serial, thread;
} virtual_thread;

typedef struct virtual_threads {
  virtual_thread *items;
  uint32_t count, room;
} virtual_threads;

static int virtual_thread_compare_serial(const void *a, const void *b) {
  const virtual_thread *const x = a, *const y = b;
  return (x->serial > y->serial) - (x->serial < y->serial);
}

/* Calls of an unknown thread keep their virtual thread, which has no tid. False: no memory. */
static bool virtual_thread_add(virtual_threads *all, uint64_t serial, uint64_t tid,
                               uint64_t thread_kind) {
  if ((thread_kind & 0xff) != PROF_I_KIND_OF_CALLS || tid == 0) return true;
  if (!prof_i_make_room((void **)&all->items, &all->room, all->count, sizeof *all->items))
    return false;
  all->items[all->count++] = (virtual_thread){serial, tid};
  return true;
}

static bool find_virtual_threads(const prof_trace *trace, virtual_threads *all) {
  enum { ROLE_SERIAL = 3, ROLE_TID, ROLE_KIND }; /* words of an OWNER */
  for (uint32_t i = 0; i < trace->segment_count; i++) {
    const uint64_t *const owner = trace->segments[i].owner;
    if (owner && !virtual_thread_add(all, owner[ROLE_SERIAL], owner[ROLE_TID], owner[ROLE_KIND]))
      return false;
  }
  for (uint32_t i = 0; i < trace->thread_ref_count; i++) {
    const prof_i_thread_slot *const slot = trace->thread_refs[i].slot;
    if (slot && !virtual_thread_add(all, slot->serial, slot->tid, slot->thread_kind)) return false;
  }
  return true;
}

/* Replaces the serial of the virtual thread by that of the thread. */
static bool move_to_thread(const virtual_threads *all, uint64_t *serial) {
  const virtual_thread *const found = bsearch(&(virtual_thread){*serial, 0}, all->items, all->count,
                                              sizeof *all->items, virtual_thread_compare_serial);
  if (found) *serial = found->thread;
  return found != NULL;
}

int prof_i_virtual_threads_join(prof_trace *trace) {
  virtual_threads all = {NULL, 0, 0};
  const bool is_found = find_virtual_threads(trace, &all);
  if (is_found && all.count) {
    qsort(all.items, all.count, sizeof *all.items, virtual_thread_compare_serial);
    for (uint32_t i = 0; i < trace->segment_count; i++)
      trace->segments[i].is_side_written = move_to_thread(&all, &trace->segments[i].serial);
    for (uint32_t i = 0; i < trace->thread_ref_count; i++)
      trace->thread_refs[i].is_side_written = move_to_thread(&all, &trace->thread_refs[i].serial);
  }
  free(all.items);
  return is_found ? 0 : PROF_E_NO_MEMORY;
}

void prof_i_virtual_threads_name(const prof_trace *trace, prof_i_trace_thread *thread,
                                 const char *name) {
  if (thread->tid) return; /* it has a name of its own */
  if (!thread->name[0])
    prof_i_copy_name(thread->name, sizeof thread->name, name, PROF_I_NAME_BYTES);
  if (!(thread->serial & PROF_I_SERIAL_OF_KERNELS)) return;
  thread->tid = thread->serial & ~PROF_I_SERIAL_OF_KERNELS;
  thread->thread_kind =
      thread->tid == trace->header.pid ? PROF_I_KIND_OF_MAIN : PROF_I_KIND_OF_THREAD;
}
