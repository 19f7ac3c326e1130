/* The bytes of a capture: what the recorder writes and every reader checks.
   docs/reference/file-format.md describes them. Little-endian, 8-byte words; nothing here is a
   pointer. Knows nothing of mapping, threads or output.

     offset 0        The header page, 4096 bytes.
     offset 16384    Units of 16 KiB up to the end. Each unit belongs to an extent:
         slot   4 units. A thread's page, its open scopes, its text area.
         chunk  1, 4, 16 or 64 units. A ring splits a chunk into quarters. Records of one thread,
                then of the next thread that takes the chunk.
         meta   1 or 4 units. Call sites, schemas, names, clock pairs. The records are like a
                chunk's. They are never reused.
   Each extent begins with the same 128-byte head. So a reader walks the file from one extent to
   the next without an index. If a unit has no head, the reader goes on with the next unit.

   A record is 16 bytes or a multiple:
       word 0  ticks << 4 | generation. Stored last: it commits the record. The generation is the
               chunk's, 1..15.
       word 1  duration << 24 | site << 4 | type

     Type 0: a plain scope, 16 bytes. Type 1: a long record. Its word 2 = slots | kind << 16 |
     flags << 24 | schema << 32, except in a record of PROF_I_KIND_TEXT. Type 2: a piece of memory,
     32 bytes. Type 3: the same with more about it, 48 bytes. See PROF_I_ALLOC_TYPE.
   A record longer than 16 bytes stores "pending" in word 0 as soon as its room is claimed: 0 in the
   low 4 bits, then the generation in 4, then the slots in 16; bit 24 set means filler: room that
   was too short and is given up, no loss. Anything else in word 0 is a slot that was never written
   or never finished: 16 bytes are stepped over. */
#ifndef PROF_FORMAT_LAYOUT_H
#define PROF_FORMAT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "header.h"
#include "state.h"

enum {
  PROF_I_UNIT_BYTES = 16384,
  PROF_I_FIRST_UNIT_OFFSET = 16384,
  PROF_I_CHUNK_BYTES_MAX = 1 << 20,
  PROF_I_SLOT_BYTES = 65536,
  PROF_I_HEAD_BYTES = 128,
  PROF_I_OPEN_COUNT = 64,
  PROF_I_OPEN_OLD = 1, /* bit 0 of an open entry's ticks */
  /* Beside a start: another thread is ending the scope, and counts it. Until that is done the
     scope is open, unless a record of any thread, or an ending, says otherwise. */
  PROF_I_OPEN_TAKEN = 2,
  /* an open entry's ticks when its scope is over, and the entry not yet taken off */
  PROF_I_OPEN_GONE = 2,
  /* The entry's scope is moving down to it (compact.h). It does not count while another entry of
     that start stands without this bit. */
  PROF_I_OPEN_COPY = 4,
  PROF_I_OPEN_OF_DEEP = 8, /* and counts in `deep` until then */
  PROF_I_OPEN_ENDED = 10,  /* beside a start: its thread ends, see PROF_I_LEDGER_OVER */
  /* an entry's ticks when its scope has another, which is marked as a copy */
  PROF_I_OPEN_MOVED = 6,
  PROF_I_OPEN_TYPE = 7, /* the bits of an open entry's type */
  PROF_I_OPEN_BY_CALL = 8,
  PROF_I_NAME_BYTES = 64,
  /* a scope's run-time name, category and arguments together */
  PROF_I_PAYLOAD_BYTES_MAX = 16384 - 64,
  PROF_I_SITE_BITS = 20,
  PROF_I_SITE_COUNT_MAX = (1 << PROF_I_SITE_BITS) - 1,
  PROF_I_DURATION_SHIFT = 24,
  PROF_I_DURATION_BITS = 40,
  PROF_I_GENERATION_MASK = 15
};

#define PROF_I_EXTENT_MAGIC 0x70726f66u /* "forp" in memory */
typedef enum prof_i_extent_kind {
  PROF_I_EXTENT_SLOT = 1,
  PROF_I_EXTENT_CHUNK = 2,
  PROF_I_EXTENT_META = 3
} prof_i_extent_kind;

