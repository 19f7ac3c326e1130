/* How threads attach, go and are found. See thread.h. Attaching may happen inside a signal handler:
   no lock, no malloc. */
#define _GNU_SOURCE
#include "thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "../../base/this_thread.h"
#include "arena.h"
#include "arena_guard.h"
#include "blocks.h"
#include "chunk.h"
#include "clock.h"
#include "ledger.h"
#include "observer.h"
#include "session.h"

enum {
  NO_EPOCH = -1,
  SLOT_TOUCHED_BYTES = 2 * 4096,
  EXITED_COUNT = 4096,
  LOOK_AT_LEAST = 16, /* places of threads: see threads_free_ended() */
  TID_BITS = 22       /* the kernel's own bound: PID_MAX_LIMIT */
};

/* Where every thread begins: no room, nothing open, no epoch. Read only: full, so that no begin
   takes an entry in it, also not one that was interrupted between a look at the slot and one at the
   epoch. */
static prof_i_thread_slot no_slot = {.depth = PROF_I_OPEN_COUNT, .payload_top = PROF_I_TEXT_END};
prof_i_thread prof_i_no_thread = {.fast = &no_slot,
                                  .slot = &no_slot,
                                  .epoch = (uint32_t)NO_EPOCH,
                                  .chunk = &prof_i_no_thread.full,
                                  .tag = PROF_I_TAG_NONE};
/* The model again: gcc forgets the declaration's, and a handler's first scope would call into the
   dynamic linker. */
__thread prof_i_thread *prof_i_this_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden"))) = &prof_i_no_thread;

static struct {
  prof_i_thread *first;                     /* any thread; pushed with release */
  uint64_t serials;                         /* any thread, relaxed */
  uint64_t process;                         /* raised in each forked child */
  uint64_t unattributed[PROF_I_LOSS_WORDS]; /* any thread, relaxed */
  pthread_key_t key;
  bool has_key, may_use_key; /* see make_key() */
  uint32_t looking;          /* threads that look at the slots of others; any thread */
  /* Places of threads, and at how many to look: see threads_free_ended(). Any thread. */
  uint32_t made, look_at;
  uint32_t exited_next; /* any thread, relaxed */
} thread_registry = {.process = 1, .look_at = LOOK_AT_LEAST};
/* Serial and tid of threads whose place another has taken: what they launched may be told later.
   Any thread, relaxed. Not in `own`, which is initialised: .data is to stay small. */
static uint64_t exited_threads[EXITED_COUNT];

prof_i_thread *prof_i_thread_first(void) {
  return __atomic_load_n(&thread_registry.first, __ATOMIC_ACQUIRE);
}
uint64_t prof_i_thread_serial_of(uint64_t tid) {
  uint64_t latest = 0;
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    const uint64_t serial = __atomic_load_n(&t->serial, __ATOMIC_ACQUIRE);
    const bool is_ours = __atomic_load_n(&t->process, __ATOMIC_RELAXED) == thread_registry.process,
               is_line = prof_i_thread_kind_is_virtual(
                   __atomic_load_n(&t->thread_kind, __ATOMIC_RELAXED));
    if (is_ours && !is_line && serial > latest && __atomic_load_n(&t->tid, __ATOMIC_RELAXED) == tid)
      latest = serial;
  }
  for (uint32_t i = 0; !latest && i < EXITED_COUNT; i++) {
    const uint64_t one = __atomic_load_n(&exited_threads[i], __ATOMIC_RELAXED);
    if ((one & ((1u << TID_BITS) - 1)) == tid && one >> TID_BITS > latest) latest = one >> TID_BITS;
  }
  return latest;
}

/* Another takes its place. */
static void remember_exited(const prof_i_thread *thread) {
  const uint64_t serial = __atomic_load_n(&thread->serial, __ATOMIC_RELAXED),
                 tid = __atomic_load_n(&thread->tid, __ATOMIC_RELAXED);
  const bool is_line =
      prof_i_thread_kind_is_virtual(__atomic_load_n(&thread->thread_kind, __ATOMIC_RELAXED));
  if (!serial || is_line || tid >> TID_BITS) return;
  const uint32_t place =
      __atomic_fetch_add(&thread_registry.exited_next, 1, __ATOMIC_RELAXED) % EXITED_COUNT;
  __atomic_store_n(&exited_threads[place], serial << TID_BITS | tid, __ATOMIC_RELAXED);
}

uint64_t prof_i_thread_process(void) { return thread_registry.process; }

uint64_t prof_i_thread_seen_count(void) {
  return prof_i_the_arena.base
             ? __atomic_load_n(&prof_i_arena_header()->thread_count, __ATOMIC_RELAXED)
             : 0;
}

/* ---- how the end of a thread is seen ---- */

/* By the destructor of a pthread key, which is made when prof is loaded. Of glibc's keys the
   first 32 have their place in the thread itself, but for any other pthread_setspecific()
   allocates in each new thread. There the thread locks a robust mutex, and keeps it: when it
   ends, the kernel marks the mutex, which others see who come by. musl's keys never allocate.
   ThreadSanitizer takes a mutex that a dead thread held, or that a fork has wiped, for locked:
   under it the key serves. */
