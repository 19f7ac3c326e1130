/* Attaches a thread to the current arena and session, for the first time or again. Allocates its
   memory and its slot in the arena, selects its virtual thread, and opens its fast path. See
   thread.h. This may happen in a signal handler, so there is no lock and no malloc(). */
#define _GNU_SOURCE
#include "thread.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "arena.h"
#include "blocks.h"
#include "chunk.h"
#include "clock.h"
#include "internal.h"
#include "ledger.h"
#include "observer.h"
#include "session.h"

/* ---- virtual threads: the calling thread records as itself, or as a fiber that it is in ---- */

/* A handler between two of these stores records into one thread or the other, and may attach it. So
   the owner is loaded again. */
static void enter_virtual_thread(prof_i_virtual_thread *virtual_thread) {
  prof_i_thread_flags *const flags = &prof_i_this_flags;
  flags->virtual_thread = virtual_thread;
  PROF_I_SIGNAL_FENCE();
  prof_i_thread *const outer = prof_i_this_thread;
  virtual_thread->outer =
      outer == prof_i_virtual_thread_owner(virtual_thread) ? &prof_i_no_thread : outer;
  PROF_I_SIGNAL_FENCE();
  prof_i_this_thread = prof_i_virtual_thread_owner(virtual_thread);
}

static void leave_virtual_thread(void) {
  prof_i_thread_flags *const flags = &prof_i_this_flags;
  prof_i_virtual_thread *const virtual_thread = flags->virtual_thread;
  prof_i_this_thread = virtual_thread->outer;
  PROF_I_SIGNAL_FENCE();
  flags->virtual_thread = NULL;
  PROF_I_SIGNAL_FENCE();
  if (prof_i_this_thread == prof_i_virtual_thread_owner(virtual_thread))
    prof_i_this_thread = virtual_thread->outer;
  /* pairs with the acquire of the next thread that enters */
  __atomic_store_n(&virtual_thread->on, 0, __ATOMIC_RELEASE);
}

void prof_i_virtual_thread_enter(prof_i_virtual_thread *virtual_thread) {
  if (prof_i_this_flags.virtual_thread) leave_virtual_thread();
  if (virtual_thread) enter_virtual_thread(virtual_thread);
}

/* ---- memory of threads ---- */

/* A new thread reuses the memory of an ended one. So the number of blocks is about the highest
   number of threads that were alive at the same time. */

/* slot_count: counts those that have a slot in this arena, and takes no other; NULL: takes any. */
static prof_i_thread *thread_find_free(uint32_t *slot_count) {
  const uint64_t arena = prof_i_the_arena.number;
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    if (slot_count && __atomic_load_n(&t->arena, __ATOMIC_RELAXED) != arena) continue;
    if (slot_count) ++*slot_count;
    uint32_t was = PROF_I_FREE;
    if (__atomic_compare_exchange_n(&t->alive, &was, PROF_I_ALIVE, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return t;
    if (was == PROF_I_ALIVE && prof_i_thread_has_died(t) && prof_i_thread_take_ended(t)) {
      was = PROF_I_EXITED;
      __atomic_store_n(&t->alive, was, __ATOMIC_RELEASE);
    }
    if (was != PROF_I_EXITED) continue;
    if (!__atomic_compare_exchange_n(&t->alive, &was, PROF_I_ALIVE, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    prof_i_thread_reclaim(t);
    return t;
  }
  return NULL;
}

/* See internal.h. */
bool prof_i_thread_free_ended(void) {
  PROF_I_HOLD_SIGNALS;
  uint32_t none = 0;
  if (!__atomic_compare_exchange_n(&prof_i_threads.searches, &none, 1, false, __ATOMIC_SEQ_CST,
                                   __ATOMIC_RELAXED))
    return false;
  uint32_t alive = 0;
  bool has_freed = false;
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    if (__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) != PROF_I_ALIVE) continue;
    if (!prof_i_thread_take_ended(t)) {
      alive++;
      continue;
    }
    prof_i_thread_free(t);
    has_freed = true;
  }
  prof_i_thread_end_search(alive, has_freed);
  return true;
}

/* On two pages. The kernel empties the first one in a forked child: so the fast path finds neither
   slot nor epoch there. A handler may have forked the child. Then the call that it interrupted goes
   on in the child with what the second page has. */
static prof_i_thread *thread_create(void) {
  enum { PAGE_BYTES = 4096 };
  const size_t bytes = 2 * (size_t)PAGE_BYTES;
  _Static_assert(sizeof(prof_i_thread) <= PAGE_BYTES + PROF_I_THREAD_WIPED_BYTES, "two pages");
  char *const pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    prof_i_arena_note_refusal(errno);
    return NULL;
  }
  prof_i_port_wipe_on_fork(pages, PAGE_BYTES);
  prof_i_thread *const t =
      (prof_i_thread *)(void *)(pages + PAGE_BYTES - PROF_I_THREAD_WIPED_BYTES);
  t->alive = PROF_I_ALIVE;
  t->tag = 1 + __atomic_fetch_add(&prof_i_threads.made, 1, __ATOMIC_RELAXED) % PROF_I_TAG_MAX;
  t->chunk = &t->full;
  t->fast = &prof_i_no_slot;
  PROF_I_PUSH(&prof_i_threads.first, t);
  return t;
}