/* Who may touch a chunk. Changed by compare-and-swap only. */
typedef enum prof_i_chunk_state {
  PROF_I_CHUNK_FREE = 0,  /* holds nothing; may be made anew */
  PROF_I_CHUNK_OWNED = 1, /* some thread claims from it, or is about to */
  /* nobody claims from it: may be taken over, overwritten by a ring, or cleared */
  PROF_I_CHUNK_RETIRED = 2,
  /* a ring is about to overwrite it: what it holds counts as overwritten already */
  PROF_I_CHUNK_TAKEN = 3
} prof_i_chunk_state;

/* What a chunk held before it was made anew, by how it went. */
typedef enum prof_i_evicted {
  PROF_I_EVICTED_OVERWRITTEN = 0,
  PROF_I_EVICTED_CLEARED = 1,
  PROF_I_EVICTED_WORDS = 2
} prof_i_evicted;

/* The first 128 bytes of every extent. For a chunk: cursor, limit and generation are what the hot
   path works on. */
typedef struct prof_i_head {
  /* chunk, meta: bytes claimed from the extent's start; may stand past the limit */
  uint64_t cursor;
  /* chunk, meta: claims at or past it take the slow path. The extent's bytes less 15, where they do
     not fit, or a stop before that (cost_sample.h). */
  uint64_t limit;
  uint64_t generation; /* 1..15 */
  uint32_t magic;      /* stored last when an extent is made */
  uint16_t kind;       /* prof_i_extent_kind */
  uint16_t state;      /* chunk: prof_i_chunk_state */
  uint64_t bytes;      /* of the whole extent, a multiple of the unit */
  /* number << 1 | which of evicted[] counts. The arena numbers its chunks as they are taken, so
     the numbers are in the order of time. 0: the chunk holds nothing, whatever its bytes are. */
  uint64_t sequence;
  /* serial of the thread that took it last; slot: of the thread that has it; 0: none */
  uint64_t owner;
  /* offset ^ bytes ^ kind ^ PROF_I_MAGIC: a head, not data that looks like one */
  uint64_t check;
  /* events that this room held and holds no more. The pair that counts changes with the word that
     gives them up: none is ever counted twice, or not at all */
  uint64_t evicted[2][PROF_I_EVICTED_WORDS];
  /* in memory, of a chunk of a replaced arena: see core/buffer/blocks.c. In a file 0 */
  uint64_t left_by;
  uint64_t spare[3];
} prof_i_head;

static inline uint64_t prof_i_head_check_of(uint64_t offset, uint64_t bytes, uint64_t kind) {
  return offset ^ bytes ^ kind ^ PROF_I_MAGIC;
}

/* The bytes of an extent whose head has these words. 0: it is no head. A ring that splits a chunk
   stores the check first: until the size is stored, the check says it. */
static inline uint64_t prof_i_head_bytes_of(uint64_t offset, uint64_t bytes, uint64_t kind,
                                            uint64_t check) {
  const uint64_t checked = check ^ prof_i_head_check_of(offset, 0, kind);
  if (checked == bytes) return bytes;
  const int is_split =
      kind == PROF_I_EXTENT_CHUNK && checked >= PROF_I_UNIT_BYTES && checked == bytes / 4;
  return is_split ? checked : 0;
}

static inline int prof_i_open_entry_is_open(uint64_t ticks) { return ticks >> 4 != 0; }

static inline uint64_t prof_i_sequence_number(uint64_t sequence) { return sequence >> 1; }

/* One open scope; entry 0 is never used. ticks is stored last and cleared first, so an entry with
   ticks is whole. The owner of the slot makes entries; whoever swaps the ticks to GONE, any thread,
   has ended the scope. */
typedef struct prof_i_open_entry {
  /* start << 4, or 0: a begin or an end is under way. Bit 0: it began in an older session, and its
     end will count as late */
  uint64_t ticks;
  /* site << 4 | by_call << 3 | type; type 1: payload offset in the slot << 24 and its words << 48.
     by_call: it may end before scopes that began after it; one of a block may not */
  uint64_t packed;
} prof_i_open_entry;

enum {
  /* word 0 of a claimed long record: slots << 8 | generation << 4 */
  PROF_I_PENDING_SLOTS_SHIFT = 8,
  PROF_I_FILLER_BIT = 24
};

/* An end by the slow path while its record or its loss is under way; or a record about the thread
   itself. So a reader, after a kill at any moment, counts its scope once: core/buffer/ledger.h. */
