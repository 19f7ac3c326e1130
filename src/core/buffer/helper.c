/* The helper thread prepares chunks, so that a thread that changes its chunk does not wait for the
   kernel. It also drops the pages of retired chunks. See chunk.h and internal.h.

   The first part is called by threads that record. It is lock-free and signal-safe, except
   prof_i_prepared_begin(). The second part is the helper thread, and the calls that start and stop
   it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "../../base/port.h"
#include "../../base/process.h"
#include "arena.h"
#include "internal.h"
#include "mapping.h"

/* ---- prepared chunks ---- */

enum {
  SIZES_COUNT = 4,    /* of chunks: 16 KiB to 1 MiB */
  LARGEST_COUNT = 16, /* prepared chunks of the largest size at most */
  SMALLER_COUNT = 4,  /* and of each smaller size */
  ARENA_SHARE = 8,    /* together they are at most this part of the arena */
  /* If chunks grow to this size, only the helper makes the largest. */
  SERVED_BYTES = 256 << 10,
  SERVED_COUNT = 4, /* and, in a ring, if so many may be prepared */
  /* Chunks whose pages the helper is to drop. Beyond that the thread drops them itself, because the
     disk may hold the helper up. */
  TRIM_COUNT = 16
};

/* Any thread, by atomics, unless a member says otherwise. `sizes` and `max` change only at
   prof_i_prepared_begin(). */
static struct {
  /* Offsets of prepared chunks, 0: none. By size, the smallest first. */
  uint64_t chunks[SIZES_COUNT][LARGEST_COUNT];
  uint32_t sizes;            /* how many sizes this arena's chunks have */
  uint32_t max[SIZES_COUNT]; /* how many places are used: see share_prepared() */
  /* why no more can be prepared: room epoch << 8 | loss + 1, of that epoch alone */
  uint64_t loss;
  /* a thread found none of the largest, and none has come since: other threads do not look */
  uint32_t is_empty;
  /* once since the helper began: until then threads make their chunks themselves */
  uint32_t was_full;
  uint64_t trim_queue[TRIM_COUNT]; /* offsets of chunks */
  uint32_t helper_on, helper_word, helper_sleeps;
} prepared;

static uint64_t prepared_bytes(uint32_t size) {
  return prof_i_the_arena.chunk_bytes_min << 2 * size;
}

/* How many places may be filled now. Prepared chunks hold no records, but are part of a ring's
   room. A ring that got less than its cap needs all of it. */
static uint32_t prepared_room(uint32_t size) {
  const uint32_t most = prepared.max[size];
  if (!prof_i_policy_is_ring()) return most;
  const uint64_t fit = prof_i_ring_bytes() / ARENA_SHARE / prepared_bytes(size);
  return prof_i_ring_is_refused() ? 0 : fit < most ? (uint32_t)fit : most;
}

bool prof_i_offsets_put(uint64_t *places, size_t count, uint64_t value) {
  for (size_t i = 0; i < count; i++) {
    uint64_t none = 0;
    if (!__atomic_load_n(&places[i], __ATOMIC_RELAXED) &&
        __atomic_compare_exchange_n(&places[i], &none, value, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return true;
  }
  return false;
}

/* Takes any out. 0: there is none. */
static uint64_t offsets_take(uint64_t *places, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!__atomic_load_n(&places[i], __ATOMIC_RELAXED)) continue;
    const uint64_t value = __atomic_exchange_n(&places[i], 0, __ATOMIC_ACQ_REL);
    if (value) return value;
  }
  return 0;
}

/* The smallest prepared chunk of at least so many bytes. NULL: there is none. */
prof_i_head *prof_i_prepared_take_from(uint64_t bytes) {
  for (uint32_t size = 0; size < prepared.sizes; size++) {
    if (prepared_bytes(size) < bytes) continue;
    const uint64_t offset = offsets_take(prepared.chunks[size], prepared.max[size]);
    if (offset) return prof_i_chunk_at(offset);
  }
  return NULL;
}

