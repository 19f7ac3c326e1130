/* The header page of a capture: its first 4096 bytes. Included by layout.h. */
#ifndef PROF_FORMAT_HEADER_H
#define PROF_FORMAT_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROF_I_MAGIC 0x0a1a0a0d666f7270ull /* "prof\r\n\x1a\n": a text-mode copy breaks it */
enum {
  PROF_I_FORMAT_VERSION = 2, /* 1: slots without a ledger. Else the same */
  PROF_I_PACKED_VERSION = 3, /* of a packed capture: packed.h */
  PROF_I_HEADER_BYTES = 4096,
  PROF_I_LOSS_WORDS = 16 /* room for prof_loss */
};

/* What a capture's header says of its recording. */
enum {
  PROF_I_STATE_STOPPED = 0,
  PROF_I_STATE_RECORDING = 1, /* a process that died leaves it */
  /* a copy, made while the original was being recorded: it stays as it is */
  PROF_I_STATE_COPIED = 2
};

/* Whether the process is one of several. A negative size is unknown. */
static inline bool prof_i_world_has_ranks(int32_t world_size) {
  return world_size > 1 || world_size < 0;
}

/* A level that was set from outside. Whoever sets one writes it here first. */
typedef struct prof_i_level_change {
  uint64_t number;       /* from 1, stored last: whole when it is its place's */
  uint64_t monotonic_ns; /* CLOCK_MONOTONIC */
  uint64_t levels;       /* before | after << 32; both the same: it did not come to that */
} prof_i_level_change;
enum { PROF_I_LEVEL_CHANGES = 64 };

typedef struct prof_i_header {
  uint64_t magic; /* stored last */
  uint32_t version;
  uint32_t header_bytes;
  uint32_t level;      /* in force; another process may set it */
  uint32_t state;      /* PROF_I_STATE_... */
  uint64_t cap_bytes;  /* of the arena, hard */
  uint64_t used_bytes; /* claimed from the arena, this page included; may stand past the cap */
  uint32_t unit_bytes;
  uint32_t policy; /* prof_policy */
  uint64_t ring_ns;
  uint32_t pid;
  uint32_t clock; /* prof_clock in use */
  /* /proc/self/stat's start time in clock ticks: tells a pid's second life from its first */
  uint64_t process_start;
  uint64_t session;       /* counts starts, from 1 */
  uint64_t session_ticks; /* start of the last session */
  uint64_t clear_ticks;   /* records that ended at or before it are forgotten */
  uint64_t full_ticks;    /* 0, or since when new scopes are dropped */
  uint64_t ticks_hz;      /* nominal; the clock pairs say it better */
  uint64_t start_ticks;   /* the capture's start: the same moment three times */
  uint64_t start_monotonic_ns;
  uint64_t start_realtime_ns;
  int32_t rank;
  int32_t world_size;
  uint64_t step_count;
  uint64_t thread_count;                    /* seen in this arena */
  uint64_t unattributed[PROF_I_LOSS_WORDS]; /* loss of no thread that has a slot */
  /* inode of the pid name space, to tell whether pid means anything here */
  uint64_t namespace_pid;
  char host[64];
  char process_name[64];
  char boot_id[40];
  /* what a plain scope, and the begin of one that is left out, take on this machine; 0: not
     measured */
  uint64_t scope_cost_ps;
  uint64_t left_out_cost_ps;
  uint64_t memory_limit_bytes; /* of the machine or the control group */
  /* thousandths of a processor that the control group allows; 0: all that there are */
  uint64_t cpu_limit_milli;
  uint64_t unwritten_changes; /* records of kind CHANGE for which there was no room */
  /* how far the capture certainly reaches: of what was taken, what has been made. Only grows; 0:
     not known */
  uint64_t made_bytes;
  /* ends that found no scope, of threads that have no slot. No losses */
  uint64_t stray_count;
  uint64_t level_change_count; /* ever set from outside. Any process; atomic */
  /* the last ones: that of number n at (n - 1) % PROF_I_LEVEL_CHANGES */
  prof_i_level_change level_changes[PROF_I_LEVEL_CHANGES];
  /* The number of the first that is neither a record nor counted in unwritten_changes; 0: not
     known. The process that records writes; atomic. */
  uint64_t level_change_next;
  /* Of a copy: when its original was read, by the counter and by CLOCK_MONOTONIC. It was recording
     then. copied_ticks of 0: the reader could not read the counter. copied_ns of 0: not known. */
  uint64_t copied_ticks;
  uint64_t copied_ns;
  /* By the change's place: number << 1 while it is announced and not made yet, number << 1 | 1
     once it is made. Anything else: an older prof announced it, and has made it or will. Atomic. */
  uint64_t level_change_made[PROF_I_LEVEL_CHANGES];
  uint64_t memory_reset_ticks; /* the last prof_memory_reset(); 0: there was none. Atomic */
  /* of the scopes that slots count in deep_count: see core/buffer/ledger.h. Atomic */
  uint64_t deep_over;
  /* 1: the process has replaced this capture, so no claim is finished any more. If an open scope
     has a claim that its end made, the scope has ended, and its record is lost. */
  uint64_t is_left;
  /* The process was killed, and another one saw it alive at this time of CLOCK_MONOTONIC. 0: not
     known. Written when it is over, by prof run. */
  uint64_t seen_ns;
} prof_i_header;
_Static_assert(sizeof(prof_i_header) <= PROF_I_HEADER_BYTES, "it is one page");

/* Has the level been set that change `number`, of `count`, tells of? Whoever told may have been
   killed before it set the level, or just after: then the next change, or the level, says so. */
static inline bool prof_i_level_was_set(const prof_i_header *header, uint64_t number,
                                        uint64_t count) {
  const uint64_t place = (number - 1) % PROF_I_LEVEL_CHANGES;
  const uint64_t made = __atomic_load_n(&header->level_change_made[place], __ATOMIC_ACQUIRE);
  if (made != number << 1) return true;
  const uint64_t levels = __atomic_load_n(&header->level_changes[place].levels, __ATOMIC_RELAXED);
  const prof_i_level_change *const next = &header->level_changes[number % PROF_I_LEVEL_CHANGES];
  if (number == count) /* a stop sets the level as well */
    return __atomic_load_n(&header->state, __ATOMIC_RELAXED) == PROF_I_STATE_RECORDING &&
           __atomic_load_n(&header->level, __ATOMIC_RELAXED) == (uint32_t)(levels >> 32);
  return __atomic_load_n(&next->number, __ATOMIC_ACQUIRE) == number + 1 &&
         (uint32_t)__atomic_load_n(&next->levels, __ATOMIC_RELAXED) == (uint32_t)(levels >> 32);
}

#endif
