/* Chrome JSON: all events but plain scopes (chrome_plain.c): with arguments, of devices, steps,
   instants. Keeps counters and ends of arrows until all threads are written. */
#include <stdio.h>
#include <string.h>

#include "../base/text.h"
#include "chrome.h"

/* {"ph":"X","cat":"c","name":"n","pid":1,"tid":2,"ts":3.000   of w->event-> */
static void put_event_begin(prof_i_chrome *w, const char *begin, const prof_i_span *span) {
  const prof_event *const event = w->event;
  prof_i_sink *const sink = w->sink;
  const prof_i_text category =
      prof_i_text_or((prof_i_text){event->category, event->category_bytes}, "scope");
  const prof_i_text name =
      prof_i_text_or((prof_i_text){event->name, event->name_bytes}, "(unnamed)");
  prof_i_sink_text(sink, begin);
  prof_i_sink_text(sink, ",\"cat\":\"");
  prof_i_sink_string_part(sink, category.data, category.bytes);
  prof_i_sink_text(sink, "\",\"name\":\"");
  prof_i_sink_string_part(sink, name.data, name.bytes);
  prof_i_chrome_put_track_time(w, span->start_ns);
}

static void put_duration(prof_i_chrome *w, uint64_t duration_ns) {
  prof_i_sink_text(w->sink, ",\"dur\":");
  char *const to = prof_i_sink_reserve(w->sink, PROF_I_NUMBER_ROOM);
  prof_i_sink_advance(w->sink, prof_i_put_us(to, duration_ns));
}

static const char args_begin[] = ",\"args\":{";

/* A member of "args", or nothing. The text begins with a comma. The first one begins "args". */
static void put_member(prof_i_chrome *w, bool *has_members, const char *text, size_t bytes) {
  if (bytes == 0) return;
  const size_t skipped = *has_members ? 0 : 1;
  if (!*has_members) prof_i_sink_text(w->sink, args_begin);
  prof_i_sink_bytes(w->sink, text + skipped, bytes - skipped);
  *has_members = true;
}

static void put_member_text(prof_i_chrome *w, bool *has_members, const char *text) {
  put_member(w, has_members, text, strlen(text));
}

/* Readers tie a launch to what ran by it. */
static void put_correlation(prof_i_chrome *w, uint64_t id) {
  prof_i_sink_text(w->sink, ",\"correlation\":");
  prof_i_sink_u64(w->sink, id);
}

/* "Call stack" of w->event, where it has none of its own: the traced functions around it. False: no
   memory. */
static bool put_callers(prof_i_chrome *w, const prof_i_span *span, bool *has_members) {
  const size_t key_bytes = sizeof PROF_STACK_KEY - 1;
  uint32_t number;
  prof_i_text stack;
  const prof_i_text name = {w->event->name, w->event->name_bytes};
  if (!prof_i_call_stacks_has_any(&w->call_stacks) ||
      !prof_i_chrome_has_callers(w, span->site, name))
    return true;
  for (uint32_t i = 0; i < w->event->arg_count; i++)
    if (w->event->args[i].key_bytes == key_bytes &&
        memcmp(w->event->args[i].key, PROF_STACK_KEY, key_bytes) == 0)
      return true;
  if (!prof_i_call_stacks_of_span(&w->call_stacks, w->walker, span, &number) ||
      !prof_i_call_stacks_text(&w->call_stacks, number, true, &stack))
    return false;
  if (stack.bytes == 0) return true;
  put_member_text(w, has_members, ",\"" PROF_STACK_KEY "\":");
  prof_i_chrome_put_stack(w, stack);
  return true;
}

/* Takes the id that is reserved for the scope of lane 0 at that depth. 0: none. */
static uint64_t take_reserved_id(prof_i_chrome *w, const prof_i_span *span) {
  if (w->owner_count == 0 || span->lane != 0 || span->depth >= PROF_I_OWNER_DEPTHS ||
      w->owner_ids[span->depth] == 0)
    return 0;
  const uint64_t id = w->owner_ids[span->depth];
  w->owner_ids[span->depth] = 0;
  w->owner_count--;
  return id;
}

