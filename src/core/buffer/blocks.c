/* A memfd's new pages cost 0.7 to 1.1 ms a MiB, private ones 0.5, private huge ones 0.1. So a
   capture in memory of 16 MiB and more is taken in blocks of 2 MiB. A block of large chunks is
   private anonymous memory, mapped over the memfd at its place. All else stays in the memfd: the
   header, slots, meta extents, small chunks, and the last sixteenth of the cap, which slots may
   need after a clear.

   The memfd has a second mapping of its whole length, closed: the mirror. Readers map it once more.
   Private memory has no second mapping, so readers read it in place. An arena that is replaced
   meanwhile keeps these blocks mapped until the last reader is done. A fork leaves them out
   (MADV_WIPEONFORK), except chunks that a trace shows: the child inherits the trace. If private
   memory is refused, a block shows the memfd. A host with RLIMIT_AS, RLIMIT_DATA or strict
   overcommit has no blocks at all.

   What a block is stands in a byte behind the header, in the memfd: readers of a replaced arena see
   it in their mapping. A reader may meet any state. It changes before the first head of the block
   can be seen. It changes once more where a ring needs room for slots, and makes a private block
   shared that holds nothing. */
#define _GNU_SOURCE
#include "blocks.h"

#include <errno.h>
#include <prof/profiler.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "chunk.h"
#include "mapping.h"

enum {
  CAP_MIN_BYTES = 16 << 20,
  SHARED_SHARE = 16, /* that part of the cap, at its end, stays in the memfd */
  SHARED_OPEN = 4,   /* blocks that are taken from at once; see cursors_put_freed() */
  PRIVATE_OPEN = 16,
  OPENED_SHIFT = 32,
  OPENING_TRIES = 2000, /* short waits for another thread */
  OPENING_SPINS = 64    /* so many of them without giving up the processor */
};

/* A head's left_by. A chunk that a thread and readers of its arena may still touch is unmapped by
   the one that leaves it last. */
enum { LEFT_IS_SHARED = 1, LEFT_BY_THREAD = 2, LEFT_BY_READERS = 4 };

/* Of an arena that was replaced: what its readers need. */
typedef struct left_range {
  char *at;
  uint64_t bytes;
  bool is_of_thread; /* a chunk that a thread may touch, too */
} left_range;

typedef struct prof_i_retained_blocks {
  struct prof_i_retained_blocks *next;
  uint64_t arena, readers;
  uint64_t map_bytes; /* of this */
  uint64_t count, room;
  bool covers; /* no reader looks at what threads keep */
  left_range ranges[];
} retained_blocks;

static struct {
  /* Where the next extent of an open block begins, | 1. 0: none. Any thread. */
  uint64_t shared[SHARED_OPEN], private[PRIVATE_OPEN];
  /* Threads that take a block and have not given its rest yet, and above OPENED_SHIFT how many
     have. Any thread. */
  uint64_t opening;
  /* What the header says of each, for where the header may be gone. Any thread. */
  uint8_t states[PROF_I_BLOCK_COUNT_MAX];
  /* Control lock. */
  uint64_t readers, pins; /* of the arena in force; pins: those that still copy */
  retained_blocks *held;
} block_table;

bool prof_i_blocks_fit(uint64_t cap_bytes) {
  return cap_bytes >= CAP_MIN_BYTES && cap_bytes / PROF_I_BLOCK_BYTES < PROF_I_BLOCK_COUNT_MAX &&
         !prof_i_port_limits_private_memory();
}

