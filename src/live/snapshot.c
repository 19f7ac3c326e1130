/* Copies an arena that others write to, without stopping them. The order makes the copy whole: 1.
   slots, 2. chunks, 3. losses, 4. meta extents. A scope that ends in between is in the chunks'
   copy, and index.c hides the slot's entry for it; whatever was lost before a record of the copy is
   counted in it; a record's site was registered before the record was written, so it is in the meta
   extents' copy. Words are read in rising order, the first word of each 16 bytes with acquire: it
   pairs with the release store of the recorder's commit, so a committed record's other words are in
   the copy as they were written.

   A thread that takes a chunk while others are being copied would leave a hole: its newest records
   in the copy, and not those before them, or, in a ring, records on both sides of those that it has
   overwritten. So all chunks are looked at before the first is copied, and the copy shows what
   stood then: what was taken later is left out, and what is older than anything overwritten
   meanwhile counts as overwritten, too. Looking takes time as well, and a thread may take two
   chunks in it, the first where we have been and the second where we have not: so they are looked
   at twice, and what got a number above all of the first time's is left out. A thread draws its
   next number when the last one's chunk has it, so the second time finds whatever comes before a
   chunk that is kept. A ring's are copied in the order in which they go: we are faster than who
   overwrites them, unless the processor is taken from us for as long as the ring takes to go round;
   then it is copied anew.

   Chunks of the own arena that are full and finished do not change any more, unless they are
   overwritten or cleared. A lease keeps clears away; a ring's are copied. The others are mapped a
   second time, and cost no memory. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../base/log.h"
#include "../base/port.h"
#include "../format/parse.h"
#include "../reader/scan_cache.h"

enum { TRIES = 4, PAGE_BYTES = 4096 };

/* A chunk as it was before the first one was copied. */
typedef struct seen_chunk {
  uint64_t offset, number, generation, cursor;
  uint64_t overwritten; /* of what its room held before */
} seen_chunk;

typedef struct snapshot {
  const unsigned char *from;
  unsigned char *to;
  uint64_t count; /* bytes of `to`, and at most of `from` */
  uint64_t there; /* of them; more may be meanwhile */
  const prof_i_live_source *live;
  prof_i_source *source; /* that is made: its runs grow */
  bool may_share, is_ring;
  seen_chunk *seen;
  uint32_t seen_count, seen_room;
  uint64_t newest_overwritten; /* number of the newest chunk that was overwritten while we copied */
  /* of `to`, where nothing of ours may be mapped any more: the snapshot has failed */
  prof_i_mapped_run hole;
} snapshot;

/* What is copied here is being written: whole words, and what is not yet committed is left out
   afterwards. The writers' plain stores into room that they have claimed would be reported, so
   these two functions are not instrumented. */
#define RACES_BY_DESIGN __attribute__((noinline, no_sanitize("thread")))

static RACES_BY_DESIGN uint64_t load_word(const void *at) {
  return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
}

/* Where the byte at this offset can be read. */
static const unsigned char *source_at(const snapshot *s, uint64_t offset) {
  return s->live->find_bytes ? s->live->find_bytes(s->live, offset) : s->from + offset;
}

static RACES_BY_DESIGN void copy_words(const snapshot *s, uint64_t offset, uint64_t bytes) {
  const uint64_t *const from = (const uint64_t *)(const void *)source_at(s, offset);
  uint64_t *const to = (uint64_t *)(s->to + offset);
  const uint64_t words = bytes / 8;
  for (uint64_t i = 0; i + 1 < words; i += 2) {
    to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    to[i + 1] = __atomic_load_n(&from[i + 1], __ATOMIC_RELAXED);
  }
  if (words % 2) to[words - 1] = __atomic_load_n(&from[words - 1], __ATOMIC_ACQUIRE);
}

/* Loads of what stands before are done before loads of what stands after. */
static void load_fence(void) { __atomic_thread_fence(__ATOMIC_ACQUIRE); }

/* Head included. */
static uint64_t claimed_bytes(const prof_i_head *head) {
  const uint64_t end = head->cursor < head->bytes ? head->cursor : head->bytes;
  return end > sizeof *head ? end & ~15ull : sizeof *head;
}

/* Where a record had been claimed and not marked as such when its first word was copied, its other
   words may have come into the copy half written, and be taken for records. A mark comes before
   them: where none has come since, they had not, either. */
