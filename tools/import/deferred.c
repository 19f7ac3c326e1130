/* The deferred events, see spool.h. First all are put in order, and ends find their begins. Then
   each is taken. */
#include "spool.h"

#include <prof/backend.h>
#include <prof/trace.h>
#include <stdlib.h>

#include "async.h"
#include "internal.h"

enum {
  IS_LOST_END = 1,          /* its match is the end of what is around it */
  IS_LEFT_OUT = 2,          /* its time is not taken */
  BEGINS_CHECKED_MAX = 1024 /* so many open scopes are looked at for an end's name */
};

void import_deferred_add(import_state *state, const import_event *event, char phase,
                         uint64_t time) {
  import_deferred *const deferred = &state->deferred;
  if (deferred->count >= IMPORT_DEFERRED_NONE - 1)
    import_fail("the trace has more than 4 billion events that wait for others");
  deferred->entries = import_make_room(deferred->entries, &deferred->room, deferred->count + 1,
                                       sizeof *deferred->entries);
  import_spool_add(&deferred->spool, &state->order, 1, 0);
  import_deferred_entry *const entry = &deferred->entries[deferred->count++];
  *entry = (import_deferred_entry){time, deferred->spool.count << 8 | (unsigned char)phase,
                                   IMPORT_DEFERRED_NONE, 0};
  import_spooled_event_put(&deferred->spool, event);
}

void import_deferred_hold(import_deferred *deferred) {
  deferred->entries[deferred->count - 1].bits |= IMPORT_DEFERRED_HELD;
}

void import_deferred_fini(import_deferred *deferred) {
  import_spool_fini(&deferred->spool);
  free(deferred->entries);
}

/* ---- the order ---- */

static int entry_compare(const void *a, const void *b) {
  const import_deferred_entry *const x = a, *const y = b;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return (x->place > y->place) - (x->place < y->place);
}

static void sort_entries(import_deferred *deferred) {
  size_t i = 1;
  while (i < deferred->count &&
         entry_compare(&deferred->entries[i - 1], &deferred->entries[i]) <= 0)
    i++;
  if (i < deferred->count)
    qsort(deferred->entries, deferred->count, sizeof *deferred->entries, entry_compare);
}

static char entry_phase(const import_deferred_entry *entry) { return (char)(entry->place & 0xff); }

/* ---- ends and their begins ---- */

/* Scopes of one row that have begun. */
typedef struct open_row {
  import_thread_id id;
  UT_hash_handle hh;
  uint32_t *items;
  size_t count, room;
} open_row;

typedef struct begin_end_matcher {
  import_state *state;
  open_row *rows;
  import_async async;
  import_arrows arrows;
  import_event event, begun; /* the one at hand, and a begin that it may end */
} begin_end_matcher;

static open_row *matcher_row(begin_end_matcher *m, import_thread_id id) {
  open_row *row;
  HASH_FIND(hh, m->rows, &id, sizeof id, row);
  if (row) return row;
  row = import_make(sizeof *row);
  row->id = id;
  HASH_ADD(hh, m->rows, id, sizeof row->id, row);
  return row;
}

static import_deferred_entry *matcher_entry(const begin_end_matcher *m, uint32_t number) {
  return &m->state->deferred.entries[number];
}

static bool members_equal(const import_event *end, const import_event *begin,
                          import_member member) {
  const import_text x = import_member_text(end, member), y = import_member_text(begin, member);
  return x.bytes == 0 || y.bytes == 0 ||
         (x.bytes == y.bytes && memcmp(x.data, y.data, x.bytes) == 0);
}

/* Index of the newest of these begins that the event ends. `count` if it ends none. If both have a
   name, the names must be equal. by_category: the same of the categories. is_own: only begins of
   the event's process. */
static size_t find_begun(begin_end_matcher *m, const uint32_t *items, size_t count, bool is_own,
                         bool by_category) {
  for (size_t i = count, looked = 0; i-- > 0 && looked < BEGINS_CHECKED_MAX; looked++) {
    import_spooled_event_members(
        import_deferred_words(&m->state->deferred, matcher_entry(m, items[i])), &m->begun);
    if (is_own && import_threads_id(&m->event).pid != import_threads_id(&m->begun).pid) continue;
    if (by_category && !members_equal(&m->event, &m->begun, IMPORT_CAT)) continue;
    if (members_equal(&m->event, &m->begun, IMPORT_NAME)) return i;
  }
  return count;
}