char *prof_i_blocks_map(int fd, uint64_t cap_bytes, char **mirror_out) {
  const uint64_t block = PROF_I_BLOCK_BYTES, bytes = cap_bytes + block;
  char *const all =
      mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return NULL;
  const uint64_t before = (block - (uintptr_t)all % block) % block, after = block - before;
  char *const base = all + before;
  if (before) munmap(all, before);
  if (after) munmap(base + cap_bytes, after);
  char *const mirror = prof_i_port_map_closed(cap_bytes, fd);
  const void *at = mirror; /* MAP_FAILED: so is the next */
  if (at != MAP_FAILED) at = prof_i_port_map_twice(base, mirror, cap_bytes);
  if (at != MAP_FAILED) {
    munlock(mirror, cap_bytes); /* else mlockall() would count it a second time */
    *mirror_out = mirror;
    return base;
  }
  const int error = errno;
  if (mirror != MAP_FAILED) munmap(mirror, cap_bytes);
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

static void block_set_state(char *base, uint64_t offset, prof_i_block_state state) {
  const uint64_t i = offset / PROF_I_BLOCK_BYTES;
  __atomic_store_n(&block_table.states[i], (uint8_t)state, __ATOMIC_RELAXED);
  __atomic_store_n(&prof_i_block_states(base)[i], (uint8_t)state, __ATOMIC_RELEASE);
}

int prof_i_blocks_open_first(const prof_i_arena *fresh) {
  if (mprotect(fresh->base, PROF_I_BLOCK_BYTES, PROT_READ | PROT_WRITE) != 0) return errno;
  const int error = prof_i_port_populate(fresh->base, PROF_I_FIRST_UNIT_OFFSET);
  if (!error) prof_i_block_states(fresh->base)[0] = PROF_I_BLOCK_SHARED;
  return error;
}

/* In place: memory that is moved here does not become one mapping with its neighbours. A mmap()
   that fails may leave a hole; then the memfd is mapped there again. */
static bool map_private(uint64_t offset) {
  char *const at = prof_i_the_arena.base + offset, *const mirror = prof_i_the_arena.mirror;
  const size_t bytes = PROF_I_BLOCK_BYTES;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  const void *const mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (mapped == MAP_FAILED) {
    (void)mremap(mirror + offset, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
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
  const bool is_private = wants_private && map_private(offset);
  if (!is_private && mprotect(base + offset, bytes, PROT_READ | PROT_WRITE) != 0) return errno;
  block_set_state(base, offset, is_private ? PROF_I_BLOCK_PRIVATE : PROF_I_BLOCK_SHARED);
  return 0;
}

/* ---- from private to shared ---- */

static void block_copy_heads(char *to, uint64_t offset) {
  const char *const from = prof_i_the_arena.base + offset;
  for (uint64_t at = 0; at < PROF_I_BLOCK_BYTES;) {
    const prof_i_head *const head = (const prof_i_head *)(const void *)(from + at);
    memcpy(to + at, head, sizeof *head);
    at += head->bytes;
  }
}

/* The block of the memfd a second time, with all of its pages. NULL: the kernel has no room. */
static char *map_shared(uint64_t offset) {
  const size_t bytes = PROF_I_BLOCK_BYTES;
  char *const to = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (to == MAP_FAILED) return NULL;
  if (prof_i_port_map_twice(to, prof_i_the_arena.mirror + offset, bytes) == (void *)to &&
      mprotect(to, bytes, PROT_READ | PROT_WRITE) == 0 && prof_i_port_populate(to, bytes) == 0)
    return to;
  munmap(to, bytes);
  return NULL;
}

/* A reader may look at either memory: the heads say the same, and there is nothing else. */
bool prof_i_blocks_make_shared(uint64_t offset) {
  char *const base = prof_i_the_arena.base, *const to = map_shared(offset);
  if (!to) return false;
  block_copy_heads(to, offset);
  block_set_state(base, offset, PROF_I_BLOCK_SHARED);
  char *const at = base + offset;
  const bool is_there = prof_i_port_map_twice(at, to, PROF_I_BLOCK_BYTES) == (void *)at;
  if (!is_there) block_set_state(base, offset, PROF_I_BLOCK_PRIVATE);
  munmap(to, PROF_I_BLOCK_BYTES);
  return is_there;
}

/* ---- taking ---- */

static uint64_t cursor_at(uint64_t offset) { return offset | 1; }
static uint64_t cursor_offset(uint64_t place) { return place & ~UINT64_C(1); }
static uint64_t cursor_room(uint64_t place) {
  return place ? block_end(cursor_offset(place)) - cursor_offset(place) : 0;
}

static bool cursors_claim(uint64_t *places, int count, uint64_t bytes, uint64_t *offset_out) {
  for (int i = 0; i < count; i++) {
    uint64_t at = __atomic_load_n(&places[i], __ATOMIC_RELAXED);
    while (cursor_room(at) >= bytes) {
      const uint64_t rest = cursor_room(at) > bytes ? at + bytes : 0;
      if (!__atomic_compare_exchange_n(&places[i], &at, rest, true, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED))
        continue;
      *offset_out = cursor_offset(at);
      return true;
    }
  }
  return false;
}

/* More threads open blocks at once than there are places. */
static void cursors_put_freed(uint64_t place) {
  uint64_t offset = cursor_offset(place);
  for (uint64_t left = cursor_room(place), bytes; left >= PROF_I_UNIT_BYTES; left -= bytes) {
    bytes = PROF_I_CHUNK_BYTES_MAX;
    while (bytes > left) bytes /= 4;
    prof_i_free_list_put(offset, bytes);
    offset += bytes;
  }
}

/* In place of what has less room. */
static void cursors_put_rest(uint64_t *places, int count, uint64_t place) {
  for (int i = 0; i < count && place; i++) {
    uint64_t at = __atomic_load_n(&places[i], __ATOMIC_RELAXED);
    while (cursor_room(at) < cursor_room(place)) {
      if (!__atomic_compare_exchange_n(&places[i], &at, place, true, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED))
        continue;
      place = at; /* another may have still less */
      break;
    }
  }
  cursors_put_freed(place);
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

/* Other threads may take from the rest before the block is open: they open it themselves. */
static bool open_shared(uint64_t offset, prof_i_extent_kind kind, int *loss_out) {
  const uint64_t block = offset / PROF_I_BLOCK_BYTES * PROF_I_BLOCK_BYTES;
  const prof_i_block_state state = prof_i_block_state_at(prof_i_the_arena.base, block);
  const int error = state == PROF_I_BLOCK_CLOSED ? open_block(block, false) : 0;
  if (!error) return true;
  *loss_out = PROF_LOSS_DISK;
  if (kind != PROF_I_EXTENT_META) prof_i_arena_note_refusal(error);
  return false;
}

/* Takes a new block, and the extent at its start. Its rest is for others. False: the cap is
   reached. A rest that was too short for the extent is put back: then *offset_out is 0. */
static bool claim_new(uint64_t bytes, bool is_private, uint64_t *offset_out) {
  uint64_t block;
  if (!claim_block(&block)) return false;
  const uint64_t end = block_end(block), after = block + bytes;
  *offset_out = after > end ? 0 : block; /* the last one is short */
  const uint64_t rest = after > end ? block : after;
  if (is_private && after <= end && open_block(block, true) == 0 && prof_i_block_is_private(block))
    cursors_put_rest(block_table.private, PRIVATE_OPEN, rest < end ? cursor_at(rest) : 0);
  else
    cursors_put_rest(block_table.shared, SHARED_OPEN, rest < end ? cursor_at(rest) : 0);
  return true;
}

static uint64_t opening_load(void) {
  return __atomic_load_n(&block_table.opening, __ATOMIC_SEQ_CST);
}
static bool opening_is_any(uint64_t opening) {
  return (opening & ((UINT64_C(1) << OPENED_SHIFT) - 1)) != 0;
}

/* In a child that a handler has forked, the count was reset: see prof_i_blocks_forget(). */
static void opening_end(bool is_new) {
  if (opening_is_any(opening_load()))
    __atomic_fetch_add(&block_table.opening, ((uint64_t)is_new << OPENED_SHIFT) - 1,
                       __ATOMIC_SEQ_CST);
}

static bool claim_any(uint64_t bytes, bool is_large, uint64_t *offset_out) {
  for (;;) {
    if (is_large && cursors_claim(block_table.private, PRIVATE_OPEN, bytes, offset_out))
      return true;
    const bool wants_private = is_large && may_be_private();
    if (!wants_private && cursors_claim(block_table.shared, SHARED_OPEN, bytes, offset_out))
      return true;
    __atomic_fetch_add(&block_table.opening, 1, __ATOMIC_SEQ_CST);
    const bool is_new = claim_new(bytes, wants_private, offset_out);
    opening_end(is_new);
    if (!is_new) return false;
    if (*offset_out) return true;
  }
}

/* All blocks may be taken while others have not given their rests yet. Waits, but not for ever: the
   caller may be a handler that interrupted such a thread. -1, or why there is no room. */
static int claim_or_wait(uint64_t bytes, bool is_large, uint64_t *offset_out) {
  for (int tries = 0; tries < OPENING_TRIES; tries++) {
    const uint64_t opening = opening_load();
    if (claim_any(bytes, is_large, offset_out)) return -1;
    /* no rest has come meanwhile, and none will */
    if (!opening_is_any(opening) && opening_load() == opening) return PROF_LOSS_FULL;
    if (tries >= OPENING_SPINS) sched_yield();
  }
  return PROF_LOSS_NO_CHUNK;
}

bool prof_i_blocks_claim(prof_i_extent_kind kind, uint64_t bytes, uint64_t *offset_out,
                         int *loss_out) {
  const bool is_chunk = kind == PROF_I_EXTENT_CHUNK;
  const bool is_large = is_chunk && bytes == prof_i_the_arena.chunk_bytes_max;
  const int loss = claim_or_wait(bytes, is_large, offset_out);
  if (loss < 0 || (is_chunk && cursors_claim(block_table.private, PRIVATE_OPEN, bytes, offset_out)))
    return open_shared(*offset_out, kind, loss_out);
  *loss_out = loss;
  return false;
}

uint64_t prof_i_blocks_free_bytes(void) {
  uint64_t sum = 0;
  for (int i = 0; i < SHARED_OPEN; i++)
    sum += cursor_room(__atomic_load_n(&block_table.shared[i], __ATOMIC_ACQUIRE));
  for (int i = 0; i < PRIVATE_OPEN; i++)
    sum += cursor_room(__atomic_load_n(&block_table.private[i], __ATOMIC_ACQUIRE));
  return sum;
}

void prof_i_blocks_begin(void) {
  for (int i = 0; i < SHARED_OPEN; i++) block_table.shared[i] = 0;
  for (int i = 0; i < PRIVATE_OPEN; i++) block_table.private[i] = 0;
  block_table.shared[0] = cursor_at(PROF_I_FIRST_UNIT_OFFSET);
  memset(block_table.states, PROF_I_BLOCK_CLOSED, sizeof block_table.states);
  block_table.states[0] = PROF_I_BLOCK_SHARED;
  block_table.readers = block_table.pins = 0;
}

void prof_i_blocks_punch(void *chunk, uint64_t bytes, uint64_t kept_bytes) {
  prof_i_port_zero_pages((char *)chunk + kept_bytes, bytes - kept_bytes);
  prof_i_port_wipe_on_fork(chunk, bytes);
}

void prof_i_blocks_keep_on_fork(const void *chunks, uint64_t bytes) {
  if (!PROF_I_FAULT(NOT_KEPT)) prof_i_port_keep_on_fork((void *)(uintptr_t)chunks, bytes);
}

/* ---- runs of blocks ---- */

/* Of private blocks, or of others. */
typedef struct block_run {
  uint64_t offset, bytes;
  bool is_private;
} block_run;

static bool is_private_at(uint64_t offset) {
  const uint8_t *const state = &block_table.states[offset / PROF_I_BLOCK_BYTES];
  return __atomic_load_n(state, __ATOMIC_RELAXED) == PROF_I_BLOCK_PRIVATE;
}

/* The run at *offset, up to the cap. False: the cap is reached. */
static bool next_run(uint64_t *offset, uint64_t cap_bytes, block_run *run_out) {
  const uint64_t from = *offset;
  if (from >= cap_bytes) return false;
  const bool is_private = is_private_at(from);
  uint64_t end = from + PROF_I_BLOCK_BYTES;
  while (end < cap_bytes && is_private_at(end) == is_private) end += PROF_I_BLOCK_BYTES;
  *offset = end;
  *run_out = (block_run){from, (end < cap_bytes ? end : cap_bytes) - from, is_private};
  return true;
}

/* ---- readers ---- */

void prof_i_blocks_pin(void) {
  block_table.readers++;
  block_table.pins++;
}

static bool arena_is_current(uint64_t arena) {
  return prof_i_the_arena.base && prof_i_the_arena.number == arena;
}

retained_blocks *prof_i_blocks_release(uint64_t arena) {
  if (arena_is_current(arena)) {
    if (prof_i_the_arena.has_blocks && block_table.readers) block_table.readers--;
    return NULL;
  }
  for (retained_blocks **at = &block_table.held; *at; at = &(*at)->next) {
    retained_blocks *const held = *at;
    if (held->arena != arena) continue;
    if (--held->readers) return NULL;
    *at = held->next;
    return held;
  }
  return NULL;
}

retained_blocks *prof_i_blocks_unpin(uint64_t arena, bool keeps) {
  if (arena_is_current(arena)) block_table.pins--;
  return keeps ? NULL : prof_i_blocks_release(arena);
}

static uint64_t extent_mark_left(char *chunk, uint64_t who) {
  return __atomic_fetch_or(&((prof_i_head *)chunk)->left_by, who, __ATOMIC_ACQ_REL);
}

bool prof_i_blocks_release_extent(void *extent) {
  const prof_i_head *const head = extent; /* zeros where it was covered */
  if (!(__atomic_load_n(&head->left_by, __ATOMIC_ACQUIRE) & LEFT_IS_SHARED)) return true;
  return extent_mark_left(extent, LEFT_BY_THREAD) & LEFT_BY_READERS;
}

/* Its memory goes, but for the head's page; the mapping stays until the thread leaves it, too. */
static bool extents_release_readers(const left_range *range) {
  enum { PAGE_BYTES = 4096 };
  prof_i_port_zero_pages(range->at + PAGE_BYTES, range->bytes - PAGE_BYTES);
  return extent_mark_left(range->at, LEFT_BY_READERS) & LEFT_BY_THREAD;
}

void prof_i_blocks_unmap(retained_blocks *held) {
  if (!held) return;
  for (uint64_t i = 0; i < held->count; i++) {
    const left_range *const range = &held->ranges[i];
    if (!range->is_of_thread || extents_release_readers(range))
      prof_i_port_unmap(range->at, range->bytes);
  }
  munmap(held, held->map_bytes);
}

/* ---- an arena that is given up ---- */

static void retained_add_range(void *to, char *at, uint64_t bytes, prof_i_mapping_use use) {
  retained_blocks *const held = to;
  const bool is_of_thread = use != PROF_I_MAPPING_UNUSED;
  if (is_of_thread && held->covers)
    prof_i_port_map_zeros_over(at, bytes);
  else if (held->count < held->room) /* else it stays */
    held->ranges[held->count++] = (left_range){at, bytes, is_of_thread};
}

static void chunk_mark_shared(prof_i_head *chunk) {
  __atomic_store_n(&chunk->left_by, LEFT_IS_SHARED, __ATOMIC_RELEASE);
}

/* NULL: the blocks stay mapped for good. */
static retained_blocks *retained_create(const prof_i_arena *old) {
  const uint64_t threads = prof_i_mapping_ranges_max();
  const uint64_t room = old->cap_bytes / PROF_I_BLOCK_BYTES + threads + 1;
  const uint64_t bytes = sizeof(retained_blocks) + room * sizeof(left_range);
  retained_blocks *const held =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (held == MAP_FAILED) return NULL;
  held->arena = old->number;
  held->readers = block_table.readers;
  held->map_bytes = bytes;
  held->room = room;
  held->covers = block_table.pins == 0; /* a trace shows no chunk that a thread has */
  return held;
}

static bool arena_is_read(void) { return block_table.readers && !PROF_I_FAULT(LET_GO); }

void prof_i_blocks_cover(void) {
  const prof_i_arena *const arena = &prof_i_the_arena;
  block_run run;
  if (block_table.pins) prof_i_mapping_each_chunk(arena->base, arena->cap_bytes, chunk_mark_shared);
  if (!arena_is_read()) {
    prof_i_mapping_cover(arena->base, arena->cap_bytes);
    return;
  }
  for (uint64_t offset = 0; next_run(&offset, arena->cap_bytes, &run);)
    if (!run.is_private) prof_i_mapping_cover(arena->base + run.offset, run.bytes);
}

void prof_i_blocks_retire(const prof_i_arena *old) {
  munmap(old->mirror, old->cap_bytes);
  if (!arena_is_read()) {
    prof_i_mapping_release(old->base, old->cap_bytes);
    return;
  }
  retained_blocks *const held = retained_create(old);
  block_run run;
  for (uint64_t offset = 0; next_run(&offset, old->cap_bytes, &run);) {
    char *const at = old->base + run.offset;
    if (!run.is_private)
      prof_i_mapping_release(at, run.bytes);
    else if (held)
      (void)prof_i_mapping_split(at, run.bytes, retained_add_range, held);
  }
  if (!held) return;
  held->next = block_table.held;
  block_table.held = held;
}

void prof_i_blocks_forget(void) {
  const prof_i_arena *const arena = &prof_i_the_arena;
  block_run run;
  for (uint64_t offset = 0; next_run(&offset, arena->cap_bytes, &run);)
    if (!run.is_private) prof_i_port_map_zeros_over(arena->base + run.offset, run.bytes);
  munmap(prof_i_the_arena.mirror, prof_i_the_arena.cap_bytes);
  block_table.opening = 0; /* those threads are the parent's */
  block_table.readers = block_table.pins = 0;
}
