/* Chrome JSON: the exporter. What is before, between and after the events of threads. */
#include "chrome.h"

#include <stdlib.h>
#include <string.h>

#include "../base/error.h"

/* All ranks must share the base, and ns must survive in a double of us. Kineto takes whole
   multiples of 7889238 s (three months) since 1970. Half of that is taken here, because Perfetto
   multiplies ts by 1000 as a double before it rounds. Between 2^42 us and 2^52 ns after the base,
   one day in 91, the product is 1 ns too large for every fourth value. Perfetto then drops scopes
   that touch as overlapping. */
static const uint64_t base_step_ns = 7889238ull / 2 * 1000000000ull;

static void copy_options(prof_i_chrome *w, const prof_i_export_options *options) {
  w->window = options->window;
  w->metadata = options->metadata;
  w->with_marks = options->with_marks;
  w->with_memory = options->with_memory;
  w->stack_folders = options->stack_folders;
  w->first_ns = prof_i_window_begin_ns(&options->window);
}

/* Walks the trace for numbers that stand at the first row already. */
static int count_rows(prof_i_chrome *w, const prof_i_export_options *options) {
  const uint32_t thread_count = w->info.thread_count;
  const int status = prof_i_chrome_find_launches(w);
  if (status != PROF_OK) return status;
  if (options->with_stacks && !prof_i_call_stacks_init(&w->call_stacks, w->trace, 0, false))
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the stacks of %u call sites",
                       prof_i_trace_site_count(w->trace));
  if (prof_i_python_ids_init(&w->python_ids, w->trace, thread_count, w->window,
                             w->shared ? w->shared->python_count : 0) != PROF_OK)
    return prof_i_fail(PROF_E_NO_MEMORY,
                       "no memory to number the calls of functions, of %u threads", thread_count);
  if (prof_i_event_numbers_init(&w->numbers, w->trace, thread_count, w->window, w->with_memory,
                                w->shared ? w->shared->number_next : 0) != PROF_OK)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory to number the rows of %u threads",
                       thread_count);
  return PROF_OK;
}

void prof_i_chrome_use(prof_i_chrome *w, prof_i_export *run, prof_i_sink *sink,
                       prof_i_chrome_shared *shared) {
  w->run = run;
  w->place = run->options->place;
  w->shared = shared;
  w->trace = run->trace;
  w->sink = sink;
  w->info = run->info;
  w->tids = run->tids;
  w->event = &run->event;
  copy_options(w, run->options);
  w->filtered = run->options->filter ? run->options->filtered : NULL;
  /* All captures of a file have the base of its first moment. */
  const uint64_t first_ns = w->info.start_unix_ns - (w->place ? w->place->offset_ns : 0);
  w->base_ns = first_ns / base_step_ns * base_step_ns;
  w->epoch_ns = w->info.start_unix_ns - w->base_ns;
}

static prof_i_chrome_shared *shared_of(const prof_i_export *run) {
  return run->options->place ? run->options->place->shared : NULL;
}

static int chrome_begin(prof_i_export *run) {
  prof_i_chrome *const w = run->state;
  prof_i_chrome_use(w, run, run->sink, shared_of(run));
  prof_i_chrome_fill_short_us(w);
  prof_i_self_check_init(&w->check, w->info.duration_ns);
  prof_i_flows_init(&w->flows);
  w->reversal.start_ns = PROF_I_REVERSAL_NONE;
  w->check.findings.counts[PROF_I_FINDING_UNREADABLE] = w->info.bad_count;
  w->selection = run->options->filter ? &run->selection : NULL;
  int status = w->selection ? prof_i_sink_open_memory(&w->unread, SIZE_MAX) : PROF_OK;
  if (status == PROF_OK) status = count_rows(w, run->options);
  if (status != PROF_OK) return status;
  /* Ids of operators and ranges are by their begins, from 1 on, as Kineto's. Others follow. */
  w->external_id = w->numbers.operators_end;
  prof_i_chrome_put_head(w);
  return PROF_OK;
}

/* Of the thread before. */
static void end_thread(prof_i_chrome *w) {
  prof_i_reversal_end_thread(&w->reversal, w->sink);
  w->walker = NULL;
}