static void settle_claims(const snapshot *s, uint64_t offset, const prof_i_head *head) {
  const uint64_t end = claimed_bytes(head), generation = head->generation;
  load_fence();
  for (uint64_t i = sizeof *head, slots; i < end; i += slots * 16) {
    const uint64_t *const at = (const uint64_t *)(s->to + offset + i);
    const uint64_t left = (end - i) / 16;
    if (!prof_i_is_committed(at[0], generation) && !prof_i_is_marked(at[0], generation) &&
        load_word(source_at(s, offset + i)) != at[0]) {
      copy_words(s, offset + i, end - i);
      load_fence();
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

/* The claimed part, behind the head. */
static void copy_records(const snapshot *s, uint64_t offset, const prof_i_head *head) {
  copy_words(s, offset + sizeof *head, claimed_bytes(head) - sizeof *head);
  settle_claims(s, offset, head);
}

/* As many, or as there are: whoever looks behind a file's end is killed. */
static uint64_t mapped_bytes(const snapshot *s, uint64_t wanted) {
  if (wanted > s->count) wanted = s->count;
  if (wanted <= s->there || !s->live->live_bytes_now) return wanted;
  const uint64_t now = s->live->live_bytes_now(s->live) & ~(uint64_t)(PROF_I_UNIT_BYTES - 1);
  return wanted < now ? wanted : now > s->there ? now : s->there;
}

static uint64_t used_bytes_of_arena(const snapshot *s) {
  return load_word(s->from + offsetof(prof_i_header, used_bytes));
}
static uint64_t used_bytes(const snapshot *s) { return mapped_bytes(s, used_bytes_of_arena(s)); }

static bool load_head(const snapshot *s, uint64_t offset, prof_i_head *head_out) {
  uint64_t words[PROF_I_HEAD_BYTES / 8];
  const unsigned char *const from = source_at(s, offset);
  for (size_t i = 0; i < PROF_I_HEAD_BYTES / 8; i++) words[i] = load_word(from + i * 8);
  memcpy(head_out, words, sizeof *head_out);
  head_out->left_by = 0;
  const uint64_t bytes = prof_i_head_bytes(head_out, offset);
  head_out->bytes = bytes; /* the chunk may just be split */
  return bytes && bytes <= s->count - offset && mapped_bytes(s, offset + bytes) == offset + bytes;
}

/* The extent at or after *offset; 0 at the end. */
static uint64_t next_of_any_kind(const snapshot *s, uint64_t *offset, prof_i_head *head_out) {
  const uint64_t used = used_bytes(s);
  while (*offset < used && used - *offset >= PROF_I_UNIT_BYTES) {
    const uint64_t at = *offset;
    const bool is_head = (!s->live->may_read_unit || s->live->may_read_unit(s->live, at)) &&
                         load_head(s, at, head_out);
    *offset += is_head ? head_out->bytes : PROF_I_UNIT_BYTES;
    if (is_head) return at;
  }
  return 0;
}

static uint64_t next_extent(const snapshot *s, uint64_t *offset, prof_i_extent_kind kind,
                            prof_i_head *head_out) {
  uint64_t at;
  do at = next_of_any_kind(s, offset, head_out);
  while (at && head_out->kind != kind);
  return at;
}

/* ---- slots ---- */

/* Does it stand as it was copied, there or below, where it has moved since
   (core/record/compact.h)? */
static bool entry_is_steady(const snapshot *s, uint64_t offset, size_t i) {
  const prof_i_thread_slot *const slot = (const prof_i_thread_slot *)(s->to + offset);
  const prof_i_open_entry *const from = ((const prof_i_thread_slot *)(s->from + offset))->open;
  const uint64_t copied = slot->open[i].ticks;
  const uint64_t marks = PROF_I_OPEN_COPY | PROF_I_OPEN_OF_DEEP | PROF_I_OPEN_TAKEN;
  for (size_t at = i; at > 0 && (at == i || prof_i_open_entry_is_open(copied)); at--) {
    const uint64_t now = __atomic_load_n(&from[at].ticks, __ATOMIC_ACQUIRE);
    if ((now & ~marks) == (copied & ~marks) && load_word(&from[at].packed) == slot->open[i].packed)
      return true;
  }
  return false;
}

/* Takes out of the copy every entry that changed meanwhile: those left stood all at one moment,
   with their payloads. */
static void keep_steady_entries(const snapshot *s, uint64_t offset) {
  prof_i_thread_slot *const slot = (prof_i_thread_slot *)(s->to + offset);
  load_fence();
  for (size_t i = 1; i <= PROF_I_OPEN_COUNT; i++)
    if (!entry_is_steady(s, offset, i)) slot->open[i].ticks = 0;
}

/* What the owner of the slot changes by one store of its ledger, as it was at one moment. */
static void copy_ledger(const snapshot *s, uint64_t offset) {
  enum { LEDGER_TRIES = 1000 };
  const size_t endings = offsetof(prof_i_thread_slot, endings);
  const uint64_t *const word = &((const prof_i_thread_slot *)(s->from + offset))->ledger;
  prof_i_thread_slot *const to = (prof_i_thread_slot *)(s->to + offset);
  int tries = 0;
  do {
    to->ledger = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    copy_words(s, offset + endings, sizeof(prof_i_thread_slot) - endings);
    load_fence();
  } while (__atomic_load_n(word, __ATOMIC_RELAXED) != to->ledger && ++tries < LEDGER_TRIES);
}

static void copy_slot(const snapshot *s, uint64_t offset, const prof_i_head *head) {
  enum { PACK_TRIES = 100 }; /* a thread may be stopped while it moves entries */
  if (head->bytes < PROF_I_SLOT_BYTES) return;
  const uint64_t *const packs = &((const prof_i_thread_slot *)(s->from + offset))->pack_count;
  uint64_t before;
  int tries = 0;
  do { /* entries that move meanwhile are copied again */
    before = __atomic_load_n(packs, __ATOMIC_ACQUIRE);
    copy_words(s, offset, sizeof(prof_i_thread_slot));
    load_fence();
  } while (++tries < PACK_TRIES && (before % 2 || load_word(packs) != before));
  /* Read again: a scope that opened since the first copy has its payload behind what stood then. */
  const uint64_t payload_top =
      load_word(s->from + offset + offsetof(prof_i_thread_slot, payload_top));
  const uint64_t top = payload_top < PROF_I_TEXT_END ? payload_top & ~7ull : PROF_I_TEXT_END;
  if (top > PROF_I_TEXT_OFFSET)
    copy_words(s, offset + PROF_I_TEXT_OFFSET, top - PROF_I_TEXT_OFFSET);
  copy_ledger(s, offset);
  keep_steady_entries(s, offset);
}

static void copy_header_and_slots(const snapshot *s) {
  prof_i_head head;
  uint64_t at, offset = PROF_I_FIRST_UNIT_OFFSET;
  copy_words(s, 0, PROF_I_HEADER_BYTES);
  while ((at = next_extent(s, &offset, PROF_I_EXTENT_SLOT, &head)) != 0) copy_slot(s, at, &head);
}

static uint64_t chunk_lost_count(const prof_i_thread_slot *slot, int loss) {
  return prof_i_slot_lost(slot, slot->ledger, loss);
}

/* What a later thread lost in the slot is none of the one's that is shown. Returns whether anything
   was lost meanwhile. */
static bool copy_losses_of_slot(const snapshot *s, uint64_t offset) {
  prof_i_thread_slot *const to = (prof_i_thread_slot *)(s->to + offset);
  const prof_i_thread_slot *const from = (const prof_i_thread_slot *)(s->from + offset);
  uint64_t before[PROF_I_LOSS_WORDS], any = 0;
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) before[i] = chunk_lost_count(to, i);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) to->lost[i] = load_word(&from->lost[i]);
  copy_ledger(s, offset);
  load_fence();
  const bool is_another = load_word(&from->serial) != to->serial;
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) {
    const uint64_t more = chunk_lost_count(to, i) - before[i];
    if (is_another) to->lost_before[i] += more;
    any |= more;
  }
  return any != 0;
}