typedef struct prof_i_ending {
  uint64_t scope; /* its start << 4 | PROF_I_ENDING_...; 0: there is no scope */
  uint64_t slots; /* of 16 bytes, that its record claims */
} prof_i_ending;
enum {
  PROF_I_ENDING_DEEP = 1,      /* it has no entry in a slot */
  PROF_I_ENDING_ELSEWHERE = 2, /* it began on another thread */
  PROF_I_ENDING_MOVES = 4,     /* gets an entry, which does not count yet: core/record/compact.h */
  PROF_I_ENDING_COUNT = 8,     /* a handler's stand above those of what it interrupts */
  PROF_I_LEDGER_COUNT_MASK = 15, /* how many of slot->endings[] are under way */
  PROF_I_LEDGER_SIDE = 1 << 4,   /* which half of slot->ended_lost[] counts */
  PROF_I_LEDGER_OVER = 1 << 5,   /* entries with PROF_I_OPEN_ENDED have been counted as lost */
  PROF_I_LEDGER_KEPT = 1 << 6,   /* the slot has a ledger */
  PROF_I_LEDGER_HIDES_SHIFT = 8, /* a bit for each ending: its scope has been counted as lost */
  PROF_I_LEDGER_HIDES = 0xff << PROF_I_LEDGER_HIDES_SHIFT,
  PROF_I_LEDGER_CHANGES_SHIFT = 16, /* raised with each change of side */
  PROF_I_LEDGER_DEEP_SHIFT = 36     /* scopes without an entry in a slot that are over, see below */
};
#define PROF_I_LEDGER_CHANGES_MASK \
  ((UINT64_C(1) << PROF_I_LEDGER_DEEP_SHIFT) - (UINT64_C(1) << PROF_I_LEDGER_CHANGES_SHIFT))
#define PROF_I_LEDGER_ONE_DEEP (UINT64_C(1) << PROF_I_LEDGER_DEEP_SHIFT)

/* A thread's slot: 64 KiB, of which only the touched pages cost memory. */
/* What a thread of the capture is: in the low 8 bits. Of a stream the device's type stands in the
   next 24, its index above, and the stream's handle for the tid. CALLS is no thread: these records,
   of KIND_CALL alone, are those of the thread whose serial stands for the tid. FIBER is a track as
   a thread is; its tid is PROF_I_TID_OF_FIBERS plus its number. */
typedef enum prof_i_thread_kind {
  PROF_I_KIND_OF_THREAD = 0,
  PROF_I_KIND_OF_MAIN = 1,
  PROF_I_KIND_OF_STREAM = 2,
  PROF_I_KIND_OF_CALLS = 3,
  PROF_I_KIND_OF_FIBER = 4
} prof_i_thread_kind;
/* above every number of the kernel's: PID_MAX_LIMIT is 2^22 */
enum { PROF_I_TID_OF_FIBERS = 1 << 30 };
enum { PROF_I_THREAD_KIND_TYPE_SHIFT = 8, PROF_I_THREAD_KIND_INDEX_SHIFT = 32 };
static inline int prof_i_thread_kind_is_virtual(uint64_t thread_kind) {
  return (thread_kind & 0xff) >= PROF_I_KIND_OF_STREAM;
}

/* A serial with this bit is that of a thread that never recorded anything itself: the rest is the
   kernel's number of it. */
#define PROF_I_SERIAL_OF_KERNELS (UINT64_C(1) << 63)

