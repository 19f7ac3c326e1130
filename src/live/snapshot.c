/* Copies an arena that others write to, without stopping them.

   Slots are copied first, then chunks, losses and meta extents. This order makes the copy complete.
   A scope that ends during the copy is in the copied chunks, and index.c hides the slot's entry.
   Losses before a record of the copy are counted in it. A site is registered before its records are
   written, so the copied meta extents have it.

   Words are read in rising order, the first word of each 16 bytes with acquire. That pairs with the
   release store of the recorder's commit. So a committed record's other words are complete.

   All chunks are listed before the first is copied, and the copy shows that moment. Otherwise a
   thread that takes a chunk during the copy would leave a hole: its newest records, without the
   ones before them. In a ring, there would be records on both sides of overwritten ones. A chunk
   that was taken later is left out. What is older than anything overwritten during the copy counts
   as overwritten, too.

   Listing takes time, and a thread may take two chunks during it: the first behind the list's
   position, the second ahead of it. So chunks are listed twice. A chunk whose number is above all
   of the first list is left out. A thread draws its next number when its last chunk has one. So the
   second list has every chunk that precedes a kept one.

   A ring's chunks are copied in the order in which they are overwritten. This is faster than the
   writers are, unless the processor is lost for a whole round. Then all is copied again.

   Full and finished chunks of the own arena change only by overwriting or clearing. A snapshot pin
   prevents a clear. So they are mapped a second time, which takes no memory. Those of a ring are
   copied. */
#define _GNU_SOURCE
#include "snapshot.h"

#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../base/log.h"
#include "../base/port.h"
#include "../format/parse.h"
#include "../reader/capture.h"

/* Other threads write what is copied here. Words are read whole, and uncommitted records are left
   out afterwards. TSan would report the writers' plain stores into claimed room, so these two
   functions are not instrumented. */
#define RACES_BY_DESIGN __attribute__((noinline, no_sanitize("thread")))

RACES_BY_DESIGN uint64_t prof_i_snapshot_load(const void *at) {
  return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
}

const unsigned char *prof_i_snapshot_source_at(const prof_i_snapshot *s, uint64_t offset) {
  return s->live->find_bytes ? s->live->find_bytes(s->live, offset) : s->from + offset;
}

RACES_BY_DESIGN void prof_i_snapshot_copy_words(const prof_i_snapshot *s, uint64_t offset,
                                                uint64_t bytes) {
  const uint64_t *const from = (const uint64_t *)(const void *)prof_i_snapshot_source_at(s, offset);
  uint64_t *const to = (uint64_t *)(s->to + offset);
  const uint64_t words = bytes / 8;
  for (uint64_t i = 0; i + 1 < words; i += 2) {
    to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    to[i + 1] = __atomic_load_n(&from[i + 1], __ATOMIC_RELAXED);
  }
  if (words % 2) to[words - 1] = __atomic_load_n(&from[words - 1], __ATOMIC_ACQUIRE);
}

void prof_i_snapshot_fence(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); }

uint64_t prof_i_snapshot_claimed_bytes(const prof_i_head *head) {
  const uint64_t end = head->cursor < head->bytes ? head->cursor : head->bytes;
  return end > sizeof *head ? end & ~15ull : sizeof *head;
}

/* A record may have been claimed and unmarked when its first word was copied. Then its other words
   may be half written, and could be mistaken for records. The writer stores a mark before them. If
   the first word is unchanged, they were not written either. */
static void settle_claims(const prof_i_snapshot *s, uint64_t offset, const prof_i_head *head) {
  const uint64_t end = prof_i_snapshot_claimed_bytes(head), generation = head->generation;
  prof_i_snapshot_fence();
  for (uint64_t i = sizeof *head, slots; i < end; i += slots * 16) {
    const uint64_t *const at = (const uint64_t *)(s->to + offset + i);
    const uint64_t left = (end - i) / 16;
    if (!prof_i_is_committed(at[0], generation) && !prof_i_is_marked(at[0], generation) &&
        prof_i_snapshot_load(prof_i_snapshot_source_at(s, offset + i)) != at[0]) {
      prof_i_snapshot_copy_words(s, offset + i, end - i);
      prof_i_snapshot_fence();
    }
    slots = 1;
    if (prof_i_is_plain(at, generation)) continue;
    if (prof_i_is_committed(at[0], generation))
      slots = prof_i_long_record_slots(at, left);
    else
      prof_i_parse_uncommitted(at[0], left, generation, &slots);
    if (slots == 0) slots = 1;
  }
}

