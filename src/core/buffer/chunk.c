/* How a thread gets a chunk, and what becomes of a full one: see chunk.h. The state in a chunk's
   head says who owns it, and changes by compare-and-swap. OWNED: a thread has it. RETIRED: free for
   whoever swaps it first. The next thread (take-over) and a clear swap it to OWNED, a ring to TAKEN
   (overwriting). */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <string.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "arena.h"
#include "chunk.h"
#include "clock.h"
#include "internal.h"
#include "ledger.h"
#include "observer.h"
#include "session.h"
#include "thread.h"

/* ---- the size of a thread's chunk ---- */

/* If few threads took large chunks, those that come later would find no room, while most of the cap
   holds no records. */

enum {
  CHUNKS_EACH = 4,    /* of what is free, a thread gets this part of its share at once */
  LOOK_AT_LEAST = 16, /* changes from one count of the threads to the next */
  LOOK_SHARE = 4      /* and a quarter as many as there are threads */
};

/* Any thread, relaxed. */
static struct {
  uint64_t threads; /* that were alive at the last count */
  uint64_t changes; /* since then */
} size_state;

/* To count is to walk over all threads. */
static uint64_t thread_count(void) {
  const uint64_t known = __atomic_load_n(&size_state.threads, __ATOMIC_RELAXED);
  const uint64_t changes = __atomic_add_fetch(&size_state.changes, 1, __ATOMIC_RELAXED);
  if (known && changes < LOOK_AT_LEAST + known / LOOK_SHARE) return known;
  __atomic_store_n(&size_state.changes, 0, __ATOMIC_RELAXED);
  const uint64_t alive = prof_i_thread_alive_count(), count = alive ? alive : 1;
  __atomic_store_n(&size_state.threads, count, __ATOMIC_RELAXED);
  return count;
}

/* In a ring, all is free: the oldest is evicted. */
static uint64_t arena_free_bytes(void) {
  const prof_i_arena *const arena = &prof_i_the_arena;
  if (arena->policy == PROF_POLICY_RING) return arena->cap_bytes;
  const uint64_t taken = prof_i_arena_taken_bytes();
  return (taken < arena->cap_bytes ? arena->cap_bytes - taken : 0) + prof_i_free_list_bytes();
}

uint64_t prof_i_chunk_size_max(void) {
  const prof_i_arena *const arena = &prof_i_the_arena;
  const uint64_t share = arena_free_bytes() / (CHUNKS_EACH * thread_count());
  uint64_t bytes = arena->chunk_bytes_max;
  while (bytes > share && bytes > arena->chunk_bytes_min) bytes /= 4;
  return bytes;
}

void prof_i_chunk_size_begin(void) { size_state.threads = size_state.changes = 0; }

/* ---- records about a thread: the owner of a chunk, and what a thread leaves at its end ---- */

enum {
  EXIT_WORDS = 3 + 3 + PROF_I_LOSS_WORDS + PROF_I_NAME_BYTES / 8 + 1,
  EXIT_BYTES = (EXIT_WORDS + 1) / 2 * 16,
  /* Less overhead of an ended thread is not worth a record of 256 bytes: many threads live for a
     few scopes only. The sum of all threads has it anyway. */
  OVERHEAD_NS_WORTH_WRITING = 100000
};

/* Claims from this chunk, as other threads may. NULL: the record does not fit. */
static uint64_t *chunk_claim(prof_i_head *chunk, uint64_t bytes) {
  const uint64_t from = prof_i_claim(&chunk->cursor, bytes);
  if (from + bytes <= chunk->bytes) {
    uint64_t *const record = (uint64_t *)((char *)chunk + from);
    __atomic_store_n(&record[0], bytes / 16 << PROF_I_PENDING_SLOTS_SHIFT | chunk->generation << 4,
                     __ATOMIC_RELAXED);
    /* the mark comes first: a reader that sees other words of the record sees the mark, too */
    PROF_I_STORE_FENCE();
    return record;
  }
  if (from < chunk->bytes)
    __atomic_store_n((uint64_t *)((char *)chunk + from),
                     1ull << PROF_I_FILLER_BIT |
                         (chunk->bytes - from) / 16 << PROF_I_PENDING_SLOTS_SHIFT |
                         chunk->generation << 4,
                     __ATOMIC_RELEASE);
  return NULL;
}