typedef struct prof_i_thread_slot {
  prof_i_head head;
  uint64_t depth;       /* open scopes that have entries: 1..64 */
  uint64_t deep;        /* open scopes beyond the 64 */
  uint64_t payload_top; /* next free byte of the text area, from the slot's start */
  uint64_t serial;      /* the thread's, counted from 1 over the process's life; 0: unowned */
  uint64_t tid;         /* the kernel's */
  uint64_t
      thread_kind; /* prof_i_thread_kind: a thread, the process's first, or a device's stream */
  uint64_t chunk;  /* arena offset of the chunk it writes to, or 0 */
  uint64_t deep_count;
  uint64_t cut_count;
  /* by prof_loss, of all threads that ever had the slot; the owner writes */
  uint64_t lost[PROF_I_LOSS_WORDS];
  uint64_t deep_before, cut_before; /* how much of these counts is of threads that had it earlier */
  uint64_t lost_before[PROF_I_LOSS_WORDS];
  char name[PROF_I_NAME_BYTES];
  prof_i_open_entry open[PROF_I_OPEN_COUNT + 1];
  /* The time that slow paths, such as chunk changes, took the threads that had the slot. The owner
     writes. */
  uint64_t own_ns;
  uint64_t own_ns_before;
  /* ends that found no scope, of all threads that ever had the slot; the owner writes. No losses */
  uint64_t stray_count;
  /* Of `deep`: scopes that have ended, and whose entries the owner has not removed yet. In the file
     of use to readers of version 1 alone. Any thread, atomic. */
  uint64_t deep_gone;
  /* Version 1 alone. A thread ends with scopes open. The value that lost[PROF_LOSS_THREAD_ENDED] is
     about to get: once it has it, the entries count as lost and are not open any more, whatever
     stands in them. 0: no thread is ending here. */
  uint64_t ended_mark;
  /* What the scopes of the thread that has the slot have taken beyond scope_cost_ps, as timed in
     place (cost_sample.h), in ps. At or below 0: they took no more. The owner writes. */
  int64_t beyond_ps;
  uint64_t in_place_ns; /* the same of threads that had the slot before */
  uint64_t spread_us2;  /* of all of these: the variance of the sum, in us squared */
  /* Raised before entries move down, and again when they have. Who reads them meanwhile may find
     one twice, or not at all. The owner writes; atomic. */
  uint64_t pack_count;
  /* The owner, or the thread that reclaims the slot, writes all that follows. The bits are
     PROF_I_LEDGER_... One store of this word counts a scope as lost, and as open no more.
     Atomic. */
  uint64_t ledger;
  prof_i_ending endings[PROF_I_ENDING_COUNT];
  uint64_t ended_lost[2][PROF_I_LOSS_WORDS]; /* as lost[], which counts what never stood open */
  /* In addition to own_ns: the time that chunk changes waited without a processor, of all threads
     that ever had the slot. The owner writes. In older captures 0, or stale bytes. */
  uint64_t wait_ns;
  uint64_t window_count; /* in which scopes were timed in place, of all threads that had the slot */
} prof_i_thread_slot;
_Static_assert(sizeof(prof_i_thread_slot) <= 4096, "its texts begin behind it");

static inline uint64_t prof_i_ledger_of(const prof_i_thread_slot *slot) {
  return __atomic_load_n(&slot->ledger, __ATOMIC_ACQUIRE);
}
/* Of a slot whose ledger says this. 0: it has none. */
static inline uint64_t prof_i_slot_lost(const prof_i_thread_slot *slot, uint64_t ledger, int loss) {
  const uint64_t *const ended = slot->ended_lost[(ledger & PROF_I_LEDGER_SIDE) != 0];
  const uint64_t never = __atomic_load_n(&slot->lost[loss], __ATOMIC_RELAXED);
  if (!(ledger & PROF_I_LEDGER_KEPT)) return never;
  return never + __atomic_load_n(&ended[loss], __ATOMIC_RELAXED);
}
static inline uint64_t prof_i_ledger_endings(uint64_t ledger) {
  const uint64_t count = ledger & PROF_I_LEDGER_COUNT_MASK;
  return !(ledger & PROF_I_LEDGER_KEPT) ? 0
         : count < PROF_I_ENDING_COUNT  ? count
                                        : PROF_I_ENDING_COUNT;
}
static inline int prof_i_ledger_hides(uint64_t ledger, uint64_t place) {
  return (ledger >> (PROF_I_LEDGER_HIDES_SHIFT + place) & 1) != 0;
}
/* Has this scope of the slot's own been counted as lost, while its entry still stands? */
static inline int prof_i_slot_hides(const prof_i_thread_slot *slot, uint64_t ledger,
                                    uint64_t ticks) {
  for (uint64_t i = 0; i < prof_i_ledger_endings(ledger); i++) {
    const uint64_t scope = __atomic_load_n(&slot->endings[i].scope, __ATOMIC_RELAXED);
    if (prof_i_ledger_hides(ledger, i) && scope >> 4 == ticks >> 4 &&
        !(scope & PROF_I_ENDING_ELSEWHERE))
      return 1;
  }
  return 0;
}
/* The slot's part of the number of open scopes without an entry. The part of one slot means nothing
   alone, because other threads may end its scopes. Only the sum over all slots counts, and only the
   low bits of the sum are valid. See prof_i_deep_sum(). */