static void array_push(uint32_t **items, size_t *count, size_t *room, uint32_t number) {
  *items = import_make_room(*items, room, *count + 1, sizeof **items);
  (*items)[(*count)++] = number;
}

/* What was begun inside and not ended ends with it. */
static void match_end(begin_end_matcher *m, uint32_t number) {
  open_row *const row = matcher_row(m, import_threads_id(&m->event));
  const size_t at = find_begun(m, row->items, row->count, false, true);
  if (at == row->count) {
    import_count_dropped(m->state, IMPORT_MISS_END_ALONE);
    return;
  }
  for (size_t i = at + 1; i < row->count; i++) {
    matcher_entry(m, row->items[i])->match_number = number;
    matcher_entry(m, row->items[i])->bits |= IS_LOST_END;
    import_count_changed(m->state, IMPORT_CHANGE_LOST_END);
  }
  matcher_entry(m, row->items[at])->match_number = number;
  matcher_entry(m, number)->match_number = row->items[at];
  row->count = at;
}

/* Processes that use one id at the same time end their own. The category of an F that ends no S of
   its own does not count. */
static void match_async_end(begin_end_matcher *m, uint32_t number) {
  import_nest *const nest = import_async_open(&m->async, &m->event);
  const int ways = import_async_is_older(&m->event) ? 4 : 2;
  size_t at = nest->open_count;
  for (int way = 0; way < ways && at == nest->open_count; way++)
    at = find_begun(m, nest->open, nest->open_count, way % 2 == 0, way < 2);
  if (at == nest->open_count) {
    import_count_dropped(m->state, IMPORT_MISS_END_ALONE);
    return;
  }
  matcher_entry(m, nest->open[at])->match_number = number;
  matcher_entry(m, number)->match_number = nest->open[at];
  memmove(nest->open + at, nest->open + at + 1, (--nest->open_count - at) * sizeof *nest->open);
}

static void match_number(begin_end_matcher *m, uint32_t number) {
  import_deferred_entry *const entry = matcher_entry(m, number);
  import_spooled_event_members(import_deferred_words(&m->state->deferred, entry), &m->event);
  const char phase = entry_phase(entry);
  open_row *row;
  import_nest *nest;
  switch (phase) {
    case 'B':
      row = matcher_row(m, import_threads_id(&m->event));
      array_push(&row->items, &row->count, &row->room, number);
      return;
    case 'E':
      match_end(m, number);
      return;
    case 'b':
    case 'S':
      nest = import_async_open(&m->async, &m->event);
      array_push(&nest->open, &nest->open_count, &nest->open_room, number);
      return;
    case 'e':
    case 'F':
      match_async_end(m, number);
      return;
    case 's':
    case 't':
    case 'f':
      import_arrows_add(&m->arrows, &m->event, number, phase);
      return;
    default:
      return; /* it needs no other */
  }
}

/* ---- an event with its end's arguments ---- */

static uint32_t event_append(import_event *to, const char *bytes, size_t count) {
  const size_t at = to->count;
  to->text = import_make_room(to->text, &to->room, at + count + 1, 1);
  if (count) memcpy(to->text + at, bytes, count);
  to->count += count;
  return (uint32_t)at;
}

static import_value copy_value(import_event *to, const import_event *from,
                               const import_value *value) {
  import_value copy = *value;
  copy.at = event_append(to, from->text + value->at, value->bytes);
  return copy;
}

static bool event_has_key(const import_event *event, import_text key) {
  for (uint32_t i = 0; i < event->arg_count; i++)
    if (event->args[i].key_bytes == key.bytes &&
        memcmp(event->text + event->args[i].key_at, key.data, key.bytes) == 0)
      return true;
  return false;
}

