/* A memfd's new pages cost 0.7 to 1.1 ms a MiB, private ones 0.5, private huge ones 0.1. So a
   capture in memory of 16 MiB and more is taken in blocks of 2 MiB. A block of large chunks is
   private anonymous memory, mapped over the memfd at its place. All else stays in the memfd: the
   header, slots, meta extents, small chunks, and the last sixteenth of the cap, which slots may
   need after a clear.

   Private memory has no second mapping, so readers look at it in place. An arena that is replaced
   meanwhile keeps these blocks mapped until the last reader is done. A fork leaves them out
   (MADV_WIPEONFORK), except chunks that a trace shows: the child inherits the trace. Without
   private memory (RLIMIT_DATA, strict overcommit) a block shows the memfd.

   What a block is stands in a byte behind the header, in the memfd: readers of a replaced arena see
   it in their mapping. A reader may meet any state, since it changes once, before the first head of
   the block can be seen. */
#define _GNU_SOURCE
#include "blocks.h"

#include <errno.h>
#include <prof/profiler.h>
#include <sys/mman.h>

#include "fault.h"
#include "port.h"
#include "thread.h"

enum {
  CAP_MIN_BYTES = 16 << 20,
  SHARED_SHARE = 16, /* that part of the cap, at its end, stays in the memfd */
  SHARED_OPEN = 4,   /* blocks that are taken from at once; what else is left of one is lost */
  PRIVATE_OPEN = 16
};

/* Of an arena that was replaced: what nobody but its readers needs. */
typedef struct left_range {
  char *at;
  uint64_t bytes;
} left_range;

typedef struct prof_i_held_blocks {
  struct prof_i_held_blocks *next;
  uint64_t arena, readers;
  uint64_t map_bytes; /* of this */
  uint64_t count, room;
  bool covers; /* nobody reads what threads keep */
  left_range ranges[];
} held_blocks;

static struct {
  /* Where the next extent of an open block begins, | 1. 0: none. Any thread. */
  uint64_t shared[SHARED_OPEN], private[PRIVATE_OPEN];
  /* Control lock. */
  uint64_t readers, pins; /* of the arena in force; pins: those that still copy */
  held_blocks *held;
} own;

bool prof_i_blocks_fit(uint64_t cap_bytes) {
  return cap_bytes >= CAP_MIN_BYTES && cap_bytes / PROF_I_BLOCK_BYTES < PROF_I_BLOCK_COUNT_MAX;
}

char *prof_i_blocks_map(int fd, uint64_t cap_bytes) {
  const uint64_t block = PROF_I_BLOCK_BYTES, bytes = cap_bytes + block;
  char *const all =
      mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return NULL;
  const uint64_t before = (block - (uintptr_t)all % block) % block, after = block - before;
  char *const base = all + before;
  const bool is_mapped =
      mmap(base, cap_bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) != MAP_FAILED;
  if (before) munmap(all, before);
  if (after) munmap(base + cap_bytes, after);
  if (is_mapped) return base;
  const int error = errno;
  munmap(base, cap_bytes);
  errno = error;
  return NULL;
}

/* ---- opening ---- */

static uint64_t block_end(uint64_t offset) {
  const uint64_t end = (offset / PROF_I_BLOCK_BYTES + 1) * PROF_I_BLOCK_BYTES;
  const uint64_t cap = prof_i_the_arena.cap_bytes;
  return end < cap ? end : cap;
}

static void set_state(char *base, uint64_t offset, prof_i_block_state state) {
  __atomic_store_n(&prof_i_block_states(base)[offset / PROF_I_BLOCK_BYTES], (uint8_t)state,
                   __ATOMIC_RELEASE);
}

int prof_i_blocks_open_first(const prof_i_arena *fresh) {
  if (mprotect(fresh->base, PROF_I_BLOCK_BYTES, PROT_READ | PROT_WRITE) != 0) return errno;
  const int error = prof_i_port_populate(fresh->base, PROF_I_FIRST_UNIT_OFFSET);
  if (!error) set_state(fresh->base, 0, PROF_I_BLOCK_SHARED);
  return error;
}

/* Made elsewhere first: a mmap() over the memfd that fails may leave a hole there. */
static bool map_private(char *at) {
  const size_t bytes = PROF_I_BLOCK_BYTES;
  void *const fresh =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) return false;
  if (mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) {
    munmap(fresh, bytes);
    return false;
  }
  prof_i_port_wipe_on_fork(at, bytes);
  prof_i_port_use_huge_pages(at, bytes);
  return true;
}

/* It is the caller's. 0 or an errno. */
static int open_block(uint64_t offset, bool wants_private) {
  char *const base = prof_i_the_arena.base;
  const uint64_t bytes = block_end(offset) - offset;
  const bool is_private = wants_private && map_private(base + offset);
  if (!is_private && mprotect(base + offset, bytes, PROT_READ | PROT_WRITE) != 0) return errno;
  set_state(base, offset, is_private ? PROF_I_BLOCK_PRIVATE : PROF_I_BLOCK_SHARED);
  return 0;
}

