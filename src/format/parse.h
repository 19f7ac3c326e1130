/* Reading one record: what stands at a 16-byte slot, and where its parts are. The only place that
   takes records apart; every length is checked against the room that the caller names. Pure
   functions. */
#ifndef PROF_FORMAT_PARSE_H
#define PROF_FORMAT_PARSE_H

#include <stdbool.h>

#include "../reader/capture.h"

typedef enum prof_i_parse_result {
  PROF_I_PARSED_PLAIN,      /* a plain scope */
  PROF_I_PARSED_EVENT,      /* a long record of something that happened */
  PROF_I_PARSED_THREAD,     /* OWNER or EXIT */
  PROF_I_PARSED_UNFINISHED, /* claimed, never committed */
  PROF_I_PARSED_FILLER,     /* room given up: no loss */
  /* committed, and not to be understood: what follows is looked at slot by slot */
  PROF_I_PARSED_BAD
} prof_i_parse_result;

static inline uint32_t prof_i_word_kind(uint64_t word2) { return word2 >> 16 & 0xff; }
static inline uint32_t prof_i_word_flags(uint64_t word2) { return word2 >> 24 & 0xff; }
static inline uint32_t prof_i_word_schema(uint64_t word2) {
  return prof_i_word_kind(word2) == PROF_I_KIND_TEXT
             ? (uint32_t)(word2 >> PROF_I_TEXT_SCHEMA_SHIFT & PROF_I_TEXT_SCHEMA_MAX)
             : (uint32_t)(word2 >> 32);
}

static inline bool prof_i_is_scope(uint32_t kind) {
  return kind == PROF_I_KIND_SCOPE || kind == PROF_I_KIND_CALL || kind == PROF_I_KIND_ASYNC ||
         kind == PROF_I_KIND_SKIPPED;
}

/* Of a long record's words: is it no thread's own time? */
static inline bool prof_i_is_async(const uint64_t *words) {
  return prof_i_word_kind(words[2]) == PROF_I_KIND_ASYNC ||
         prof_i_word_flags(words[2]) & PROF_I_FLAG_OTHER_THREAD;
}

/* Of a long record's words: did a jump leave it? Its end is that of an older block. */
static inline bool prof_i_is_skipped(const uint64_t *words) {
  return prof_i_word_kind(words[2]) == PROF_I_KIND_SKIPPED;
}

/* Of a long record's words. */
static inline bool prof_i_is_call(const uint64_t *words) {
  return prof_i_word_kind(words[2]) == PROF_I_KIND_CALL;
}

/* A long record's parts. Texts without data are not there. */
typedef struct prof_i_long_record {
  uint32_t kind, flags, schema; /* kind: never PROF_I_KIND_TEXT, which reads as a scope */
  uint64_t duration;            /* of LONG, signed; else 0, and word 1 has it */
  uint64_t device;              /* type | index << 32 */
  uint64_t stream;
  prof_i_text name, category;
  const uint64_t *own;    /* words 3 and on of the kinds that are not like scopes */
  const uint64_t *values; /* what is left */
  uint64_t value_words;
  prof_i_text text; /* of PROF_I_KIND_TEXT: its only value */
} prof_i_long_record;

/* The slots of the long record that was begun here, 2 to slots_left; 0 when this is not one. Of a
   committed one that means damage. */
uint64_t prof_i_long_record_slots(const uint64_t *at, uint64_t slots_left);

/* A slot whose word 0 is no commit: FILLER or UNFINISHED, and how many slots it says to step over:
   one, unless it is marked. */
prof_i_parse_result prof_i_parse_uncommitted(uint64_t word0, uint64_t slots_left,
                                             uint64_t generation, uint64_t *slots_out);

/* Takes apart a record of that many words, of a thread's chunk. False: its parts do not fit, or its
   kind is unknown. Words 0 and 1 are not looked at. */
bool prof_i_long_record_read(const uint64_t *words, uint64_t word_count, prof_i_long_record *out);

/* A record that prof_i_parse_record() took for an event's and that is no plain scope's: all of its
   words are there. Not an open scope's payload, which has no word 1. */
bool prof_i_event_read(const uint64_t *words, prof_i_long_record *out);

/* What a record of memory says, short or long. */
typedef struct prof_i_memory_record {
  prof_i_verb verb;
  uint32_t pool, tag;
  uint64_t address, bytes, requested, counter;
  uint64_t allocated; /* of those that say it: after it, from PROF_I_USED_ZERO on */
  uint64_t extra;     /* COLLECT: ticks; WRONG: prof_memory_wrong */
  uint64_t stream;    /* PROF_NO_STREAM: none */
} prof_i_memory_record;
prof_i_memory_record prof_i_memory_read(const uint64_t *words, const prof_i_long_record *record);

/* What stands at a slot, and how many slots it takes: 1 to slots_left. record_out is filled for
   EVENT and THREAD. */
prof_i_parse_result prof_i_parse_long_record(const uint64_t *at, uint64_t slots_left,
                                             uint64_t generation, uint64_t *slots_out,
                                             prof_i_long_record *record_out);