void prof_i_snapshot_copy_records(const prof_i_snapshot *s, uint64_t offset,
                                  const prof_i_head *head) {
  prof_i_snapshot_copy_words(s, offset + sizeof *head,
                             prof_i_snapshot_claimed_bytes(head) - sizeof *head);
  settle_claims(s, offset, head);
}

/* `wanted`, or fewer if the file is shorter: reading behind its end is a SIGBUS. */
static uint64_t mapped_bytes(const prof_i_snapshot *s, uint64_t wanted) {
  if (wanted > s->count) wanted = s->count;
  if (wanted <= s->there || !s->live->live_bytes_now) return wanted;
  const uint64_t now = s->live->live_bytes_now(s->live) & ~(uint64_t)(PROF_I_UNIT_BYTES - 1);
  return wanted < now ? wanted : now > s->there ? now : s->there;
}

static uint64_t used_bytes_of_arena(const prof_i_snapshot *s) {
  return prof_i_snapshot_load(s->from + offsetof(prof_i_header, used_bytes));
}
static uint64_t used_bytes(const prof_i_snapshot *s) {
  return mapped_bytes(s, used_bytes_of_arena(s));
}

bool prof_i_snapshot_load_head(const prof_i_snapshot *s, uint64_t offset, prof_i_head *head_out) {
  uint64_t words[PROF_I_HEAD_BYTES / 8];
  const unsigned char *const from = prof_i_snapshot_source_at(s, offset);
  for (size_t i = 0; i < PROF_I_HEAD_BYTES / 8; i++) words[i] = prof_i_snapshot_load(from + i * 8);
  memcpy(head_out, words, sizeof *head_out);
  head_out->left_by = 0;
  const uint64_t bytes = prof_i_head_bytes(head_out, offset);
  head_out->bytes = bytes; /* the chunk may have been split since */
  return bytes && bytes <= s->count - offset && mapped_bytes(s, offset + bytes) == offset + bytes;
}

uint64_t prof_i_snapshot_next_extent(const prof_i_snapshot *s, uint64_t *offset,
                                     prof_i_head *head_out) {
  const uint64_t used = used_bytes(s);
  while (*offset < used && used - *offset >= PROF_I_UNIT_BYTES) {
    const uint64_t at = *offset;
    const bool is_head = (!s->live->may_read_unit || s->live->may_read_unit(s->live, at)) &&
                         prof_i_snapshot_load_head(s, at, head_out);
    *offset += is_head ? head_out->bytes : PROF_I_UNIT_BYTES;
    if (is_head) return at;
  }
  return 0;
}

uint64_t prof_i_snapshot_next_of_kind(const prof_i_snapshot *s, uint64_t *offset,
                                      prof_i_extent_kind kind, prof_i_head *head_out) {
  uint64_t at;
  do at = prof_i_snapshot_next_extent(s, offset, head_out);
  while (at && head_out->kind != kind);
  return at;
}

/* ---- the whole snapshot ---- */

static void copy_meta(const prof_i_snapshot *s) {
  prof_i_head head;
  uint64_t at, offset = PROF_I_FIRST_UNIT_OFFSET;
  while ((at = prof_i_snapshot_next_of_kind(s, &offset, PROF_I_EXTENT_META, &head)) != 0) {
    memcpy(s->to + at, &head, sizeof head);
    prof_i_snapshot_copy_records(s, at, &head);
  }
}

/* Without the hole, which another thread may have mapped. */
static void snapshot_unmap(const prof_i_snapshot *s) {
  const uint64_t behind = s->hole.offset + s->hole.bytes;
  if (s->hole.offset) prof_i_port_unmap(s->to, (size_t)s->hole.offset);
  prof_i_port_unmap(s->to + behind, (size_t)(s->count - behind));
}

/* Whether more than half of the listed chunks are overwritten. */
static bool is_most_overwritten(const prof_i_snapshot *s) {
  return s->seen_count && s->newest_overwritten > s->seen[s->seen_count / 2].number;
}