#if defined(__GLIBC__) && !defined(PROF_I_TSAN)
enum { KEYS_IN_THREAD = 32 };
static bool key_is_cheap(pthread_key_t key) { return key < KEYS_IN_THREAD; }
static bool is_owner_dead(const pthread_mutex_t *life) {
  return (uint32_t)__atomic_load_n(&life->__data.__lock, __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED;
}
#else
static bool key_is_cheap(pthread_key_t key) { return (void)key, true; }
static bool is_owner_dead(const pthread_mutex_t *life) { return (void)life, false; }
#endif

static void thread_exit_hook(void *value);

static void __attribute__((constructor)) make_key(void) {
  if (!thread_registry.has_key)
    thread_registry.has_key = pthread_key_create(&thread_registry.key, thread_exit_hook) == 0;
  thread_registry.may_use_key = thread_registry.has_key && key_is_cheap(thread_registry.key);
}

static void thread_lock_life(prof_i_thread *thread) {
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&thread->life, &robust);
  pthread_mutex_lock(&thread->life);
  __atomic_store_n(&thread->life_pid, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->life_of, thread->serial, __ATOMIC_RELEASE);
}

/* The key's destructor does not see a thread that ends by the system call, or one that comes in the
   last round of destructors. Others see that its number is gone. A process's first thread keeps its
   number until the process ends. */
static void thread_show_tid(prof_i_thread *thread, uint64_t pid) {
#if !defined(PROF_I_TSAN) /* it would not know that the thread's stores come before */
  if (__atomic_load_n(&thread->tid, __ATOMIC_RELAXED) == pid) return;
  __atomic_store_n(&thread->life_pid, pid, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->life_of, thread->serial, __ATOMIC_RELEASE);
#else
  (void)thread, (void)pid;
#endif
}

/* Not by its number, which takes a system call. */
static bool thread_has_ended(const prof_i_thread *thread) {
  return __atomic_load_n(&thread->life_of, __ATOMIC_ACQUIRE) &&
         !__atomic_load_n(&thread->life_pid, __ATOMIC_RELAXED) && is_owner_dead(&thread->life);
}

static bool thread_is_over(const prof_i_thread *thread) {
  const uint64_t pid = __atomic_load_n(&thread->life_pid, __ATOMIC_RELAXED);
  if (!pid) return is_owner_dead(&thread->life);
  return prof_i_port_has_thread_ended(pid, __atomic_load_n(&thread->tid, __ATOMIC_RELAXED));
}

/* One of those who find it so gets true, and leaves it gone or free. Not where another thread has
   the place by now. */