/* Of a key that both have the end's value counts. */
static void copy_args(import_event *to, const import_event *from, const import_event *but) {
  for (uint32_t i = 0; i < from->arg_count; i++) {
    const import_arg *const arg = &from->args[i];
    if (but && event_has_key(but, (import_text){from->text + arg->key_at, arg->key_bytes}))
      continue;
    if (to->arg_count == IMPORT_ARGS_MAX) {
      to->is_cut = true;
      return;
    }
    import_arg *const copy = &to->args[to->arg_count++];
    copy->key_at = event_append(to, from->text + arg->key_at, arg->key_bytes);
    copy->key_bytes = arg->key_bytes;
    copy->value = copy_value(to, from, &arg->value);
  }
}

static void merge_begin_and_end(import_event *to, const import_event *begin,
                                const import_event *end) {
  to->count = 0;
  to->arg_count = 0;
  to->is_cut = begin->is_cut || end->is_cut;
  to->line = begin->line;
  for (int i = 0; i < IMPORT_MEMBER_COUNT; i++)
    to->members[i] = copy_value(to, begin, &begin->members[i]);
  copy_args(to, begin, end);
  copy_args(to, end, NULL);
}

/* ---- taking ---- */

typedef struct converter {
  begin_end_matcher *m;
  import_state *state;
  import_event event, end, merged_event, stacked;
  uint64_t last; /* of all times: what never ends goes to there */
} converter;

/* Of a scope that is begun: with its end's arguments. */
static const import_event *begun_event(converter *p, const import_deferred_entry *entry) {
  if (entry->match_number == IMPORT_DEFERRED_NONE || entry->bits & IS_LOST_END) return &p->event;
  import_spooled_event_read(
      import_deferred_words(&p->state->deferred, matcher_entry(p->m, entry->match_number)),
      &p->end);
  if (p->end.arg_count == 0) return &p->event;
  merge_begin_and_end(&p->merged_event, &p->event, &p->end);
  return &p->merged_event;
}

static uint64_t entry_end_time(converter *p, const import_deferred_entry *entry, bool is_open) {
  if (entry->match_number != IMPORT_DEFERRED_NONE)
    return matcher_entry(p->m, entry->match_number)->time;
  if (!is_open) import_count_changed(p->state, IMPORT_CHANGE_UNENDED);
  return p->last > entry->time ? p->last : entry->time;
}

/* The event, with the call stack that it names by number. */
static const import_event *with_stack(converter *p, const import_event *event) {
  static const import_event none;
  import_event *const to = &p->stacked;
  bool is_cut;
  if (event->members[IMPORT_SF].type == IMPORT_NONE) return event;
  const import_text number = import_member_text(event, IMPORT_SF),
                    stack =
                        import_frames_stack_text(&p->state->frames, event->line, number, &is_cut);
  if (stack.bytes == 0 || event->arg_count == IMPORT_ARGS_MAX ||
      import_event_arg(event, PROF_STACK_KEY)) {
    import_count_dropped(p->state, IMPORT_MISS_STACK);
    return event;
  }
  merge_begin_and_end(to, event, &none);
  import_arg *const arg = &to->args[to->arg_count++];
  arg->key_bytes = sizeof PROF_STACK_KEY - 1;
  arg->key_at = event_append(to, PROF_STACK_KEY, arg->key_bytes);
  arg->value = (import_value){.type = IMPORT_TEXT, .bytes = (uint32_t)stack.bytes};
  arg->value.at = event_append(to, stack.data, stack.bytes);
  to->is_cut |= is_cut;
  return to;
}

/* What a scope is whose category does not say it. */
static int default_scope_kind(import_state *state, const import_event *event) {
  const import_text category = import_member_text(event, IMPORT_CAT);
  const int kind = import_device_kind(category);
  if (kind != IMPORT_KIND_NONE || import_category_is_host(category)) return kind;
  const import_thread_id row = import_threads_id(event);
  const import_process *const process = import_devices_process(&state->devices, row.pid);
  const import_value *const annotation =
      import_event_arg(event, "annotation"); /* of an export of prof's */
  if (annotation && annotation->is_true &&
      (process->is_device || import_threads_stream_of(&state->threads, row)))
    return IMPORT_KIND_SIDE;
  const import_row_kind row_kind = import_row_kind_of(state, process, row, category);
  if (row_kind == IMPORT_ROW_WORK) return PROF_BACKEND_KERNEL;
  if (row_kind == IMPORT_ROW_SIDE) return IMPORT_KIND_SIDE;
  return import_threads_stream_of(&state->threads, row) ? IMPORT_KIND_SIDE : IMPORT_KIND_NONE;
}