/* This record is no event: if the process is killed meanwhile, nothing may count as lost. */
static void put_owner(prof_i_thread *thread, prof_i_head *chunk) {
  uint64_t *const record = chunk_claim(chunk, PROF_I_OWNER_RECORD_BYTES);
  if (!record) return;
  record[1] = 1;
  record[2] = PROF_I_OWNER_RECORD_BYTES / 16 | (uint64_t)PROF_I_KIND_OWNER << 16;
  record[3] = thread->serial;
  record[4] = thread->tid;
  record[5] = thread->thread_kind;
  prof_i_thread_copy_name(thread->name, thread->slot->name);
  memcpy(record + 6, thread->name, PROF_I_NAME_BYTES);
  __atomic_store_n(&record[0], prof_i_clock_ticks() << 4 | chunk->generation, __ATOMIC_RELEASE);
}

/* Writes the record that names the chunk's thread. */
static void thread_write_owner(prof_i_thread *thread, prof_i_head *chunk) {
  const prof_i_ledger_saved note =
      prof_i_ledger_begin(thread->slot, 0, PROF_I_OWNER_RECORD_BYTES / 16);
  put_owner(thread, chunk);
  prof_i_ledger_end(thread->slot, &note, 0);
}

/* Does an ended thread leave anything that no other record says? */
static bool thread_exit_is_worth_writing(const prof_i_thread *thread) {
  const prof_i_thread_slot *const slot = thread->slot;
  uint64_t any = (slot->deep_count - slot->deep_before) | (slot->cut_count - slot->cut_before);
  const uint64_t ledger = prof_i_ledger_of(slot);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++)
    any |= prof_i_slot_lost(slot, ledger, i) - slot->lost_before[i];
  any |= prof_i_slot_thread_own_ns(slot) >= OVERHEAD_NS_WORTH_WRITING;
  for (int i = 0; i < PROF_I_NAME_BYTES / 8; i++)
    any |= __atomic_load_n((const uint64_t *)(const void *)slot->name + i, __ATOMIC_RELAXED) ^
           ((const uint64_t *)(const void *)thread->name)[i];
  return any != 0;
}

static bool put_exit(prof_i_thread *thread, prof_i_head *chunk) {
  uint64_t *const record = chunk_claim(chunk, EXIT_BYTES);
  if (!record) return false;
  const prof_i_thread_slot *const slot = thread->slot;
  record[1] = 1;
  record[2] = EXIT_BYTES / 16 | (uint64_t)PROF_I_KIND_EXIT << 16;
  record[3] = thread->serial;
  record[4] = slot->deep_count - slot->deep_before;
  record[5] = slot->cut_count - slot->cut_before;
  const uint64_t ledger = prof_i_ledger_of(slot);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++)
    record[6 + i] = prof_i_slot_lost(slot, ledger, i) - slot->lost_before[i];
  prof_i_thread_copy_name((char *)(record + 6 + PROF_I_LOSS_WORDS), slot->name);
  record[EXIT_WORDS - 1] = prof_i_slot_thread_own_ns(slot);
  __atomic_store_n(&record[0], prof_i_clock_ticks() << 4 | chunk->generation, __ATOMIC_RELEASE);
  return true;
}

/* Writes what it leaves. False: the chunk has no room. */
static bool thread_write_exit(prof_i_thread *thread, prof_i_head *chunk) {
  const prof_i_ledger_saved note = prof_i_ledger_begin(thread->slot, 0, EXIT_BYTES / 16);
  const bool is_written = put_exit(thread, chunk);
  prof_i_ledger_end(thread->slot, &note, 0);
  return is_written;
}

/* ---- taking and changing chunks ---- */