/* The slots of the copy, one after the other; 0 at the end. */
static uint64_t next_slot(const snapshot *s, uint64_t *offset) {
  prof_i_head head;
  for (uint64_t at; (at = next_extent(s, offset, PROF_I_EXTENT_SLOT, &head)) != 0;)
    if (head.bytes >= PROF_I_SLOT_BYTES &&
        ((const prof_i_head *)(s->to + at))->magic == PROF_I_EXTENT_MAGIC)
      return at;
  return 0;
}

/* A scope that stood open in the copy does so no more. It may have been recorded in any thread's
   chunk: that is looked for. It may have been lost: then it is in the counts. */
static void mark_ended_entries(const snapshot *s, uint64_t offset, bool has_losses) {
  prof_i_thread_slot *const slot = (prof_i_thread_slot *)(s->to + offset);
  for (size_t i = 1; i <= PROF_I_OPEN_COUNT; i++) {
    if (!prof_i_open_entry_is_open(slot->open[i].ticks) || entry_is_steady(s, offset, i)) continue;
    if (has_losses)
      slot->open[i].ticks = 0;
    else
      slot->open[i].ticks |= PROF_I_OPEN_TAKEN;
  }
}

/* Once more, as of now: first what is over, then what has begun. So no scope counts twice, and none
   is missing that had ended before. A slot that was taken meanwhile is not in the copy, nor is
   anything of its thread. */