static inline bool prof_i_is_committed(uint64_t word0, uint64_t generation) {
  return (word0 & PROF_I_GENERATION_MASK) == generation;
}
/* Word 0 of a long record that is being written, or of room given up: it says how much. */
static inline bool prof_i_is_marked(uint64_t word0, uint64_t generation) {
  return (word0 & 15) == 0 && (word0 >> 4 & 15) == generation &&
         (word0 >> PROF_I_PENDING_SLOTS_SHIFT & 0xffff) != 0 &&
         word0 >> (PROF_I_FILLER_BIT + 1) == 0;
}
static inline bool prof_i_is_plain(const uint64_t *at, uint64_t generation) {
  return prof_i_is_committed(at[0], generation) && (at[1] & 15) == 0;
}
static inline prof_i_parse_result prof_i_parse_record(const uint64_t *at, uint64_t slots_left,
                                                      uint64_t generation, uint64_t *slots_out,
                                                      prof_i_long_record *record_out) {
  if (prof_i_is_plain(at, generation)) {
    *slots_out = 1;
    return PROF_I_PARSED_PLAIN;
  }
  return prof_i_parse_long_record(at, slots_left, generation, slots_out, record_out);
}

/* Ticks of a word 0 since the capture's start. 60 bits that may wrap: negative when another
   processor's counter is a little behind. */
static inline int64_t prof_i_ticks_since(uint64_t word0, uint64_t start_ticks) {
  return (int64_t)(word0 - (start_ticks << 4)) >> 4;
}

/* What a scope of a stream says beyond a scope: who launched it and when, and its times as the
   device has them. False: it does not. */
typedef struct prof_i_launch_words {
  uint64_t serial, ticks, device_start_ns, device_end_ns;
  /* prof_backend_kind, of what its vendor's own tracing told; 0: the device's side of a scope */
  uint32_t kind;
} prof_i_launch_words;
enum { PROF_I_RECORD_VALUES = 5 }; /* of a record with a schema so many values are these */
bool prof_i_launch_read(const prof_i_long_record *record, prof_i_launch_words *out);

/* An event's place in time. */
typedef struct prof_i_interval {
  uint64_t start, end;
} prof_i_interval;

static inline prof_i_interval prof_i_interval_of(uint64_t word0, uint64_t duration,
                                                 uint64_t start_ticks) {
  const int64_t start = prof_i_ticks_since(word0, start_ticks);
  const int64_t end = start + (int64_t)duration;
  if (__builtin_expect(start < 0, 0)) return (prof_i_interval){0, end > 0 ? (uint64_t)end : 0};
  return (prof_i_interval){(uint64_t)start, (uint64_t)end};
}

static inline prof_i_interval prof_i_plain_interval(const uint64_t *words, uint64_t start_ticks) {
  return prof_i_interval_of(words[0], words[1] >> PROF_I_DURATION_SHIFT, start_ticks);
}
/* Signed: negative where the counter went back. 0 of what is no scope. */
static inline int64_t prof_i_event_ticks(const uint64_t *words, const prof_i_long_record *record) {
  if (!prof_i_is_scope(record->kind)) return 0;
  return (int64_t)(record->flags & PROF_I_FLAG_LONG ? record->duration
                                                    : words[1] >> PROF_I_DURATION_SHIFT);
}

/* Of a segment that stretches its scopes over a jump of the counter. What ended before it began
   takes no time. */
static inline uint64_t prof_i_corrected_duration(int64_t duration, int64_t clock_offset) {
  return duration + clock_offset > 0 ? (uint64_t)(duration + clock_offset) : 0;
}
static inline prof_i_interval prof_i_plain_interval_in(const uint64_t *words, uint64_t start_ticks,
                                                       int64_t clock_offset) {
  return prof_i_interval_of(
      words[0],
      prof_i_corrected_duration((int64_t)(words[1] >> PROF_I_DURATION_SHIFT), clock_offset),
      start_ticks);
}
static inline prof_i_interval prof_i_event_interval(const uint64_t *words,
                                                    const prof_i_long_record *record,
                                                    uint64_t start_ticks, int64_t clock_offset) {
  return prof_i_interval_of(
      words[0],
      prof_i_corrected_duration(prof_i_event_ticks(words, record),
                                prof_i_is_scope(record->kind) ? clock_offset : 0),
      start_ticks);
}

/* Takes a text off the front of *at, *left words. */
bool prof_i_consume_text(const uint64_t **at, uint64_t *left, prof_i_text *text_out);

/* The values of a record that have not been taken yet. */
typedef struct prof_i_values {
  const uint64_t *at;
  uint64_t left;    /* words */
  prof_i_text text; /* instead of words */
} prof_i_values;
static inline prof_i_values prof_i_values_of(const prof_i_long_record *record) {
  return (prof_i_values){record->values, record->value_words, record->text};
}

/* Takes one value of that type off the front, into what prof_event hands out. False: it does not
   fit. */
bool prof_i_consume_value(prof_i_values *values, uint32_t type, prof_trace_arg *value_out);

/* Whether the values are as the schema says; fewer of them when the record says that some were left
   out. */
bool prof_i_values_fit(const prof_i_long_record *record, const prof_i_schema *schema);

#endif
