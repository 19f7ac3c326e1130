/* Texts of events for databases, and numbers of names. See database.h. */
#include "database.h"

#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../base/text.h"
#include "../reader/capture.h"
#include "chrome.h"

/* ---- texts of events ---- */

/* Chrome JSON's own code writes the texts, into memory. */

static int begin_merged(prof_i_merged_texts *merged) {
  merged->chrome = calloc(1, sizeof *merged->chrome);
  if (!merged->chrome) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the texts of events");
  int status = prof_i_sink_open_memory(&merged->heads, SIZE_MAX);
  if (status == PROF_OK) status = prof_i_sink_open_memory(&merged->tails, SIZE_MAX);
  return status;
}

int prof_i_event_text_init(prof_i_event_text *t, prof_i_export *run, prof_i_merged_texts *merged) {
  prof_i_chrome *const w = t->chrome = calloc(1, sizeof *w);
  if (!w) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the texts of events");
  int status = prof_i_sink_open_memory(&t->sink, SIZE_MAX);
  if (status == PROF_OK && merged && !merged->chrome) status = begin_merged(merged);
  if (status != PROF_OK) return status;
  prof_i_chrome_use(w, run, &t->sink, merged ? merged->chrome : NULL);
  return PROF_OK;
}

void prof_i_event_text_fini(prof_i_event_text *t) {
  if (t->sink.buffer) prof_i_sink_abandon(&t->sink);
  free(t->chrome);
}

static void begin_text(prof_i_event_text *t) { t->sink.next = t->sink.buffer; }

static prof_i_text end_text(prof_i_event_text *t) {
  if (t->status == PROF_OK) t->status = t->sink.status;
  return (prof_i_text){t->sink.buffer, (uint64_t)(t->sink.next - t->sink.buffer)};
}

/* For work on a device, omits the device and the stream, because its row has them. */
prof_i_text prof_i_event_text_args(prof_i_event_text *t) {
  prof_event *const event = t->chrome->event;
  if (event->flags & PROF_EVENT_ON_DEVICE) {
    event->flags &= ~(uint32_t)PROF_EVENT_ON_STREAM;
    event->device.type = PROF_DEVICE_CPU;
  }
  if (!prof_i_chrome_has_args(event)) return (prof_i_text){"", 0};
  begin_text(t);
  prof_i_sink_text(&t->sink, "{");
  prof_i_chrome_put_args(t->chrome, false);
  prof_i_sink_text(&t->sink, "}");
  return end_text(t);
}

prof_i_text prof_i_event_text_clean(prof_i_event_text *t, prof_i_text text) {
  const char *at = text.data;
  size_t left = (size_t)text.bytes;
  bool is_clean = true;
  while (left > 0 && is_clean) {
    const char *const from = at;
    is_clean = prof_i_utf8_take(&at, &left).data == from;
  }
  if (is_clean) return text;
  begin_text(t);
  for (at = text.data, left = (size_t)text.bytes; left > 0;) {
    const prof_i_utf8_character character = prof_i_utf8_take(&at, &left);
    prof_i_sink_bytes(&t->sink, character.data, character.bytes);
  }
  return end_text(t);
}

prof_i_text prof_i_event_text_place(prof_i_event_text *t, uint32_t site, prof_i_text name) {
  prof_i_chrome *const w = t->chrome;
  size_t bytes = 0;
  if (!prof_i_chrome_location_text(prof_i_trace_site(w->trace, site), name, w->location_text,
                                   sizeof w->location_text, &bytes) ||
      bytes == 0)
    return (prof_i_text){"", 0};
  return (prof_i_text){w->location_text + 1, bytes - 1}; /* without the comma */
}

uint32_t prof_i_event_text_site(const prof_trace *trace, const prof_event *event) {
  if (event->site >= prof_i_trace_site_count(trace)) return 0;
  const prof_i_site_info *const site = prof_i_trace_site(trace, event->site);
  const bool is_of_site =
      prof_i_text_is_same(site->name, event->name, event->name_bytes) &&
      prof_i_text_is_same(site->category, event->category, event->category_bytes);
  return is_of_site ? event->site : 0;
}

prof_i_text prof_i_event_text_head(prof_i_event_text *t) {
  begin_text(t);
  prof_i_chrome_put_head(t->chrome);
  return end_text(t);
}

prof_i_text prof_i_event_text_tail(prof_i_event_text *t, const prof_i_event_counts *counts,
                                   const prof_i_findings *findings) {
  t->chrome->written = (prof_i_written_counts){.scope_count = counts->scopes,
                                               .open_count = counts->unfinished,
                                               .step_count = counts->steps,
                                               .instant_count = counts->instants,
                                               .counter_count = counts->counters,
                                               .flow_count = counts->flow_ends};
  t->chrome->check.findings = *findings;
  begin_text(t);
  prof_i_chrome_put_tail(t->chrome);
  return end_text(t);
}