static int chrome_begin_thread(prof_i_export *run, const prof_trace_thread *thread) {
  (void)thread;
  prof_i_chrome *const w = run->state;
  end_thread(w);
  prof_i_chrome_select_thread(w, run->thread);
  prof_i_chrome_select_launches(w);
  w->lanes_named = 1;
  memset(w->owner_ids, 0, sizeof w->owner_ids);
  w->owner_count = 0;
  prof_i_self_check_next_thread(&w->check);
  prof_i_flows_next_thread(&w->flows);
  const bool has_callers = prof_i_call_stacks_has_any(&w->call_stacks);
  if (has_callers || prof_i_python_ids_any(&w->python_ids)) {
    w->walker = run->walker;
    prof_i_walker_track_parents(run->walker, has_callers ? &w->call_stacks : NULL,
                                prof_i_call_stacks_enclosing);
  }
  return PROF_OK;
}

/* The driver counts the other arrows. */
static void count_forwards(prof_i_export *run) {
  const prof_i_forwards *const forwards = &((const prof_i_chrome *)run->state)->forwards;
  for (uint32_t i = 0; i < forwards->count; i += 2)
    prof_i_filtered_count_add(&run->options->filtered->arrows,
                              prof_i_forwards_are_taken(&forwards->items[i]));
}

static int chrome_end(prof_i_export *run) {
  prof_i_chrome *const w = run->state;
  end_thread(w);
  prof_i_self_check_next_thread(&w->check);
  w->check.findings.counts[PROF_I_FINDING_CROWDED] = run->findings->counts[PROF_I_FINDING_CROWDED];
  prof_i_chrome_put_counters(w);
  const int status = w->with_memory ? prof_i_chrome_put_memory(w) : PROF_OK;
  if (status != PROF_OK) return status;
  prof_i_chrome_put_flows(w);
  if (w->selection) count_forwards(run);
  prof_i_chrome_put_tail(w);
  *run->findings = w->check.findings;
  if (!w->shared) return PROF_OK;
  w->shared->python_count += w->python_ids.call_count;
  w->shared->number_next = w->external_id > w->numbers.end ? w->external_id : w->numbers.end;
  return w->shared->accounts.status;
}

void prof_i_chrome_shared_fini(prof_i_chrome_shared *shared) {
  if (shared->accounts.buffer) prof_i_sink_abandon(&shared->accounts);
}

static void destroy_shared(void *shared) { prof_i_chrome_shared_fini(shared); }

static void chrome_destroy(prof_i_export *run) {
  prof_i_chrome *const w = run->state;
  prof_i_flows_fini(&w->flows);
  free(w->reversal.begins);
  prof_i_forwards_fini(&w->forwards);
  free(w->counters.items);
  free(w->correlations);
  prof_i_launches_fini(&w->launches);
  prof_i_call_stacks_fini(&w->call_stacks);
  prof_i_python_ids_fini(&w->python_ids);
  prof_i_event_numbers_fini(&w->numbers);
  if (w->unread.buffer) prof_i_sink_abandon(&w->unread);
}

const prof_i_exporter prof_i_chrome_exporter = {
    .name = "chrome",
    .format = PROF_FORMAT_CHROME,
    .suffixes = {".json", ".json.gz"},
    .abilities = PROF_I_EXPORT_CUT | PROF_I_EXPORT_TEXT | PROF_I_EXPORT_METADATA |
                 PROF_I_EXPORT_STACKS | PROF_I_EXPORT_MARKS | PROF_I_EXPORT_NO_MEMORY |
                 PROF_I_EXPORT_MERGED,
    .order = PROF_I_ORDER_WALKED,
    .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN) | PROF_I_KIND(STEP) |
                   PROF_I_KIND(INSTANT) | PROF_I_KIND(MEMORY),
    .takes_left_out = true,
    .state_bytes = sizeof(prof_i_chrome),
    .shared_bytes = sizeof(prof_i_chrome_shared),
    .destroy_shared = destroy_shared,
    .begin = chrome_begin,
    .thread = chrome_begin_thread,
    .event = prof_i_chrome_put_event,
    .counter = prof_i_chrome_put_event,
    .flow = prof_i_chrome_put_event,
    .end = chrome_end,
    .destroy = chrome_destroy,
    .plain = prof_i_chrome_put_plain};
