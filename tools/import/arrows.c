/* Arrows: launches of devices, and arrows that are kept. See async.h. */
#include "async.h"

#include <prof/trace.h>
#include <stdlib.h>

#include "internal.h"

/* ---- which ends belong together ---- */

/* Is it the end of an arrow that an event names? kineto.c leaves no more of it. */
static bool event_is_bound(const import_event *event) {
  return event->members[IMPORT_PH].type == IMPORT_NONE;
}

static import_text arrow_id(const import_event *event) {
  const import_member id = event->members[IMPORT_ID].type == IMPORT_NONE ? IMPORT_ID2 : IMPORT_ID;
  return import_text_of(event, &event->members[event_is_bound(event) ? IMPORT_BIND_ID : id]);
}

static uint64_t arrow_key(const import_event *event) {
  const uint64_t hash = import_text_hash(PROF_I_HASH64_SEED + event_is_bound(event),
                                         import_member_text(event, IMPORT_CAT));
  return import_text_hash(import_text_hash(hash, import_member_text(event, IMPORT_NAME)),
                          arrow_id(event));
}

static void chain_add(import_arrows *arrows, const import_chain *chain, const import_line *line,
                      uint32_t to, bool is_guessed) {
  arrows->all =
      import_make_room(arrows->all, &arrows->room, arrows->count + 1, sizeof *arrows->all);
  arrows->all[arrows->count++] =
      (import_arrow){line->open, to, line->step, (uint32_t)(line - chain->lines), is_guessed};
}

static import_line *add_chain_line(import_chain *chain, int64_t pid) {
  chain->lines =
      import_make_room(chain->lines, &chain->room, chain->count + 1, sizeof *chain->lines);
  import_line *const line = &chain->lines[chain->count++];
  *line = (import_line){.pid = pid, .open = IMPORT_DEFERRED_NONE};
  return line;
}

/* Is an end missing? */
static bool line_misses_end(const import_line *line) {
  return line->open != IMPORT_DEFERRED_NONE && !line->is_drawn && !line->is_step;
}

/* Where an arrow begins: in the process's line, or in one that waits for nothing. */
static import_line *line_of_begin(import_chain *chain, int64_t pid) {
  import_line *found = NULL;
  for (size_t i = 0; i < chain->count; i++) {
    import_line *const line = &chain->lines[i];
    if (line->pid == pid) return line;
    if (!found && line->open == IMPORT_DEFERRED_NONE) found = line;
  }
  return found ? found : add_chain_line(chain, pid);
}

static void keep_pair(import_arrows *arrows, int64_t from, int64_t to) {
  import_arrow_pair *pair;
  HASH_FIND(hh, arrows->pairs, &to, sizeof to, pair);
  if (!pair) {
    pair = import_make(sizeof *pair);
    pair->to = to;
    HASH_ADD(hh, arrows->pairs, to, sizeof pair->to, pair);
  }
  pair->from = from;
}

static import_line *open_line_of(import_chain *chain, int64_t pid) {
  for (size_t i = 0; i < chain->count; i++)
    if (chain->lines[i].open != IMPORT_DEFERRED_NONE && chain->lines[i].pid == pid)
      return &chain->lines[i];
  return NULL;
}

/* Where an arrow ends: in its process's line; or in the one of the process whose arrows end there;
   or in the one that another process began last. */
static import_line *line_of_end(import_arrows *arrows, import_chain *chain, int64_t pid) {
  import_line *const own = open_line_of(chain, pid);
  import_line *newest = NULL;
  if (own) return own;
  for (size_t i = 0; i < chain->count; i++) {
    import_line *const line = &chain->lines[i];
    if (line->open == IMPORT_DEFERRED_NONE) continue;
    if (!newest || line->open > newest->open) newest = line;
  }
  if (!newest) return line_of_begin(chain, pid);
  if (chain->count == 1) {
    keep_pair(arrows, newest->pid, pid);
    return newest;
  }
  const import_arrow_pair *pair;
  HASH_FIND(hh, arrows->pairs, &pid, sizeof pid, pair);
  import_line *const paired = pair ? open_line_of(chain, pair->from) : NULL;
  return paired ? paired : newest;
}