/* A prof_i_thread that is free, preferably with a slot in this arena, or a new one. NULL: no
   memory. Past the gate. It looks for ended threads each time that the number of slots has doubled.
   So at most as many of them keep a slot as are alive, and some more. */
static prof_i_thread *thread_take_free(void) {
  uint32_t slot_count = 0, unused = 0;
  prof_i_thread *thread = thread_find_free(&slot_count);
  if (!thread && slot_count >= __atomic_load_n(&prof_i_threads.search_at, __ATOMIC_RELAXED) &&
      prof_i_thread_free_ended())
    thread = thread_find_free(&unused);
  if (!thread)
    thread = thread_find_free(NULL); /* this one needs a new slot, and there may be no room */
  return thread ? thread : thread_create();
}

/* ---- slots, and the mappings of replaced arenas that a thread must keep ---- */

enum { SLOT_TOUCHED_BYTES = 2 * 4096 };

/* See internal.h. */
void prof_i_slot_set_deep(prof_i_thread_slot *slot, uint64_t count) {
  __atomic_store_n(&slot->deep, count, __ATOMIC_RELAXED);
}

/* Keeps a mapping of a replaced arena, and unmaps the oldest one. Nobody can find that one any
   more: it was replaced several captures ago. But a thread that looks at slots now may have found
   it before, so it stays mapped then, for good. That is rare. */
static void retire_mapping(prof_i_thread *thread, void *at, uint64_t bytes) {
  prof_i_memory_range *const p =
      &thread->retired_mappings[thread->retired_next++ % PROF_I_RETIRED_COUNT];
  if (p->at && prof_i_blocks_release_extent(p->at) &&
      !__atomic_load_n(&prof_i_threads.looking, __ATOMIC_SEQ_CST))
    munmap(p->at, p->bytes);
  p->at = at;
  p->bytes = bytes;
}

/* Keeps the mappings of chunks that the thread has of a replaced arena. */
static void thread_retire_chunks(prof_i_thread *thread) {
  uint64_t *const words[] = {&thread->detached_chunk, &thread->previous_chunk};
  for (int i = 0; i < 2; i++) {
    const uint64_t word = __atomic_exchange_n(words[i], 0, __ATOMIC_ACQ_REL);
    if (word)
      retire_mapping(thread, prof_i_chunk_word_address(word), prof_i_chunk_word_bytes(word));
  }
}

bool prof_i_thread_drop_stale_entry(prof_i_thread *thread, uint64_t start) {
  for (int p = 0; p < PROF_I_RETIRED_COUNT; p++) {
    if (!thread->retired_mappings[p].at || thread->retired_mappings[p].bytes != PROF_I_SLOT_BYTES)
      continue;
    /* this may be a chunk of the same size: its words are hardly ever equal to a start */
    prof_i_thread_slot *const slot = thread->retired_mappings[p].at;
    for (int i = 1; i <= PROF_I_OPEN_COUNT; i++) {
      uint64_t ticks = start;
      if (__atomic_compare_exchange_n(&slot->open[i].ticks, &ticks, 0, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED))
        return true;
    }
  }
  return false;
}