static void copy_losses(const snapshot *s) {
  prof_i_header *const header = (prof_i_header *)s->to;
  bool has_losses = false;
  uint64_t at;
  load_fence();
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) {
    const uint64_t now = load_word(s->from + offsetof(prof_i_header, unattributed) + (size_t)i * 8);
    has_losses |= now != header->unattributed[i];
    header->unattributed[i] = now;
  }
  header->deep_over = load_word(s->from + offsetof(prof_i_header, deep_over));
  for (uint64_t offset = PROF_I_FIRST_UNIT_OFFSET; (at = next_slot(s, &offset)) != 0;)
    has_losses |= copy_losses_of_slot(s, at);
  load_fence();
  for (uint64_t offset = PROF_I_FIRST_UNIT_OFFSET; (at = next_slot(s, &offset)) != 0;) {
    ((prof_i_thread_slot *)(s->to + at))->deep_count =
        load_word(s->from + at + offsetof(prof_i_thread_slot, deep_count));
    mark_ended_entries(s, at, has_losses);
  }
}

/* ---- chunks, meta extents ---- */

/* The head as it stood at one moment. False: it is no head any more. */
static bool load_steady_head(const snapshot *s, uint64_t offset, prof_i_head *head_out) {
  do {
    if (!load_head(s, offset, head_out)) return false;
    load_fence();
  } while (load_word(source_at(s, offset) + offsetof(prof_i_head, sequence)) != head_out->sequence);
  return true;
}

/* ---- chunks that stay where they are ---- */

static bool chunk_is_finished(const unsigned char *chunk, const prof_i_head *head) {
  const uint64_t *at = (const uint64_t *)(const void *)(chunk + sizeof *head);
  prof_i_long_record record;
  for (uint64_t left = (claimed_bytes(head) - sizeof *head) / 16, slots; left > 0;
       at += slots * 2, left -= slots) {
    const prof_i_parse_result sight =
        prof_i_parse_record(at, left, head->generation, &slots, &record);
    if (sight == PROF_I_PARSED_UNFINISHED || sight == PROF_I_PARSED_BAD) return false;
  }
  return true;
}

/* Another trace may have looked. */
static bool chunk_is_known_finished(const snapshot *s, uint64_t offset, const unsigned char *chunk,
                                    const prof_i_head *head) {
  const uint64_t ticks = load_word(s->from + offsetof(prof_i_header, start_ticks));
  const uint64_t ns = load_word(s->from + offsetof(prof_i_header, start_monotonic_ns));
  const prof_i_scan_key key = prof_i_scan_key_of(ticks, ns, offset, head);
  return prof_i_scan_cache_has(&key) || chunk_is_finished(chunk, head);
}

/* The chunk stays mapped, and its head, which a clear changes, is kept beside it. Chunks that stand
   in a row are one mapping of the kernel's. */
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

/* Of the chunk that was copied last. */
static prof_i_head *copied_head(const snapshot *s, uint64_t offset) {
  prof_i_source *const source = s->source;
  prof_i_cached_head *const last =
      source->head_count ? &source->heads[source->head_count - 1] : NULL;
  return last && last->offset == offset ? &last->head : (prof_i_head *)(s->to + offset);
}

/* The same of a chunk that stays where it is, in private memory. A thread retired it with release,
   after its last record. */
