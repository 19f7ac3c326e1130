/* See late.h. First all are put in order, and ends find their begins, then each is taken. */
#include "late.h"

#include <prof/backend.h>
#include <prof/trace.h>
#include <stdlib.h>

#include "arrows.h"
#include "memory.h"
#include "number.h"
#include "raw.h"
#include "rows.h"
#include "settle.h"
#include "take.h"

enum {
  IS_LOST_END = 1, /* its match is the end of what is around it */
  IS_LEFT_OUT = 2, /* its time is not taken */
  LOOK_MAX = 1024  /* so many open scopes are looked at for an end's name */
};

void import_late_add(import_state *state, const import_event *event, char phase, uint64_t time) {
  import_late *const late = &state->late;
  if (late->count >= IMPORT_LATE_NONE - 1)
    import_fail("the trace has more than 4 billion events that wait for others");
  late->entries = import_room(late->entries, &late->room, late->count + 1, sizeof *late->entries);
  import_spool_add(&late->spool, &state->order, 1, 0);
  import_late_entry *const entry = &late->entries[late->count++];
  *entry =
      (import_late_entry){time, late->spool.count << 8 | (unsigned char)phase, IMPORT_LATE_NONE, 0};
  import_raw_put(&late->spool, event);
}

void import_late_hold(import_late *late) {
  late->entries[late->count - 1].bits |= IMPORT_LATE_HELD;
}

void import_late_fini(import_late *late) {
  import_spool_fini(&late->spool);
  free(late->entries);
}

/* ---- the order ---- */

static int in_order(const void *a, const void *b) {
  const import_late_entry *const x = a, *const y = b;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  return (x->place > y->place) - (x->place < y->place);
}

static void sort(import_late *late) {
  size_t i = 1;
  while (i < late->count && in_order(&late->entries[i - 1], &late->entries[i]) <= 0) i++;
  if (i < late->count) qsort(late->entries, late->count, sizeof *late->entries, in_order);
}

static char phase_of(const import_late_entry *entry) { return (char)(entry->place & 0xff); }

/* ---- ends and their begins ---- */

/* Scopes of one row that have begun. */
typedef struct open_row {
  import_thread_id id;
  UT_hash_handle hh;
  uint32_t *items;
  size_t count, room;
} open_row;

typedef struct matcher {
  import_state *state;
  open_row *rows;
  import_async async;
  import_arrows arrows;
  import_event event, begun; /* the one at hand, and a begin that it may end */
} matcher;

static open_row *row_of(matcher *m, import_thread_id id) {
  open_row *row;
  HASH_FIND(hh, m->rows, &id, sizeof id, row);
  if (row) return row;
  row = import_make(sizeof *row);
  row->id = id;
  HASH_ADD(hh, m->rows, id, sizeof row->id, row);
  return row;
}

static import_late_entry *entry_of(const matcher *m, uint32_t number) {
  return &m->state->late.entries[number];
}

static bool is_same(const import_event *end, const import_event *begin, import_member member) {
  const import_text x = import_member_text(end, member), y = import_member_text(begin, member);
  return x.bytes == 0 || y.bytes == 0 ||
         (x.bytes == y.bytes && memcmp(x.data, y.data, x.bytes) == 0);
}

/* The newest of these that the event ends, by its name where both say one, and by its category if
   that counts; count: none. is_own: only of those that its process began. */
static size_t find_begun(matcher *m, const uint32_t *items, size_t count, bool is_own,
                         bool by_category) {
  for (size_t i = count, looked = 0; i-- > 0 && looked < LOOK_MAX; looked++) {
    import_raw_members(import_late_words(&m->state->late, entry_of(m, items[i])), &m->begun);
    if (is_own && import_threads_id(&m->event).pid != import_threads_id(&m->begun).pid) continue;
    if (by_category && !is_same(&m->event, &m->begun, IMPORT_CAT)) continue;
    if (is_same(&m->event, &m->begun, IMPORT_NAME)) return i;
  }
  return count;
}

static void push(uint32_t **items, size_t *count, size_t *room, uint32_t number) {
  *items = import_room(*items, room, *count + 1, sizeof **items);
  (*items)[(*count)++] = number;
}