enum {
  PARTIAL_COUNT = 4096, /* part-filled chunks of ended threads that are remembered */
  PARTIAL_COUNT_FIRST = 64,
  ROOM_WORTH_TAKING = 256,
  BUCKETS = 256 /* of chunk-change times: four to a doubling */
};

/* Any thread, by atomics. */
static struct {
  /* offsets of part-filled chunks that the next thread may take, 0: none */
  uint64_t partial_chunks[PARTIAL_COUNT];
  uint64_t change_count, change_max_ns, change_times[BUCKETS];
} chunk_pool;

/* Only places of partial_chunks before it are used. Doubled when more threads end. Any thread. Not
   a member of chunk_pool, which is zeros: .data is to stay small. */
static uint32_t partial_end = PARTIAL_COUNT_FIRST;

static bool chunk_swap_if_retired(prof_i_head *chunk, prof_i_chunk_state to) {
  uint16_t state = PROF_I_CHUNK_RETIRED;
  return __atomic_compare_exchange_n(&chunk->state, &state, (uint16_t)to, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

bool prof_i_chunk_own_if_retired(prof_i_head *chunk) {
  return chunk_swap_if_retired(chunk, PROF_I_CHUNK_OWNED);
}

void prof_i_chunk_forget_partial(void) {
  const uint32_t end = __atomic_load_n(&partial_end, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < end; i++)
    __atomic_store_n(&chunk_pool.partial_chunks[i], 0, __ATOMIC_RELEASE);
}

/* ---- where a chunk comes from ---- */

static prof_i_head *take_partial(uint64_t need) {
  const uint32_t end = __atomic_load_n(&partial_end, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < end; i++) {
    const uint64_t offset = PROF_I_FAULT(LEFT_UNUSED)
                                ? 0
                                : __atomic_load_n(&chunk_pool.partial_chunks[i], __ATOMIC_ACQUIRE);
    if (!offset || prof_i_chunk_room(prof_i_chunk_at(offset)) < need + PROF_I_OWNER_RECORD_BYTES)
      continue;
    uint64_t expected = offset;
    if (!__atomic_compare_exchange_n(&chunk_pool.partial_chunks[i], &expected, 0, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      continue;
    prof_i_head *const chunk = prof_i_chunk_at(offset);
    if (!prof_i_chunk_own_if_retired(chunk)) continue; /* a ring or a clear was faster */
    if (prof_i_chunk_room(chunk) >= need + PROF_I_OWNER_RECORD_BYTES) return chunk;
    prof_i_chunk_set_retired(chunk);
  }
  return NULL;
}

/* Returns prepared chunks to the ring, until the ring has room for a slot. */
static prof_i_head *take_ring_for_slot(void) {
  prof_i_head *slot = prof_i_ring_take_for_slot();
  for (prof_i_head *chunk;
       !slot && (chunk = prof_i_prepared_take_from(PROF_I_SLOT_BYTES)) != NULL;) {
    prof_i_ring_put(chunk);
    slot = prof_i_ring_take_for_slot();
  }
  return slot;
}

/* Prepared chunks serve, too. */
prof_i_head *prof_i_chunk_take_for_slot(uint64_t populate_bytes) {
  prof_i_head *const slot = prof_i_free_list_take_for_slot(populate_bytes);
  if (slot) return slot;
  if (prof_i_policy_is_ring()) return take_ring_for_slot();
  const prof_i_head *const chunk = prof_i_prepared_take_from(PROF_I_SLOT_BYTES);
  if (!chunk) return NULL;
  prof_i_free_list_put(prof_i_arena_offset(chunk), chunk->bytes);
  return prof_i_free_list_take_for_slot(populate_bytes);
}

static uint64_t chunk_size_for(const prof_i_thread *thread, uint64_t need) {
  const uint64_t most = prof_i_chunk_size_max();
  uint64_t bytes = thread->next_bytes < most ? thread->next_bytes : most;
  while (bytes < need + PROF_I_HEAD_BYTES + PROF_I_OWNER_RECORD_BYTES) bytes *= 4;
  return bytes;
}

/* The thread's next chunk is larger. */
static prof_i_head *thread_grow_chunks(prof_i_thread *thread, prof_i_head *chunk) {
  if (chunk && thread->next_bytes < prof_i_the_arena.chunk_bytes_max) thread->next_bytes *= 4;
  return chunk;
}

static prof_i_head *take_chunk(prof_i_thread *thread, uint64_t need, int *loss_out) {
  prof_i_head *chunk = take_partial(need);
  if (chunk) return chunk;
  const uint64_t bytes = chunk_size_for(thread, need),
                 least = need + PROF_I_HEAD_BYTES + PROF_I_OWNER_RECORD_BYTES;
  /* an earlier session may have left some */
  if (!prof_i_prepared_is_on()) {
    if ((chunk = prof_i_prepared_take_from(least)) != NULL) return chunk;
  } else if ((chunk = prof_i_prepared_take(bytes, loss_out)) != NULL ||
             (*loss_out == PROF_LOSS_NO_CHUNK && prof_i_chunk_size_is_largest(bytes) &&
              prof_i_prepared_serves())) {
    return thread_grow_chunks(thread, chunk);
  }
  if (prof_i_policy_is_ring()) {
    chunk = prof_i_ring_take(bytes, least, loss_out);
    return thread_grow_chunks(thread, chunk ? chunk : prof_i_prepared_take_from(least));
  }
  if ((chunk = prof_i_free_list_take(bytes, loss_out)) != NULL)
    return thread_grow_chunks(thread, chunk);
  const uint64_t aligned = prof_i_arena_aligned_bytes(bytes),
                 now = aligned < least ? bytes : aligned;
  chunk = prof_i_arena_take_extent(PROF_I_EXTENT_CHUNK, now, now, loss_out);
  /* Hands out the last of the cap, and what a clear gave back, in small pieces. */
  for (uint64_t less = now / 4;
       !chunk && *loss_out == PROF_LOSS_FULL && less >= least && less >= PROF_I_UNIT_BYTES;
       less /= 4) {
    chunk = prof_i_free_list_take(less, loss_out);
    if (!chunk) chunk = prof_i_arena_take_extent(PROF_I_EXTENT_CHUNK, less, less, loss_out);
  }
  if (!chunk) chunk = prof_i_prepared_take_from(least); /* of any other size */
  return thread_grow_chunks(thread, chunk);
}

/* ---- change ---- */

static void record_change_time(prof_i_thread *thread, uint64_t ns, uint64_t processor_ns) {
  const uint64_t own_ns = processor_ns < ns ? processor_ns : ns;
  prof_i_claim(&thread->slot->own_ns, own_ns);
  if (ns > own_ns) prof_i_claim(&thread->slot->wait_ns, ns - own_ns);
  const uint64_t top = ns < 4 ? 2 : (uint64_t)(63 - __builtin_clzll(ns));
  const uint64_t bucket = top * 4 + (ns >> (top - 2) & 3);
  __atomic_fetch_add(&chunk_pool.change_times[bucket < BUCKETS ? bucket : BUCKETS - 1], 1,
                     __ATOMIC_RELAXED);
  __atomic_fetch_add(&chunk_pool.change_count, 1, __ATOMIC_RELAXED);
  uint64_t max = __atomic_load_n(&chunk_pool.change_max_ns, __ATOMIC_RELAXED);
  while (ns > max && !__atomic_compare_exchange_n(&chunk_pool.change_max_ns, &max, ns, true,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

/* Drops the pages of a stream's full chunk, because the file has them. */
static void chunk_retire(prof_i_head *chunk) {
  const bool stream = prof_i_the_arena.policy == PROF_POLICY_STREAM;
  const uint64_t offset = prof_i_arena_offset(chunk), bytes = chunk->bytes;
  prof_i_chunk_set_retired(chunk);
  if (!stream) return;
  if (prof_i_prepared_trim_later(offset)) return;
  prof_i_port_drop_pages(chunk, bytes);
}

static void remember_partial(uint64_t offset) {
  uint32_t end = __atomic_load_n(&partial_end, __ATOMIC_RELAXED);
  while (!prof_i_offsets_put(chunk_pool.partial_chunks, end, offset) && end < PARTIAL_COUNT)
    if (__atomic_compare_exchange_n(&partial_end, &end, 2 * end, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
      end *= 2;
}

static void chunk_give_away(prof_i_head *chunk) {
  const uint64_t offset = prof_i_arena_offset(chunk);
  prof_i_chunk_set_retired(chunk);
  remember_partial(offset);
  prof_i_prepared_note_room();
}

void prof_i_chunk_leave_partial(prof_i_head *chunk) {
  if (prof_i_chunk_room(chunk) >= ROOM_WORTH_TAKING)
    chunk_give_away(chunk);
  else
    chunk_retire(chunk);
}

/* ---- chunks that a thread keeps aside ---- */

static uint64_t chunk_word(const prof_i_head *chunk) {
  return (uint64_t)(uintptr_t)chunk | (uint64_t)__builtin_ctzll(chunk->bytes);
}

/* Keeps a chunk that was taken out of thread->chunk, until the thread records again. Its size is
   kept with it, because the arena may be gone by then. Any thread that took the chunk out. */
static void thread_detach_chunk(prof_i_thread *thread, prof_i_head *chunk) {
  uint64_t none = 0;
  if (!__atomic_compare_exchange_n(&thread->detached_chunk, &none, chunk_word(chunk), false,
                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    prof_i_chunk_leave_partial(
        chunk); /* the thread has one already: a stop and a chunk change crossed */
}

prof_i_head *prof_i_chunk_reattach(prof_i_thread *thread) {
  return prof_i_chunk_word_address(
      __atomic_exchange_n(&thread->detached_chunk, 0, __ATOMIC_ACQ_REL));
}

void prof_i_chunk_detach_all(void) {
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    prof_i_head *const chunk = __atomic_exchange_n(&t->chunk, &t->full, __ATOMIC_ACQ_REL);
    if (chunk != &t->full) thread_detach_chunk(t, chunk);
  }
}

/* Keeps a full chunk, and returns the one that was kept before, or NULL: the caller retires it.
   chunk NULL: keeps none. Owner thread. */
static prof_i_head *thread_swap_previous(prof_i_thread *thread, prof_i_head *chunk) {
  const uint64_t word = chunk ? chunk_word(chunk) : 0;
  return prof_i_chunk_word_address(
      __atomic_exchange_n(&thread->previous_chunk, word, __ATOMIC_ACQ_REL));
}

/* A handler may change the chunk after the interrupted code has loaded the chunk's address and
   before it claims. That claim must fail in a full chunk of the same thread, and not land in
   another thread's chunk. So a chunk stays the thread's until the next change. This does not cover
   a handler that fills a whole chunk between two instructions of the interrupted code. */
static void chunk_retire_later(prof_i_thread *thread, prof_i_head *chunk) {
  prof_i_head *const before =
      PROF_I_FAULT(LEAVE_AT_ONCE) ? chunk : thread_swap_previous(thread, chunk);
  if (before) chunk_retire(before);
}

/* Makes this the thread's chunk, unless a handler or prof_stop() was faster. A stop that began
   meanwhile sees the chunk and detaches it, or is seen here. Each side stores its own word first,
   and then loads the other's. */
static bool thread_publish_chunk(prof_i_thread *thread, prof_i_head *expected, prof_i_head *chunk) {
  if (!__atomic_compare_exchange_n(&thread->chunk, &expected, chunk, false, __ATOMIC_SEQ_CST,
                                   __ATOMIC_ACQUIRE))
    return false;
  thread->slot->chunk = prof_i_arena_offset(chunk);
  if (prof_i_session_is_recording()) return true;
  if (__atomic_exchange_n(&thread->chunk, &thread->full, __ATOMIC_SEQ_CST) == chunk)
    thread_detach_chunk(thread, chunk);
  return true;
}

static bool resume_detached(prof_i_thread *thread) {
  prof_i_head *const detached_chunk = prof_i_chunk_reattach(thread);
  if (!detached_chunk) return false;
  /* a handler has set another chunk */
  if (!thread_publish_chunk(thread, &thread->full, detached_chunk))
    chunk_retire_later(thread, detached_chunk);
  return true;
}

/* The arena is full. As long as it is, scopes of the thread are left out at their begin. Does
   nothing if the counter is not the clock: scopes take the slow path anyway. A start of
   another arena may clear the epoch meanwhile. */
static void thread_set_full(prof_i_thread *thread) {
  uint32_t epoch = __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED);
  if (epoch < PROF_I_EPOCH_MUTED)
    __atomic_compare_exchange_n(&thread->epoch, &epoch, PROF_I_EPOCH_FULL, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

static void arena_set_full(int loss, uint64_t room_epoch) {
  if (prof_i_arena_set_full(loss, room_epoch))
    prof_i_arena_set_full_ticks(loss, room_epoch, prof_i_clock_ticks());
}

static prof_i_head *take_and_write_owner(prof_i_thread *thread, uint64_t need_bytes,
                                         int *loss_out) {
  const uint64_t room_epoch = prof_i_arena_room_epoch();
  if ((*loss_out = prof_i_arena_full_loss()) >= 0) return NULL;
  prof_i_head *fresh = take_chunk(thread, need_bytes, loss_out);
  prof_i_head *before;
  if (!fresh && prof_i_policy_is_ring() && (before = thread_swap_previous(thread, NULL)) != NULL) {
    chunk_retire(before); /* the other threads have the rest of the ring */
    fresh = take_chunk(thread, need_bytes, loss_out);
  }
  bool may_get_room = false; /* then the arena does not count as full */
  if (!fresh && *loss_out == PROF_LOSS_FULL) {
    may_get_room = !prof_i_thread_free_ended();
    fresh = take_chunk(thread, need_bytes, loss_out);
  }
  if (!fresh) {
    if (*loss_out != PROF_LOSS_NO_CHUNK && !may_get_room) arena_set_full(*loss_out, room_epoch);
    return NULL;
  }
  fresh->owner = thread->serial;
  /* It may have been another thread's. */
  __atomic_store_n(&fresh->limit, fresh->bytes - 15, __ATOMIC_RELAXED);
  const uint64_t sequence = prof_i_chunk_next_number();
  prof_i_chunk_set_number(fresh, sequence);
  if (prof_i_policy_is_ring()) prof_i_ring_set_age(fresh, sequence);
  prof_i_thread_refresh_name(thread);
  thread_write_owner(thread, fresh);
  return fresh;
}

/* No handler interrupts it. One that forked in the middle would leave the child here, with half a
   change of its parent's arena. */
bool prof_i_chunk_change(prof_i_thread *thread, uint64_t need_bytes, int *loss_out) {
  prof_i_head *const old = prof_i_thread_chunk(thread);
  *loss_out = PROF_LOSS_LATE;
  if (!prof_i_session_is_recording()) return false;
  const int full = prof_i_arena_full_loss();
  /* the usual case of a long run */
  if (full >= 0 && !__atomic_load_n(&thread->detached_chunk, __ATOMIC_RELAXED)) {
    thread_set_full(thread);
    *loss_out = full;
    return false;
  }
  if (PROF_I_UNLIKELY(prof_i_prepared_starves(thread)) &&
      !__atomic_load_n(&thread->detached_chunk, __ATOMIC_RELAXED)) {
    *loss_out = PROF_LOSS_NO_CHUNK;
    return false;
  }
  PROF_I_HOLD_SIGNALS;
  if (!prof_i_thread_is_own(thread)) {
    *loss_out = PROF_LOSS_FORKED;
    return false;
  }
  const uint64_t begun = prof_i_port_monotonic_ns(), processor_begun = prof_i_port_processor_ns();
  if (old == &thread->full && resume_detached(thread)) return true;
  prof_i_head *const fresh = take_and_write_owner(thread, need_bytes, loss_out);
  if (!fresh) return false;
  if (!thread_publish_chunk(thread, old, fresh)) {
    chunk_give_away(fresh);
    return true;
  }
  PROF_I_ANNOUNCE(chunk_changed, thread, old != &thread->full ? old : NULL, fresh);
  if (old != &thread->full) chunk_retire_later(thread, old);
  prof_i_clock_write_pair(true);
  const uint64_t processor_ns = prof_i_port_processor_ns() - processor_begun;
  record_change_time(thread, prof_i_ns_since(begun), processor_ns);
  /* The chunk stays the thread's until the next change. */
  if (old != &thread->full) PROF_I_ANNOUNCE(chunk_filled, thread, old, processor_ns);
  PROF_I_ANNOUNCE(chunk_entered, thread, fresh);
  return true;
}

void prof_i_chunk_thread_exit(prof_i_thread *thread) {
  prof_i_head *const chunk = __atomic_exchange_n(&thread->chunk, &thread->full, __ATOMIC_ACQ_REL);
  prof_i_head *const detached_chunk = prof_i_chunk_reattach(thread), *const before =
                                                                         thread_swap_previous(
                                                                             thread, NULL);
  prof_i_head *const last = chunk != &thread->full ? chunk : detached_chunk;
  PROF_I_ANNOUNCE(thread_ended, thread, last);
  /* the reserve has room if the last chunk has none */
  if (thread_exit_is_worth_writing(thread) && !(last && thread_write_exit(thread, last))) {
    prof_i_head *const reserve = prof_i_chunk_reserve(thread);
    if (reserve) thread_write_exit(thread, reserve);
  }
  PROF_I_ANNOUNCE(thread_left, thread);
  if (chunk != &thread->full) prof_i_chunk_leave_partial(chunk);
  if (detached_chunk) prof_i_chunk_leave_partial(detached_chunk);
  if (before) chunk_retire(before);
}

prof_i_head *prof_i_chunk_reserve(prof_i_thread *thread) {
  PROF_I_HOLD_SIGNALS;
  if (!prof_i_thread_is_own(thread)) return NULL;
  prof_i_head *const reserve = (prof_i_head *)((char *)thread->slot + PROF_I_RESERVE_OFFSET);
  if (reserve->magic != PROF_I_EXTENT_MAGIC) {
    if (prof_i_port_populate(reserve, PROF_I_UNIT_BYTES) != 0) return NULL;
    prof_i_arena_make_head(reserve, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES);
  } else if (thread->reserve_since != prof_i_arena_header()->full_ticks) {
    const prof_i_chunk_count count = prof_i_chunk_walk(reserve, prof_i_chunk_last_clear());
    /* a clear has covered all of it: use it again */
    if (count.cleared && !count.live && !count.unfinished) {
      prof_i_chunk_evict(reserve, &count, PROF_I_EVICTED_CLEARED);
      prof_i_chunk_next_generation(reserve, &count);
      reserve->owner = 0;
    }
  }
  thread->reserve_since = prof_i_arena_header()->full_ticks;
  if (reserve->owner == thread->serial) return reserve;
  reserve->owner = thread->serial; /* records of an earlier owner may precede */
  prof_i_chunk_set_number(reserve, prof_i_chunk_next_number());
  thread_write_owner(thread, reserve);
  return reserve;
}

prof_i_chunk_times prof_i_chunk_change_times(void) {
  prof_i_chunk_times times = {__atomic_load_n(&chunk_pool.change_count, __ATOMIC_RELAXED), 0, 0,
                              __atomic_load_n(&chunk_pool.change_max_ns, __ATOMIC_RELAXED)};
  uint64_t seen = 0;
  for (uint64_t i = 0; i < BUCKETS; i++) {
    seen += __atomic_load_n(&chunk_pool.change_times[i], __ATOMIC_RELAXED);
    const uint64_t ns = (4 + i % 4) << (i / 4) >> 2;
    if (!times.median_ns && seen * 2 >= times.count && seen) times.median_ns = ns;
    if (!times.p99_ns && seen * 100 >= times.count * 99 && seen) times.p99_ns = ns;
  }
  return times;
}