/* ---- merged files ---- */

static void add_text(prof_i_sink *to, prof_i_event_text *t, prof_i_text text) {
  prof_i_sink_bytes(to, text.data, (size_t)text.bytes);
  if (t->status == PROF_OK) t->status = to->status;
}

void prof_i_merged_texts_add_head(prof_i_merged_texts *merged, prof_i_event_text *t) {
  add_text(&merged->heads, t, prof_i_event_text_head(t));
}

void prof_i_merged_texts_add_tail(prof_i_merged_texts *merged, prof_i_event_text *t,
                                  const prof_i_event_counts *counts,
                                  const prof_i_findings *findings) {
  add_text(&merged->tails, t, prof_i_event_text_tail(t, counts, findings));
}

static prof_i_text text_of(const prof_i_sink *sink) {
  return (prof_i_text){sink->buffer, (uint64_t)(sink->next - sink->buffer)};
}

prof_i_text prof_i_merged_head(const prof_i_merged_texts *merged) {
  return text_of(&merged->heads);
}

prof_i_text prof_i_merged_tail(const prof_i_merged_texts *merged) {
  return text_of(&merged->tails);
}

void prof_i_merged_texts_fini(prof_i_merged_texts *merged) {
  if (merged->heads.buffer) prof_i_sink_abandon(&merged->heads);
  if (merged->tails.buffer) prof_i_sink_abandon(&merged->tails);
  if (merged->chrome) prof_i_chrome_shared_fini(merged->chrome);
  free(merged->chrome);
}

uint64_t prof_i_event_text_epoch_ns(const prof_i_event_text *t) { return t->chrome->epoch_ns; }

/* ---- numbers of names ---- */

/* A hash table with open addressing, at most half full. */

enum { NAME_SLOTS_FIRST = 1024 };

static uint64_t name_hash(const prof_i_database_name *name) {
  uint64_t hash = PROF_I_HASH64_SEED ^ name->site;
  hash = prof_i_hash64(hash, name->name.data, (size_t)name->name.bytes);
  hash = prof_i_hash64(hash, "", 1); /* between the two */
  return prof_i_hash64(hash, name->category.data, (size_t)name->category.bytes);
}

static bool text_equals(prof_i_text a, prof_i_text b) {
  return a.bytes == b.bytes &&
         (a.data == b.data || a.bytes == 0 || memcmp(a.data, b.data, (size_t)a.bytes) == 0);
}

static bool name_equals(const prof_i_database_name *a, const prof_i_database_name *b) {
  return a->site == b->site && text_equals(a->name, b->name) &&
         text_equals(a->category, b->category);
}

/* The slot that has the name, or the free one where it belongs. */
static uint32_t *find_slot(const prof_i_name_ids *ids, const prof_i_database_name *name) {
  uint32_t at = (uint32_t)name_hash(name) & (ids->slot_count - 1);
  while (ids->slots[at] && !name_equals(&ids->names[ids->slots[at] - 1], name))
    at = (at + 1) & (ids->slot_count - 1);
  return &ids->slots[at];
}

static bool grow_slots(prof_i_name_ids *ids) {
  prof_i_name_ids larger = *ids;
  larger.slot_count = ids->slot_count ? 2 * ids->slot_count : NAME_SLOTS_FIRST;
  larger.slots = larger.slot_count ? calloc(larger.slot_count, sizeof *larger.slots) : NULL;
  if (!larger.slots) return false;
  for (uint32_t i = 0; i < ids->count; i++) *find_slot(&larger, &ids->names[i]) = i + 1;
  free(ids->slots);
  *ids = larger;
  return true;
}

uint32_t prof_i_name_id(prof_i_name_ids *ids, const prof_i_database_name *name, bool *is_new_out) {
  *is_new_out = false;
  if (ids->count >= ids->slot_count / 2 && !grow_slots(ids)) return 0;
  uint32_t *const slot = find_slot(ids, name);
  if (*slot != 0) return *slot;
  if (!prof_i_make_room((void **)&ids->names, &ids->name_room, ids->count, sizeof *ids->names))
    return 0;
  ids->names[ids->count++] = *name;
  *is_new_out = true;
  return *slot = ids->count;
}

void prof_i_name_ids_fini(prof_i_name_ids *ids) {
  free(ids->names);
  free(ids->slots);
  *ids = (prof_i_name_ids){0};
}