/* What was begun inside and not ended ends with it. */
static void match_end(matcher *m, uint32_t number) {
  open_row *const row = row_of(m, import_threads_id(&m->event));
  const size_t at = find_begun(m, row->items, row->count, false, true);
  if (at == row->count) {
    import_miss_one(m->state, IMPORT_MISS_END_ALONE);
    return;
  }
  for (size_t i = at + 1; i < row->count; i++) {
    entry_of(m, row->items[i])->match = number;
    entry_of(m, row->items[i])->bits |= IS_LOST_END;
    import_change_one(m->state, IMPORT_CHANGE_LOST_END);
  }
  entry_of(m, row->items[at])->match = number;
  entry_of(m, number)->match = row->items[at];
  row->count = at;
}

/* Processes that use one id at the same time end their own. The category of an F that ends no S of
   its own does not count. */
static void match_async_end(matcher *m, uint32_t number) {
  import_nest *const nest = import_async_open(&m->async, &m->event);
  const int ways = import_async_is_older(&m->event) ? 4 : 2;
  size_t at = nest->open_count;
  for (int way = 0; way < ways && at == nest->open_count; way++)
    at = find_begun(m, nest->open, nest->open_count, way % 2 == 0, way < 2);
  if (at == nest->open_count) {
    import_miss_one(m->state, IMPORT_MISS_END_ALONE);
    return;
  }
  entry_of(m, nest->open[at])->match = number;
  entry_of(m, number)->match = nest->open[at];
  memmove(nest->open + at, nest->open + at + 1, (--nest->open_count - at) * sizeof *nest->open);
}