void import_arrows_add(import_arrows *arrows, const import_event *event, uint32_t entry,
                       char phase) {
  const uint64_t key = arrow_key(event);
  import_chain *chain;
  HASH_FIND(hh, arrows->chains, &key, sizeof key, chain);
  if (!chain) {
    chain = import_make(sizeof *chain);
    chain->key = key;
    HASH_ADD(hh, arrows->chains, key, sizeof chain->key, chain);
  }
  /* A bind_id is one for all processes, as in Perfetto. */
  const int64_t pid = event_is_bound(event) ? 0 : import_threads_id(event).pid;
  import_line *const line =
      phase == 's' ? line_of_begin(chain, pid) : line_of_end(arrows, chain, pid);
  const bool stays = phase == 'f' && event_is_bound(event); /* others may end there, too */
  if (phase != 's')
    chain_add(arrows, chain, line, entry, line->pid != pid && chain->count > 1);
  else if (line_misses_end(line))
    chain_add(arrows, chain, line, IMPORT_DEFERRED_NONE, false);
  line->step = phase == 't' || stays || line->is_drawn ? line->step + 1 : 0;
  line->is_drawn = stays;
  line->is_step = phase == 't' && !event_is_bound(event);
  line->pid = pid;
  if (!stays) line->open = phase == 'f' ? IMPORT_DEFERRED_NONE : entry;
}

void import_arrows_sort(import_arrows *arrows) {
  for (const import_chain *chain = arrows->chains; chain; chain = chain->hh.next)
    for (size_t i = 0; i < chain->count; i++)
      if (line_misses_end(&chain->lines[i]))
        chain_add(arrows, chain, &chain->lines[i], IMPORT_DEFERRED_NONE, false);
}

void import_arrows_fini(import_arrows *arrows) {
  import_chain *chain = arrows->chains;
  HASH_CLEAR(hh, arrows->chains);
  for (import_chain *next; chain; chain = next) {
    next = chain->hh.next;
    free(chain->lines);
    free(chain);
  }
  import_arrow_pair *pair = arrows->pairs;
  HASH_CLEAR(hh, arrows->pairs);
  for (import_arrow_pair *next; pair; pair = next) {
    next = pair->hh.next;
    free(pair);
  }
  import_arrow_number *number = arrows->numbers;
  HASH_CLEAR(hh, arrows->numbers);
  for (import_arrow_number *next; number; number = next) {
    next = number->hh.next;
    free(number);
  }
  free(arrows->all);
}

/* ---- launches ---- */

