/* See calls.h. */
#include "calls.h"

#include <stdlib.h>

typedef struct line {
  uint64_t serial, thread;
} line;

typedef struct lines {
  line *items;
  uint32_t count, room;
} lines;

static int by_serial(const void *a, const void *b) {
  const line *const x = a, *const y = b;
  return (x->serial > y->serial) - (x->serial < y->serial);
}

/* Of a thread that is not known it stays what it is: a row without a number. False: no memory. */
static bool add(lines *all, uint64_t serial, uint64_t tid, uint64_t role) {
  if ((role & 0xff) != PROF_I_ROLE_CALLS || tid == 0) return true;
  if (!prof_i_make_room((void **)&all->items, &all->room, all->count, sizeof *all->items))
    return false;
  all->items[all->count++] = (line){serial, tid};
  return true;
}

static bool find_lines(const prof_trace *trace, lines *all) {
  enum { SERIAL = 3, TID, ROLE }; /* words of an OWNER */
  for (uint32_t i = 0; i < trace->segment_count; i++) {
    const uint64_t *const owner = trace->segments[i].owner;
    if (owner && !add(all, owner[SERIAL], owner[TID], owner[ROLE])) return false;
  }
  for (uint32_t i = 0; i < trace->mention_count; i++) {
    const prof_i_slot *const slot = trace->mentions[i].slot;
    if (slot && !add(all, slot->serial, slot->tid, slot->role)) return false;
  }
  return true;
}

/* The thread whose they are instead of the line that wrote them. */
static bool rename_to_thread(const lines *all, uint64_t *serial) {
  const line *const found =
      bsearch(&(line){*serial, 0}, all->items, all->count, sizeof *all->items, by_serial);
  if (found) *serial = found->thread;
  return found != NULL;
}

int prof_i_calls_join(prof_trace *trace) {
  lines all = {NULL, 0, 0};
  const bool is_found = find_lines(trace, &all);
  if (is_found && all.count) {
    qsort(all.items, all.count, sizeof *all.items, by_serial);
    for (uint32_t i = 0; i < trace->segment_count; i++)
      trace->segments[i].is_beside = rename_to_thread(&all, &trace->segments[i].serial);
    for (uint32_t i = 0; i < trace->mention_count; i++)
      trace->mentions[i].is_beside = rename_to_thread(&all, &trace->mentions[i].serial);
  }
  free(all.items);
  return is_found ? 0 : PROF_E_NO_MEMORY;
}

void prof_i_calls_name_thread(const prof_trace *trace, prof_i_trace_thread *thread,
                              const char *name) {
  if (thread->tid) return; /* it has said so itself */
  if (!thread->name[0])
    prof_i_copy_name(thread->name, sizeof thread->name, name, PROF_I_NAME_BYTES);
  if (!(thread->serial & PROF_I_SERIAL_OF_KERNELS)) return;
  thread->tid = thread->serial & ~PROF_I_SERIAL_OF_KERNELS;
  thread->role = thread->tid == trace->header.pid ? PROF_I_ROLE_MAIN : PROF_I_ROLE_THREAD;
}