static inline uint64_t prof_i_slot_deep_part(const prof_i_thread_slot *slot, uint64_t ledger) {
  return __atomic_load_n(&slot->deep_count, __ATOMIC_RELAXED) -
         (ledger >> PROF_I_LEDGER_DEEP_SHIFT);
}
static inline uint64_t prof_i_deep_sum(uint64_t parts) {
  const int64_t sum = (int64_t)(parts << PROF_I_LEDGER_DEEP_SHIFT) >> PROF_I_LEDGER_DEEP_SHIFT;
  return sum > 0 ? (uint64_t)sum : 0;
}

/* Without the flags. */
static inline uint64_t prof_i_open_entry_start(uint64_t ticks) { return ticks & ~UINT64_C(15); }

/* Does that entry have an open scope, and does the entry count? */
static inline int prof_i_slot_entry_is_open(const prof_i_thread_slot *slot, uint64_t ledger,
                                            uint64_t i) {
  const uint64_t ticks = __atomic_load_n(&slot->open[i].ticks, __ATOMIC_RELAXED);
  if (!prof_i_open_entry_is_open(ticks) || prof_i_slot_hides(slot, ledger, ticks)) return 0;
  if (!(ticks & PROF_I_OPEN_COPY))
    return (ticks & PROF_I_OPEN_ENDED) != PROF_I_OPEN_ENDED || !(ledger & PROF_I_LEDGER_OVER);
  if (ticks & PROF_I_OPEN_OF_DEEP) return 0;
  for (uint64_t upper = i + 1; upper <= PROF_I_OPEN_COUNT; upper++) {
    const uint64_t other = __atomic_load_n(&slot->open[upper].ticks, __ATOMIC_RELAXED);
    if (other >> 4 == ticks >> 4) return 0;
  }
  return 1;
}

static inline uint64_t prof_i_slot_beyond_ns(const prof_i_thread_slot *slot) {
  const int64_t ps = __atomic_load_n(&slot->beyond_ps, __ATOMIC_RELAXED);
  return ps > 0 ? (uint64_t)ps / 1000 : 0;
}

/* What scopes took beyond scope_cost_ps, of all threads that had the slot. */
static inline uint64_t prof_i_slot_in_place_ns(const prof_i_thread_slot *slot) {
  return __atomic_load_n(&slot->in_place_ns, __ATOMIC_RELAXED) + prof_i_slot_beyond_ns(slot);
}

/* What recording took the thread that has the slot, beside its events at scope_cost_ps. */
static inline uint64_t prof_i_slot_thread_own_ns(const prof_i_thread_slot *slot) {
  return slot->own_ns - slot->own_ns_before + prof_i_slot_beyond_ns(slot);
}

/* Open scopes beyond the 64 that have entries. Of captures of version 1. */
static inline uint64_t prof_i_slot_deep_open(const prof_i_thread_slot *slot) {
  const uint64_t evicted = __atomic_load_n(&slot->deep_gone, __ATOMIC_RELAXED),
                 deep = __atomic_load_n(&slot->deep, __ATOMIC_RELAXED);
  return deep > evicted ? deep - evicted : 0;
}

/* The same: have the scopes whose entries stand in the slot been counted as lost, since their
   thread has ended? */
static inline int prof_i_slot_is_over(const prof_i_thread_slot *slot, uint64_t ended_count) {
  const uint64_t mark = __atomic_load_n(&slot->ended_mark, __ATOMIC_RELAXED);
  return mark != 0 && ended_count >= mark;
}

enum {
  /* the slot's text area: payloads of the open scopes */
  PROF_I_TEXT_OFFSET = 4096,
  /* a chunk of one unit inside the slot, for open scopes once full */
  PROF_I_RESERVE_OFFSET = PROF_I_SLOT_BYTES - PROF_I_UNIT_BYTES,
  PROF_I_TEXT_END = PROF_I_RESERVE_OFFSET
};