/* Arrows from a launch to what it launched: Kineto's, rocmProfileData's, Ascend's and rocprof's. */
static bool category_is_launch(import_text category) {
  static const char *const words[] = {"ac2g",   "async_gpu", "async_cpu_to_gpu", "async",
                                      "api_op", "async_npu", "HostToDevice",     "DataFlow"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (import_text_is(category, words[i])) return true;
  return false;
}

static void read_end(const import_state *state, uint32_t entry, import_event *event_out) {
  import_spooled_event_read(
      import_deferred_words(&state->deferred, &state->deferred.entries[entry]), event_out);
}

/* What others call their own arrows, too. */
static bool category_is_common(import_text category) {
  return import_text_is(category, "async") || import_text_is(category, "DataFlow");
}

void import_arrows_find_devices(const import_arrows *arrows, import_state *state) {
  import_event *const event = import_make(sizeof *event);
  for (size_t i = 0; i < arrows->count; i++) {
    const import_arrow *const arrow = &arrows->all[i];
    if (arrow->from == IMPORT_DEFERRED_NONE || arrow->to == IMPORT_DEFERRED_NONE) continue;
    read_end(state, arrow->from, event);
    const import_text category = import_member_text(event, IMPORT_CAT);
    if (!category_is_launch(category) || category_is_common(category)) continue;
    const int64_t from = import_threads_id(event).pid;
    read_end(state, arrow->to, event);
    const int64_t to = import_threads_id(event).pid;
    if (to != from) import_devices_process(&state->devices, to)->is_device = true;
  }
  free(event);
}

/* Work has one launch: a second arrow to it stays, and so does another thread's. But traces of
   several processes may use one id at one time. Then the arrow's begin may be another process's,
   and the work knows its own launch. */
static bool may_have(const uint64_t launch[IMPORT_HIDDEN_VALUES], const import_arrow *arrow,
                     const import_thread *from) {
  if (launch[4] & IMPORT_LAUNCH_DRAWN) return false;
  return launch[0] == 0 || launch[0] == from->serial || arrow->is_guessed;
}

/* The launch of the work at the arrow's end. Of works that begin there: the one that this call
   launched, else the first that may have the arrow. NULL: there is none. */
static uint64_t *find_device_entry(import_state *state, const import_arrow *arrow,
                                   const import_thread *from, import_thread *stream) {
  enum { ENTRIES_CHECKED_MAX = 64 };
  const uint64_t time = state->deferred.entries[arrow->to].time;
  const uint64_t from_time = state->deferred.entries[arrow->from].time;
  const import_entry *entry = import_thread_find(stream, time);
  uint64_t *first = NULL;
  uint32_t count;
  for (int looked = 0;
       entry && looked<ENTRIES_CHECKED_MAX; entry = entry> stream->entries ? entry - 1 : NULL,
           looked++) {
    if (first && entry->start != time) break;
    if (entry->place & IMPORT_ENTRY_MARK ||
        (entry->end < time || (entry->end == time && entry->start < time)))
      continue;
    uint64_t *const launch = import_record_launch(import_entry_words(&state->spool, entry, &count));
    const uint64_t kind = launch[4] & ~IMPORT_LAUNCH_DRAWN;
    if (kind == IMPORT_KIND_SIDE || kind == PROF_RECORD_ANNOTATION) continue;
    const bool is_free = may_have(launch, arrow, from);
    if (is_free && launch[0] == from->serial && launch[1] == from_time) return launch;
    if (is_free && !first) first = launch;
    if (entry->start != time) break;
  }
  return first;
}

/* Is it drawn anew, by the launch of what it ends at? What has no launch gets this one. */
static bool convert_launch(import_state *state, const import_arrow *arrow, import_thread *from,
                           import_thread *to) {
  if (from->key.device != IMPORT_HOST || to->key.device < 0) return false;
  uint64_t *const launch = find_device_entry(state, arrow, from, to);
  if (!launch) return false;
  launch[4] |= IMPORT_LAUNCH_DRAWN;
  if (launch[0] != 0 && launch[0] != from->serial) return true;
  launch[0] = from->serial;
  launch[1] = state->deferred.entries[arrow->from].time;
  return true;
}

/* ---- arrows that stay ---- */

/* Numbers of one category are its own: the others' are moved away. */
static uint64_t category_number(const import_event *event) {
  const import_text id = arrow_id(event), category = import_member_text(event, IMPORT_CAT);
  uint64_t number = 0;
  if (!import_number_u64(id, &number)) number = prof_i_hash64(number, id.data, id.bytes);
  if (import_text_is(category, "fwdbwd") || import_text_is(category, "flow")) return number;
  for (size_t i = 0; i < category.bytes; i++)
    number += (uint64_t)(unsigned char)category.data[i] << (32 + 8 * (i % 3));
  return number;
}

/* prof numbers arrows anew, and says beside an arrow's begin what the program called it. */
static uint64_t number_in_args(const import_event *event) {
  const import_value *const said = import_event_arg(event, "flow id");
  char digits[2 + 16 + 1] = "";
  uint64_t number;
  if (!said) return category_number(event);
  const import_text text = import_text_of(event, said);
  if (said->type == IMPORT_TEXT && import_text_begins(text, "0x") && text.bytes < sizeof digits)
    return strtoull(memcpy(digits, text.data, text.bytes), NULL,
                    16); /* what JSON's numbers do not hold */
  return said->type == IMPORT_NUMBER && import_number_u64(text, &number) ? number
                                                                         : category_number(event);
}

/* Each step of a chain is an arrow with a number of its own; 53 bits: what a JSON number is exact
   to. */
static uint64_t step_number(uint64_t id, uint64_t step) {
  return step == 0 ? id : (id * 0x9e3779b97f4a7c15u + step * 0xff51afd7ed558ccdu) >> 11;
}

/* If two chains have one number, the second gets another one. prof's own numbers may repeat. */
static uint64_t own_number(import_arrows *arrows, const import_event *event,
                           const import_arrow *arrow) {
  /* A line changes the upper bits, too: the lowest 11 are cut off below. */
  const uint64_t key = arrow_key(event) + arrow->line * UINT64_C(0x9e3779b97f4a7c15);
  const uint64_t step = arrow->step;
  uint64_t number = number_in_args(event);
  import_arrow_number *it;
  if (import_event_arg(event, "flow id")) return step_number(number, step);
  HASH_FIND(hh, arrows->numbers, &number, sizeof number, it);
  if (!it) {
    it = import_make(sizeof *it);
    it->number = number;
    it->key = key;
    HASH_ADD(hh, arrows->numbers, number, sizeof it->number, it);
  }
  if (it->key != key) number = (number ^ key) >> 11;
  return step_number(number, step);
}

/* Where the arrow's end is: without bp at the next scope that begins, as viewers have it. */
static uint64_t time_of_end(const import_event *event, import_thread *thread, uint64_t time) {
  const bool binds_next = import_text_is(import_member_text(event, IMPORT_PH), "f") &&
                          event->members[IMPORT_BP].type == IMPORT_NONE;
  const import_entry *const next = binds_next ? import_thread_next(thread, time) : NULL;
  return next ? next->start : time;
}

static void put_arrow_end(import_state *state, import_text name, import_thread *thread,
                          uint64_t time, uint64_t number, bool is_end) {
  const import_entry *const at = import_thread_find(thread, time);
  const bool is_next = at && at->start == time && at->end > time;
  import_convert_arrow(state, thread, name, time, number, is_end, is_next);
}

/* An export gives a name to what has none, and says so beside the arrow's begin. */
static import_text arrow_name(const import_event *event, const import_event *begin) {
  const import_value *const is_unnamed = import_event_arg(begin, "unnamed");
  if (is_unnamed && is_unnamed->is_true && import_event_arg(begin, "flow id"))
    return (import_text){"", 0};
  return import_member_text(event, IMPORT_NAME);
}

static bool arrow_is_forward(const import_event *event) {
  return import_text_is(import_member_text(event, IMPORT_CAT), "fwdbwd") &&
         import_text_is(import_member_text(event, IMPORT_NAME), "fwdbwd");
}

/* What an export writes as the arrow's category. */
static bool category_is_stored(import_text name, import_text category) {
  if (category.bytes == 0) return true;
  return import_text_is(category, import_text_is(name, "fwdbwd") ? "fwdbwd" : "flow");
}

/* Of an end whose arrow stays, but for prof's own arguments. */
static void count_dropped_args(import_state *state, const import_event *end) {
  bool has_args = false;
  for (uint32_t i = 0; i < end->arg_count; i++) {
    const import_arg *const arg = &end->args[i];
    const import_text key = {end->text + arg->key_at, arg->key_bytes};
    has_args |= !import_text_is(key, "flow id") && !import_text_is(key, "unnamed");
  }
  const import_text name = import_member_text(end, IMPORT_NAME);
  if (!category_is_stored(name, import_member_text(end, IMPORT_CAT)))
    import_count_changed(state, IMPORT_CHANGE_ARROW_CATEGORY);
  if (has_args || end->is_cut) import_count_changed(state, IMPORT_CHANGE_ARROW_ARGS);
}

/* The row that an end stands on. NULL: it is on an asynchronous event that is not taken. */
static import_thread *arrow_row(import_state *state, const import_async *async, uint32_t entry,
                                const import_event *event) {
  if (state->deferred.entries[entry].bits & IMPORT_DEFERRED_HELD)
    return import_async_holder(async, entry);
  return import_row_thread(state, import_threads_id(event));
}

static void convert_arrow(import_arrows *arrows, const import_async *async, import_state *state,
                          const import_arrow *arrow, import_event *from, import_event *to) {
  read_end(state, arrow->from, from);
  if (arrow_is_forward(from) && state->has_forward_numbers) {
    state->counts->missed[IMPORT_MISS_DRAWN] += 2;
    return;
  }
  read_end(state, arrow->to, to);
  import_thread *const begin = arrow_row(state, async, arrow->from, from);
  import_thread *const end = arrow_row(state, async, arrow->to, to);
  if (!begin || !end) {
    import_count_dropped(state, IMPORT_MISS_BOUND);
    return;
  }
  if (category_is_launch(import_member_text(from, IMPORT_CAT)) &&
      convert_launch(state, arrow, begin, end)) {
    state->counts->missed[IMPORT_MISS_DRAWN] += 2;
    return;
  }
  /* A step ends one arrow and begins another: it counts where it ends one. */
  if (import_text_is(import_member_text(from, IMPORT_PH), "s")) count_dropped_args(state, from);
  count_dropped_args(state, to);
  const uint64_t number = own_number(arrows, from, arrow);
  const uint64_t start = state->deferred.entries[arrow->from].time;
  const uint64_t time = time_of_end(to, end, state->deferred.entries[arrow->to].time);
  put_arrow_end(state, arrow_name(from, from), begin, start, number, false);
  put_arrow_end(state, arrow_name(to, from), end, time, number, true);
}

void import_arrows_convert(import_arrows *arrows, const import_async *async, import_state *state) {
  import_event *const from = import_make(sizeof *from), *const to = import_make(sizeof *to);
  import_spool_map(&state->spool);
  for (size_t i = 0; i < arrows->count; i++) {
    const import_arrow *const arrow = &arrows->all[i];
    const bool is_whole = arrow->from != IMPORT_DEFERRED_NONE && arrow->to != IMPORT_DEFERRED_NONE;
    if (is_whole)
      convert_arrow(arrows, async, state, arrow, from, to);
    else
      import_count_dropped(state, IMPORT_MISS_ARROW_END);
  }
  free(from);
  free(to);
}
