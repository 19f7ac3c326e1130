/* Expands a span to the public event: name, category, device, arguments. Nothing is copied: texts
   stay in the capture. */
#include <prof/memory.h>
#include <string.h>

#include "../format/parse.h"
#include "capture.h"

static void set_texts(prof_event *event, prof_i_text name, prof_i_text category) {
  event->name = name.data;
  event->name_bytes = (uint32_t)name.bytes;
  event->category = category.data;
  event->category_bytes = (uint32_t)category.bytes;
}

/* Fills what every span has, and clears the rest. args beyond arg_count are not touched. */
static void set_plain(const prof_i_site_info *site, uint32_t thread, const prof_i_span *span,
                      prof_event *event) {
  event->kind = span->kind;
  event->thread = thread;
  event->start_ns = span->start_ns;
  event->duration_ns = span->duration_ns;
  event->self_ns = span->self_ns;
  event->depth = span->depth;
  event->site = span->site;
  event->level = site->level;
  event->flags = 0;
  set_texts(event, site->name, site->category);
  event->device = (prof_device){PROF_DEVICE_CPU, 0};
  event->stream = 0;
  event->id = 0;
  event->value = 0;
  event->args_kind = PROF_ARGS_PAIRS;
  event->arg_count = 0;
  event->format = NULL;
  event->format_bytes = 0;
  event->reserved = 0;
}

static prof_i_text schema_text(const prof_i_schema *schema, uint32_t word) {
  return (prof_i_text){(const char *)(schema->record + word + 1), schema->record[word]};
}

/* first: earlier arguments are internal. */
static void set_args(const prof_i_long_record *record, const prof_i_schema *schema, uint32_t first,
                     prof_event *event) {
  prof_i_values values = prof_i_values_of(record);
  event->args_kind = schema->kind;
  if (schema->kind == PROF_ARGS_FORMAT) {
    const prof_i_text format = schema_text(schema, schema->format);
    event->format = format.data;
    event->format_bytes = (uint32_t)format.bytes;
  }
  for (uint32_t i = 0; i < schema->count; i++) {
    prof_trace_arg *const arg = &event->args[i < first ? 0 : i - first];
    if (!prof_i_consume_value(&values, schema->types[i], arg)) return;
    if (i < first) continue;
    const prof_i_text key = schema_text(schema, schema->keys[i]);
    const bool has_key =
        schema->kind == PROF_ARGS_PAIRS || (schema->kind == PROF_ARGS_SHAPES && key.bytes > 0);
    arg->key = has_key ? key.data : NULL;
    arg->key_bytes = has_key ? (uint32_t)key.bytes : 0;
    event->arg_count = i - first + 1;
  }
}

static void set_launch(const prof_trace *trace, const prof_i_long_record *record,
                       prof_event *event) {
  prof_i_launch_words words;
  if (!prof_i_launch_read(record, &words)) return;
  const prof_i_trace_thread *const thread = prof_i_index_thread(trace, words.serial);
  event->flags |= PROF_EVENT_ON_DEVICE;
  event->launch =
      (prof_event_launch){.start_ns = prof_i_trace_ns(trace, words.ticks),
                          .thread = thread ? (uint32_t)(thread - trace->threads) : UINT32_MAX,
                          .record = words.kind,
                          .device_start_ns = words.device_start_ns,
                          .device_end_ns = words.device_end_ns};
}

static prof_device record_device(const prof_i_long_record *record) {
  return (prof_device){(int32_t)(uint32_t)record->device, (int32_t)(record->device >> 32)};
}

static void set_details(const prof_trace *trace, const prof_i_long_record *record,
                        prof_event *event) {
  const struct {
    uint32_t in, out;
  } flags[] = {{PROF_I_FLAG_STREAM, PROF_EVENT_ON_STREAM},
               {PROF_I_FLAG_OTHER_THREAD, PROF_EVENT_OTHER_THREAD},
               {PROF_I_FLAG_CUT, PROF_EVENT_CUT},
               {PROF_I_FLAG_NO_DETAILS, PROF_EVENT_NO_DETAILS}};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    event->flags |= record->flags & flags[i].in ? flags[i].out : 0;
  if (record->name.data) {
    event->name = record->name.data;
    event->name_bytes = (uint32_t)record->name.bytes;
  }
  if (record->category.data) {
    event->category = record->category.data;
    event->category_bytes = (uint32_t)record->category.bytes;
  }
  event->device = record_device(record);
  event->stream = record->stream;
  const bool is_on_device = prof_i_thread_is_stream(&trace->threads[event->thread]);
  if (is_on_device) set_launch(trace, record, event);
  const prof_i_schema *const schema =
      record->schema ? prof_i_catalog_schema(&trace->catalog, record->schema) : NULL;
  if (schema) set_args(record, schema, is_on_device ? PROF_I_RECORD_VALUES : 0, event);
}