/* Long records: word 2 = slots (16 bits) | kind << 16 (8 bits) | flags << 24 (8 bits) | schema <<
   32. slots counts 16 bytes, words 0 and 1 included. After it, in this order, by flags:
     DEVICE    One word: device type | index << 32.
     STREAM    One word.
     LONG      One word: the signed duration in ticks. Word 1 then holds 0. The duration is negative
               if the counter went back meanwhile.
     NAME      One word: the number of bytes. Then the bytes, padded to 8.
     CATEGORY  As NAME.
     VALUES    The rest: one value after another, as the schema says. An integer, double, bool or
               pointer takes one word. A string is as NAME. A tensor is one word rank | dtype << 32,
               then rank words.
   Scopes, and the kinds that are as a scope, have these parts. The other kinds say what their words
   are. */
enum {
  PROF_I_FLAG_DEVICE = 1,
  PROF_I_FLAG_STREAM = 2,
  PROF_I_FLAG_LONG = 4,
  PROF_I_FLAG_NAME = 8,
  PROF_I_FLAG_CATEGORY = 16,
  PROF_I_FLAG_OTHER_THREAD = 32, /* ended on another thread than it began on */
  PROF_I_FLAG_CUT = 64,          /* a text was cut, or values left out */
  PROF_I_FLAG_NO_DETAILS = 128   /* the payload was gone when the scope ended */
};

/* A piece of memory, the common case of PROF_I_KIND_MEMORY.
     word 1  type | verb << 4 (0 alloc, 1 free) | waste << 5 | pool << 10 | given bytes << 20
     word 2  address
     word 3  the pool's counter after it

   The waste is the given bytes less the requested ones. If it has no room in word 1, or if the
   piece has a tag or a stream, the record has type 3 and two more words:

     word 4  tag (a site) | requested bytes << 20
     word 5  stream, or PROF_NO_STREAM */
enum {
  PROF_I_ALLOC_TYPE = 2,
  PROF_I_ALLOC_MORE_TYPE = 3,
  PROF_I_ALLOC_VERB_SHIFT = 4,
  PROF_I_ALLOC_WASTE_SHIFT = 5,
  PROF_I_ALLOC_WASTE_MAX = 31,
  PROF_I_ALLOC_POOL_SHIFT = 10,
  PROF_I_ALLOC_POOL_MAX = 1023,
  PROF_I_ALLOC_BYTES_SHIFT = 20
};

/* The call site that word 1 names, or 0. */
static inline uint32_t prof_i_record_site(uint64_t word1) {
  return (word1 & 15) > 1 ? 0 : (uint32_t)(word1 >> 4) & PROF_I_SITE_COUNT_MAX;
}
/* The same of a record whose low bits of word 1 are 0. */
static inline uint32_t prof_i_plain_site(uint64_t word1) {
  return (uint32_t)(word1 >> 4) & PROF_I_SITE_COUNT_MAX;
}
/* Slots of the record of a piece of memory. 0: it is another record. */
static inline uint64_t prof_i_alloc_slots(uint64_t word1) {
  return (word1 & 15) == PROF_I_ALLOC_TYPE ? 2 : (word1 & 15) == PROF_I_ALLOC_MORE_TYPE ? 3 : 0;
}

/* What a long record of memory says. */
typedef enum prof_i_verb {
  PROF_I_VERB_ALLOC = 0,
  PROF_I_VERB_FREE = 1,
  PROF_I_VERB_RESERVE = 2,
  PROF_I_VERB_RELEASE = 3,
  PROF_I_VERB_COLLECT = 4, /* its end */
  PROF_I_VERB_OOM = 5,
  PROF_I_VERB_SAMPLE = 6, /* a query's answer */
  PROF_I_VERB_WRONG = 7   /* a wrong call of a checked pool, which was not added up */
} prof_i_verb;

enum {
  PROF_I_POOL_NAME_WORD = 9,
  /* or behind: see below */
  PROF_I_POOL_STATE_WORD = PROF_I_POOL_NAME_WORD + 1 + PROF_I_NAME_BYTES / 8,
  PROF_I_POOL_STATE_ALIGNMENT = 64 /* a line of the cache */
};

/* PROF_I_KIND_SESSION's word 5, beside 0 to 2. */
enum { PROF_I_SESSION_FUNCTIONS_END = 3 };

