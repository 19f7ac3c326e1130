/* Pools of memory: their list, and the state of each in the current arena. So peaks outlive the
   process and do not depend on records. Each session has a new state of a pool, created before the
   session's first event. The list and the states are in pool_state.c, public calls and sums in
   pool.c, events in memory_event.c. */
#ifndef PROF_MEMORY_INTERNAL_H
#define PROF_MEMORY_INTERNAL_H

#include <prof/memory.h>
#include <stdbool.h>

#include "../base/port.h"
#include "../core/buffer/observer.h"
#include "../core/buffer/session.h"
#include "../core/buffer/thread.h"
#include "../core/session/control.h"
#include "../format/layout.h"

/* Never freed: another pool takes it after its destroy. Written under the control lock, but for
   what is atomic. */
struct prof_pool {
  /* the sites' epoch for which state is that of this session; 0: no session. Atomic */
  uint64_t epoch;
  prof_i_pool_state *state;       /* NULL: none. Atomic; what it points to is never unmapped */
  struct prof_i_checked *checked; /* what checked.c keeps of a checked pool, or NULL. Atomic */
  prof_memory_source kind;
  prof_device device;
  prof_memory_query query;
  void *user;
  uint64_t serial;       /* counts pools over the process's life; 0: destroyed */
  uint64_t init_count;   /* counts its states. Atomic */
  uint64_t start;        /* of pool_registry.begun, for which it has its state */
  uint64_t since_ticks;  /* when it was given that. Atomic */
  uint64_t before_bytes; /* used before the start, as far as known. Atomic */
  bool knows_before;     /* whether that is all there was. Atomic */
  /* of `checked`: the thread that has it, or 0. Other pools' threads may try it at any time.
     Atomic; free in a forked child */
  uint64_t lock;
  /* in a forked child: of its parent, as prof_i_pool_state has them; 0: no parent */
  uint64_t inherited_used, inherited_allocated;
  /* the same as a fork is about to come: the parent goes on in the arena that both see. Atomic */
  uint64_t fork_used, fork_allocated;
  /* while memory starts: events that came, and PROF_I_POOL_IS_OPEN from that one on that counts.
     Atomic */
  uint64_t start_seq;
  uint32_t
      asking; /* calls of query under way; PROF_I_POOL_QUERY_CLOSED: no more may come. Atomic */
  char name[PROF_I_NAME_BYTES];
  prof_i_pool_state spare; /* where the arena had no room for a state: then no record names it */
  struct prof_pool *next;  /* all that ever were; only grows. Atomic */
};

prof_pool *prof_i_pool_first(void);

/* Does an event of this pool count, which comes now? The pool's query tells what existed before the
   start, and events come meanwhile. Each is either in the answer or counted, never both, never
   neither. An event between the answer and the first counted one makes the start call the query
   again. */
#define PROF_I_POOL_IS_OPEN (UINT64_C(1) << 63)
#define PROF_I_POOL_START_SHIFT 40 /* which start it is */
#define PROF_I_POOL_START_MASK (UINT64_C(0x7fffff) << PROF_I_POOL_START_SHIFT)
static inline bool prof_i_pool_is_recorded(prof_pool *pool) {
  if (PROF_I_LIKELY(__atomic_load_n(&prof_i_memory_on, __ATOMIC_ACQUIRE) != PROF_I_MEMORY_STARTS))
    return true;
  return (__atomic_fetch_add(&pool->start_seq, 1, __ATOMIC_SEQ_CST) & PROF_I_POOL_IS_OPEN) != 0;
}

/* A new one; recording, it has its state when this returns. NULL: no memory. */
prof_pool *prof_i_pool_create(const char *name, prof_device device, prof_memory_query query,
                              void *user);
/* The same without a query, for callers that the control lock's owner may wait for. False: another
   thread has the lock. NULL: no memory. */
bool prof_i_pool_try_create(const char *name, prof_device device, prof_pool **pool_out);
/* Returns when no query of it runs any more, but for one that this thread is in. No lock held. */
void prof_i_pool_destroy(prof_pool *pool);

#define PROF_I_POOL_QUERY_CLOSED (UINT32_C(1) << 31)

/* A thread is in a query, and in those around it. */
typedef struct prof_i_pool_query {
  prof_pool *pool;
  struct prof_i_pool_query *outer;
} prof_i_pool_query;
/* serial: as it was when the pool was found. False: it is not that pool any more, or this thread is
   in its query already; then there is no end. */
bool prof_i_pool_begin_query(prof_i_pool_query *asking, prof_pool *pool, uint64_t serial);
void prof_i_pool_end_query(const prof_i_pool_query *asking);
/* Sets the device's only query. NULL: it has none. PROF_E_BUSY and PROF_E_NO_MEMORY: nothing has
   changed. */