/* ---- taking ---- */

static uint64_t place_of(uint64_t offset) { return offset | 1; }
static uint64_t offset_of(uint64_t place) { return place & ~UINT64_C(1); }
static uint64_t room_at(uint64_t place) {
  return place ? block_end(offset_of(place)) - offset_of(place) : 0;
}

static bool claim_in(uint64_t *places, int count, uint64_t bytes, uint64_t *offset_out) {
  for (int i = 0; i < count; i++) {
    uint64_t at = __atomic_load_n(&places[i], __ATOMIC_RELAXED);
    while (room_at(at) >= bytes) {
      const uint64_t rest = room_at(at) > bytes ? at + bytes : 0;
      if (!__atomic_compare_exchange_n(&places[i], &at, rest, true, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED))
        continue;
      *offset_out = offset_of(at);
      return true;
    }
  }
  return false;
}

/* In place of what has less room. */
static void put_rest(uint64_t *places, int count, uint64_t place) {
  for (int i = 0; i < count && place; i++) {
    uint64_t at = __atomic_load_n(&places[i], __ATOMIC_RELAXED);
    while (room_at(at) < room_at(place)) {
      if (!__atomic_compare_exchange_n(&places[i], &at, place, true, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED))
        continue;
      place = at; /* another may have still less */
      break;
    }
  }
}

/* False: the cap is reached. */
static bool claim_block(uint64_t *offset_out) {
  uint64_t *const used = &prof_i_arena_header()->used_bytes;
  uint64_t before = __atomic_load_n(used, __ATOMIC_RELAXED);
  do
    if (before >= prof_i_the_arena.cap_bytes) return false;
  while (!__atomic_compare_exchange_n(used, &before, block_end(before), true, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED));
  *offset_out = before;
  return true;
}

static bool may_be_private(void) {
  const uint64_t used = __atomic_load_n(&prof_i_arena_header()->used_bytes, __ATOMIC_RELAXED);
  const uint64_t cap = prof_i_the_arena.cap_bytes;
  return used + PROF_I_BLOCK_BYTES <= cap - cap / SHARED_SHARE;
}

bool prof_i_blocks_claim(prof_i_extent_kind kind, uint64_t bytes, uint64_t *offset_out,
                         int *loss_out) {
  const bool is_chunk = kind == PROF_I_EXTENT_CHUNK;
  const bool is_large = is_chunk && bytes == prof_i_the_arena.chunk_bytes_max;
  for (;;) {
    if (is_large && claim_in(own.private, PRIVATE_OPEN, bytes, offset_out)) return true;
    const bool wants_private = is_large && may_be_private();
    if (!wants_private && claim_in(own.shared, SHARED_OPEN, bytes, offset_out)) return true;
    uint64_t block;
    if (!claim_block(&block)) break;
    const int error = open_block(block, wants_private);
    if (error) {
      *loss_out = PROF_LOSS_DISK;
      return false;
    }
    const uint64_t end = block_end(block), after = block + bytes;
    if (after > end) { /* the last one is short */
      put_rest(own.shared, SHARED_OPEN, place_of(block));
      continue;
    }
    const uint64_t rest = after < end ? place_of(after) : 0;
    if (prof_i_block_is_private(block))
      put_rest(own.private, PRIVATE_OPEN, rest);
    else
      put_rest(own.shared, SHARED_OPEN, rest);
    *offset_out = block;
    return true;
  }
  if (is_chunk && claim_in(own.private, PRIVATE_OPEN, bytes, offset_out)) return true;
  *loss_out = PROF_LOSS_FULL;
  return false;
}

uint64_t prof_i_blocks_left(void) {
  uint64_t sum = 0;
  for (int i = 0; i < SHARED_OPEN; i++)
    sum += room_at(__atomic_load_n(&own.shared[i], __ATOMIC_RELAXED));
  for (int i = 0; i < PRIVATE_OPEN; i++)
    sum += room_at(__atomic_load_n(&own.private[i], __ATOMIC_RELAXED));
  return sum;
}

void prof_i_blocks_begin(void) {
  for (int i = 0; i < SHARED_OPEN; i++) own.shared[i] = 0;
  for (int i = 0; i < PRIVATE_OPEN; i++) own.private[i] = 0;
  own.shared[0] = place_of(PROF_I_FIRST_UNIT_OFFSET);
  own.readers = own.pins = 0;
}

void prof_i_blocks_punch(void *chunk, uint64_t bytes, uint64_t kept_bytes) {
  prof_i_port_drop((char *)chunk + kept_bytes, bytes - kept_bytes);
  prof_i_port_wipe_on_fork(chunk, bytes);
}

void prof_i_blocks_keep_on_fork(const void *chunk, uint64_t bytes) {
  if (!PROF_I_FAULT(NOT_KEPT)) prof_i_port_keep_on_fork((void *)(uintptr_t)chunk, bytes);
}

/* ---- runs of blocks of one state ---- */

