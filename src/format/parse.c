/* See parse.h. */
#include "parse.h"

#include <prof/memory.h>

#include "../base/fault.h"

bool prof_i_consume_text(const uint64_t **at, uint64_t *left, prof_i_text *text_out) {
  if (*left < 1) return false;
  const uint64_t bytes = **at;
  if (bytes > (*left - 1) * 8 && !PROF_I_FAULT(NO_BOUND)) return false;
  const uint64_t words = 1 + (bytes + 7) / 8;
  *text_out = (prof_i_text){(const char *)(*at + 1), bytes};
  *at += words;
  *left -= words;
  return true;
}

static bool consume_word(const uint64_t **at, uint64_t *left, uint64_t *word_out) {
  if (*left < 1) return false;
  *word_out = *(*at)++;
  --*left;
  return true;
}

/* What scopes and instants begin with, as their flags say. */
static bool read_details(prof_i_long_record *out, const uint64_t *at, uint64_t left) {
  if ((out->flags & PROF_I_FLAG_DEVICE) && !consume_word(&at, &left, &out->device)) return false;
  if ((out->flags & PROF_I_FLAG_STREAM) && !consume_word(&at, &left, &out->stream)) return false;
  if ((out->flags & PROF_I_FLAG_LONG) && !consume_word(&at, &left, &out->duration)) return false;
  if ((out->flags & PROF_I_FLAG_NAME) && !prof_i_consume_text(&at, &left, &out->name)) return false;
  if ((out->flags & PROF_I_FLAG_CATEGORY) && !prof_i_consume_text(&at, &left, &out->category))
    return false;
  out->values = at;
  out->value_words = left;
  return (int64_t)out->duration < INT64_C(1) << 59 && (int64_t)out->duration >= -(INT64_C(1) << 59);
}

bool prof_i_launch_read(const prof_i_long_record *record, prof_i_launch_words *out) {
  const uint64_t needed = record->schema ? PROF_I_RECORD_VALUES : PROF_I_RECORD_VALUES - 1;
  if (record->kind != PROF_I_KIND_SCOPE || record->value_words < needed) return false;
  *out = (prof_i_launch_words){record->values[0], record->values[1], record->values[2],
                               record->values[3], record->schema ? (uint32_t)record->values[4] : 0};
  return true;
}

static bool has_extra_word(prof_i_verb verb) {
  return verb == PROF_I_VERB_COLLECT || verb == PROF_I_VERB_WRONG;
}

/* Words 3 and on of a record of memory; more than there can be: no such verb. */
static uint64_t memory_words(uint64_t word3, uint32_t flags) {
  const uint64_t verb = word3 & 0xffffffff;
  if (verb > PROF_I_VERB_WRONG) return UINT64_MAX;
  return UINT64_C(5) + (has_extra_word((prof_i_verb)verb) ? 1 : 0) +
         (flags & PROF_I_FLAG_STREAM ? 1 : 0);
}

/* Its first bytes are in word 2. */
static bool read_short_text(const uint64_t *words, uint64_t word_count, prof_i_long_record *out) {
  const uint64_t bytes = words[2] & PROF_I_TEXT_BYTES_MAX;
  const uint32_t of_no_part = PROF_I_FLAG_OTHER_THREAD | PROF_I_FLAG_CUT | PROF_I_FLAG_NO_DETAILS;
  out->kind = PROF_I_KIND_SCOPE;
  out->schema = prof_i_word_schema(words[2]);
  out->text = (prof_i_text){(const char *)(words + 2) + 4, bytes};
  return word_count >= 2 + prof_i_text_record_words(bytes) && !(out->flags & ~of_no_part) &&
         out->schema != 0;
}

bool prof_i_long_record_read(const uint64_t *words, uint64_t word_count, prof_i_long_record *out) {
  if (word_count < 3) return false;
  const uint64_t word2 = words[2];
  *out = (prof_i_long_record){.kind = prof_i_word_kind(word2),
                              .flags = prof_i_word_flags(word2),
                              .schema = (uint32_t)(word2 >> 32),
                              .device = PROF_DEVICE_CPU,
                              .own = words + 3,
                              .values = words + word_count};
  const uint64_t left = word_count - 3;
  switch (out->kind) {
    case PROF_I_KIND_SCOPE:
    case PROF_I_KIND_CALL:
    case PROF_I_KIND_ASYNC:
    case PROF_I_KIND_SKIPPED:
    case PROF_I_KIND_INSTANT:
      return read_details(out, words + 3, left);
    case PROF_I_KIND_TEXT:
      return read_short_text(words, word_count, out);
    case PROF_I_KIND_COUNTER:
      if (out->flags & PROF_I_FLAG_DEVICE && left >= 2) out->device = words[4];
      return left >= (out->flags & PROF_I_FLAG_DEVICE ? 2 : 1);
    case PROF_I_KIND_STEP:
      return left >= 1;
    case PROF_I_KIND_FLOW: {
      const uint64_t *name = words + 5;
      uint64_t name_left = left - 2;
      return left >= 3 && words[4] <= 1 && prof_i_consume_text(&name, &name_left, &out->name);
    }
    case PROF_I_KIND_OWNER:
      return left >= 3 + PROF_I_NAME_BYTES / 8;
    case PROF_I_KIND_EXIT:
      return left >= 3 + PROF_I_LOSS_WORDS + PROF_I_NAME_BYTES / 8;
    case PROF_I_KIND_MEMORY:
      return left >= memory_words(words[3], out->flags);
    default:
      return false; /* a number from the file, not an enum */
  }
}