/* As in Kineto, a call has the External id of the operator or range around it. Readers assign its
   kernels to an operator by this id (chrome_numbers.c). Without an operator or range, it is the id
   of the scope around the call, or 0 outside of all scopes. That scope is written after the call,
   so its number is reserved in advance. A call inside of another call passes the reservation on. If
   that call's scope has a reservation already, no row has the inner call's number. *is_used:
   another row has the number. */
static uint64_t external_id_of(prof_i_chrome *w, const prof_i_span *span, uint64_t id,
                               bool *is_used) {
  const uint64_t reserved_index = take_reserved_id(w, span);
  *is_used = reserved_index != 0;
  if ((w->event->flags & PROF_EVENT_CALL) == 0) return reserved_index ? reserved_index : id;
  const uint64_t operator_id = prof_i_call_owners_next_id(&w->numbers.owners, span);
  if (operator_id) return operator_id;
  if (span->lane != 0 || span->depth == 0 || span->depth > PROF_I_OWNER_DEPTHS) return 0;
  uint64_t *const owner = &w->owner_ids[span->depth - 1];
  if (*owner == 0) {
    *owner = reserved_index ? reserved_index : id;
    w->owner_count++;
  }
  return *owner;
}

/* Where a function is defined. */
static void put_location(prof_i_chrome *w, const prof_i_span *span, bool *has_members) {
  const prof_i_site_info *const site = prof_i_trace_site(w->trace, span->site);
  size_t bytes;
  w->has_location =
      prof_i_is_function_category((prof_i_text){w->event->category, w->event->category_bytes}) ||
      prof_i_is_named_by_function(site);
  if (w->has_location &&
      prof_i_chrome_location_text(site, (prof_i_text){w->event->name, w->event->name_bytes},
                                  w->location_text, sizeof w->location_text, &bytes))
    put_member(w, has_members, w->location_text, bytes);
}

/* False: no memory. */
static bool put_python(prof_i_chrome *w, const prof_i_span *span, bool *has_members) {
  char text[64 + 2 * PROF_I_NUMBER_ROOM];
  prof_i_python_id id = {0};
  if (!w->walker || !prof_i_python_ids_is_call(&w->python_ids, span)) return true;
  if (!prof_i_python_ids_next(&w->python_ids, w->walker, span, &id)) return false;
  if (w->selection) id.parent = 0; /* the parent's row may be left out */
  put_member(w, has_members, text, (size_t)(prof_i_chrome_put_python_id(text, &id) - text));
  w->has_python_id = true;
  return true;
}

/* Numbers of autograd's range around a backward call are that call's, whose row stands before its
   own: Kineto gives them to both. Arrows are the call's alone. */
static void put_torch_numbers(prof_i_chrome *w, const prof_i_span *span, bool *has_members) {
  const prof_i_call_numbers own = prof_i_call_numbers_of(w->event);
  if (!prof_i_backward_is_range((prof_i_text){w->event->name, w->event->name_bytes})) {
    prof_i_forwards_add(&w->forwards, w->event, span->start_ns, w->ids.pid,
                        prof_i_tids_row(&w->ids, span->lane), w->is_passing_over);
    if (!own.forward_thread || span->lane) return;
    w->backward = own;
    w->backward_start_ns = span->start_ns;
    w->backward_depth = span->depth;
    return;
  }
  const bool is_inside =
      w->backward_depth == (uint32_t)span->depth + 1 && w->backward_start_ns >= span->start_ns;
  if (!w->backward.forward_thread || !is_inside || span->lane || w->event->arg_count) return;
  put_member_text(w, has_members, ",\"Sequence number\":");
  prof_i_sink_i64(w->sink, w->backward.sequence);
  prof_i_sink_text(w->sink, ",\"Fwd thread id\":");
  prof_i_sink_u64(w->sink, w->backward.forward_thread);
  w->backward.forward_thread = 0;
}

static void put_number(prof_i_chrome *w, prof_i_number_kind kind, uint64_t number,
                       bool *has_members) {
  char text[64 + PROF_I_NUMBER_ROOM];
  if (kind == PROF_I_NUMBER_NONE) return;
  put_member(w, has_members, text,
             (size_t)(prof_i_chrome_put_event_number(text, kind, number) - text));
}