static bool mark_shown_in_place(const snapshot *s, uint64_t offset, const unsigned char *chunk,
                                const prof_i_head *head) {
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
static bool share_chunk(snapshot *s, uint64_t offset, const prof_i_head *head) {
  if (!s->may_share || head->state != PROF_I_CHUNK_RETIRED || head->cursor + 15 < head->bytes)
    return false;
  unsigned char *const to = s->to + offset;
  const size_t bytes = (size_t)head->bytes;
  const unsigned char *const at = source_at(s, offset);
  if (at != s->from + offset) return mark_shown_in_place(s, offset, at, head);
  void *const from = (void *)(uintptr_t)at;
  if (mremap(from, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == (void *)to) {
    mprotect(to, bytes, PROT_READ);
    if (chunk_is_known_finished(s, offset, to, head) && note_mapped_run(s->source, offset, head)) {
      prof_i_source_release_pages(s->source, to, bytes);
      return true;
    }
  }
  /* Room for a copy, whatever stands there now. */
  if (mmap(to, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    s->hole = (prof_i_mapped_run){offset, bytes};
  return false;
}

/* Copies head and claimed part. A chunk that is made anew or taken meanwhile is copied again; in
   the end it is left out: what it held then is gone, and counted in the head. */
static void copy_chunk(snapshot *s, uint64_t offset) {
  prof_i_head *const to = (prof_i_head *)(s->to + offset);
  prof_i_head head, after;
  for (int i = 0; i < TRIES; i++) {
    if (!load_steady_head(s, offset, &head)) return;
    if (i == 0 && prof_i_sequence_number(head.sequence) && share_chunk(s, offset, &head)) return;
    if (s->hole.bytes) return;
    *to = head;
    if (!prof_i_sequence_number(head.sequence)) return;
    copy_records(s, offset, &head);
    load_fence();
    if (!load_head(s, offset, &after)) return;
    if (after.generation == head.generation && after.sequence == head.sequence) return;
  }
  if (load_steady_head(s, offset, &head)) *to = head;
  to->sequence &= 1;
}

static uint64_t chunk_overwritten_count(const prof_i_head *head) {
  return head->evicted[head->sequence & 1][PROF_I_EVICTED_OVERWRITTEN];
}

/* The place of a chunk in what was seen the first time, by rising offsets from *place on; NULL: it
   was not there. */
static seen_chunk *seen_before(const snapshot *s, uint64_t offset, uint32_t count,
                               uint32_t *place) {
  while (*place < count && s->seen[*place].offset < offset) ++*place;
  return *place < count && s->seen[*place].offset == offset ? &s->seen[*place] : NULL;
}

/* newest: the number above all others of the first time; UINT64_MAX: this is it. One with a later
   number is as it was the first time. */
static bool see_chunk(snapshot *s, uint64_t offset, uint64_t newest, seen_chunk *before) {
  prof_i_head head;
  if (!load_steady_head(s, offset, &head)) return true;
  const seen_chunk now = {.offset = offset,
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
static bool see_chunks_up_to(snapshot *s, uint64_t newest) {
  const uint32_t count = s->seen_count;
  prof_i_head head;
  uint32_t place = 0;
  for (uint64_t at, offset = PROF_I_FIRST_UNIT_OFFSET;
       (at = next_of_any_kind(s, &offset, &head)) != 0;) {
    if (head.kind == PROF_I_EXTENT_SLOT && head.bytes >= PROF_I_SLOT_BYTES)
      at += PROF_I_RESERVE_OFFSET;
    else if (head.kind != PROF_I_EXTENT_CHUNK)
      continue;
    if (!see_chunk(s, at, newest, seen_before(s, at, count, &place))) return false;
  }
  return true;
}

/* False: no memory. */
static bool see_chunks(snapshot *s) {
  uint64_t newest = 0;
  s->seen_count = 0;
  if (!see_chunks_up_to(s, UINT64_MAX)) return false;
  for (uint32_t i = 0; i < s->seen_count; i++)
    if (s->seen[i].number > newest) newest = s->seen[i].number;
  return see_chunks_up_to(s, newest);
}

/* Takes out of the copy what came into the chunk after a thread had taken it meanwhile. One that is
   being taken right now will be left out by the reader: what is older goes with it. */
static void keep_seen_chunks(snapshot *s, const seen_chunk *seen) {
  prof_i_head *const to = copied_head(s, seen->offset);
  const uint64_t number = prof_i_sequence_number(to->sequence);
  if (to->magic != PROF_I_EXTENT_MAGIC) return;
  if (number == seen->number) {
    if (to->state == PROF_I_CHUNK_TAKEN && number > s->newest_overwritten)
      s->newest_overwritten = number;
    return;
  }
  /* It goes on behind a dead thread's records. Not if something was overwritten: after fifteen
     times the generation is the same again. */
  if (number && seen->number && to->generation == seen->generation &&
      chunk_overwritten_count(to) == seen->overwritten) {
    to->cursor = seen->cursor;
    to->sequence = seen->number << 1 | (to->sequence & 1);
    return;
  }
  to->sequence &= 1; /* what it held is gone, and counted in the head */
  if (seen->number > s->newest_overwritten) s->newest_overwritten = seen->number;
}

/* A ring's oldest go first, so these would have gone before it. */
static void drop_older_chunks(const snapshot *s, const seen_chunk *seen) {
  prof_i_head *const to = (prof_i_head *)(s->to + seen->offset);
  if (to->state == PROF_I_CHUNK_RETIRED &&
      prof_i_sequence_number(to->sequence) < s->newest_overwritten)
    to->state = PROF_I_CHUNK_TAKEN;
}

static int seen_compare_number(const void *a, const void *b) {
  const seen_chunk *const x = a, *const y = b;
  return (x->number > y->number) - (x->number < y->number);
}

/* More than half of what was seen. */
static bool is_most_overwritten(const snapshot *s) {
  return s->seen_count && s->newest_overwritten > s->seen[s->seen_count / 2].number;
}

static void copy_chunks(snapshot *s) {
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

/* A ring goes on while we look at it. A scope that stood open at first, and has ended since, may
   have its record in a chunk that was overwritten: it would be shown as open for ever. */
static void keep_steady_slots(const snapshot *s) {
  prof_i_head head;
  uint64_t at, offset = PROF_I_FIRST_UNIT_OFFSET;
  while ((at = next_extent(s, &offset, PROF_I_EXTENT_SLOT, &head)) != 0)
    if (head.bytes >= PROF_I_SLOT_BYTES &&
        ((const prof_i_head *)(s->to + at))->magic == PROF_I_EXTENT_MAGIC)
      keep_steady_entries(s, at);
}

static void copy_meta(const snapshot *s) {
  prof_i_head head;
  uint64_t at, offset = PROF_I_FIRST_UNIT_OFFSET;
  while ((at = next_extent(s, &offset, PROF_I_EXTENT_META, &head)) != 0) {
    memcpy(s->to + at, &head, sizeof head);
    copy_records(s, at, &head);
  }
}

/* Less the hole: somebody else may be there by now. */
static void snapshot_unmap(const snapshot *s) {
  const uint64_t behind = s->hole.offset + s->hole.bytes;
  if (s->hole.offset) prof_i_port_unmap(s->to, (size_t)s->hole.offset);
  prof_i_port_unmap(s->to + behind, (size_t)(s->count - behind));
}

/* Address space only: pages that nothing is copied to cost nothing. */
static bool snapshot_map_room(snapshot *s, uint64_t bytes) {
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

/* For what is used, and some of what will be, where the process may have that much. */
static int snapshot_make_room(snapshot *s) {
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

/* What is taken beyond our room is not seen, and may stand between what is. */
static bool snapshot_is_outgrown(const snapshot *s) {
  return (s->live->may_map_more || s->count + PROF_I_UNIT_BYTES <= s->live->room) &&
         used_bytes_of_arena(s) > s->count;
}

/* All but losses and meta extents. *again_out: it has outgrown its room, which has been given
   back. */
static int snapshot_fill_once(snapshot *s, bool *again_out) {
  const bool may_repeat = *again_out;
  *again_out = false;
  const int status = snapshot_make_room(s);
  if (status) return status;
  for (int i = 0; i == 0 || (i < TRIES && s->is_ring && is_most_overwritten(s)); i++) {
    copy_header_and_slots(s);
    if (!see_chunks(s)) {
      snapshot_unmap(s);
      return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a list of %u chunks", s->seen_count);
    }
    if (may_repeat && snapshot_is_outgrown(s)) {
      snapshot_unmap(s);
      *again_out = true;
      return s->live->may_map_more ? PROF_I_SNAPSHOT_OUTGROWN : PROF_OK;
    }
    if (s->is_ring) keep_steady_slots(s);
    copy_chunks(s);
  }
  if (s->is_ring && s->newest_overwritten && !s->hole.bytes) keep_steady_slots(s);
  if (!s->hole.bytes) return PROF_OK;
  snapshot_unmap(s);
  return prof_i_fail(PROF_E_NO_MEMORY,
                     "the kernel has no room for another mapping of this process");
}

static int snapshot_fill(snapshot *s) {
  bool again = true;
  for (int i = 1; again; i++) {
    again = i < TRIES;
    const int status = snapshot_fill_once(s, &again);
    if (status) return status;
  }
  copy_losses(s);
  copy_meta(s);
  return PROF_OK;
}

int prof_i_source_snapshot(prof_i_source *source, const prof_i_live_source *live, bool may_share) {
  *source = (prof_i_source){.kind = PROF_I_SOURCE_BORROWED, .is_live = true};
  snapshot s = {.from = live->bytes, .live = live, .source = source};
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
