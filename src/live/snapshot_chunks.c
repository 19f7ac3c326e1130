/* Chunks of a snapshot. A chunk that is finished is mapped a second time, or read in place. Others
   are copied. snapshot.c says why all chunks are listed first. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../format/parse.h"
#include "../reader/scan_cache.h"
#include "snapshot.h"

/* The head at one moment. False: it is no longer a head. */
static bool load_steady_head(const prof_i_snapshot *s, uint64_t offset, prof_i_head *head_out) {
  do {
    if (!prof_i_snapshot_load_head(s, offset, head_out)) return false;
    prof_i_snapshot_fence();
  } while (prof_i_snapshot_load(prof_i_snapshot_source_at(s, offset) +
                                offsetof(prof_i_head, sequence)) != head_out->sequence);
  return true;
}

/* ---- finished chunks ---- */

static bool chunk_is_finished(const unsigned char *chunk, const prof_i_head *head) {
  const uint64_t *at = (const uint64_t *)(const void *)(chunk + sizeof *head);
  prof_i_long_record record;
  for (uint64_t left = (prof_i_snapshot_claimed_bytes(head) - sizeof *head) / 16, slots; left > 0;
       at += slots * 2, left -= slots) {
    const prof_i_parse_result sight =
        prof_i_parse_record(at, left, head->generation, &slots, &record);
    if (sight == PROF_I_PARSED_UNFINISHED || sight == PROF_I_PARSED_BAD) return false;
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

/* The same of a chunk that stays where it is, in private memory. A thread retired it with release,
   after its last record. */
static bool mark_shown_in_place(const prof_i_snapshot *s, uint64_t offset,
                                const unsigned char *chunk, const prof_i_head *head) {
  prof_i_source *const source = s->source;
  const prof_i_head *const now = (const prof_i_head *)(const void *)chunk;
  if (__atomic_load_n(&now->state, __ATOMIC_ACQUIRE) != PROF_I_CHUNK_RETIRED ||
      !chunk_is_known_finished(s, offset, chunk, head))
    return false;
  if (!prof_i_make_room((void **)&source->heads, &source->head_room, source->head_count,
                        sizeof *source->heads))
    return false;
  s->live->mark_shown_in_place(chunk, head->bytes);
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
  const unsigned char *const at = prof_i_snapshot_source_at(s, offset);
  if (at != s->from + offset) return mark_shown_in_place(s, offset, at, head);
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
    prof_i_snapshot_copy_records(s, offset, &head);
    prof_i_snapshot_fence();
    if (!prof_i_snapshot_load_head(s, offset, &after)) return;
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
       (at = prof_i_snapshot_next_extent(s, &offset, &head)) != 0;) {
    if (head.kind == PROF_I_EXTENT_SLOT && head.bytes >= PROF_I_SLOT_BYTES)
      at += PROF_I_RESERVE_OFFSET;
    else if (head.kind != PROF_I_EXTENT_CHUNK)
      continue;
    if (!see_chunk(s, at, newest, seen_before(s, at, count, &place))) return false;
  }
  return true;
}

/* False: no memory. */
bool prof_i_snapshot_see_chunks(prof_i_snapshot *s) {
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

void prof_i_snapshot_copy_chunks(prof_i_snapshot *s) {
  s->newest_overwritten = 0;
  if (s->is_ring && s->seen_count)
    qsort(s->seen, s->seen_count, sizeof *s->seen, seen_compare_number);
  for (uint32_t i = 0; i < s->seen_count && !s->hole.bytes; i++) {
    copy_chunk(s, s->seen[i].offset);
    if (!s->hole.bytes) keep_seen_chunks(s, &s->seen[i]);
  }
  for (uint32_t i = 0; s->is_ring && s->newest_overwritten && i < s->seen_count; i++)
    drop_older_chunks(s, &s->seen[i]);
}