/* The ids that tie rows to each other. Operators have one always, because readers expect it. */
static void put_ids(prof_i_chrome *w, const prof_i_span *span, prof_i_number_kind kind,
                    uint64_t number, bool *has_members) {
  const uint64_t id = kind == PROF_I_NUMBER_OPERATOR ? number + 1 : ++w->external_id;
  bool is_used;
  const uint64_t external_id = external_id_of(w, span, id, &is_used);
  const bool has_launched =
      w->has_launches && prof_i_chrome_correlate(w, span, id, external_id,
                                                 (w->event->flags & PROF_EVENT_ON_STREAM) != 0);
  if (!is_used && !has_launched && kind != PROF_I_NUMBER_OPERATOR &&
      span->kind != PROF_EVENT_STEP && (w->event->flags & PROF_EVENT_CALL) == 0)
    return;
  put_member_text(w, has_members, ",\"External id\":");
  prof_i_sink_u64(w->sink, external_id);
  if (has_launched) put_correlation(w, id);
}

/* False: no memory. */
static bool put_scope(prof_i_chrome *w, const prof_i_span *span) {
  const prof_i_number_kind kind = prof_i_event_numbers_kind(&w->numbers, span);
  const uint64_t number =
      kind == PROF_I_NUMBER_NONE ? 0 : prof_i_event_numbers_next(&w->numbers, w->thread, kind);
  bool has_members = false;
  put_event_begin(w, "{\"ph\":\"X\"", span);
  put_duration(w, span->duration_ns);
  put_ids(w, span, kind, number, &has_members);
  put_number(w, kind, number, &has_members);
  if (span->kind == PROF_EVENT_OPEN) put_member_text(w, &has_members, ",\"unfinished\":true");
  /* prof import takes it for a mark by this, and a scope of that name for a scope */
  if (span->kind == PROF_EVENT_STEP) {
    put_member_text(w, &has_members, ",\"step mark\":");
    prof_i_sink_u64(w->sink, w->event->id);
  }
  put_torch_numbers(w, span, &has_members);
  const bool has_memory = put_python(w, span, &has_members) && put_callers(w, span, &has_members);
  if (span->kind != PROF_EVENT_STEP) put_location(w, span, &has_members);
  const bool has_args = prof_i_chrome_has_args(w->event);
  if (has_args && !has_members) prof_i_sink_text(w->sink, args_begin);
  if (has_args) prof_i_chrome_put_args(w, has_members);
  w->has_location = w->has_python_id = false;
  prof_i_sink_text(w->sink, has_args || has_members ? "}},\n" : "},\n");
  return has_memory;
}

/* A scope's own side, as Kineto writes a user's annotation on a device; a kernel or a copy, as
   Kineto writes those. */
static void put_device_event(prof_i_chrome *w, const prof_i_span *span) {
  const prof_i_correlation *const correlation = prof_i_chrome_correlation_of(w, span);
  const bool is_record = w->event->launch.record != 0;
  if (!is_record) {
    w->event->category = "gpu_user_annotation";
    w->event->category_bytes = sizeof "gpu_user_annotation" - 1;
  }
  put_event_begin(w, "{\"ph\":\"X\"", span);
  put_duration(w, span->duration_ns);
  prof_i_sink_text(w->sink, ",\"args\":{");
  if (correlation) {
    prof_i_sink_text(w->sink, "\"External id\":");
    prof_i_sink_u64(w->sink, correlation->external_id);
    put_correlation(w, correlation->id);
  }
  prof_i_sink_text(w->sink, correlation ? ",\"device\":" : "\"device\":");
  prof_i_sink_i64(w->sink, w->event->device.index);
  prof_i_sink_text(w->sink, ",\"stream\":");
  prof_i_sink_u64(w->sink, w->ids.first);
  if (is_record) {
    if (w->event->launch.record == PROF_RECORD_ANNOTATION)
      prof_i_sink_text(w->sink, ",\"annotation\":true");
    w->event->flags &= ~(uint32_t)PROF_EVENT_ON_STREAM; /* it is said */
    w->event->device.type = PROF_DEVICE_CPU;
    prof_i_chrome_put_args(w, true);
  }
  prof_i_sink_text(w->sink, "}},\n");
}