static bool thread_take_ended(prof_i_thread *thread) {
  uint64_t serial = __atomic_load_n(&thread->life_of, __ATOMIC_ACQUIRE);
  return serial && thread_is_over(thread) &&
         __atomic_compare_exchange_n(&thread->life_of, &serial, 0, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

uint64_t prof_i_thread_alive_count(void) {
  uint64_t count = 0;
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    count += __atomic_load_n(&t->alive, __ATOMIC_RELAXED) == PROF_I_ALIVE && !thread_has_ended(t) &&
             __atomic_load_n(&t->arena, __ATOMIC_RELAXED) == prof_i_the_arena.number;
  return count;
}

void prof_i_thread_lose(prof_i_thread *thread, int loss, uint64_t count) {
  if (prof_i_is_attached(thread) && thread->slot && thread->arena == prof_i_the_arena.number)
    __atomic_fetch_add(&thread->slot->lost[loss], count, __ATOMIC_RELAXED);
  else if (prof_i_the_arena.base)
    __atomic_fetch_add(&prof_i_arena_header()->unattributed[loss], count, __ATOMIC_RELAXED);
  else
    __atomic_fetch_add(&thread_registry.unattributed[loss], count, __ATOMIC_RELAXED);
}

/* The gate is closed. During a clear the header stands, and a kill must not take the count; at a
   start it does not. */
static void count_unattributed(int loss, uint64_t count) {
  if (prof_i_session_is_recording())
    prof_i_arena_count_loss(loss, count);
  else
    __atomic_fetch_add(&thread_registry.unattributed[loss], count, __ATOMIC_RELAXED);
}

void prof_i_thread_lose_unattributed(int loss, uint64_t count) { count_unattributed(loss, count); }

void prof_i_thread_count_stray(prof_i_thread *thread) {
  if (prof_i_is_attached(thread) && thread->slot && thread->arena == prof_i_the_arena.number)
    prof_i_claim(&thread->slot->stray_count, 1);
  else if (prof_i_the_arena.base)
    __atomic_fetch_add(&prof_i_arena_header()->stray_count, 1, __ATOMIC_RELAXED);
}

void prof_i_thread_lose_outside(prof_i_thread *thread, int loss, uint64_t count) {
  if (!prof_i_arena_guard_enter()) {
    count_unattributed(loss, count);
    return;
  }
  prof_i_thread_lose(thread, loss, count);
  prof_i_arena_guard_exit();
}

void prof_i_thread_flush_losses(void) {
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) {
    const uint64_t count =
        __atomic_exchange_n(&thread_registry.unattributed[i], 0, __ATOMIC_RELAXED);
    if (count) __atomic_fetch_add(&prof_i_arena_header()->unattributed[i], count, __ATOMIC_RELAXED);
  }
}

/* Threads that end its scopes look at it, also while the slot gets its next owner. */
static void slot_set_deep(prof_i_thread_slot *slot, uint64_t count) {
  __atomic_store_n(&slot->deep, count, __ATOMIC_RELAXED);
}

/* ---- a thread's memory ---- */

static void thread_reclaim(prof_i_thread *thread);

/* with_slot: a place that has a slot in this arena. */
static prof_i_thread *thread_find_free(bool with_slot) {
  const uint64_t arena = prof_i_the_arena.number;
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    if (with_slot && __atomic_load_n(&t->arena, __ATOMIC_RELAXED) != arena) continue;
    uint32_t was = PROF_I_FREE;
    if (__atomic_compare_exchange_n(&t->alive, &was, PROF_I_ALIVE, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return t;
    if (was == PROF_I_ALIVE && thread_has_ended(t) && thread_take_ended(t)) {
      was = PROF_I_EXITED;
      __atomic_store_n(&t->alive, was, __ATOMIC_RELEASE);
    }
    if (was != PROF_I_EXITED) continue;
    if (!__atomic_compare_exchange_n(&t->alive, &was, PROF_I_ALIVE, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    thread_reclaim(t);
    return t;
  }
  return NULL;
}

/* Of a thread that has ended, and that whoever calls has taken. Past the gate. */
static void thread_free(prof_i_thread *thread) {
  __atomic_store_n(&thread->epoch, (uint32_t)NO_EPOCH, __ATOMIC_RELAXED);
  thread->fast = &no_slot;
  thread_reclaim(thread);
  __atomic_store_n(&thread->alive, PROF_I_FREE, __ATOMIC_RELEASE);
}

/* A thread of this process has the number now, and does not show it yet: whoever shows it has
   ended. Past the gate. */
static void threads_free_with(uint64_t pid, uint64_t tid) {
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    uint64_t serial = __atomic_load_n(&t->life_of, __ATOMIC_ACQUIRE);
    if (!serial || __atomic_load_n(&t->life_pid, __ATOMIC_RELAXED) != pid ||
        __atomic_load_n(&t->tid, __ATOMIC_RELAXED) != tid)
      continue;
    if (__atomic_compare_exchange_n(&t->life_of, &serial, 0, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      thread_free(t);
  }
}

/* Of ended threads that only their numbers tell, there are at most as many as are alive, and some
   more: with each doubling of the places, all are looked at. True: some are free now. */
static bool threads_free_ended(void) {
  uint32_t at = __atomic_load_n(&thread_registry.look_at, __ATOMIC_RELAXED), alive = 0;
  if (__atomic_load_n(&thread_registry.made, __ATOMIC_RELAXED) < at ||
      !__atomic_compare_exchange_n(&thread_registry.look_at, &at, UINT32_MAX, false,
                                   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return false;
  bool has_freed = false;
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    if (__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) != PROF_I_ALIVE) continue;
    if (!thread_take_ended(t)) {
      alive++;
      continue;
    }
    thread_free(t);
    has_freed = true;
  }
  __atomic_store_n(&thread_registry.look_at, 2 * alive + LOOK_AT_LEAST, __ATOMIC_RELEASE);
  return has_freed;
}

static prof_i_thread *thread_create(void) {
  const size_t bytes = (sizeof(prof_i_thread) + 4095) & ~(size_t)4095;
  prof_i_thread *const t =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (t == MAP_FAILED) {
    prof_i_arena_note_refusal(errno);
    return NULL;
  }
  prof_i_port_wipe_on_fork(t, bytes);
  t->alive = PROF_I_ALIVE;
  t->tag = 1 + __atomic_fetch_add(&thread_registry.made, 1, __ATOMIC_RELAXED) % PROF_I_TAG_MAX;
  t->chunk = &t->full;
  t->fast = &no_slot;
  t->next = prof_i_thread_first();
  while (!__atomic_compare_exchange_n(&thread_registry.first, &t->next, t, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  return t;
}

static prof_i_thread *thread_take_free(void) {
  prof_i_thread *thread = thread_find_free(true);
  if (!thread && threads_free_ended()) thread = thread_find_free(true);
  if (!thread)
    thread = thread_find_free(false); /* it needs room for a slot, and there may be none */
  return thread ? thread : thread_create();
}

static uint64_t chunk_word(const prof_i_head *chunk) {
  return (uint64_t)(uintptr_t)chunk | (uint64_t)__builtin_ctzll(chunk->bytes);
}

void prof_i_thread_detach_chunk(prof_i_thread *thread, prof_i_head *chunk) {
  uint64_t none = 0;
  if (!__atomic_compare_exchange_n(&thread->detached_chunk, &none, chunk_word(chunk), false,
                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    prof_i_chunk_leave_partial(chunk); /* another one is there: a stop and a chunk change crossed */
}

prof_i_head *prof_i_thread_reattach_chunk(prof_i_thread *thread) {
  return prof_i_chunk_word_address(
      __atomic_exchange_n(&thread->detached_chunk, 0, __ATOMIC_ACQ_REL));
}

prof_i_head *prof_i_thread_swap_previous(prof_i_thread *thread, prof_i_head *chunk) {
  const uint64_t word = chunk ? chunk_word(chunk) : 0;
  return prof_i_chunk_word_address(
      __atomic_exchange_n(&thread->previous_chunk, word, __ATOMIC_ACQ_REL));
}

void prof_i_thread_slots_acquire(void) {
  __atomic_fetch_add(&thread_registry.looking, 1, __ATOMIC_SEQ_CST);
}
void prof_i_thread_slots_release(void) {
  __atomic_fetch_sub(&thread_registry.looking, 1, __ATOMIC_SEQ_CST);
}

/* Who looks from now on finds the thread's slot of today: what is let go was replaced captures ago.
   While somebody looks, it is not let go, and stays mapped for good: that is rare. */
static void retire_mapping(prof_i_thread *thread, void *at, uint64_t bytes) {
  prof_i_memory_range *const p =
      &thread->retired_mappings[thread->retired_next++ % PROF_I_RETIRED_COUNT];
  if (p->at && prof_i_blocks_release_extent(p->at) &&
      !__atomic_load_n(&thread_registry.looking, __ATOMIC_SEQ_CST))
    munmap(p->at, p->bytes);
  p->at = at;
  p->bytes = bytes;
}

/* The chunks that a thread still has of an arena that is gone. */
static void retire_chunks(prof_i_thread *thread) {
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
    /* or a chunk of that size: what stands there is no start, mostly */
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

/* ---- attach ---- */

/* What was lost before is not this thread's. */
static void start_counting_losses(prof_i_thread_slot *slot) {
  slot->deep_before = slot->deep_count;
  slot->cut_before = slot->cut_count;
  slot->own_ns_before = slot->own_ns;
  const uint64_t ledger = prof_i_ledger_of(slot);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++)
    slot->lost_before[i] = prof_i_slot_lost(slot, ledger, i);
}

static bool entry_is_taken(uint64_t ticks) {
  return prof_i_open_entry_is_open(ticks) && (ticks & PROF_I_OPEN_ENDED) == PROF_I_OPEN_TAKEN;
}

/* Word by word: an end on another thread may be looking for its scope. What another thread has
   taken stays until that is done with it: the next owner's entries begin above. */
static void slot_clear_open(prof_i_thread_slot *slot) {
  uint64_t top = 0;
  for (uint64_t i = PROF_I_OPEN_COUNT + 1; i-- > 0;) {
    uint64_t ticks = __atomic_load_n(&slot->open[i].ticks, __ATOMIC_RELAXED);
    while (!entry_is_taken(ticks) &&
           !__atomic_compare_exchange_n(&slot->open[i].ticks, &ticks,
                                        i && i < top ? PROF_I_OPEN_GONE : 0, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    if (entry_is_taken(ticks) && !top) top = i;
  }
  slot->depth = top;
}

/* Into a slot of another arena: scopes of this session that stand open keep their entries and
   payloads; older ones' ends will find nothing, and count late. A begin that is not done will fill
   its entry in the old slot, so an empty one is over too. */
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
  slot_set_deep(slot, deep);
  slot->deep_gone = deep_gone < deep ? deep_gone : deep;
  slot->depth = depth;
  for (uint64_t i = 1; i <= depth; i++) {
    const uint64_t ticks = __atomic_load_n(&old->open[i].ticks, __ATOMIC_RELAXED);
    slot->open[i].packed = old->open[i].packed;
    const bool stays = prof_i_open_entry_is_open(ticks) && !entry_is_taken(ticks) &&
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

/* A begin that is left out is counted without the gate, perhaps when the slot's arena has just
   gone: zeros stand there since, and what has been counted on them is nowhere else. Of the owner,
   or of one that has ended; past the gate. */
static void slot_write_left_out(prof_i_thread_slot *old) {
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) {
    const uint64_t count = __atomic_exchange_n(&old->lost[i], 0, __ATOMIC_RELAXED);
    if (count) __atomic_fetch_add(&prof_i_arena_header()->unattributed[i], count, __ATOMIC_RELAXED);
  }
}

/* A slot in the arena in force, to which scopes move that stand open and began since then; a thread
   that comes again in the same arena keeps its own, and nothing stands open in it. */
static bool slot_give(prof_i_thread *thread, uint64_t since) {
  prof_i_thread_slot *const old = thread->slot;
  const bool keeps = old && thread->arena == prof_i_the_arena.number;
  prof_i_thread_slot *const slot = keeps ? old : slot_take();
  if (!slot) return false;
  slot->deep_gone = 0;
  slot_set_deep(slot, 0);
  prof_i_ledger_open(slot, 0);
  start_counting_losses(slot);
  slot_clear_open(slot);
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
    slot_write_left_out(old);
    retire_mapping(thread, old, PROF_I_SLOT_BYTES);
    prof_i_thread_note_gap(thread);
  }
  /* from here on others look for their scopes in it */
  __atomic_store_n(&thread->slot, slot, __ATOMIC_SEQ_CST);
  /* health looks at it */
  __atomic_store_n(&thread->arena, prof_i_the_arena.number, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->serial, thread->serial, __ATOMIC_RELEASE);
  if (thread->serial != prof_i_this_flags.exited_serial)
    __atomic_fetch_add(&prof_i_arena_header()->thread_count, 1, __ATOMIC_RELAXED);
  return true;
}

/* The counter may be read inline only when it is the clock. A slow thread has the epoch, too: see
   begin_in_gap() in scope_slow.c. */
static void open_fast_path(prof_i_thread *thread) {
  const bool fast = prof_i_clock_is_counter() && !(thread->is_slow && prof_i_thread_has_ended());
  thread->timing.left = 0;
  thread->fast = fast && !thread->is_slow && thread->slot->deep == 0 ? thread->slot : &no_slot;
  PROF_I_SIGNAL_FENCE();
  uint32_t epoch;
  do { /* it may be raised, and the threads seen to, between the two */
    epoch = fast ? prof_i_session_epoch() : (uint32_t)NO_EPOCH;
    __atomic_store_n(&thread->epoch, epoch, __ATOMIC_SEQ_CST);
  } while (fast && epoch != prof_i_session_epoch());
}

/* Not where the counter is not the clock: those scopes come by the slow way as it is. A start of
   another arena may take the epoch away meanwhile. */
void prof_i_thread_set_full(prof_i_thread *thread) {
  uint32_t epoch = __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED);
  if (epoch < PROF_I_EPOCH_MUTED)
    __atomic_compare_exchange_n(&thread->epoch, &epoch, PROF_I_EPOCH_FULL, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

static void forget_newest(prof_i_thread *thread) {
  prof_i_claim(&thread->newest.begun_count, 1);
  prof_i_claim(&thread->newest_block.begun_count, 1);
  __atomic_store_n(&thread->begun.count, 0, __ATOMIC_RELAXED);
}

void prof_i_thread_set_slow(prof_i_thread *thread, bool is_slow) {
  if (is_slow && !thread->is_slow) forget_newest(thread); /* the fast path does not tell */
  thread->is_slow = is_slow;
  open_fast_path(thread);
}

void prof_i_thread_begin_deep(prof_i_thread *thread) { thread->fast = &no_slot; }

/* Not always past the gate: between any two of these a handler may move the thread to another
   arena, and open the fast path there. The old slot must not come back then. */
void prof_i_thread_end_deep(prof_i_thread *thread) {
  if (!prof_i_clock_is_counter() || thread->is_slow) return;
  prof_i_thread_slot *from = &no_slot, *slot;
  do {
    slot = __atomic_load_n(&thread->slot, __ATOMIC_RELAXED);
    prof_i_thread_slot *const to = slot->deep == 0 && !thread->timing.left ? slot : &no_slot;
    if (!__atomic_compare_exchange_n(&thread->fast, &from, to, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
      return;
    from = to;
  } while (__atomic_load_n(&thread->slot, __ATOMIC_RELAXED) != slot);
}

static bool thread_is_in_arena(const void *at) {
  const char *const base = prof_i_the_arena.base;
  return (const char *)at >= base && (const char *)at < base + prof_i_the_arena.cap_bytes;
}

/* line: NULL for a thread of the process. */
static prof_i_thread *attach_new(const prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread = thread_take_free();
  if (!thread) return NULL;
  /* In a child of vfork(), which is the thread that called it, the kernel says other numbers. */
  const uint64_t pid = (uint64_t)prof_i_process_id();
  const bool is_in_vfork = (uint64_t)getpid() != pid;
  const uint64_t own_tid = is_in_vfork ? prof_i_port_tid_of_self() : prof_i_port_tid();
  const uint64_t tid = virtual_thread ? virtual_thread->handle : own_tid;
  remember_exited(thread);
  __atomic_store_n(&thread->serial, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->tid, tid, __ATOMIC_RELAXED);
  const uint64_t role_of_thread = tid == pid ? PROF_I_KIND_OF_MAIN : PROF_I_KIND_OF_THREAD;
  __atomic_store_n(&thread->thread_kind,
                   virtual_thread ? virtual_thread->thread_kind : role_of_thread, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->process, thread_registry.process, __ATOMIC_RELAXED);
  const uint64_t again = virtual_thread ? 0 : prof_i_this_flags.exited_serial;
  __atomic_store_n(
      &thread->serial,
      again ? again : __atomic_add_fetch(&thread_registry.serials, 1, __ATOMIC_RELAXED),
      __ATOMIC_RELEASE);
  thread->next_bytes = prof_i_the_arena.chunk_bytes_min;
  thread->session = __atomic_load_n(&prof_i_arena_header()->session, __ATOMIC_ACQUIRE);
  /* the one before may have jumped out of where they were set */
  thread->is_text_busy = thread->is_held = false;
  thread->move.to = NULL;
  thread->moving_to_session = 0;
  PROF_I_ANNOUNCE(thread_attached, thread);
  thread->latest = 0;
  __atomic_store_n(&thread->chunk, &thread->full, __ATOMIC_RELAXED);
  const uint64_t detached_chunk = __atomic_load_n(&thread->detached_chunk, __ATOMIC_ACQUIRE);
  /* prof_stop() may have put it here while the thread before us was going. */
  if (detached_chunk && thread_is_in_arena(prof_i_chunk_word_address(detached_chunk)))
    prof_i_chunk_leave_partial(prof_i_thread_reattach_chunk(thread));
  retire_chunks(thread);
  if (!slot_give(thread, 0)) {
    __atomic_store_n(&thread->epoch, (uint32_t)NO_EPOCH, __ATOMIC_RELAXED);
    __atomic_store_n(&thread->alive, PROF_I_FREE, __ATOMIC_RELEASE);
    return NULL;
  }
  thread->is_slow = again != 0; /* each of its ends is looked at */
  forget_newest(thread);
  open_fast_path(thread);
  prof_i_thread *none = &prof_i_no_thread;
  if (!__atomic_compare_exchange_n(&prof_i_this_thread, &none, thread, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED)) {
    /* a handler attached while we did: its thread stands, ours goes back */
    __atomic_store_n(&thread->slot->serial, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&thread->alive, PROF_I_FREE, __ATOMIC_RELEASE);
    return prof_i_this_thread;
  }
  if (virtual_thread) return thread;
  if (thread_registry.may_use_key) {
    pthread_setspecific(thread_registry.key, thread);
    if (!is_in_vfork) threads_free_with(pid, tid);
    if (!is_in_vfork || !prof_i_port_has_thread_ended(pid, tid)) thread_show_tid(thread, pid);
  } else {
    thread_lock_life(thread);
  }
  return thread;
}

/* What began in an older session must not end as a record of this one: its entry is marked, and
   stays to be taken off by its own end. The owner marks, another thread may be taking it out. */
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

/* Slot, chunk and pins change together; a handler must not find, or change, half of it. */
static bool move_to_current_arena(prof_i_thread *thread, const prof_i_header *header) {
  if (thread->moving_to_session == __atomic_load_n(&header->session, __ATOMIC_ACQUIRE))
    return false;
  thread->moving_to_session = __atomic_load_n(&header->session, __ATOMIC_ACQUIRE);
  PROF_I_SIGNAL_FENCE();
  if (thread->arena == prof_i_the_arena.number) { /* a handler has moved it, just before that */
    thread->moving_to_session = 0;
    return true;
  }
  retire_chunks(thread);
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
    thread->latest = 0; /* the clock may be another */
  thread->session = __atomic_load_n(&header->session, __ATOMIC_ACQUIRE);
  open_fast_path(thread);
  return thread;
}

/* The thread that has this line's records, or none in this process yet. */
static prof_i_thread *virtual_thread_owner(const prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread =
      virtual_thread ? __atomic_load_n(&virtual_thread->thread, __ATOMIC_RELAXED) : NULL;
  return thread && thread->process == thread_registry.process ? thread : &prof_i_no_thread;
}

/* What records nothing yet: the thread itself, or the fiber that it is in. */
static prof_i_thread *attach_calling_thread(prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread = attach_new(virtual_thread);
  if (virtual_thread && thread) __atomic_store_n(&virtual_thread->thread, thread, __ATOMIC_RELAXED);
  return thread;
}

prof_i_thread *prof_i_thread_attach(void) {
  prof_i_thread *thread = prof_i_this_thread;
  if (!__atomic_load_n(&prof_i_the_arena.base, __ATOMIC_ACQUIRE)) return NULL;
  if (!prof_i_is_attached(thread)) {
    prof_i_virtual_thread *const virtual_thread = prof_i_this_flags.virtual_thread;
    if (virtual_thread) thread = virtual_thread_owner(virtual_thread);
    if (!prof_i_is_attached(thread)) return attach_calling_thread(virtual_thread);
    prof_i_this_thread = thread; /* a handler's scope, where the thread leaves a fiber */
  }
  const prof_i_header *const header = prof_i_arena_header();
  if (thread->arena == prof_i_the_arena.number &&
      thread->session == __atomic_load_n(&header->session, __ATOMIC_ACQUIRE))
    return thread;
  return attach_again(thread);
}

prof_i_thread *prof_i_virtual_thread_attach(prof_i_virtual_thread *virtual_thread) {
  if (!__atomic_load_n(&prof_i_the_arena.base, __ATOMIC_ACQUIRE)) return NULL;
  prof_i_thread_adopt_name(virtual_thread->name);
  prof_i_this_thread = virtual_thread->thread ? virtual_thread->thread : &prof_i_no_thread;
  prof_i_thread *const thread =
      virtual_thread->thread ? prof_i_thread_attach() : attach_new(virtual_thread);
  if (thread) virtual_thread->thread = thread;
  return thread;
}

/* A handler that comes between two of these stores records into the one or the other, and may
   attach it: what it attached is looked at again. */
static void enter_virtual_thread(prof_i_virtual_thread *virtual_thread) {
  prof_i_thread_flags *const flags = &prof_i_this_flags;
  flags->virtual_thread = virtual_thread;
  PROF_I_SIGNAL_FENCE();
  prof_i_thread *const outer = prof_i_this_thread;
  virtual_thread->outer = outer == virtual_thread_owner(virtual_thread) ? &prof_i_no_thread : outer;
  PROF_I_SIGNAL_FENCE();
  prof_i_this_thread = virtual_thread_owner(virtual_thread);
}

static void leave_virtual_thread(void) {
  prof_i_thread_flags *const flags = &prof_i_this_flags;
  prof_i_virtual_thread *const virtual_thread = flags->virtual_thread;
  prof_i_this_thread = virtual_thread->outer;
  PROF_I_SIGNAL_FENCE();
  flags->virtual_thread = NULL;
  PROF_I_SIGNAL_FENCE();
  if (prof_i_this_thread == virtual_thread_owner(virtual_thread))
    prof_i_this_thread = virtual_thread->outer;
  /* pairs with the acquire of the next to enter */
  __atomic_store_n(&virtual_thread->on, 0, __ATOMIC_RELEASE);
}

void prof_i_virtual_thread_enter(prof_i_virtual_thread *virtual_thread) {
  if (prof_i_this_flags.virtual_thread) leave_virtual_thread();
  if (virtual_thread) enter_virtual_thread(virtual_thread);
}

/* ---- going ---- */

/* Marks the shown ones as ended with their thread, but for those that another thread is ending.
   Returns how many. */
static uint64_t mark_entries_ended(prof_i_thread_slot *slot, uint64_t depth) {
  uint64_t count = 0;
  for (uint64_t i = 1; i <= depth; i++) {
    uint64_t ticks = __atomic_load_n(&slot->open[i].ticks, __ATOMIC_RELAXED);
    while (prof_i_open_entry_is_open(ticks) && !entry_is_taken(ticks))
      if (__atomic_compare_exchange_n(&slot->open[i].ticks, &ticks, ticks | PROF_I_OPEN_ENDED,
                                      false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        count++;
        break;
      }
  }
  return count;
}

/* Empties so many deep entries. Returns how many of their scopes were still open: another thread
   may end one at the same time. */
static uint64_t deep_clear(prof_i_open_entry *open, uint64_t count) {
  uint64_t standing = 0;
  for (uint64_t i = 0; i < count; i++)
    standing +=
        prof_i_open_entry_is_open(__atomic_exchange_n(&open[i].ticks, 0, __ATOMIC_ACQ_REL)) != 0;
  return standing;
}

/* Counts the scopes that the thread leaves open as lost. One store does both: they are lost, and
   not open any more. */
static void end_open_scopes(prof_i_thread *thread) {
  prof_i_thread_slot *const slot = thread->slot;
  PROF_I_ANNOUNCE(entries_needed, thread); /* the thread may have ended in a handler */
  const uint64_t depth = slot->depth <= PROF_I_OPEN_COUNT ? slot->depth : 0;
  const uint64_t deep = thread->deep && slot->deep <= PROF_I_DEEP_COUNT ? slot->deep : 0;
  const uint64_t shown_count = mark_entries_ended(slot, depth);
  const uint64_t deep_count = deep ? deep_clear(thread->deep, deep) : 0;
  if (shown_count + deep_count)
    prof_i_ledger_lose_all(slot, PROF_LOSS_THREAD_ENDED, shown_count + deep_count, deep_count);
  slot_clear_open(slot);
  prof_i_ledger_over(slot);
  slot->deep_gone = 0;
  slot_set_deep(slot, 0);
}

/* The slot waits for the next thread. What was lost stays counted where it is. */
static void slot_vacate(prof_i_thread_slot *slot) {
  __atomic_store_n(&slot->serial, 0, __ATOMIC_RELAXED);
  slot->deep_gone = 0;
  slot_set_deep(slot, 0);
  slot_clear_open(slot);
}

/* What a thread that is gone leaves behind goes to the capture. Past the gate. */
static void thread_reclaim(prof_i_thread *thread) {
  if (!prof_i_the_arena.base) return;
  if (thread->arena != prof_i_the_arena.number) {
    if (thread->slot) slot_write_left_out(thread->slot);
    return;
  }
  end_open_scopes(thread);
  prof_i_chunk_thread_exit(thread);
  slot_vacate(thread->slot);
}

/* With the gate closed the next thread that comes buries this one: a thread's end waits for
   nobody. */
static void thread_exit(prof_i_thread *thread) {
  __atomic_store_n(&thread->life_of, 0, __ATOMIC_RELAXED); /* it sees its end itself */
  __atomic_store_n(&thread->epoch, (uint32_t)NO_EPOCH, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  prof_i_this_thread = &prof_i_no_thread;
  PROF_I_SIGNAL_FENCE();
  thread->fast = &no_slot;
  uint32_t left_as = PROF_I_EXITED;
  if (prof_i_arena_guard_enter()) {
    if (prof_i_the_arena.base && thread->arena == prof_i_the_arena.number)
      prof_i_thread_refresh_name(thread);
    thread_reclaim(thread);
    left_as = PROF_I_FAULT(NEVER_FREE) ? PROF_I_ALIVE : PROF_I_FREE;
    prof_i_arena_guard_exit();
  }
  __atomic_store_n(&thread->alive, left_as, __ATOMIC_RELEASE);
}

/* set once, before threads that it is for begin anything; release; pairs with the acquire in
   thread_exit_hook() */
static void (*leave_first)(void);

void prof_i_thread_set_exit_callback(void (*leave)(void)) {
  __atomic_store_n(&leave_first, leave, __ATOMIC_RELEASE);
}

/* The key's destructor. A later destructor of this thread may record again: it attaches anew, as
   the same thread, and we may be called once more. */
static void thread_exit_hook(void *value) {
  const int saved = errno;
  prof_i_virtual_thread_enter(NULL);
  prof_i_thread *const thread = value;
  /* else it may be another thread's by now */
  if (prof_i_this_thread == thread && thread->process == thread_registry.process) {
    void (*const leave)(void) = __atomic_load_n(&leave_first, __ATOMIC_ACQUIRE);
    if (leave) leave();
    prof_i_this_flags.exited_serial = thread->serial;
    thread_exit(thread);
  }
  errno = saved;
}

void prof_i_thread_exit_again(void) {
  prof_i_thread *const thread = prof_i_this_thread;
  if (prof_i_this_flags.virtual_thread || !prof_i_is_attached(thread) || !thread->slot) return;
  if (thread->slot->depth == 0 && thread->slot->deep == 0) thread_exit(thread);
}

void prof_i_virtual_thread_end(prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread = virtual_thread->thread;
  if (!thread) return;
  virtual_thread->thread = NULL;
  prof_i_thread_adopt_name(virtual_thread->name);
  if (thread->process == thread_registry.process) thread_exit(thread);
}

void prof_i_virtual_thread_end_fiber(prof_i_virtual_thread *virtual_thread) {
  sigset_t all, was;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &was); /* a handler's record would attach it anew */
  prof_i_virtual_thread *const line_was = prof_i_this_flags.virtual_thread;
  prof_i_virtual_thread_enter(virtual_thread);
  if (prof_i_is_attached(prof_i_this_thread)) thread_exit(prof_i_this_thread);
  prof_i_virtual_thread_enter(line_was);
  pthread_sigmask(SIG_SETMASK, &was, NULL);
}

/* As thread_exit() for itself. The thread's name stays as it was last. */
void prof_i_thread_reap_exited(void) {
  if (!prof_i_process_is_own()) return;
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    if (__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) != PROF_I_ALIVE || !thread_take_ended(t))
      continue;
    uint32_t left_as = PROF_I_EXITED;
    __atomic_store_n(&t->epoch, (uint32_t)NO_EPOCH, __ATOMIC_RELAXED);
    t->fast = &no_slot;
    if (prof_i_arena_guard_enter()) {
      thread_reclaim(t);
      left_as = PROF_I_FREE;
      prof_i_arena_guard_exit();
    }
    __atomic_store_n(&t->alive, left_as, __ATOMIC_RELEASE);
  }
}

void prof_i_thread_remove_exit_hook(void) {
  if (thread_registry.has_key) pthread_key_delete(thread_registry.key);
  thread_registry.has_key = thread_registry.may_use_key = false;
}

void prof_i_thread_stop_all(void) {
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    prof_i_head *const chunk = __atomic_exchange_n(&t->chunk, &t->full, __ATOMIC_ACQ_REL);
    if (chunk != &t->full) prof_i_thread_detach_chunk(t, chunk);
  }
}

void prof_i_thread_renew_all(void) {
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    __atomic_store_n(&t->epoch, (uint32_t)NO_EPOCH, __ATOMIC_RELAXED);
}

/* Once more where it has been raised meanwhile: whoever did so may have looked at the thread
   before. */
void prof_i_thread_follow_epoch(uint32_t was) {
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    for (uint32_t from = was, to = prof_i_session_epoch();
         __atomic_compare_exchange_n(&t->epoch, &from, to, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED) &&
         to != prof_i_session_epoch();
         to = prof_i_session_epoch())
      from = to;
}

void prof_i_thread_forget_all(void) {
  thread_registry.process++;
  thread_registry.looking = 0;
  if (thread_registry.exited_next)
    memset(exited_threads, 0, sizeof exited_threads); /* the parent's */
  thread_registry.exited_next = 0;
  memset(thread_registry.unattributed, 0,
         sizeof thread_registry.unattributed); /* the parent counts them */
  thread_registry.made = 0;
  thread_registry.look_at = LOOK_AT_LEAST;
  thread_registry.first = NULL; /* the parent's; its memory stays, one page a thread */
  prof_i_this_thread = &prof_i_no_thread;
  if (prof_i_this_flags.virtual_thread) prof_i_this_flags.virtual_thread->outer = &prof_i_no_thread;
}