static void match(matcher *m, uint32_t number) {
  import_late_entry *const entry = entry_of(m, number);
  import_raw_members(import_late_words(&m->state->late, entry), &m->event);
  const char phase = phase_of(entry);
  open_row *row;
  import_nest *nest;
  switch (phase) {
    case 'B':
      row = row_of(m, import_threads_id(&m->event));
      push(&row->items, &row->count, &row->room, number);
      return;
    case 'E':
      match_end(m, number);
      return;
    case 'b':
    case 'S':
      nest = import_async_open(&m->async, &m->event);
      push(&nest->open, &nest->open_count, &nest->open_room, number);
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

static uint32_t append(import_event *to, const char *bytes, size_t count) {
  const size_t at = to->count;
  to->text = import_room(to->text, &to->room, at + count + 1, 1);
  if (count) memcpy(to->text + at, bytes, count);
  to->count += count;
  return (uint32_t)at;
}

static import_value copy_value(import_event *to, const import_event *from,
                               const import_value *value) {
  import_value copy = *value;
  copy.at = append(to, from->text + value->at, value->bytes);
  return copy;
}

static bool has_key(const import_event *event, import_text key) {
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
    if (but && has_key(but, (import_text){from->text + arg->key_at, arg->key_bytes})) continue;
    if (to->arg_count == IMPORT_ARGS_MAX) {
      to->is_cut = true;
      return;
    }
    import_arg *const copy = &to->args[to->arg_count++];
    copy->key_at = append(to, from->text + arg->key_at, arg->key_bytes);
    copy->key_bytes = arg->key_bytes;
    copy->value = copy_value(to, from, &arg->value);
  }
}

static void merge(import_event *to, const import_event *begin, const import_event *end) {
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

typedef struct player {
  matcher *m;
  import_state *state;
  import_event event, end, merged, stacked;
  uint64_t last; /* of all times: what never ends goes to there */
} player;

/* Of a scope that is begun: with its end's arguments. */
static const import_event *begun_event(player *p, const import_late_entry *entry) {
  if (entry->match == IMPORT_LATE_NONE || entry->bits & IS_LOST_END) return &p->event;
  import_raw_event(import_late_words(&p->state->late, entry_of(p->m, entry->match)), &p->end);
  if (p->end.arg_count == 0) return &p->event;
  merge(&p->merged, &p->event, &p->end);
  return &p->merged;
}

static uint64_t end_of(player *p, const import_late_entry *entry) {
  if (entry->match != IMPORT_LATE_NONE) return entry_of(p->m, entry->match)->time;
  import_change_one(p->state, IMPORT_CHANGE_UNENDED);
  return p->last > entry->time ? p->last : entry->time;
}

/* The event, with the call stack that it names by number. */
static const import_event *with_stack(player *p, const import_event *event) {
  static const import_event none;
  import_event *const to = &p->stacked;
  bool is_cut;
  if (event->members[IMPORT_SF].type == IMPORT_NONE) return event;
  const import_text number = import_member_text(event, IMPORT_SF),
                    stack = import_frames_stack(&p->state->frames, event->line, number, &is_cut);
  if (stack.bytes == 0 || event->arg_count == IMPORT_ARGS_MAX ||
      import_event_arg(event, PROF_STACK_KEY)) {
    import_miss_one(p->state, IMPORT_MISS_STACK);
    return event;
  }
  merge(to, event, &none);
  import_arg *const arg = &to->args[to->arg_count++];
  arg->key_bytes = sizeof PROF_STACK_KEY - 1;
  arg->key_at = append(to, PROF_STACK_KEY, arg->key_bytes);
  arg->value = (import_value){.type = IMPORT_TEXT, .bytes = (uint32_t)stack.bytes};
  arg->value.at = append(to, stack.data, stack.bytes);
  to->is_cut |= is_cut;
  return to;
}

/* What a scope is whose category does not say it. */
static int kind_of(import_state *state, const import_event *event) {
  const import_text category = import_member_text(event, IMPORT_CAT);
  const int kind = import_kind_of(category);
  if (kind != IMPORT_KIND_NONE || import_is_hosts(category)) return kind;
  const import_thread_id row = import_threads_id(event);
  const import_process *const process = import_devices_process(&state->devices, row.pid);
  const import_value *const annotation =
      import_event_arg(event, "annotation"); /* of an export of prof's */
  if (annotation && annotation->is_true &&
      (process->is_device || import_threads_stream_of(&state->threads, row)))
    return IMPORT_KIND_SIDE;
  const import_row_kind row_kind = import_rows_kind(state, process, row, category);
  if (row_kind == IMPORT_ROW_WORK) return PROF_BACKEND_KERNEL;
  if (row_kind == IMPORT_ROW_SIDE) return IMPORT_KIND_SIDE;
  return import_threads_stream_of(&state->threads, row) ? IMPORT_KIND_SIDE : IMPORT_KIND_NONE;
}

/* Of a whole scope, which has a duration, as kineto.c has found it; 0: of what has none. */
static uint64_t duration_of(const import_event *event, uint64_t time) {
  const import_value *const value = &event->members[IMPORT_DUR];
  int64_t ns = 0;
  if (value->type != IMPORT_NONE && value->type != IMPORT_NULL)
    import_number_us(import_text_of(event, value), &ns);
  const uint64_t left = import_times_left(time);
  return (uint64_t)ns < left ? (uint64_t)ns : left;
}

static void play_scope(player *p, const import_late_entry *entry) {
  const bool is_whole = phase_of(entry) == 'X';
  const import_event *const event = with_stack(p, is_whole ? &p->event : begun_event(p, entry));
  const uint64_t time = entry->time;
  const uint64_t duration = is_whole ? duration_of(event, time) : end_of(p, entry) - time;
  import_take_scope(p->state, event, kind_of(p->state, event), time, duration);
}

/* Of an export of prof's: it stands where an arrow ends in no scope. */
static bool is_arrow_mark(const import_event *event) {
  const import_value *const mark = import_event_arg(event, "arrow mark");
  return mark && mark->is_true && import_text_is(import_member_text(event, IMPORT_CAT), "flow");
}

static void play_instant(player *p, const import_late_entry *entry) {
  const import_text name = import_member_text(&p->event, IMPORT_NAME);
  if (is_arrow_mark(&p->event)) {
    import_miss_one(p->state, IMPORT_MISS_DRAWN);
    return;
  }
  if (import_text_is(name, "[memory]")) {
    import_take_memory(p->state, &p->event, entry->time);
    return;
  }
  if (import_text_is(name, "[OutOfMemory]")) {
    import_take_out_of_memory(p->state, &p->event, entry->time);
    return;
  }
  const import_entry made = import_take_instant(p->state, &p->event, entry->time);
  const import_thread_id id = import_threads_id(&p->event);
  import_thread *const row = import_take_row(p->state, id);
  import_thread_add(row->key.device >= 0 ? row : import_take_host(p->state, &p->event), made);
}

/* It goes to a row of its id's, and an arrow that it holds with it. */
static void play_async(player *p, const import_late_entry *entry, import_entry made) {
  import_late *const late = &p->state->late;
  const size_t next = (size_t)(entry - late->entries) + 1;
  import_nest_add(import_async_nest(&p->m->async, &p->event), made);
  if (next < late->count && late->entries[next].bits & IMPORT_LATE_HELD)
    import_async_hold(&p->m->async, made.place, (uint32_t)next);
}

static void play(player *p, const import_late_entry *entry) {
  const char phase = phase_of(entry);
  if (phase == 'E' || phase == 'e' || phase == 'F' || phase == 's' || phase == 't' || phase == 'f')
    return;
  import_raw_event(import_late_words(&p->state->late, entry), &p->event);
  p->state->order = import_late_order(&p->state->late, entry);
  switch (phase) {
    case 'X':
    case 'B':
      play_scope(p, entry);
      return;
    case 'C':
      import_take_counters(p->state, &p->event, entry->time);
      return;
    case 'b':
    case 'S':
      play_async(p, entry,
                 import_take_async(p->state, begun_event(p, entry), entry->time, end_of(p, entry)));
      return;
    case 'n':
    case 'T':
    case 'p':
      play_async(p, entry, import_take_instant(p->state, &p->event, entry->time));
      return;
    default:
      play_instant(p, entry);
      return;
  }
}

static bool is_end(const import_late_entry *entry) {
  const char phase = phase_of(entry);
  return phase == 'E' || phase == 'e' || phase == 'F';
}

/* The last moment of all that is taken. */
static uint64_t last_time(player *p) {
  const import_state *const state = p->state;
  uint64_t last = 0;
  for (const import_thread *thread = state->threads.all; thread; thread = thread->hh.next)
    for (size_t i = 0; i < thread->count; i++)
      if (import_times_has(&state->times, thread->entries[i].start) &&
          thread->entries[i].end > last)
        last = thread->entries[i].end;
  for (size_t i = 0; i < state->late.count; i++) {
    const import_late_entry *const entry = &state->late.entries[i];
    if (entry->bits & IS_LEFT_OUT || (is_end(entry) && entry->match == IMPORT_LATE_NONE)) continue;
    uint64_t end = entry->time;
    if (phase_of(entry) == 'X') {
      import_raw_members(import_late_words(&state->late, entry), &p->event);
      end += duration_of(&p->event, entry->time);
    }
    if (end > last) last = end;
  }
  return last;
}

/* Without what is years away from the others. */
static void leave_out(import_state *state) {
  for (size_t i = 0; i < state->late.count; i++) {
    import_late_entry *const entry = &state->late.entries[i];
    if (import_times_has(&state->times, entry->time)) continue;
    entry->bits |= IS_LEFT_OUT;
    import_miss_one(state, IMPORT_MISS_TIME);
  }
}

static void free_matcher(matcher *m) {
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

static void play_all(player *p) {
  import_late *const late = &p->state->late;
  for (size_t i = 0; i < late->count; i++)
    if (!(late->entries[i].bits & IS_LEFT_OUT)) match(p->m, (uint32_t)i);
  p->last = last_time(p);
  import_arrows_close(&p->m->arrows);
  import_arrows_find_devices(&p->m->arrows, p->state);
  for (size_t i = 0; i < late->count; i++)
    if (!(late->entries[i].bits & IS_LEFT_OUT)) play(p, &late->entries[i]);
  import_async_settle(&p->m->async, &p->state->threads, p->state->counts);
}

void import_late_play(import_state *state) {
  player *const p = import_make(sizeof *p);
  p->m = import_make(sizeof *p->m);
  p->state = p->m->state = state;
  import_spool_map(&state->late.spool);
  sort(&state->late);
  leave_out(state);
  play_all(p);
  import_settle_launches(state);
  state->order = UINT64_MAX; /* the ends of arrows stand behind all that is at their moment */
  import_arrows_take(&p->m->arrows, &p->m->async, state);
  import_settle_times(state);
  free(p->merged.text);
  free(p->stacked.text);
  free_matcher(p->m);
  free(p);
}