static bool put_step(prof_i_chrome *w, const prof_i_span *span) {
  char name[64];
  const int bytes =
      snprintf(name, sizeof name, "ProfilerStep#%llu", (unsigned long long)w->event->id);
  w->event->name = name;
  w->event->name_bytes = (uint32_t)bytes;
  w->event->category = "user_annotation";
  w->event->category_bytes = sizeof "user_annotation" - 1;
  w->event->flags = w->event->arg_count = 0;
  const bool has_memory = put_scope(w, span);
  w->event->name = NULL;
  return has_memory;
}

static void put_instant(prof_i_chrome *w, const prof_i_span *span) {
  put_event_begin(w, "{\"ph\":\"i\",\"s\":\"t\"", span);
  prof_i_sink_text(w->sink, ",\"args\":{");
  prof_i_chrome_put_args(w, false);
  prof_i_sink_text(w->sink, "}},\n");
  w->written.instant_count++;
}

static void keep_flow(prof_i_chrome *w, const prof_i_span *span) {
  const prof_event *const event = w->event;
  const prof_i_flow flow = {.id = event->id,
                            .start_ns = span->start_ns,
                            .name = event->name,
                            .name_bytes = event->name_bytes,
                            .pid = (uint32_t)w->ids.pid,
                            .tid = (uint32_t)prof_i_tids_row(&w->ids, 0),
                            .depth = span->depth,
                            .is_end = span->kind == PROF_EVENT_FLOW_END};
  if (!prof_i_flows_add(&w->flows, &flow)) w->check.findings.counts[PROF_I_FINDING_FLOW_TOO_MANY]++;
}

/* False: no memory. */
static bool put_event(prof_i_chrome *w, const prof_i_span *span) {
  switch ((prof_event_kind)span->kind) {
    case PROF_EVENT_SCOPE:
    case PROF_EVENT_OPEN:
      if (w->event->name_bytes == 0) w->check.findings.counts[PROF_I_FINDING_UNNAMED]++;
      w->written.open_count += span->kind == PROF_EVENT_OPEN;
      w->written.scope_count += span->kind == PROF_EVENT_SCOPE;
      if (w->event->flags & PROF_EVENT_ON_DEVICE)
        put_device_event(w, span);
      else
        return put_scope(w, span);
      break;
    case PROF_EVENT_STEP:
      w->written.step_count++;
      return put_step(w, span);
    case PROF_EVENT_INSTANT:
      put_instant(w, span);
      break;
    case PROF_EVENT_COUNTER:
      return prof_i_chrome_add_counter(w, span);
    case PROF_EVENT_MEMORY:
      break; /* prof_i_chrome_put_memory() */
    case PROF_EVENT_FLOW_BEGIN:
    case PROF_EVENT_FLOW_END:
      keep_flow(w, span);
      break;
  }
  return true;
}

/* For a row that the filter leaves out: uses up its numbers, so that the other rows are the same as
   in the unfiltered file. */
static int pass_over(prof_i_chrome *w, const prof_i_span *span) {
  prof_i_sink *const sink = w->sink;
  const prof_i_written_counts written = w->written;
  prof_i_self_check_scope(&w->check, span);
  if (span->lane == 0) prof_i_flows_pass_over(&w->flows, span->depth);
  w->sink = &w->unread;
  w->unread.next = w->unread.buffer;
  w->is_passing_over = true;
  if (span->lane != w->lane) prof_i_chrome_set_track(w, span->lane);
  const bool has_memory = put_event(w, span);
  w->is_passing_over = false;
  w->sink = sink;
  w->written = written;
  return has_memory ? w->unread.status : PROF_E_NO_MEMORY;
}

int prof_i_chrome_put_event(prof_i_export *run, prof_i_export_event *event) {
  prof_i_chrome *const w = run->state;
  const prof_i_span *const span = event->span;
  if (event->is_left_out) return pass_over(w, span);
  prof_i_chrome_next_span(w, span);
  if (span->lane != w->lane) prof_i_chrome_set_track(w, span->lane);
  return put_event(w, span) ? PROF_OK : PROF_E_NO_MEMORY;
}