/* What the slot lost before is not this thread's loss. */
static void start_counting_losses(prof_i_thread_slot *slot) {
  slot->deep_before = slot->deep_count;
  slot->cut_before = slot->cut_count;
  slot->own_ns_before = slot->own_ns;
  const uint64_t ledger = prof_i_ledger_of(slot);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++)
    slot->lost_before[i] = prof_i_slot_lost(slot, ledger, i);
}

/* Word by word, because an end on another thread may be searching for its scope. */
void prof_i_slot_clear_open(prof_i_thread_slot *slot) {
  uint64_t top = 0;
  for (uint64_t i = PROF_I_OPEN_COUNT + 1; i-- > 0;) {
    uint64_t ticks = __atomic_load_n(&slot->open[i].ticks, __ATOMIC_RELAXED);
    while (!prof_i_entry_is_taken(ticks) &&
           !__atomic_compare_exchange_n(&slot->open[i].ticks, &ticks,
                                        i && i < top ? PROF_I_OPEN_GONE : 0, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    if (prof_i_entry_is_taken(ticks) && !top) top = i;
  }
  slot->depth = top;
}

/* Copies the open scopes into a slot of another arena. Scopes of this session keep their entries
   and payloads. The ends of older scopes will find nothing, and count as late. A begin that is not
   done fills its entry in the old slot, so an empty entry is over, too. */
static void move_open_scopes(prof_i_thread_slot *slot, const prof_i_thread_slot *old,
                             uint64_t since) {
  const uint64_t depth = old->depth <= PROF_I_OPEN_COUNT ? old->depth : 0;
  const uint64_t top = old->payload_top >= PROF_I_TEXT_OFFSET && old->payload_top <= PROF_I_TEXT_END
                           ? old->payload_top
                           : PROF_I_TEXT_OFFSET;
  memcpy((char *)slot + PROF_I_TEXT_OFFSET, (const char *)old + PROF_I_TEXT_OFFSET,
         top - PROF_I_TEXT_OFFSET);
  slot->payload_top = top;
  const uint64_t deep = old->deep <= PROF_I_DEEP_COUNT ? old->deep : 0;
  const uint64_t deep_gone = __atomic_load_n(&old->deep_gone, __ATOMIC_RELAXED);
  prof_i_slot_set_deep(slot, deep);
  slot->deep_gone = deep_gone < deep ? deep_gone : deep;
  slot->depth = depth;
  for (uint64_t i = 1; i <= depth; i++) {
    const uint64_t ticks = __atomic_load_n(&old->open[i].ticks, __ATOMIC_RELAXED);
    slot->open[i].packed = old->open[i].packed;
    const bool stays = prof_i_open_entry_is_open(ticks) && !prof_i_entry_is_taken(ticks) &&
                       !prof_i_clock_is_before(ticks >> 4, since);
    slot->open[i].ticks = stays ? ticks : PROF_I_OPEN_GONE;
  }
  prof_i_ledger_open(slot, slot->deep - slot->deep_gone);
}

static prof_i_thread_slot *slot_take(void) {
  int loss;
  if (PROF_I_FAULT(OPEN_ELSEWHERE))
    return mmap(NULL, PROF_I_SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0);
  prof_i_head *const slot =
      prof_i_arena_take_extent(PROF_I_EXTENT_SLOT, PROF_I_SLOT_BYTES, SLOT_TOUCHED_BYTES, &loss);
  return (prof_i_thread_slot *)(slot ? slot : prof_i_chunk_take_for_slot(SLOT_TOUCHED_BYTES));
}

/* A begin that is left out is counted without the gate, perhaps just after the slot's arena was
   replaced. The slot's memory is zeros then, and only it has these counts. */
void prof_i_slot_write_left_out(prof_i_thread_slot *old) {
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) {
    const uint64_t count = __atomic_exchange_n(&old->lost[i], 0, __ATOMIC_RELAXED);
    if (count) __atomic_fetch_add(&prof_i_arena_header()->unattributed[i], count, __ATOMIC_RELAXED);
  }
}

/* Gives the thread a slot in the current arena. Scopes that began at `since` or later move there;
   0: no scope moves. A thread that already has a slot in this arena keeps it, without open scopes.
   The slot is published last. */
static bool slot_give(prof_i_thread *thread, uint64_t since) {
  prof_i_thread_slot *const old = thread->slot;
  const bool keeps = old && thread->arena == prof_i_the_arena.number;
  prof_i_thread_slot *const slot = keeps ? old : slot_take();
  if (!slot) return false;
  slot->deep_gone = 0;
  prof_i_slot_set_deep(slot, 0);
  prof_i_ledger_open(slot, 0);
  start_counting_losses(slot);
  prof_i_slot_clear_open(slot);
  slot->payload_top = PROF_I_TEXT_OFFSET;
  __atomic_store_n(&slot->tid, thread->tid, __ATOMIC_RELAXED);
  slot->thread_kind = thread->thread_kind;
  slot->chunk = 0;
  prof_i_thread_write_name(thread, slot);
  slot->head.owner = thread->serial;
  thread->is_slow = !keeps && old && since && thread->is_slow;
  __atomic_store_n(&thread->begun.count, 0, __ATOMIC_RELAXED);
  if (!keeps && old) {
    PROF_I_ANNOUNCE(entries_needed, thread);
    if (since) move_open_scopes(slot, old, since);
    prof_i_slot_write_left_out(old);
    retire_mapping(thread, old, PROF_I_SLOT_BYTES);
    prof_i_thread_note_gap(thread);
  }
  /* from now on other threads search this slot for their scopes */
  __atomic_store_n(&thread->slot, slot, __ATOMIC_SEQ_CST);
  /* prof_health() reads it */
  __atomic_store_n(&thread->arena, prof_i_the_arena.number, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->serial, thread->serial, __ATOMIC_RELEASE);
  if (thread->serial != prof_i_thread_exited_serial())
    __atomic_fetch_add(&prof_i_arena_header()->thread_count, 1, __ATOMIC_RELAXED);
  return true;
}

/* ---- attach ---- */

/* A handler may have forked just before the fast path was opened. Then this is the child, and the
   slot is its parent's. */
static void close_in_child(prof_i_thread *thread) {
  if (!prof_i_thread_is_own(thread)) thread->fast = NULL;
}

/* The fast path reads the counter inline, so it is open only if the counter is the clock. A slow
   thread has the epoch, too: see begin_in_gap() in ../record/scope_slow.c. */
static void open_fast_path(prof_i_thread *thread) {
  const bool fast = prof_i_clock_is_counter() && !(thread->is_slow && prof_i_thread_has_ended());
  thread->timing.events_left = 0;
  thread->fast =
      fast && !thread->is_slow && thread->slot->deep == 0 ? thread->slot : &prof_i_no_slot;
  PROF_I_SIGNAL_FENCE();
  close_in_child(thread);
  uint32_t epoch;
  do { /* the epoch may be raised, and all threads updated, between the two */
    epoch = fast ? prof_i_session_epoch() : (uint32_t)PROF_I_NO_EPOCH;
    __atomic_store_n(&thread->epoch, epoch, __ATOMIC_SEQ_CST);
  } while (fast && epoch != prof_i_session_epoch());
}

static void forget_newest(prof_i_thread *thread) {
  prof_i_claim(&thread->newest.begun_count, 1);
  prof_i_claim(&thread->newest_block.begun_count, 1);
  __atomic_store_n(&thread->begun.count, 0, __ATOMIC_RELAXED);
}

void prof_i_thread_set_slow(prof_i_thread *thread, bool is_slow) {
  if (is_slow && !thread->is_slow)
    forget_newest(thread); /* the fast path does not note what it begins */
  thread->is_slow = is_slow;
  open_fast_path(thread);
}

void prof_i_thread_begin_deep(prof_i_thread *thread) { thread->fast = &prof_i_no_slot; }

/* Not always past the gate. Between any two of these lines a handler may move the thread to another
   arena, and open the fast path there. Then the old slot must not come back. */
void prof_i_thread_end_deep(prof_i_thread *thread) {
  if (!prof_i_clock_is_counter() || thread->is_slow) return;
  prof_i_thread_slot *from = &prof_i_no_slot, *slot;
  do {
    slot = __atomic_load_n(&thread->slot, __ATOMIC_RELAXED);
    prof_i_thread_slot *const to =
        slot->deep == 0 && !thread->timing.events_left ? slot : &prof_i_no_slot;
    if (!__atomic_compare_exchange_n(&thread->fast, &from, to, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
      return;
    from = to;
  } while (__atomic_load_n(&thread->slot, __ATOMIC_RELAXED) != slot);
  PROF_I_SIGNAL_FENCE();
  close_in_child(thread);
}

static bool thread_is_in_arena(const void *at) {
  const char *const base = prof_i_the_arena.base;
  return (const char *)at >= base && (const char *)at < base + prof_i_the_arena.cap_bytes;
}

static prof_i_thread *try_attach_new(const prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread = thread_take_free();
  if (!thread) return NULL;
  /* A child of vfork() is the calling thread, but the kernel gives it other numbers. */
  const uint64_t pid = (uint64_t)prof_i_process_id();
  const bool is_in_vfork = (uint64_t)getpid() != pid;
  const uint64_t own_tid = is_in_vfork ? prof_i_port_tid_of_self() : prof_i_port_tid();
  const uint64_t tid = virtual_thread ? virtual_thread->handle : own_tid;
  prof_i_thread_remember_exited(thread);
  __atomic_store_n(&thread->serial, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->tid, tid, __ATOMIC_RELAXED);
  const uint64_t kind_of_thread = tid == pid ? PROF_I_KIND_OF_MAIN : PROF_I_KIND_OF_THREAD;
  __atomic_store_n(&thread->thread_kind,
                   virtual_thread ? virtual_thread->thread_kind : kind_of_thread, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->process, prof_i_threads.process, __ATOMIC_RELAXED);
  const uint64_t again = virtual_thread ? 0 : prof_i_thread_exited_serial();
  __atomic_store_n(&thread->serial,
                   again ? again : __atomic_add_fetch(&prof_i_threads.serials, 1, __ATOMIC_RELAXED),
                   __ATOMIC_RELEASE);
  thread->next_bytes = prof_i_the_arena.chunk_bytes_min;
  thread->session = __atomic_load_n(&prof_i_arena_header()->session, __ATOMIC_ACQUIRE);
  /* the thread before may have jumped out of the code that set them */
  thread->is_text_busy = thread->is_held = false;
  thread->move.to = NULL;
  thread->moving_to_session = 0;
  PROF_I_ANNOUNCE(thread_attached, thread);
  thread->latest = 0;
  __atomic_store_n(&thread->chunk, &thread->full, __ATOMIC_RELAXED);
  const uint64_t detached_chunk = __atomic_load_n(&thread->detached_chunk, __ATOMIC_ACQUIRE);
  /* prof_stop() may have put it here while the previous thread ended. */
  if (detached_chunk && thread_is_in_arena(prof_i_chunk_word_address(detached_chunk)))
    prof_i_chunk_leave_partial(prof_i_chunk_reattach(thread));
  thread_retire_chunks(thread);
  if (!slot_give(thread, 0)) {
    __atomic_store_n(&thread->epoch, (uint32_t)PROF_I_NO_EPOCH, __ATOMIC_RELAXED);
    __atomic_store_n(&thread->alive, PROF_I_FREE, __ATOMIC_RELEASE);
    return NULL;
  }
  thread->is_slow = again != 0; /* every end of it takes the slow path */
  forget_newest(thread);
  open_fast_path(thread);
  prof_i_thread *none = &prof_i_no_thread;
  if (!__atomic_compare_exchange_n(&prof_i_this_thread, &none, thread, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED)) {
    /* a handler has attached meanwhile: its thread counts, ours is freed */
    __atomic_store_n(&thread->slot->serial, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&thread->alive, PROF_I_FREE, __ATOMIC_RELEASE);
    return prof_i_this_thread;
  }
  if (virtual_thread) return thread;
  prof_i_thread_watch_exit(thread, pid, tid, is_in_vfork);
  return thread;
}

/* Attaches the calling thread, which has no prof_i_thread yet. virtual_thread: NULL for a thread of
   the process. Where there is no room, ended threads may have some. */
static prof_i_thread *thread_attach_new(const prof_i_virtual_thread *virtual_thread) {
  const uint64_t search_serial = __atomic_load_n(&prof_i_threads.search_serial, __ATOMIC_RELAXED);
  prof_i_thread *const thread = try_attach_new(virtual_thread);
  if (thread || __atomic_load_n(&prof_i_threads.serials, __ATOMIC_RELAXED) < search_serial ||
      !prof_i_thread_free_ended())
    return thread;
  return try_attach_new(virtual_thread);
}

/* A scope of an older session must not end as a record of this one. Its entry is marked, and stays
   until its own end. The owner marks; another thread may be ending the scope at the same time. */
static void mark_if_old(prof_i_open_entry *open, uint64_t since) {
  uint64_t ticks = __atomic_load_n(&open->ticks, __ATOMIC_RELAXED);
  if (!prof_i_open_entry_is_open(ticks) || !prof_i_clock_is_before(ticks >> 4, since)) return;
  __atomic_compare_exchange_n(&open->ticks, &ticks, ticks | PROF_I_OPEN_OLD, false,
                              __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
static void mark_old_scopes(prof_i_thread *thread, uint64_t since) {
  prof_i_thread_slot *const slot = thread->slot;
  for (uint64_t i = 1; i <= slot->depth && i <= PROF_I_OPEN_COUNT; i++)
    mark_if_old(&slot->open[i], since);
  for (uint64_t i = 0; thread->deep && i < slot->deep; i++) mark_if_old(&thread->deep[i], since);
}

/* Slot, chunk and retired mappings change together. A handler must neither see nor change a half of
   that. */
static bool move_to_current_arena(prof_i_thread *thread, const prof_i_header *header) {
  if (thread->moving_to_session == __atomic_load_n(&header->session, __ATOMIC_ACQUIRE))
    return false;
  thread->moving_to_session = __atomic_load_n(&header->session, __ATOMIC_ACQUIRE);
  PROF_I_SIGNAL_FENCE();
  if (thread->arena == prof_i_the_arena.number) { /* a handler has moved it just before */
    thread->moving_to_session = 0;
    return true;
  }
  thread_retire_chunks(thread);
  __atomic_store_n(&thread->chunk, &thread->full, __ATOMIC_RELEASE);
  PROF_I_ANNOUNCE(thread_attached, thread);
  const bool has_slot =
      slot_give(thread, __atomic_load_n(&header->session_ticks, __ATOMIC_RELAXED));
  thread->next_bytes = prof_i_the_arena.chunk_bytes_min;
  PROF_I_SIGNAL_FENCE();
  thread->moving_to_session = 0;
  return has_slot;
}

/* The thread is known, but from another session or arena. */
static prof_i_thread *attach_again(prof_i_thread *thread) {
  const prof_i_header *const header = prof_i_arena_header();
  if (thread->arena == prof_i_the_arena.number)
    mark_old_scopes(thread, __atomic_load_n(&header->session_ticks, __ATOMIC_RELAXED));
  else if (!move_to_current_arena(thread, header))
    return NULL;
  else
    thread->latest = 0; /* the clock may have changed */
  thread->session = __atomic_load_n(&header->session, __ATOMIC_ACQUIRE);
  open_fast_path(thread);
  return thread;
}

/* Attaches what has not recorded yet: the thread itself, or the fiber that it is in. */
static prof_i_thread *attach_calling_thread(prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread = thread_attach_new(virtual_thread);
  if (virtual_thread && thread) __atomic_store_n(&virtual_thread->thread, thread, __ATOMIC_RELAXED);
  return thread;
}

static bool thread_is_current(const prof_i_thread *thread) {
  return thread->arena == prof_i_the_arena.number &&
         thread->session == __atomic_load_n(&prof_i_arena_header()->session, __ATOMIC_ACQUIRE) &&
         prof_i_thread_is_own(thread);
}

/* What changes when a refused thread may have a place: the capture, the session, its room, a
   thread's end, a chunk that a ring may take. Its low bits are left for a count. */
enum { RETRY_BITS = 6, RETRY_EVERY = 1 << RETRY_BITS };
static uint64_t state_of_room(void) {
  const uint64_t session = __atomic_load_n(&prof_i_arena_header()->session, __ATOMIC_ACQUIRE);
  const uint64_t left = __atomic_load_n(&prof_i_threads.left_count, __ATOMIC_ACQUIRE);
  const uint64_t retired = prof_i_ring_retired_count();
  const uint64_t state = prof_i_arena_room_epoch() << 40 ^ session << 32 ^ retired << 16 ^ left;
  return state << RETRY_BITS | PROF_I_REFUSED;
}

/* A thread was refused a place, and nothing has changed since. To ask again takes system calls. A
   scope that is lost makes none. But a thread may end unnoticed, so every 64th scope asks. */
static bool is_still_refused(void) {
  prof_i_thread_flags *const flags = &prof_i_this_flags;
  const uint64_t refused = flags->exited_or_refused;
  if (!(refused & PROF_I_REFUSED) || flags->virtual_thread) return false;
  const uint64_t count = refused % RETRY_EVERY;
  if (count == 0 || refused - count != state_of_room()) return false;
  flags->exited_or_refused = refused - 1;
  return true;
}

/* No handler interrupts it: see prof_i_chunk_change(). */
static PROF_I_COLD prof_i_thread *attach_now(void) {
  PROF_I_HOLD_SIGNALS;
  if (!prof_i_process_is_own() || !__atomic_load_n(&prof_i_the_arena.base, __ATOMIC_ACQUIRE))
    return NULL;
  prof_i_thread *thread = prof_i_this_thread;
  /* A handler forked while the thread entered or left a fiber: this is the parent's. */
  if (prof_i_is_attached(thread) && !prof_i_thread_is_own(thread))
    thread = prof_i_this_thread = &prof_i_no_thread;
  if (!prof_i_is_attached(thread)) {
    prof_i_virtual_thread *const virtual_thread = prof_i_this_flags.virtual_thread;
    if (virtual_thread) thread = prof_i_virtual_thread_owner(virtual_thread);
    if (!prof_i_is_attached(thread)) {
      const uint64_t state = state_of_room(); /* before the attempt */
      thread = attach_calling_thread(virtual_thread);
      if (!prof_i_thread_exited_serial())
        prof_i_this_flags.exited_or_refused = thread ? 0 : state + RETRY_EVERY - 1;
      return thread;
    }
    prof_i_this_thread = thread; /* in a handler's scope, while the thread leaves a fiber */
  }
  return thread_is_current(thread) ? thread : attach_again(thread);
}

prof_i_thread *prof_i_thread_attach(void) {
  prof_i_thread *const thread = prof_i_this_thread;
  if (!__atomic_load_n(&prof_i_the_arena.base, __ATOMIC_ACQUIRE)) return NULL;
  if (prof_i_is_attached(thread)) return thread_is_current(thread) ? thread : attach_now();
  return is_still_refused() ? NULL : attach_now();
}

prof_i_thread *prof_i_virtual_thread_attach(prof_i_virtual_thread *virtual_thread) {
  if (!__atomic_load_n(&prof_i_the_arena.base, __ATOMIC_ACQUIRE)) return NULL;
  prof_i_thread_adopt_name(virtual_thread->name);
  prof_i_this_thread = virtual_thread->thread ? virtual_thread->thread : &prof_i_no_thread;
  prof_i_thread *const thread =
      virtual_thread->thread ? prof_i_thread_attach() : thread_attach_new(virtual_thread);
  if (thread) virtual_thread->thread = thread;
  return thread;
}