/* Of a whole scope, which has a duration, as kineto.c has found it; 0: of what has none. */
static uint64_t scope_duration(const import_event *event, uint64_t time) {
  const import_value *const value = &event->members[IMPORT_DUR];
  int64_t ns = 0;
  if (value->type != IMPORT_NONE && value->type != IMPORT_NULL)
    import_number_us(import_text_of(event, value), &ns);
  const uint64_t left = import_times_left(time);
  return (uint64_t)ns < left ? (uint64_t)ns : left;
}

/* In a trace that is no export of prof's the mark may be another tool's, unless the scope lasts up
   to the end. */
static bool scope_had_not_ended(const converter *p, const import_event *event, uint64_t end) {
  return import_event_is_open(event) && (p->state->devices.is_of_prof || end >= p->last);
}

static void convert_deferred_scope(converter *p, const import_deferred_entry *entry) {
  const bool is_whole = entry_phase(entry) == 'X';
  const import_event *const event = with_stack(p, is_whole ? &p->event : begun_event(p, entry));
  const uint64_t time = entry->time;
  const uint64_t duration = is_whole ? scope_duration(event, time)
                                     : entry_end_time(p, entry, import_event_is_open(event)) - time;
  const int kind = default_scope_kind(p->state, event);
  const bool is_open = scope_had_not_ended(p, event, time + duration);
  if (is_open && kind == IMPORT_KIND_NONE) {
    import_convert_open_scope(p->state, event, time, duration);
    return;
  }
  if (is_open) import_count_changed(p->state, IMPORT_CHANGE_OPEN);
  import_convert_scope(p->state, event, kind, time, duration);
}

/* Of an export of prof's: it stands where an arrow ends in no scope. */
static bool event_is_arrow_mark(const import_event *event) {
  const import_value *const mark = import_event_arg(event, "arrow mark");
  return mark && mark->is_true && import_text_is(import_member_text(event, IMPORT_CAT), "flow");
}

static void convert_deferred_instant(converter *p, const import_deferred_entry *entry) {
  const import_text name = import_member_text(&p->event, IMPORT_NAME);
  if (event_is_arrow_mark(&p->event)) {
    import_count_dropped(p->state, IMPORT_MISS_DRAWN);
    return;
  }
  if (import_text_is(name, "[memory]")) {
    import_convert_memory(p->state, &p->event, entry->time);
    return;
  }
  if (import_text_is(name, "[OutOfMemory]")) {
    import_convert_out_of_memory(p->state, &p->event, entry->time);
    return;
  }
  const import_entry made = import_convert_instant(p->state, &p->event, entry->time);
  const import_thread_id id = import_threads_id(&p->event);
  import_thread *const row = import_row_thread(p->state, id);
  import_thread_add(row->key.device >= 0 ? row : import_host_thread(p->state, &p->event), made);
}

/* It goes to a row of its id's, and an arrow that it holds with it. */
static void convert_deferred_async(converter *p, const import_deferred_entry *entry,
                                   import_entry made) {
  import_deferred *const deferred = &p->state->deferred;
  const size_t next = (size_t)(entry - deferred->entries) + 1;
  import_nest_add(import_async_nest(&p->m->async, &p->event), made);
  if (next < deferred->count && deferred->entries[next].bits & IMPORT_DEFERRED_HELD)
    import_async_hold(&p->m->async, made.place, (uint32_t)next);
}

