/* Scopes that had not ended, as prof's exports mark them. In a capture they are stored in the slot
   of their thread, where a reader finds them open up to the end. See internal.h.

   Until the capture is written they are among the thread's events, because launches and arrows are
   looked for there. Their records are those of ended scopes whose duration has a word of its own.
   So one that has no room in the slot is written as it is. */
#include <stdlib.h>

#include "../../src/format/parse.h"
#include "internal.h"

enum {
  TEXT_WORDS = (PROF_I_TEXT_END - PROF_I_TEXT_OFFSET) / 8,
  PAYLOAD_OFFSET_SHIFT = 24,
  PAYLOAD_WORDS_SHIFT = 48,
  DURATION_WORD = 2 /* of the record from its word 1 on */
};

bool import_event_is_open(const import_event *event) {
  const import_value *const mark = import_event_arg(event, IMPORT_OPEN_KEY);
  return mark && mark->type == IMPORT_BOOL && mark->is_true;
}

static bool entry_is_open(const import_entry *entry) {
  return (entry->place & IMPORT_ENTRY_OPEN) != 0;
}

static uint32_t entry_site(const import_state *state, const import_entry *entry) {
  uint32_t count;
  return prof_i_record_site(import_entry_words(&state->spool, entry, &count)[0]);
}

/* Outer ones first. */
static int open_compare(const void *a, const void *b) {
  const import_entry *const x = *(import_entry *const *)a, *const y = *(import_entry *const *)b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

/* ---- payloads ---- */

/* What the scope has beyond its site, as a slot has it: its record from word 2 on, without the
   duration. Returns how many words it is, padding not included. 0: it has no more. to: room for
   all of the record, or NULL. */
static uint32_t put_payload(const uint64_t *words, uint32_t count, uint64_t *to) {
  const uint64_t rest = words[1] & ~(UINT64_C(0xffff) | (uint64_t)PROF_I_FLAG_LONG << 24);
  const uint32_t payload_words = count - 2;
  if (rest == (uint64_t)PROF_I_KIND_SCOPE << 16) return 0;
  if (!to) return payload_words;
  to[0] = rest | (payload_words + 3) / 2;
  memcpy(to + 1, words + DURATION_WORD + 1, (count - DURATION_WORD - 1) * sizeof *to);
  return payload_words;
}

/* A record's words are an even number, and its payload's are, too. */
static uint32_t padded_words(uint32_t payload_words) { return (payload_words + 1) / 2 * 2; }

/* ---- which ---- */

typedef struct open_list {
  import_entry **items;
  size_t count, room;
} open_list;

static void open_list_fill(open_list *list, const import_thread *thread) {
  list->count = 0;
  for (size_t i = 0; i < thread->count; i++) {
    if (!entry_is_open(&thread->entries[i])) continue;
    list->items = import_make_room(list->items, &list->room, list->count + 1, sizeof *list->items);
    list->items[list->count++] = &thread->entries[i];
  }
  if (list->count) qsort(list->items, list->count, sizeof *list->items, open_compare);
}

static void end_scope(import_state *state, import_entry *entry) {
  entry->place &= ~(uint64_t)IMPORT_ENTRY_OPEN;
  import_count_changed(state, IMPORT_CHANGE_OPEN);
}

/* A slot has no skipped calls: a reader takes the capture for damaged then. */
static bool may_be_in_slot(const uint64_t *words) {
  return prof_i_word_kind(words[1]) != PROF_I_KIND_SKIPPED;
}

/* The outermost ones, as far as there is room. */
static void end_those_without_room(import_state *state, open_list *list) {
  size_t kept = 0;
  uint32_t used = 0;
  for (size_t i = 0; i < list->count; i++) {
    uint32_t count;
    const uint64_t *const words = import_entry_words(&state->spool, list->items[i], &count);
    const uint32_t more = padded_words(put_payload(words, count, NULL));
    if (!may_be_in_slot(words) || kept == PROF_I_OPEN_COUNT || used + more > TEXT_WORDS) {
      end_scope(state, list->items[i]);
      continue;
    }
    used += more;
    list->items[kept++] = list->items[i];
  }
  list->count = kept;
}

/* If a record has an open scope's begin and site, a reader takes it for that scope's end
   (src/reader/index.c). Not if it ends before the newest open scope begins. */
static void end_those_with_record(import_state *state, const import_thread *thread,
                                  const open_list *list) {
  const uint64_t latest = list->items[list->count - 1]->start;
  for (size_t i = 0; i < thread->count; i++) {
    const import_entry *const entry = &thread->entries[i];
    if (entry_is_open(entry) || entry->place & IMPORT_ENTRY_MARK || entry->end < latest) continue;
    for (size_t n = 0; n < list->count; n++)
      if (entry_is_open(list->items[n]) && list->items[n]->start == entry->start &&
          entry_site(state, list->items[n]) == entry_site(state, entry))
        end_scope(state, list->items[n]);
  }
}

void import_open_choose(import_state *state) {
  open_list list = {NULL, 0, 0};
  for (import_thread *thread = state->threads.all; thread; thread = thread->hh.next) {
    open_list_fill(&list, thread);
    end_those_without_room(state, &list);
    if (list.count) end_those_with_record(state, thread, &list);
  }
  free(list.items);
}

/* ---- the slot ---- */

bool import_open_has(const import_thread *thread) {
  for (size_t i = 0; i < thread->count; i++)
    if (entry_is_open(&thread->entries[i])) return true;
  return false;
}

static void put_open(const import_state *state, const import_entry *entry,
                     prof_i_thread_slot *slot) {
  uint32_t count;
  const uint64_t *const words = import_entry_words(&state->spool, entry, &count);
  prof_i_open_entry *const open = &slot->open[++slot->depth];
  uint64_t *const to = (uint64_t *)slot + slot->payload_top / 8;
  const uint32_t payload_words = put_payload(words, count, to);
  open->ticks = entry->start << 4;
  open->packed = (uint64_t)prof_i_record_site(words[0]) << 4 | (payload_words ? 1 : 0);
  if (payload_words)
    open->packed |= slot->payload_top << PAYLOAD_OFFSET_SHIFT | (uint64_t)payload_words
                                                                    << PAYLOAD_WORDS_SHIFT;
  slot->payload_top += padded_words(payload_words) * 8ull;
}

void import_open_take(const import_state *state, import_thread *thread, prof_i_thread_slot *slot) {
  open_list list = {NULL, 0, 0};
  size_t kept = 0;
  slot->payload_top = PROF_I_TEXT_OFFSET;
  open_list_fill(&list, thread);
  for (size_t i = 0; i < list.count; i++) put_open(state, list.items[i], slot);
  free(list.items);
  for (size_t i = 0; i < thread->count; i++)
    if (!entry_is_open(&thread->entries[i])) thread->entries[kept++] = thread->entries[i];
  thread->count = kept;
}