/* Address space only: pages take memory when they are written. */
static bool snapshot_map_room(prof_i_snapshot *s, uint64_t bytes) {
  s->count = (bytes < s->live->room ? bytes : s->live->room) & ~(uint64_t)(PROF_I_UNIT_BYTES - 1);
  void *const to = mmap(NULL, (size_t)s->count, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (to == MAP_FAILED) return false;
  s->to = to;
  return true;
}

static int snapshot_refuse_copy(uint64_t bytes) {
  const prof_i_space space = prof_i_port_space();
  if (space.limit_bytes == UINT64_MAX)
    return prof_i_fail(PROF_E_NO_MEMORY, "no room for a copy of %llu bytes",
                       (unsigned long long)bytes);
  return prof_i_fail(PROF_E_NO_MEMORY,
                     "no room for a copy of %llu bytes: %s is %llu bytes, of which %llu are free; "
                     "raise it (%s) and call again",
                     (unsigned long long)bytes, space.name, (unsigned long long)space.limit_bytes,
                     (unsigned long long)space.left_bytes, space.command);
}

/* Maps room for the used part and for growth, or if the limit forbids it, for the used part. */
static int snapshot_make_room(prof_i_snapshot *s) {
  const uint64_t used =
      used_bytes_of_arena(s) < s->live->room ? used_bytes_of_arena(s) : s->live->room;
  s->there = 0;
  s->count = s->live->room;
  const uint64_t there = mapped_bytes(s, used);
  if (there < PROF_I_FIRST_UNIT_OFFSET) {
    prof_i_fail(PROF_E_TRUNCATED, "the capture has %llu bytes; its first page alone takes %d",
                (unsigned long long)there, PROF_I_FIRST_UNIT_OFFSET);
    return PROF_E_TRUNCATED;
  }
  if (!snapshot_map_room(s, used + PROF_I_ARENA_GROWTH_BYTES) && !snapshot_map_room(s, used)) {
    return snapshot_refuse_copy(used);
  }
  s->there = there;
  s->source->bytes = s->to;
  s->source->count = s->count;
  return PROF_OK;
}

/* Whether the arena has grown beyond the room. The copy would have holes. */
static bool snapshot_is_outgrown(const prof_i_snapshot *s) {
  return (s->live->may_map_more || s->count + PROF_I_UNIT_BYTES <= s->live->room) &&
         used_bytes_of_arena(s) > s->count;
}

/* Copies all but losses and meta extents. *again_out: in, whether another try is allowed; out,
   whether one is needed: the arena has outgrown the room, which is unmapped. */
static int snapshot_fill_once(prof_i_snapshot *s, bool *again_out) {
  const bool may_repeat = *again_out;
  *again_out = false;
  const int status = snapshot_make_room(s);
  if (status) return status;
  for (int i = 0; i == 0 || (i < PROF_I_SNAPSHOT_TRIES && s->is_ring && is_most_overwritten(s));
       i++) {
    prof_i_snapshot_copy_slots(s);
    if (!prof_i_snapshot_see_chunks(s)) {
      snapshot_unmap(s);
      return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a list of %u chunks", s->seen_count);
    }
    if (may_repeat && snapshot_is_outgrown(s)) {
      snapshot_unmap(s);
      *again_out = true;
      return s->live->may_map_more ? PROF_I_SNAPSHOT_OUTGROWN : PROF_OK;
    }
    if (s->is_ring) prof_i_snapshot_keep_steady_slots(s);
    prof_i_snapshot_copy_chunks(s);
  }
  if (s->is_ring && s->newest_overwritten && !s->hole.bytes) prof_i_snapshot_keep_steady_slots(s);
  if (!s->hole.bytes) return PROF_OK;
  snapshot_unmap(s);
  return prof_i_fail(PROF_E_NO_MEMORY,
                     "the kernel has no room for another mapping of this process");
}

static int snapshot_fill(prof_i_snapshot *s) {
  bool again = true;
  for (int i = 1; again; i++) {
    again = i < PROF_I_SNAPSHOT_TRIES;
    const int status = snapshot_fill_once(s, &again);
    if (status) return status;
  }
  prof_i_snapshot_copy_losses(s);
  copy_meta(s);
  return PROF_OK;
}

int prof_i_source_snapshot(prof_i_source *source, const prof_i_live_source *live, bool may_share) {
  *source = (prof_i_source){.kind = PROF_I_SOURCE_BORROWED, .is_live = true};
  prof_i_snapshot s = {.from = live->bytes, .live = live, .source = source};
  const uint32_t *const policy =
      (const uint32_t *)(const void *)(live->bytes + offsetof(prof_i_header, policy));
  s.is_ring = *policy == PROF_POLICY_RING;
  s.may_share = may_share && !s.is_ring;
  const int status = snapshot_fill(&s);
  free(s.seen);
  if (status) {
    prof_i_source_fini(source);
    return status;
  }
  const uint64_t used =
      (used_bytes(&s) + PROF_I_UNIT_BYTES - 1) & ~(uint64_t)(PROF_I_UNIT_BYTES - 1);
  if (used < s.count) munmap(s.to + used, (size_t)(s.count - used));
  source->count = used < s.count ? used : s.count;
  source->kind = PROF_I_SOURCE_MAPPING;
  return PROF_OK;
}
