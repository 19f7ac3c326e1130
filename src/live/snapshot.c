/* Copies an arena that others write to, without stopping them.

   Slots are copied first, then chunks, losses and meta extents. This order makes the copy complete.
   A scope that ends during the copy is in the copied chunks, and reader/index.c hides the slot's
   entry. Losses before a record of the copy are counted in it. A site is registered before its
   records are written, so the copied meta extents have it.

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
#include "live.h"

#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../base/error.h"
#include "../base/port.h"
#include "../format/parse.h"
#include "../reader/capture.h"

/* ---- words and extents ---- */

/* Other threads write what is copied here. Words are read whole, and uncommitted records are left
   out afterwards. TSan would report the writers' plain stores into claimed room, so these two
   functions are not instrumented. */
#define RACES_BY_DESIGN __attribute__((noinline, no_sanitize("thread")))

RACES_BY_DESIGN uint64_t prof_i_snapshot_load(const void *at) {
  return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
}

static const unsigned char *snapshot_source_at(const prof_i_snapshot *s, uint64_t offset) {
  return s->live->find_bytes ? s->live->find_bytes(s->live, offset) : s->from + offset;
}

RACES_BY_DESIGN void prof_i_snapshot_copy_words(const prof_i_snapshot *s, uint64_t offset,
                                                uint64_t bytes) {
  const uint64_t *const from = (const uint64_t *)(const void *)snapshot_source_at(s, offset);
  uint64_t *const to = (uint64_t *)(s->to + offset);
  const uint64_t words = bytes / 8;
  for (uint64_t i = 0; i + 1 < words; i += 2) {
    to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    to[i + 1] = __atomic_load_n(&from[i + 1], __ATOMIC_RELAXED);
  }
  if (words % 2) to[words - 1] = __atomic_load_n(&from[words - 1], __ATOMIC_ACQUIRE);
}

void prof_i_snapshot_fence(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); }

/* Bytes that are claimed, with the head. */
static uint64_t snapshot_claimed_bytes(const prof_i_head *head) {
  const uint64_t end = head->cursor < head->bytes ? head->cursor : head->bytes;
  return end > sizeof *head ? end & ~15ull : sizeof *head;
}

/* A record may have been claimed and unmarked when its first word was copied. Then its other words
   may be half written, and could be mistaken for records. The writer stores a mark before them. If
   the first word is unchanged, they were not written either. */