/* Of the bytes up to end. The last run first: the first has the states. */
typedef struct block_run {
  uint64_t offset, bytes;
  prof_i_block_state state;
} block_run;

static bool next_run_down(uint64_t *end, block_run *run_out) {
  if (*end == 0) return false;
  const char *const base = prof_i_the_arena.base;
  uint64_t offset = (*end - 1) / PROF_I_BLOCK_BYTES * PROF_I_BLOCK_BYTES;
  const prof_i_block_state state = prof_i_block_state_at(base, offset);
  while (offset && prof_i_block_state_at(base, offset - 1) == state) offset -= PROF_I_BLOCK_BYTES;
  *run_out = (block_run){offset, *end - offset, state};
  *end = offset;
  return true;
}

bool prof_i_blocks_map_again(char *to, uint64_t bytes) {
  block_run run;
  for (uint64_t end = bytes; next_run_down(&end, &run);) {
    char *const from = prof_i_the_arena.base + run.offset, *const at = to + run.offset;
    if (run.state == PROF_I_BLOCK_PRIVATE) continue;
    if (mremap(from, 0, run.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != (void *)at) return false;
  }
  return true;
}

/* ---- readers ---- */

void prof_i_blocks_pin(void) {
  own.readers++;
  own.pins++;
  prof_i_thread_look(); /* what threads keep of the arena is not unmapped */
}

static bool is_in_force(uint64_t arena) {
  return prof_i_the_arena.base && prof_i_the_arena.number == arena;
}

held_blocks *prof_i_blocks_release(uint64_t arena) {
  if (is_in_force(arena)) {
    if (prof_i_the_arena.has_blocks && own.readers) own.readers--;
    return NULL;
  }
  for (held_blocks **at = &own.held; *at; at = &(*at)->next) {
    held_blocks *const held = *at;
    if (held->arena != arena) continue;
    if (--held->readers) return NULL;
    *at = held->next;
    return held;
  }
  return NULL;
}

held_blocks *prof_i_blocks_unpin(uint64_t arena, bool keeps) {
  prof_i_thread_look_away();
  if (is_in_force(arena)) own.pins--;
  return keeps ? NULL : prof_i_blocks_release(arena);
}

void prof_i_blocks_unmap(held_blocks *held) {
  if (!held) return;
  for (uint64_t i = 0; i < held->count; i++)
    prof_i_port_unmap(held->ranges[i].at, held->ranges[i].bytes);
  munmap(held, held->map_bytes);
}

/* ---- an arena that is given up ---- */

static void hold_range(void *to, char *at, uint64_t bytes, prof_i_mapping_use use) {
  held_blocks *const held = to;
  if (use != PROF_I_MAPPING_UNUSED) {
    if (held->covers) prof_i_port_cover(at, bytes);
  } else if (held->count < held->room) { /* else it stays */
    held->ranges[held->count++] = (left_range){at, bytes};
  }
}

static held_blocks *make_held(void) {
  const uint64_t threads = prof_i_thread_mapping_pieces();
  const uint64_t room = prof_i_the_arena.cap_bytes / PROF_I_BLOCK_BYTES + threads + 1;
  const uint64_t bytes = sizeof(held_blocks) + room * sizeof(left_range);
  held_blocks *const held =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (held == MAP_FAILED) return NULL; /* the blocks stay mapped for good */
  held->arena = prof_i_the_arena.number;
  held->readers = own.readers;
  held->map_bytes = bytes;
  held->room = room;
  held->covers = own.pins == 0; /* a trace shows no chunk that a thread has */
  return held;
}

/* Down to the first block, which has the states. */
static void retire_runs(held_blocks *held) {
  block_run run;
  for (uint64_t end = prof_i_the_arena.cap_bytes; next_run_down(&end, &run);) {
    char *const at = prof_i_the_arena.base + run.offset;
    if (run.state != PROF_I_BLOCK_PRIVATE) {
      prof_i_port_cover(at, run.bytes);
      prof_i_thread_release_mapping(at, run.bytes);
    } else if (held) {
      prof_i_thread_split_mapping(at, run.bytes, hold_range, held);
    }
  }
}

void prof_i_blocks_retire(void) {
  const prof_i_arena *const arena = &prof_i_the_arena;
  if (!own.readers || PROF_I_FAULT(LET_GO)) {
    prof_i_port_cover(arena->base, arena->cap_bytes);
    prof_i_thread_release_mapping(arena->base, arena->cap_bytes);
    return;
  }
  held_blocks *const held = make_held();
  retire_runs(held);
  if (!held) return;
  held->next = own.held;
  own.held = held;
}

void prof_i_blocks_forget(void) {
  block_run run;
  for (uint64_t end = prof_i_the_arena.cap_bytes; next_run_down(&end, &run);)
    if (run.state != PROF_I_BLOCK_PRIVATE)
      prof_i_port_cover(prof_i_the_arena.base + run.offset, run.bytes);
  own.readers = own.pins = 0;
}