typedef enum prof_i_kind {
  PROF_I_KIND_SCOPE = 1,
  PROF_I_KIND_INSTANT = 2, /* as a scope, duration 0 */
  /* word 3: the double's bits; with DEVICE word 4: device type | index << 32. Its name is the
     site's */
  PROF_I_KIND_COUNTER = 3,
  PROF_I_KIND_FLOW = 4, /* word 3: id; word 4: 0 begin, 1 end; then NAME as above */
  PROF_I_KIND_STEP = 5, /* word 3: step number; ticks: its end */
  /* Word 1's site is the tag, or 0. Words: 3 prof_i_verb | pool << 32, 4 address, 5 bytes, 6 the
     counter after it. 7: requested bytes (alloc), or what is allocated after it (reserve, release,
     collect, oom, sample). 8: duration in ticks (collect), or prof_memory_wrong (wrong). With
     STREAM one word more. SAMPLE: 5 used, 6 its number. */
  PROF_I_KIND_MEMORY = 6,
  /* as a scope: a call of a vendor's interface, as its own tracing told it, mostly by another clock
     than the thread's scopes */
  PROF_I_KIND_CALL = 7,
  /* as a scope: asynchronous work, which is no thread's own time. What runs at the same time is not
     inside it */
  PROF_I_KIND_ASYNC = 8,
  /* as a scope: a block that never ended by itself. A jump left it, and it was closed when an older
     block of its thread ended */
  PROF_I_KIND_SKIPPED = 9,
  PROF_I_KIND_TEXT = 10, /* a scope with one short text as argument, see below */
  /* in a thread's chunks, about the thread */
  /* the thread that writes what follows: word 3 serial, 4 tid, 5 prof_i_thread_kind, 6.. name (64
     bytes) */
  PROF_I_KIND_OWNER = 16,
  /* the thread is gone: word 3 serial, 4 deep, 5 cut, 6.. lost[16], then name (64 bytes), then own
     ns */
  PROF_I_KIND_EXIT = 17,
  /* in meta extents */
  /* Word 1's site is the number. Word 3: line | level << 32. Then four strings: name, category,
     file, function. The site of an argument's text then has a scope's record. Each plain scope of
     that site has the record's payload. */
  PROF_I_KIND_SITE = 32,
  /* word 3 number | args kind << 32 | count << 40; format string; then per item: type word, key
     string */
  PROF_I_KIND_SCHEMA = 33,
  PROF_I_KIND_TRACK = 34, /* word 3 device type | index << 32, 4 stream, then a string */
  /* word 3 ticks, 4 monotonic ns, 5 realtime ns, 6 width of the reading in ns, 7 segment, 8 width
     of the realtime reading: it may be missing */
  PROF_I_KIND_CLOCK = 35,
  /* word 3 session number, 4 level, 5: 1 start, 0 stop, 2 clear, 3 functions are traced no longer;
     word 0's ticks: when. Of a clear, 6: the first session of which anything stays */
  PROF_I_KIND_SESSION = 36,
  /* Words: 3 number | prof_memory_source << 32, 4 device type | index << 32, 5 the pool's serial |
     session << 32, 6 used and 7 allocated before the start. 8: prof_i_baseline | starts of memory
     until then << 32. 9: the name, a text. Then an aligned prof_i_pool_state, which goes on
     changing. */
  PROF_I_KIND_POOL = 38,
  /* of an imported trace, a thread or stream of another process than the header's: word 3 the
     thread's serial, 4 the process's number, signed, then its name: a string */
  PROF_I_KIND_PROCESS = 49,
  /* a line that whoever wrote the capture says of it: words 3 and on are a string */
  PROF_I_KIND_NOTE = 48,
  /* a device that scopes were put on: words 3 and on are a prof_i_device_state, whose counts go on
     changing */
  PROF_I_KIND_DEVICE = 39,
  /* What is recorded changes. Word 0's ticks: when. Word 1's site, or 0. Words: 3 prof_change_kind,
     4 prof_change_reason, 5 level before | after << 32, 6 serial of the thread that found it, or 0.
     Words: 7 measured, 8 allowed, in millionths of a thread's time or events a second. */
  PROF_I_KIND_CHANGE = 37
} prof_i_kind;

/* PROF_I_KIND_TEXT: a scope with one argument, a text of up to 255 bytes. Word 2 is the length
   (8 bits) | schema << 8 (8 bits) | kind << 16 | flags << 24 | the first four bytes of the text <<
   32. The other bytes follow in the next words, padded with zeros. Flags of parts are not allowed.
   So a text of 12 bytes takes a record of 32 bytes. Run-time names have long records: each may be a
   row of a table, and the bytes of the capture bound a reader's memory. */