bool prof_i_event_read(const uint64_t *words, prof_i_long_record *out) {
  if (!prof_i_alloc_slots(words[1]))
    return prof_i_long_record_read(words, prof_i_record_slots(words[2]) * 2, out);
  *out =
      (prof_i_long_record){.kind = PROF_I_KIND_MEMORY, .device = PROF_DEVICE_CPU, .own = words + 1};
  return true;
}

prof_i_memory_record prof_i_memory_read(const uint64_t *words, const prof_i_long_record *record) {
  const uint64_t word1 = words[1], bytes = word1 >> PROF_I_ALLOC_BYTES_SHIFT;
  const uint64_t waste = word1 >> PROF_I_ALLOC_WASTE_SHIFT & PROF_I_ALLOC_WASTE_MAX;
  const bool has_more = (word1 & 15) == PROF_I_ALLOC_MORE_TYPE;
  if (prof_i_alloc_slots(word1))
    return (prof_i_memory_record){.verb = word1 >> PROF_I_ALLOC_VERB_SHIFT & 1,
                                  .pool = word1 >> PROF_I_ALLOC_POOL_SHIFT & PROF_I_ALLOC_POOL_MAX,
                                  .address = words[2],
                                  .bytes = bytes,
                                  .requested = has_more ? words[4] >> PROF_I_ALLOC_BYTES_SHIFT
                                               : bytes > waste ? bytes - waste
                                                               : 0,
                                  .tag = has_more ? words[4] & PROF_I_SITE_COUNT_MAX : 0,
                                  .counter = words[3],
                                  .stream = has_more ? words[5] : PROF_NO_STREAM};
  const prof_i_verb verb = words[3] & 0xff;
  const uint64_t *const behind = words + 8;
  const bool has_extra = has_extra_word(verb);
  return (prof_i_memory_record){
      .verb = verb,
      .pool = (uint32_t)(words[3] >> 32),
      .tag = prof_i_record_site(word1),
      .address = words[4],
      .bytes = words[5],
      .requested = verb == PROF_I_VERB_ALLOC ? words[7] : words[5],
      .counter = words[6],
      .allocated = verb >= PROF_I_VERB_RESERVE ? words[7] : 0,
      .extra = has_extra ? behind[0] : 0,
      .stream = record->flags & PROF_I_FLAG_STREAM ? behind[has_extra] : PROF_NO_STREAM};
}

uint64_t prof_i_long_record_slots(const uint64_t *at, uint64_t slots_left) {
  const uint64_t piece = prof_i_alloc_slots(at[1]);
  if (piece) return piece <= slots_left ? piece : 0;
  if ((at[1] & 15) != 1 || slots_left < 2) return 0;
  const uint64_t slots = prof_i_record_slots(at[2]);
  return slots >= 2 && slots <= slots_left ? slots : 0;
}

prof_i_parse_result prof_i_parse_uncommitted(uint64_t word0, uint64_t slots_left,
                                             uint64_t generation, uint64_t *slots_out) {
  const uint64_t slots = word0 >> PROF_I_PENDING_SLOTS_SHIFT & 0xffff;
  *slots_out = 1;
  if (!prof_i_is_marked(word0, generation)) return PROF_I_PARSED_UNFINISHED;
  *slots_out = slots < slots_left ? slots : slots_left;
  return word0 >> PROF_I_FILLER_BIT & 1 ? PROF_I_PARSED_FILLER : PROF_I_PARSED_UNFINISHED;
}

prof_i_parse_result prof_i_parse_long_record(const uint64_t *at, uint64_t slots_left,
                                             uint64_t generation, uint64_t *slots_out,
                                             prof_i_long_record *record_out) {
  *slots_out = 1;
  if (!prof_i_is_committed(at[0], generation))
    return prof_i_parse_uncommitted(at[0], slots_left, generation, slots_out);
  const uint64_t slots = prof_i_long_record_slots(at, slots_left);
  if (slots == 0 || !prof_i_event_read(at, record_out)) return PROF_I_PARSED_BAD;
  *slots_out = slots;
  return record_out->kind < PROF_I_KIND_OWNER ? PROF_I_PARSED_EVENT : PROF_I_PARSED_THREAD;
}

static bool consume_tensor(const uint64_t **at, uint64_t *left, prof_trace_arg *value_out) {
  uint64_t word = 0;
  if (!consume_word(at, left, &word)) return false;
  const uint32_t rank = (uint32_t)word;
  if (rank > *left) return false;
  value_out->value.tensor.dims = (const int64_t *)*at;
  value_out->value.tensor.rank = rank;
  value_out->value.tensor.dtype = (uint32_t)(word >> 32);
  *at += rank;
  *left -= rank;
  return true;
}

bool prof_i_consume_value(prof_i_values *values, uint32_t type, prof_trace_arg *value_out) {
  const uint64_t **const at = &values->at;
  uint64_t *const left = &values->left;
  prof_i_text text = values->text;
  value_out->type = type;
  if (text.data && type != PROF_ARG_STRING) return false;
  if (type == PROF_ARG_TENSOR) return consume_tensor(at, left, value_out);
  if (type != PROF_ARG_STRING) return consume_word(at, left, &value_out->value.u64);
  if (!text.data && !prof_i_consume_text(at, left, &text)) return false;
  values->text.data = NULL;
  value_out->value.text.data = text.data;
  value_out->value.text.bytes = text.bytes;
  return true;
}

bool prof_i_values_fit(const prof_i_long_record *record, const prof_i_schema *schema) {
  prof_i_values values = prof_i_values_of(record);
  prof_trace_arg value;
  for (uint32_t i = 0; i < schema->count; i++)
    if (!prof_i_consume_value(&values, schema->types[i], &value))
      return (record->flags & PROF_I_FLAG_CUT) != 0;
  return true;
}
