/* See memory.h. What is told too late is known by what was told of that address since: a piece
   that has come back by then is lost, and counted, for to add it now would make a peak that
   never was. A release of what is not live is of a piece that was handed out before the back end
   began to tell. */
#define _GNU_SOURCE
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/thread.h"
#include "../format/pieces.h"
#include "../memory/note.h"

enum { FIRST_ROOM = 256, GONE_MAX = 1 << 16 };

typedef struct told {
  const prof_i_back_end *end;
  uint32_t place, device;
  prof_pool *pool;
  uint64_t births;    /* the pool's, that these pieces are of */
  prof_i_pieces live; /* value: when it was handed out */
  prof_i_pieces gone; /* what came back last at an address; value: when */
  struct told *next;
} told;

static struct {
  told *first;
  const told *parents;   /* of a forked child */
  uint64_t latest_ticks; /* of the line's last record: no later one stands before it */
  prof_i_line line;
} own = {.line = {.role = PROF_I_ROLE_THREAD, .name = "devices' memory"}};

static told *find(const prof_i_back_end *end, uint32_t place, uint32_t device) {
  for (told *t = own.first; t; t = t->next)
    if (t->end == end && t->place == place && t->device == device) return t;
  return NULL;
}

/* ---- pools ---- */

static const char *kind_of(uint32_t place) {
  return place == PROF_BACKEND_MEMORY_PINNED    ? " pinned"
         : place == PROF_BACKEND_MEMORY_MANAGED ? " managed"
                                                : "";
}

static bool make(const prof_i_back_end *end, uint32_t place, uint32_t device) {
  char name[64];
  prof_pool *pool = NULL;
  if (find(end, place, device)) return true;
  told *const t = calloc(1, sizeof *t);
  if (!t) return true; /* what it would have is counted as lost */
  snprintf(name, sizeof name, "%s%s memory", end->table.name, kind_of(place));
  if (!prof_i_pool_try_make(name,
                            place == PROF_BACKEND_MEMORY_PINNED
                                ? PROF_HOST
                                : (prof_device){end->table.device_type, (int32_t)device},
                            &pool)) {
    free(t);
    return false;
  }
  *t = (told){.end = end, .place = place, .device = device, .pool = pool, .next = own.first};
  own.first = t;
  return true;
}

bool prof_i_device_memory_prepare(prof_i_back_end *end) {
  bool are_made = make(end, PROF_BACKEND_MEMORY_PINNED, 0);
  for (uint32_t i = 0; i < end->device_count && are_made; i++)
    are_made =
        make(end, PROF_BACKEND_MEMORY_DEVICE, i) && make(end, PROF_BACKEND_MEMORY_MANAGED, i);
  return are_made;
}

/* ---- what is live ---- */

static bool make_room(prof_i_pieces *pieces) {
  if (prof_i_pieces_have_room(pieces)) return true;
  const uint32_t room = pieces->room ? 2 * pieces->room : FIRST_ROOM;
  void *const larger =
      room > pieces->room ? realloc(pieces->nodes, room * sizeof *pieces->nodes) : NULL;
  if (!larger) return false;
  pieces->nodes = larger;
  pieces->room = room;
  return true;
}

static void empty(prof_i_pieces *pieces) {
  pieces->used = pieces->root = pieces->free = pieces->count = 0;
}

/* Another recording has begun, or the capture was cleared: what is live from before is not known
   there. */
static void follow(told *t) {
  const uint64_t births = __atomic_load_n(&t->pool->births, __ATOMIC_ACQUIRE);
  if (births == t->births) return;
  empty(&t->live);
  empty(&t->gone);
  t->births = births;
}

/* ---- one piece ---- */

static int note(told *t, prof_i_verb verb, uint64_t address, uint64_t bytes, uint64_t ticks) {
  const prof_i_note what = {.verb = verb,
                            .address = address,
                            .bytes = bytes,
                            .requested = bytes,
                            .stream = PROF_NO_STREAM};
  prof_i_thread *const thread = prof_i_thread_attach_line(&own.line);
  if (!thread) return PROF_LOSS_NO_THREAD;
  if (prof_i_clock_is_before(ticks, own.latest_ticks)) ticks = own.latest_ticks;
  own.latest_ticks = ticks;
  return prof_i_note_told(t->pool, &what, ticks, thread);
}

static int let_go(told *t, uint32_t at, uint64_t ticks) {
  const prof_i_piece piece = t->live.nodes[at];
  prof_i_pieces_take(&t->live, piece.address);
  return note(t, PROF_I_VERB_FREE, piece.address, piece.bytes, ticks);
}

static void note_gone(told *t, uint64_t address, uint64_t ticks) {
  const uint32_t at = prof_i_pieces_at(&t->gone, address);
  if (t->gone.count >= GONE_MAX)
    empty(&t->gone);
  else if (at)
    prof_i_pieces_take(&t->gone, address);
  if (make_room(&t->gone)) prof_i_pieces_put(&t->gone, address, 1, ticks);
}

/* Has what was handed out at that moment come back, by what was told before? */
static bool is_gone(const told *t, const prof_backend_memory *it, uint64_t ticks) {
  const uint32_t last = prof_i_pieces_at(&t->gone, it->address),
                 other = prof_i_pieces_overlap(&t->live, it->address, it->bytes);
  return (last && prof_i_clock_is_before(ticks, t->gone.nodes[last].value)) ||
         (other && prof_i_clock_is_before(ticks, t->live.nodes[other].value));
}

static int hand_out(told *t, const prof_backend_memory *it, uint64_t ticks) {
  if (is_gone(t, it, ticks)) return PROF_LOSS_DEVICE_LATE;
  /* its release was not told */
  for (uint32_t at; (at = prof_i_pieces_overlap(&t->live, it->address, it->bytes)) != 0;)
    let_go(t, at, ticks);
  if (!make_room(&t->live)) return PROF_LOSS_DEVICE_FULL;
  prof_i_pieces_put(&t->live, it->address, it->bytes, ticks);
  return note(t, PROF_I_VERB_ALLOC, it->address, it->bytes, ticks);
}

static int take_back(told *t, uint64_t address, uint64_t ticks) {
  const uint32_t at = prof_i_pieces_at(&t->live, address);
  /* it was let go when another one came there */
  const bool is_late = at && prof_i_clock_is_before(ticks, t->live.nodes[at].value);
  note_gone(t, address, ticks);
  return at && !is_late ? let_go(t, at, ticks) : -1;
}

int prof_i_device_memory_take(const prof_i_back_end *end, const prof_backend_memory *it,
                              uint64_t ticks) {
  told *const t =
      find(end, it->place, it->place == PROF_BACKEND_MEMORY_PINNED ? 0 : it->record.device);
  if (!t || !t->pool || it->place > PROF_BACKEND_MEMORY_MANAGED) return PROF_LOSS_DEVICE_FULL;
  follow(t);
  if (!it->address ||
      prof_i_clock_is_before(ticks, __atomic_load_n(&t->pool->since_ticks, __ATOMIC_RELAXED)))
    return -1;
  if (it->is_release) return take_back(t, it->address, ticks);
  return it->bytes && it->bytes < PROF_I_PIECE_BYTES_END ? hand_out(t, it, ticks)
                                                         : PROF_LOSS_DEVICE_FULL;
}

void prof_i_device_memory_end_line(void) {
  prof_i_thread_end_line(&own.line);
  own.latest_ticks = 0;
}

void prof_i_device_memory_forget(void) {
  own.parents = own.first; /* their memory stays, and is not lost */
  own.first = NULL;
  own.line.thread = NULL;
  own.latest_ticks = 0;
}