/* One wake-up for each sleep. Otherwise each lost scope would wake a helper that waits for a
   processor. */
void prof_i_chunk_helper_wake(void) {
  /* pairs with chunk_helper_sleep(): either it sees the new word, or it is seen asleep */
  __atomic_fetch_add(&prepared.helper_word, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&prepared.helper_sleeps, __ATOMIC_SEQ_CST) ||
      !__atomic_exchange_n(&prepared.helper_sleeps, 0, __ATOMIC_SEQ_CST))
    return;
  prof_i_port_wake(&prepared.helper_word);
}

/* Why no more chunks can be prepared in this room epoch: loss + 1. 0: they can. */
static uint32_t lasting_loss(void) {
  const uint64_t loss = __atomic_load_n(&prepared.loss, __ATOMIC_ACQUIRE);
  return loss >> 8 == prof_i_arena_room_epoch() ? (uint32_t)(loss & 0xff) : 0;
}

prof_i_head *prof_i_prepared_take(uint64_t bytes, int *loss_out) {
  const uint32_t loss = lasting_loss(); /* before the chunks: see chunk_make_prepared() */
  uint32_t size = 0;
  while (size + 1 < prepared.sizes && prepared_bytes(size) < bytes) size++;
  uint64_t offset = offsets_take(prepared.chunks[size], prepared.max[size]);
  if (!offset && prof_i_chunk_size_is_largest(bytes)) {
    /* Set the word, then look again. A chunk that the helper brings meanwhile is found here, or the
       helper clears the word. */
    __atomic_store_n(&prepared.is_empty, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    offset = offsets_take(prepared.chunks[size], prepared.max[size]);
    if (offset) __atomic_store_n(&prepared.is_empty, 0, __ATOMIC_RELAXED);
  }
  if (offset || !loss) prof_i_chunk_helper_wake();
  *loss_out = loss ? (int)loss - 1 : PROF_LOSS_NO_CHUNK;
  return offset ? prof_i_chunk_at(offset) : NULL;
}

/* The helper makes every chunk of the largest size, once it has caught up. In a small arena few are
   prepared, so threads make chunks themselves. Otherwise they would lose events that they do not
   lose without a helper. */
bool prof_i_prepared_serves(void) {
  if (prof_i_policy_is_ring() && prepared_room(prepared.sizes - 1) < SERVED_COUNT) return false;
  return prof_i_prepared_is_on() && __atomic_load_n(&prepared.was_full, __ATOMIC_RELAXED) &&
         prof_i_the_arena.chunk_bytes_max >= SERVED_BYTES;
}

/* This test is all that a scope costs that is lost meanwhile. */
bool prof_i_prepared_starves(const prof_i_thread *thread) {
  return __atomic_load_n(&prepared.is_empty, __ATOMIC_RELAXED) && prof_i_prepared_serves() &&
         prof_i_chunk_size_is_largest(thread->next_bytes) &&
         prof_i_chunk_size_is_largest(prof_i_chunk_size_max()) && !lasting_loss();
}

void prof_i_prepared_note_room(void) { __atomic_store_n(&prepared.is_empty, 0, __ATOMIC_RELAXED); }

bool prof_i_prepared_is_on(void) { return __atomic_load_n(&prepared.helper_on, __ATOMIC_ACQUIRE); }

bool prof_i_prepared_trim_later(uint64_t offset) {
  return prof_i_prepared_is_on() && prof_i_offsets_put(prepared.trim_queue, TRIM_COUNT, offset);
}

/* Decides how many chunks of each size the helper is to prepare. */
static void share_prepared(void) {
  uint64_t room = prof_i_the_arena.cap_bytes / ARENA_SHARE;
  prepared.sizes = 1;
  while (prepared.sizes < SIZES_COUNT &&
         !prof_i_chunk_size_is_largest(prepared_bytes(prepared.sizes - 1))) {
    const uint32_t size = prepared.sizes++ - 1;
    prepared.max[size] = prof_i_policy_is_ring() ? 0 : SMALLER_COUNT;
    room -= SMALLER_COUNT * prepared_bytes(size); /* at most half of it: see choose_chunk_sizes() */
  }
  const bool is_small_ring =
      prof_i_policy_is_ring() && prof_i_the_arena.chunk_bytes_max < SERVED_BYTES;
  const uint64_t fit = room / prof_i_the_arena.chunk_bytes_max, least = fit < 1 ? 1 : fit;
  /* A small ring needs all its chunks, and prepared ones hold no records. */
  prepared.max[prepared.sizes - 1] = is_small_ring           ? 0
                                     : least < LARGEST_COUNT ? (uint32_t)least
                                                             : LARGEST_COUNT;
}

void prof_i_prepared_begin(void) {
  memset(prepared.chunks, 0, sizeof prepared.chunks);
  share_prepared();
  prepared.loss = 0;
  prepared.is_empty = 0;
  memset(prepared.trim_queue, 0, sizeof prepared.trim_queue);
}

/* ---- the helper's side ---- */

/* The helper thread is on or off. */
static void chunk_use_helper(bool on) {
  __atomic_store_n(&prepared.was_full, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&prepared.is_empty, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&prepared.helper_on, on, __ATOMIC_RELEASE);
}
/* changes when there is work */
static uint32_t chunk_helper_word(void) {
  return __atomic_load_n(&prepared.helper_word, __ATOMIC_ACQUIRE);
}

static void chunk_helper_sleep(uint32_t seen, uint64_t ns) {
  __atomic_store_n(&prepared.helper_sleeps, 1, __ATOMIC_SEQ_CST);
  prof_i_port_wait(&prepared.helper_word, seen, ns);
  __atomic_store_n(&prepared.helper_sleeps, 0, __ATOMIC_SEQ_CST);
}

/* An empty place for a chunk of that size. NULL: all are used. */
static uint64_t *prepared_index(uint32_t size) {
  for (uint32_t i = 0, count = prepared_room(size); i < count; i++)
    if (!__atomic_load_n(&prepared.chunks[size][i], __ATOMIC_RELAXED))
      return &prepared.chunks[size][i];
  return NULL;
}

/* Gives back prepared chunks above this size, so that their room serves for smaller ones. */
static void drop_prepared_above(uint64_t bytes) {
  for (prof_i_head *chunk; (chunk = prof_i_prepared_take_from(bytes + 1)) != NULL;)
    if (prof_i_policy_is_ring())
      prof_i_ring_put(chunk);
    else
      prof_i_free_list_put_chunk(chunk);
}

static prof_i_head *make_prepared(uint64_t bytes, int *loss_out) {
  if (prof_i_policy_is_ring()) return prof_i_ring_take(bytes, bytes, loss_out);
  prof_i_head *const chunk = prof_i_free_list_take(bytes, loss_out);
  return chunk ? chunk : prof_i_arena_take_extent(PROF_I_EXTENT_CHUNK, bytes, bytes, loss_out);
}

/* helper: prepares one chunk; false: enough are */
static bool chunk_make_prepared(void) {
  const uint64_t room_epoch = prof_i_arena_room_epoch();
  if (prof_i_arena_full_loss() >= 0 || lasting_loss()) return false;
  const uint64_t most =
      prof_i_policy_is_ring() && prof_i_ring_is_refused() ? 0 : prof_i_chunk_size_max();
  drop_prepared_above(most);
  for (uint32_t size = 0; size < prepared.sizes && prepared_bytes(size) <= most; size++) {
    uint64_t *const place = prepared_index(size);
    if (!place) continue;
    int loss = 0;
    const uint64_t bytes = prepared_bytes(size);
    prof_i_head *chunk = make_prepared(bytes, &loss);
    if (!chunk) {
      const uint64_t why = room_epoch << 8 | (uint64_t)(loss + 1);
      if (loss != PROF_LOSS_NO_CHUNK) __atomic_store_n(&prepared.loss, why, __ATOMIC_RELEASE);
      return false;
    }
    __atomic_store_n(place, prof_i_arena_offset(chunk), __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with the fence of prof_i_prepared_take() */
    __atomic_store_n(&prepared.is_empty, 0, __ATOMIC_SEQ_CST);
    return true;
  }
  __atomic_store_n(&prepared.was_full, 1, __ATOMIC_RELAXED);
  return false;
}

/* Helper, at its end: gives back the prepared chunks. */
static void chunk_drop_prepared(void) { drop_prepared_above(0); }

/* helper: drops the pages of one retired chunk; false: none waits */
static bool chunk_trim_one(void) {
  const uint64_t offset = offsets_take(prepared.trim_queue, TRIM_COUNT);
  if (offset) prof_i_port_drop_pages(prof_i_chunk_at(offset), prof_i_chunk_at(offset)->bytes);
  return offset != 0;
}

/* ---- the helper thread ---- */

enum { NAP_NS = 2000000, STACK_BYTES = 256 << 10 };

static struct {
  pthread_t thread;
  bool on;       /* written by a start or a stop, one at a time; read by any thread, relaxed */
  uint32_t quit; /* relaxed; the wake orders it */
  struct prof_i_unmap_list *unused; /* to be unmapped; atomic, exchange */
  int error;                        /* an errno: why the last start made no thread; control lock */
} helper;

static void helper_unmap(void) {
  prof_i_mapping_unmap_list(__atomic_exchange_n(&helper.unused, NULL, __ATOMIC_ACQUIRE));
}

static void *helper_main(void *unused) {
  (void)unused;
  prof_i_port_thread_begin("prof-helper");
  prof_i_this_flags.takes_faults = true;
  for (;;) {
    const uint32_t seen = chunk_helper_word(); /* first: a wake comes after what it is for */
    /* A stop waits for one chunk at most. */
    if (__atomic_load_n(&helper.quit, __ATOMIC_ACQUIRE)) break;
    const bool has_made = chunk_make_prepared(), has_dropped = chunk_trim_one();
    if (has_made || has_dropped) continue;
    helper_unmap();
    chunk_helper_sleep(seen, NAP_NS);
  }
  helper_unmap();
  chunk_drop_prepared();
  return NULL;
}

/* Nothing is made ready here: until the helper has its stock, threads take their chunks
   themselves. */
void prof_i_helper_start(void) {
  if (helper.on) return;
  helper.quit = 0;
  chunk_use_helper(true);
  helper.error = prof_i_port_thread_create(&helper.thread, STACK_BYTES, helper_main, NULL);
  const bool is_there = helper.error == 0;
  __atomic_store_n(&helper.on, is_there, __ATOMIC_RELAXED);
  if (!is_there) chunk_use_helper(false);
}

int prof_i_helper_error(void) { return helper.error; }

void prof_i_helper_stop(void) {
  helper.error = 0;
  if (!helper.on) return;
  chunk_use_helper(false);
  __atomic_store_n(&helper.quit, 1, __ATOMIC_RELEASE);
  prof_i_chunk_helper_wake();
  pthread_join(helper.thread, NULL);
  __atomic_store_n(&helper.on, false, __ATOMIC_RELAXED);
}

bool prof_i_helper_unmap(struct prof_i_unmap_list *all) {
  struct prof_i_unmap_list *none = NULL;
  if (!helper.on || !__atomic_compare_exchange_n(&helper.unused, &none, all, false,
                                                 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
    return false;
  prof_i_chunk_helper_wake();
  return true;
}

void prof_i_helper_forget(void) {
  helper.on = false;
  helper.unused = NULL; /* the child has none of it */
  chunk_use_helper(false);
}

bool prof_i_helper_is_on(void) { return __atomic_load_n(&helper.on, __ATOMIC_RELAXED); }