static void settle_claims(const prof_i_snapshot *s, uint64_t offset, const prof_i_head *head) {
  const uint64_t end = snapshot_claimed_bytes(head), generation = head->generation;
  prof_i_snapshot_fence();
  for (uint64_t i = sizeof *head, slots; i < end; i += slots * 16) {
    const uint64_t *const at = (const uint64_t *)(s->to + offset + i);
    const uint64_t left = (end - i) / 16;
    if (!prof_i_is_committed(at[0], generation) && !prof_i_is_marked(at[0], generation) &&
        prof_i_snapshot_load(snapshot_source_at(s, offset + i)) != at[0]) {
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

/* Copies the claimed part of an extent, behind its head. */
static void snapshot_copy_records(const prof_i_snapshot *s, uint64_t offset,
                                  const prof_i_head *head) {
  prof_i_snapshot_copy_words(s, offset + sizeof *head, snapshot_claimed_bytes(head) - sizeof *head);
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

/* False: it is not a head. */
static bool snapshot_load_head(const prof_i_snapshot *s, uint64_t offset, prof_i_head *head_out) {
  uint64_t words[PROF_I_HEAD_BYTES / 8];
  const unsigned char *const from = snapshot_source_at(s, offset);
  for (size_t i = 0; i < PROF_I_HEAD_BYTES / 8; i++) words[i] = prof_i_snapshot_load(from + i * 8);
  memcpy(head_out, words, sizeof *head_out);
  head_out->left_by = 0;
  const uint64_t bytes = prof_i_head_bytes(head_out, offset);
  head_out->bytes = bytes; /* the chunk may have been split since */
  return bytes && bytes <= s->count - offset && mapped_bytes(s, offset + bytes) == offset + bytes;
}

static uint64_t snapshot_next_extent(const prof_i_snapshot *s, uint64_t *offset,
                                     prof_i_head *head_out) {
  const uint64_t used = used_bytes(s);
  while (*offset < used && used - *offset >= PROF_I_UNIT_BYTES) {
    const uint64_t at = *offset;
    const bool is_head = (!s->live->may_read_unit || s->live->may_read_unit(s->live, at)) &&
                         snapshot_load_head(s, at, head_out);
    *offset += is_head ? head_out->bytes : PROF_I_UNIT_BYTES;
    if (is_head) return at;
  }
  return 0;
}

uint64_t prof_i_snapshot_next_of_kind(const prof_i_snapshot *s, uint64_t *offset,
                                      prof_i_extent_kind kind, prof_i_head *head_out) {
  uint64_t at;
  do at = snapshot_next_extent(s, offset, head_out);
  while (at && head_out->kind != kind);
  return at;
}

/* ---- chunks ---- */

/* A chunk that is finished is mapped a second time, or read in place. Others are copied. */

/* The head at one moment. False: it is no longer a head. */
static bool load_steady_head(const prof_i_snapshot *s, uint64_t offset, prof_i_head *head_out) {
  do {
    if (!snapshot_load_head(s, offset, head_out)) return false;
    prof_i_snapshot_fence();
  } while (prof_i_snapshot_load(snapshot_source_at(s, offset) + offsetof(prof_i_head, sequence)) !=
           head_out->sequence);
  return true;
}

/* ---- finished chunks ---- */

static bool chunk_is_finished(const unsigned char *chunk, const prof_i_head *head) {
  const uint64_t *at = (const uint64_t *)(const void *)(chunk + sizeof *head);
  prof_i_long_record record;
  for (uint64_t left = (snapshot_claimed_bytes(head) - sizeof *head) / 16, slots; left > 0;
       at += slots * 2, left -= slots) {
    const prof_i_parse_result parsed =
        prof_i_parse_record(at, left, head->generation, &slots, &record);
    if (parsed == PROF_I_PARSED_UNFINISHED || parsed == PROF_I_PARSED_BAD) return false;
  }
  return true;
}

/* An earlier trace may have found it finished. */
static bool chunk_is_known_finished(const prof_i_snapshot *s, uint64_t offset,
                                    const unsigned char *chunk, const prof_i_head *head) {
  const uint64_t ticks = prof_i_snapshot_load(s->from + offsetof(prof_i_header, start_ticks));
  const uint64_t ns = prof_i_snapshot_load(s->from + offsetof(prof_i_header, start_monotonic_ns));
  const prof_i_scan_key key = prof_i_scan_key_of(ticks, ns, offset, head);
  return prof_i_scan_cache_has(&key) || chunk_is_finished(chunk, head);
}

/* The chunk stays mapped. Its head is cached, because a clear changes it. Neighbouring chunks are
   one mapping of the kernel. */
static bool note_mapped_run(prof_i_source *source, uint64_t offset, const prof_i_head *head) {
  const unsigned char *const at = source->bytes + offset;
  prof_i_mapped_run *const last = source->run_count ? &source->runs[source->run_count - 1] : NULL;
  const bool goes_on = last && last->offset + last->bytes == offset;
  if (!prof_i_make_room((void **)&source->heads, &source->head_room, source->head_count,
                        sizeof *source->heads))
    return false;
  if (!goes_on && !prof_i_make_room((void **)&source->runs, &source->run_room, source->run_count,
                                    sizeof *source->runs))
    return false;
  if (!goes_on && !prof_i_source_add_mapping()) return false;
  source->heads[source->head_count++] = (prof_i_cached_head){offset, at, *head};
  if (goes_on)
    last->bytes += head->bytes;
  else
    source->runs[source->run_count++] = (prof_i_mapped_run){offset, head->bytes};
  return true;
}

/* The head of the chunk that was copied last. */
static prof_i_head *copied_head(const prof_i_snapshot *s, uint64_t offset) {
  prof_i_source *const source = s->source;
  prof_i_cached_head *const last =
      source->head_count ? &source->heads[source->head_count - 1] : NULL;
  return last && last->offset == offset ? &last->head : (prof_i_head *)(s->to + offset);
}

static void mark_shown_in_place(prof_i_snapshot *s) {
  if (s->shown_bytes) s->live->mark_shown_in_place(s->shown, s->shown_bytes);
  s->shown_bytes = 0;
}

/* The same of a chunk that stays where it is, in private memory. A thread retired it with release,
   after its last record. */
static bool show_in_place(prof_i_snapshot *s, uint64_t offset, const unsigned char *chunk,
                          const prof_i_head *head) {
  prof_i_source *const source = s->source;
  const prof_i_head *const now = (const prof_i_head *)(const void *)chunk;
  if (__atomic_load_n(&now->state, __ATOMIC_ACQUIRE) != PROF_I_CHUNK_RETIRED ||
      !chunk_is_known_finished(s, offset, chunk, head))
    return false;
  if (!prof_i_make_room((void **)&source->heads, &source->head_room, source->head_count,
                        sizeof *source->heads))
    return false;
  if (s->shown + s->shown_bytes != chunk) mark_shown_in_place(s);
  if (!s->shown_bytes) s->shown = chunk;
  s->shown_bytes += head->bytes;
  source->heads[source->head_count++] = (prof_i_cached_head){offset, chunk, *head};
  source->in_place = s->live->in_place;
  source->in_place_bytes = s->count;
  return true;
}

/* False: it must be copied. An old size of 0 makes mremap() map the same pages once more. */
static bool share_chunk(prof_i_snapshot *s, uint64_t offset, const prof_i_head *head) {
  if (!s->may_share || head->state != PROF_I_CHUNK_RETIRED || head->cursor + 15 < head->bytes)
    return false;
  unsigned char *const to = s->to + offset;
  const size_t bytes = (size_t)head->bytes;
  const unsigned char *const at = snapshot_source_at(s, offset);
  if (at != s->from + offset) return show_in_place(s, offset, at, head);
  void *const from = (void *)(uintptr_t)at;
  if (mremap(from, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == (void *)to) {
    mprotect(to, bytes, PROT_READ);
    if (chunk_is_known_finished(s, offset, to, head) && note_mapped_run(s->source, offset, head)) {
      prof_i_source_release_pages(s->source, to, bytes);
      return true;
    }
  }
  /* Room for a copy, in place of the failed mapping. */
  if (mmap(to, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    s->hole = (prof_i_mapped_run){offset, bytes};
  return false;
}

/* Copies head and claimed part. If the chunk is reused during the copy, it is copied again. After
   some tries it is left out: what it held is overwritten, and counted in the head. */
static void copy_chunk(prof_i_snapshot *s, uint64_t offset) {
  prof_i_head *const to = (prof_i_head *)(s->to + offset);
  prof_i_head head, after;
  for (int i = 0; i < PROF_I_SNAPSHOT_TRIES; i++) {
    if (!load_steady_head(s, offset, &head)) return;
    if (i == 0 && prof_i_sequence_number(head.sequence) && share_chunk(s, offset, &head)) return;
    if (s->hole.bytes) return;
    *to = head;
    if (!prof_i_sequence_number(head.sequence)) return;
    snapshot_copy_records(s, offset, &head);
    prof_i_snapshot_fence();
    if (!snapshot_load_head(s, offset, &after)) return;
    if (after.generation == head.generation && after.sequence == head.sequence) return;
  }
  if (load_steady_head(s, offset, &head)) *to = head;
  to->sequence &= 1;
}

static uint64_t chunk_overwritten_count(const prof_i_head *head) {
  return head->evicted[head->sequence & 1][PROF_I_EVICTED_OVERWRITTEN];
}

/* The chunk in the first list, searched by rising offsets from *place on. NULL: it is not in it. */
static prof_i_seen_chunk *seen_before(const prof_i_snapshot *s, uint64_t offset, uint32_t count,
                                      uint32_t *place) {
  while (*place < count && s->seen[*place].offset < offset) ++*place;
  return *place < count && s->seen[*place].offset == offset ? &s->seen[*place] : NULL;
}

/* newest: the largest number of the first list; UINT64_MAX: this is the first list. A chunk with a
   later number keeps what the first list says. */
static bool see_chunk(prof_i_snapshot *s, uint64_t offset, uint64_t newest,
                      prof_i_seen_chunk *before) {
  prof_i_head head;
  if (!load_steady_head(s, offset, &head)) return true;
  const prof_i_seen_chunk now = {.offset = offset,
                                 .number = prof_i_sequence_number(head.sequence),
                                 .generation = head.generation,
                                 .cursor = head.cursor,
                                 .overwritten = chunk_overwritten_count(&head)},
                          nothing = {.offset = offset};
  const bool is_later = now.number > newest;
  if (before) {
    if (!is_later) *before = now;
    return true;
  }
  if (!prof_i_make_room((void **)&s->seen, &s->seen_room, s->seen_count, sizeof *s->seen))
    return false;
  s->seen[s->seen_count++] = is_later ? nothing : now;
  return true;
}

/* False: no memory. */
static bool see_chunks_up_to(prof_i_snapshot *s, uint64_t newest) {
  const uint32_t count = s->seen_count;
  prof_i_head head;
  uint32_t place = 0;
  for (uint64_t at, offset = PROF_I_FIRST_UNIT_OFFSET;
       (at = snapshot_next_extent(s, &offset, &head)) != 0;) {
    if (head.kind == PROF_I_EXTENT_SLOT && head.bytes >= PROF_I_SLOT_BYTES)
      at += PROF_I_RESERVE_OFFSET;
    else if (head.kind != PROF_I_EXTENT_CHUNK)
      continue;
    if (!see_chunk(s, at, newest, seen_before(s, at, count, &place))) return false;
  }
  return true;
}

/* Lists all chunks, twice. False: no memory. */
static bool snapshot_see_chunks(prof_i_snapshot *s) {
  uint64_t newest = 0;
  s->seen_count = 0;
  if (!see_chunks_up_to(s, UINT64_MAX)) return false;
  for (uint32_t i = 0; i < s->seen_count; i++)
    if (s->seen[i].number > newest) newest = s->seen[i].number;
  return see_chunks_up_to(s, newest);
}

/* Removes from the copy what a thread has written since it took the chunk. The reader leaves a
   chunk out that is just being taken, and with it all older ones. */
static void keep_seen_chunks(prof_i_snapshot *s, const prof_i_seen_chunk *seen) {
  prof_i_head *const to = copied_head(s, seen->offset);
  const uint64_t number = prof_i_sequence_number(to->sequence);
  if (to->magic != PROF_I_EXTENT_MAGIC) return;
  if (number == seen->number) {
    if (to->state == PROF_I_CHUNK_TAKEN && number > s->newest_overwritten)
      s->newest_overwritten = number;
    return;
  }
  /* A thread has continued after a dead thread's records, unless something was overwritten: the
     generation is the same again after fifteen uses. */
  if (number && seen->number && to->generation == seen->generation &&
      chunk_overwritten_count(to) == seen->overwritten) {
    to->cursor = seen->cursor;
    to->sequence = seen->number << 1 | (to->sequence & 1);
    return;
  }
  to->sequence &= 1; /* what it held is overwritten, and counted in the head */
  if (seen->number > s->newest_overwritten) s->newest_overwritten = seen->number;
}

/* A ring overwrites its oldest chunks first, so these count as overwritten, too. */
static void drop_older_chunks(const prof_i_snapshot *s, const prof_i_seen_chunk *seen) {
  prof_i_head *const to = (prof_i_head *)(s->to + seen->offset);
  if (to->state == PROF_I_CHUNK_RETIRED &&
      prof_i_sequence_number(to->sequence) < s->newest_overwritten)
    to->state = PROF_I_CHUNK_TAKEN;
}

static int seen_compare_number(const void *a, const void *b) {
  const prof_i_seen_chunk *const x = a, *const y = b;
  return (x->number > y->number) - (x->number < y->number);
}

/* Copies or maps the listed chunks. s->hole is set if it failed. */
static void snapshot_copy_chunks(prof_i_snapshot *s) {
  s->newest_overwritten = 0;
  if (s->is_ring && s->seen_count)
    qsort(s->seen, s->seen_count, sizeof *s->seen, seen_compare_number);
  for (uint32_t i = 0; i < s->seen_count && !s->hole.bytes; i++) {
    copy_chunk(s, s->seen[i].offset);
    if (!s->hole.bytes) keep_seen_chunks(s, &s->seen[i]);
  }
  mark_shown_in_place(s);
  for (uint32_t i = 0; s->is_ring && s->newest_overwritten && i < s->seen_count; i++)
    drop_older_chunks(s, &s->seen[i]);
}

/* ---- the whole snapshot ---- */

static void copy_meta(const prof_i_snapshot *s) {
  prof_i_head head;
  uint64_t at, offset = PROF_I_FIRST_UNIT_OFFSET;
  while ((at = prof_i_snapshot_next_of_kind(s, &offset, PROF_I_EXTENT_META, &head)) != 0) {
    memcpy(s->to + at, &head, sizeof head);
    snapshot_copy_records(s, at, &head);
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
    if (!snapshot_see_chunks(s)) {
      snapshot_unmap(s);
      return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a list of %u chunks", s->seen_count);
    }
    if (may_repeat && snapshot_is_outgrown(s)) {
      snapshot_unmap(s);
      *again_out = true;
      return s->live->may_map_more ? PROF_I_SNAPSHOT_OUTGROWN : PROF_OK;
    }
    if (s->is_ring) prof_i_snapshot_keep_steady_slots(s);
    snapshot_copy_chunks(s);
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