enum {
  PROF_I_TEXT_SCHEMA_SHIFT = 8,
  PROF_I_TEXT_SCHEMA_MAX = 255, /* scopes of other schemas take a long record */
  PROF_I_TEXT_BYTES_MAX = 255
};
/* Words of its record from word 2 on. */
static inline uint64_t prof_i_text_record_words(uint64_t text_bytes) {
  return (4 + text_bytes + 7) / 8;
}
/* The slots of 16 bytes that a long record takes, by its word 2. */
static inline uint64_t prof_i_record_slots(uint64_t word2) {
  if ((word2 >> 16 & 0xff) != PROF_I_KIND_TEXT) return word2 & 0xffff;
  return (2 + prof_i_text_record_words(word2 & PROF_I_TEXT_BYTES_MAX) + 1) / 2;
}

/* ---- operators of PyTorch ---- */

/* The properties of a PyTorch operator, stored in its call site. Such a site has no file, so its
   line number is free: libprof_torch.so writes them there (inject/torch/calls.c), and readers
   of a capture decode them. Otherwise the site is like any other. */

enum {
  PROF_I_OBSERVED_MARK = 1 << 30, /* set in the line of each such site */
  PROF_I_OBSERVED_FOR_SHIFT = 8,
  PROF_I_OBSERVED_FOR_MASK = 0xff,
  PROF_I_OBSERVED_SCOPE_MASK = 0xff,
  /* The observer: an observe() of one thread has a number from 1 on, unique while it is active. */
  PROF_I_OBSERVED_NUMBERS = 16,
  PROF_I_OBSERVED_FOR_ALL = 0xff /* all threads, or a thread that got no number */
};

/* scope: at::RecordScope. */
static inline uint32_t prof_i_observed_line(uint32_t scope, uint32_t for_whom) {
  return PROF_I_OBSERVED_MARK | for_whom << PROF_I_OBSERVED_FOR_SHIFT | scope;
}

static inline bool prof_i_observed_has(uint32_t line, uint64_t file_bytes) {
  return file_bytes == 0 && (line & PROF_I_OBSERVED_MARK) != 0;
}
static inline uint32_t prof_i_observed_scope(uint32_t line) {
  return line & PROF_I_OBSERVED_SCOPE_MASK;
}
static inline uint32_t prof_i_observed_for(uint32_t line) {
  return line >> PROF_I_OBSERVED_FOR_SHIFT & PROF_I_OBSERVED_FOR_MASK;
}

/* Whether a function is a call of an nn.Module, which torch names "nn.Module: Linear_0". The only
   place in C that knows this name; in Python it is bindings/python/prof/_read_events.py. */
static inline bool prof_i_name_is_torch_module(const char *name, uint64_t bytes) {
  static const char begin[] = "nn.Module: ";
  return bytes >= sizeof begin - 1 && memcmp(name, begin, sizeof begin - 1) == 0;
}

/* ---- the note of a filtered or cut trace ---- */

/* How a file says that it is a part of a capture. A filtered or cut trace lacks scopes that were
   inside of others. Its import cannot know their time, so self times become larger than those of
   the capture. The export to Chrome JSON writes the key into its summary (chrome_meta.c). The
   import makes a note of it (tools/import). Tables print that note below their rows
   (table_footer.c), other commands print it on stderr (tools/prof/inputs.c). */

/* Scopes that a filter left out. */
#define PROF_I_KEY_FILTERED "left out by a filter"
/* Events in the file, if it has a time span of the capture. */
#define PROF_I_KEY_IN_SPAN "of these in this file"
/* The begin of the note. */
#define PROF_I_NOTE_PART "This is a part of a capture: "

/* Whether prof's import wrote the note: it is plain ASCII. Another one might move the cursor. */
static inline bool prof_i_is_part_note(const char *text) {
  bool is_plain = true;
  for (const char *at = text; *at; at++) is_plain &= *at >= ' ' && *at <= '~';
  return is_plain && strncmp(text, PROF_I_NOTE_PART, strlen(PROF_I_NOTE_PART)) == 0;
}

#endif