static void convert_entry(converter *p, const import_deferred_entry *entry) {
  const char phase = entry_phase(entry);
  if (phase == 'E' || phase == 'e' || phase == 'F' || phase == 's' || phase == 't' || phase == 'f')
    return;
  import_spooled_event_read(import_deferred_words(&p->state->deferred, entry), &p->event);
  p->state->order = import_deferred_order(&p->state->deferred, entry);
  switch (phase) {
    case 'X':
    case 'B':
      convert_deferred_scope(p, entry);
      return;
    case 'C':
      import_convert_counters(p->state, &p->event, entry->time);
      return;
    case 'b':
    case 'S':
      convert_deferred_async(p, entry,
                             import_convert_async(p->state, begun_event(p, entry), entry->time,
                                                  entry_end_time(p, entry, false)));
      return;
    case 'n':
    case 'T':
    case 'p':
      convert_deferred_async(p, entry, import_convert_instant(p->state, &p->event, entry->time));
      return;
    default:
      convert_deferred_instant(p, entry);
      return;
  }
}

static bool entry_is_end(const import_deferred_entry *entry) {
  const char phase = entry_phase(entry);
  return phase == 'E' || phase == 'e' || phase == 'F';
}

/* The last moment of all that is taken. */
static uint64_t last_time(converter *p) {
  const import_state *const state = p->state;
  uint64_t last = 0;
  for (const import_thread *thread = state->threads.all; thread; thread = thread->hh.next)
    for (size_t i = 0; i < thread->count; i++)
      if (import_times_has(&state->times, thread->entries[i].start) &&
          thread->entries[i].end > last)
        last = thread->entries[i].end;
  for (size_t i = 0; i < state->deferred.count; i++) {
    const import_deferred_entry *const entry = &state->deferred.entries[i];
    if (entry->bits & IS_LEFT_OUT ||
        (entry_is_end(entry) && entry->match_number == IMPORT_DEFERRED_NONE))
      continue;
    uint64_t end = entry->time;
    if (entry_phase(entry) == 'X') {
      import_spooled_event_members(import_deferred_words(&state->deferred, entry), &p->event);
      end += scope_duration(&p->event, entry->time);
    }
    if (end > last) last = end;
  }
  return last;
}

/* Without what is years away from the others. */
static void drop_event(import_state *state) {
  for (size_t i = 0; i < state->deferred.count; i++) {
    import_deferred_entry *const entry = &state->deferred.entries[i];
    if (import_times_has(&state->times, entry->time)) continue;
    entry->bits |= IS_LEFT_OUT;
    import_count_dropped(state, IMPORT_MISS_TIME);
  }
}

static void free_matcher(begin_end_matcher *m) {
  open_row *row = m->rows;
  HASH_CLEAR(hh, m->rows);
  for (open_row *next; row; row = next) {
    next = row->hh.next;
    free(row->items);
    free(row);
  }
  import_async_fini(&m->async);
  import_arrows_fini(&m->arrows);
  free(m);
}

static void convert_entries(converter *p) {
  import_deferred *const deferred = &p->state->deferred;
  for (size_t i = 0; i < deferred->count; i++)
    if (!(deferred->entries[i].bits & IS_LEFT_OUT)) match_number(p->m, (uint32_t)i);
  p->last = last_time(p);
  import_arrows_sort(&p->m->arrows);
  import_arrows_find_devices(&p->m->arrows, p->state);
  for (size_t i = 0; i < deferred->count; i++)
    if (!(deferred->entries[i].bits & IS_LEFT_OUT)) convert_entry(p, &deferred->entries[i]);
  import_async_assign_lanes(&p->m->async, &p->state->threads, p->state->counts);
}

void import_deferred_convert(import_state *state) {
  converter *const p = import_make(sizeof *p);
  p->m = import_make(sizeof *p->m);
  p->state = p->m->state = state;
  import_spool_map(&state->deferred.spool);
  sort_entries(&state->deferred);
  drop_event(state);
  convert_entries(p);
  import_resolve_launches(state);
  state->order = UINT64_MAX; /* the ends of arrows stand behind all that is at their moment */
  import_arrows_convert(&p->m->arrows, &p->m->async, state);
  import_resolve_times(state);
  free(p->merged_event.text);
  free(p->stacked.text);
  free_matcher(p->m);
  free(p);
}