/* The public interface counts from 1, the capture from 0. */
#define SAME_VERB(name) \
  _Static_assert((int)PROF_MEMORY_##name == (int)PROF_I_VERB_##name + 1, #name)
SAME_VERB(ALLOC);
SAME_VERB(FREE);
SAME_VERB(RESERVE);
SAME_VERB(RELEASE);
SAME_VERB(COLLECT);
SAME_VERB(OOM);
SAME_VERB(SAMPLE);
SAME_VERB(WRONG);

/* Its name says what happened, as does its tag. A pool that the catalog lacks has no device. */
static void set_memory(const prof_trace *trace, const uint64_t *words,
                       const prof_i_long_record *record, prof_event *event) {
  static const prof_i_text category = {"memory", 6};
  static const prof_i_text names[] = {
      [PROF_I_VERB_ALLOC] = {"alloc", 5},     [PROF_I_VERB_FREE] = {"free", 4},
      [PROF_I_VERB_RESERVE] = {"reserve", 7}, [PROF_I_VERB_RELEASE] = {"release", 7},
      [PROF_I_VERB_COLLECT] = {"collect", 7}, [PROF_I_VERB_OOM] = {"out of memory", 13},
      [PROF_I_VERB_SAMPLE] = {"sample", 6},   [PROF_I_VERB_WRONG] = {"wrong call", 10}};
  const prof_i_memory_record memory = prof_i_memory_read(words, record);
  const prof_i_pool_record *const pool = prof_i_catalog_pool(&trace->catalog, memory.pool);
  const bool is_sample = memory.verb == PROF_I_VERB_SAMPLE;
  set_texts(event, names[memory.verb], category);
  if (pool) event->device = pool->device;
  if (memory.stream != PROF_NO_STREAM) {
    event->flags |= PROF_EVENT_ON_STREAM;
    event->stream = memory.stream;
  }
  event->memory = (prof_event_memory){
      .verb = memory.verb + 1u,
      .pool = memory.pool,
      .address = memory.address,
      .bytes = is_sample ? 0 : memory.bytes,
      .requested_bytes = is_sample ? 0 : memory.requested,
      .used_bytes = is_sample ? (int64_t)memory.bytes : prof_i_used_bytes(memory.counter),
      .allocated_bytes = memory.allocated ? (int64_t)(memory.allocated - PROF_I_USED_ZERO) : -1,
      .wrong = memory.verb == PROF_I_VERB_WRONG ? (uint32_t)memory.extra : 0};
  if (memory.verb == PROF_I_VERB_COLLECT) {
    const uint64_t end = words[0] >> 4, begin = end > memory.extra ? end - memory.extra : 0;
    const uint64_t end_ns = prof_i_trace_ns(trace, end), begin_ns = prof_i_trace_ns(trace, begin);
    event->duration_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
  }
  if (!memory.tag) return;
  const prof_i_site_info *const tag = prof_i_catalog_site(&trace->catalog, memory.tag);
  event->memory.tag = tag->name.data;
  event->memory.tag_bytes = (uint32_t)tag->name.bytes;
}

/* Adds the parts of a long record. Out of line, so that plain scopes save no registers. */
static __attribute__((noinline)) void set_long_record(const prof_trace *trace,
                                                      const uint64_t *words,
                                                      prof_event *event_out) {
  static const prof_i_text step = {"ProfilerStep", 12}, step_category = {"step", 4},
                           flow_category = {"flow", 4};
  prof_i_long_record record;
  if (event_out->kind == PROF_EVENT_MEMORY
          ? !prof_i_event_read(words, &record)
          : !prof_i_long_record_read(words, prof_i_record_slots(words[2]) * 2, &record))
    return;
  switch (record.kind) {
    case PROF_I_KIND_CALL:
      event_out->flags |= PROF_EVENT_CALL;
      set_details(trace, &record, event_out);
      return;
    case PROF_I_KIND_ASYNC:
      event_out->flags |= PROF_EVENT_ASYNC;
      set_details(trace, &record, event_out);
      return;
    case PROF_I_KIND_SKIPPED:
      event_out->flags |= PROF_EVENT_SKIPPED;
      set_details(trace, &record, event_out);
      return;
    case PROF_I_KIND_SCOPE:
    case PROF_I_KIND_INSTANT:
      set_details(trace, &record, event_out);
      return;
    case PROF_I_KIND_COUNTER:
      memcpy(&event_out->value, record.own, sizeof event_out->value);
      event_out->device = record_device(&record);
      return;
    case PROF_I_KIND_MEMORY:
      set_memory(trace, words, &record, event_out);
      return;
    case PROF_I_KIND_FLOW:
      set_texts(event_out, record.name, flow_category);
      event_out->id = record.own[0];
      return;
    case PROF_I_KIND_STEP:
      set_texts(event_out, step, step_category);
      event_out->id = record.own[0];
      return;
  }
}

void prof_i_trace_expand(const prof_trace *trace, uint32_t thread, const prof_i_span *span,
                         prof_event *event_out) {
  set_plain(prof_i_catalog_site(&trace->catalog, span->site), thread, span, event_out);
  if (span->record) set_long_record(trace, span->record, event_out);
}

prof_i_text prof_i_trace_category(const prof_trace *trace, const prof_i_span *span) {
  prof_i_long_record record;
  const uint64_t *const words = span->record;
  if (words && prof_i_long_record_read(words, prof_i_record_slots(words[2]) * 2, &record) &&
      record.category.data)
    return record.category;
  return prof_i_catalog_site(&trace->catalog, span->site)->category;
}