int prof_i_pool_set_query(prof_device device, prof_memory_query query, void *user);
/* The pool whose query serves the device, and its serial. NULL: none. */
prof_pool *prof_i_pool_find_query(prof_device device, uint64_t *serial_out);

/* Of several pools. */
typedef struct prof_i_pool_sum {
  uint64_t used, allocated; /* now; of a query's that is gone, as it said last */
  /* the highest sum of the peaks of pools that were there together */
  uint64_t max_used, max_allocated;
  uint64_t collections;
  uint32_t pools; /* since the start or reset, those that are gone with them */
} prof_i_pool_sum;
/* A pool with a state of this start is about to go. All these: control lock held. */
void prof_i_pool_add_to_total(const prof_pool *pool);
/* before the device's first pool; false: no memory */
bool prof_i_pool_open_total(prof_device device, prof_memory_source kind);
void prof_i_pool_clear_totals(void);
void prof_i_pool_hide_totals(bool hide); /* totals are hidden until the next start */

/* The sites' epoch was raised, not the session: the pool's follows. Any thread. */
void prof_i_pool_follow_epoch(prof_pool *pool);

/* The peak in force. */
static inline prof_i_peak *prof_i_peak_now(prof_i_peak *peaks, const prof_i_pool_state *state) {
  return &peaks[__atomic_load_n(&state->reset_count, __ATOMIC_RELAXED) % PROF_I_PEAKS];
}
/* After the value has been reached, by the counter's order: mask says which bits are compared. The
   era is looked at after the sum was made: a reset's begin is then before it, or sees it. */
static inline void prof_i_peak_raise(prof_i_peak *peak, uint64_t value, uint64_t mask,
                                     uint64_t ticks) {
  uint64_t was = __atomic_load_n(&peak->peak, __ATOMIC_RELAXED);
  while (PROF_I_UNLIKELY((value & mask) > (was & mask)))
    if (__atomic_compare_exchange_n(&peak->peak, &was, value, true, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      __atomic_store_n(&peak->peak_ticks, ticks, __ATOMIC_RELAXED);
      return;
    }
}

extern const prof_i_observer prof_i_pool_observer __attribute__((visibility("hidden")));
extern const prof_i_memory_hooks prof_i_pool_hooks __attribute__((visibility("hidden")));

/* ---- checked.c ---- */

/* Checked pools: a table of live pieces beside the pool, off the arena, so that wrong calls are
   seen at once and never added up. Not for production: a lock a pool, and a search a call. */

/* NULL: no memory. */
struct prof_i_checked *prof_i_checked_create(void);
/* Out of the pool's hands: no other pool's thread looks into it any more. NULL: it has none. */
struct prof_i_checked *prof_i_checked_acquire(prof_pool *pool);
void prof_i_checked_destroy(struct prof_i_checked *checked);

/* Judge the call, note what is wrong with it, and bring the table up to date. False: it must not be
   counted. *given_bytes: what the table says, where the caller did not know. */
bool prof_i_checked_alloc(prof_pool *pool, struct prof_i_checked *checked, uint64_t address,
                          uint64_t given_bytes);
bool prof_i_checked_free(prof_pool *pool, struct prof_i_checked *checked, uint64_t address,
                         uint64_t *given_bytes);

/* ---- memory_event.c ---- */

/* One event of a pool: the sum, its peak, the record. */

typedef struct prof_i_memory_event {
  prof_i_verb verb;
  uint32_t tag; /* a site's number, or 0 */
  uint64_t address;
  uint64_t bytes;     /* given, or of the block */
  uint64_t requested; /* asked for */
  uint64_t stream;    /* PROF_NO_STREAM: none */
  uint64_t extra;     /* COLLECT: ticks of its begin; SAMPLE: allocated; WRONG: prof_memory_wrong */
} prof_i_memory_event;

/* Whatever it takes: counts it, and writes a long record if there is room. Keeps errno. Any thread.
   Signal-safe. */
PROF_I_COLD void prof_i_memory_event_write(prof_pool *pool, const prof_i_memory_event *event);

/* Writes an event that is reported later than it happened. Also when recording has just stopped,
   while the pool's capture is in force. Returns the loss, or -1. Past the gate, attached. */
int prof_i_memory_event_write_at(prof_pool *pool, const prof_i_memory_event *event, uint64_t ticks,
                                 prof_i_thread *thread);

/* pool.c: prof_memory_max_get(), out of another call. */
int prof_i_memory_max(prof_device device, prof_memory_source source, prof_memory_max *max_out);

#define PROF_I_ALLOC_BYTES_END (UINT64_C(1) << 42) /* 4 TiB */

#endif
