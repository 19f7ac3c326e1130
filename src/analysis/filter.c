/* See filter.h. A filter resolved for one trace. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../reader/internal.h"
#include "filter.h"

enum { NAME_ROOM = 8192, NUMBER_BYTES = 32 };

static bool text_is(const char *data, uint64_t bytes, const char *word) {
  return bytes == strlen(word) && (bytes == 0 || memcmp(data, word, (size_t)bytes) == 0);
}

/* ---- names, processes ---- */

/* A text is not NUL-terminated, and regexec() wants that. Of a longer name its begin decides. */
bool prof_i_filter_takes_name(const prof_i_filter *filter, const char *name, uint64_t bytes) {
  if (!filter->has_name) return true;
  char text[NAME_ROOM];
  text[0] = '\0';
  const size_t count = bytes < sizeof text ? (size_t)bytes : sizeof text - 1;
  if (count) memcpy(text, name, count);
  text[count] = '\0';
  return regexec(&filter->name, text, 0, NULL, 0) == 0;
}

static bool number_is(int64_t number, const char *word) {
  char text[NUMBER_BYTES] = "";
  snprintf(text, sizeof text, "%lld", (long long)number);
  return strcmp(text, word) == 0;
}

static bool takes_thread(const prof_i_filter *filter, const prof_trace *trace, uint32_t index) {
  const prof_i_trace_thread *const thread = &trace->threads[index];
  const char *const word = filter->words.thread;
  return !word || strcmp(thread->name, word) == 0 || number_is((int64_t)thread->tid, word);
}

static bool takes_process(const prof_i_filter *filter, const prof_trace *trace, uint32_t index) {
  const char *const process = filter->words.process;
  if (!process && !filter->words.rank) return true;
  const prof_i_process_record of = prof_i_trace_process(trace, index);
  if (filter->words.rank && of.rank != filter->rank) return false;
  return !process || text_is(of.name.data, of.name.bytes, process) || number_is(of.pid, process);
}

bool prof_i_filter_takes_thread(const prof_i_filter *filter, const prof_trace *trace,
                                uint32_t index) {
  return !filter || (takes_process(filter, trace, index) && takes_thread(filter, trace, index));
}

/* ---- arguments ---- */

static bool number_differs(double value, const char *word) {
  char *end;
  const double wanted = strtod(word, &end);
  const bool is_equal = wanted >= value && wanted <= value; /* NaN equals no number */
  return *end || end == word || !(is_equal || (isnan(wanted) && isnan(value)));
}

static bool value_is(const prof_trace_arg *arg, const char *word) {
  char room[PROF_I_ARG_VALUE_ROOM];
  if (arg->type == PROF_ARG_F64) return !number_differs(arg->value.f64, word);
  const prof_i_text text = prof_i_arg_value_text(arg, room);
  return text_is(text.data, text.bytes, word);
}

static bool has_arg(const prof_event *event, const prof_i_filter_arg *wanted) {
  const prof_trace_arg *const arg = prof_i_arg_find(event, wanted->key, wanted->key_bytes);
  return arg && value_is(arg, wanted->value);
}

/* ---- single scopes ---- */

bool prof_i_trace_filter_takes_event(const prof_i_trace_filter *of, const prof_event *event) {
  const prof_i_filter *const filter = of->filter;
  if (!filter) return true;
  const prof_i_filter_words *const words = &filter->words;
  if (filter->level && event->level != filter->level) return false;
  if (words->category && !text_is(event->category, event->category_bytes, words->category))
    return false;
  if (words->device && !prof_i_filter_takes_device(words->device, event->device)) return false;
  for (uint32_t i = 0; i < filter->arg_count; i++)
    if (!has_arg(event, &filter->args[i])) return false;
  return prof_i_filter_takes_name(filter, event->name, event->name_bytes);
}

bool prof_i_trace_filter_takes_record(prof_i_trace_filter *of, uint32_t thread,
                                      const prof_i_span *span) {
  prof_i_trace_expand(of->trace, thread, span, &of->event);
  return prof_i_trace_filter_takes_event(of, &of->event);
}

bool prof_i_filter_has_scope_words(const prof_i_filter *filter) {
  const prof_i_filter_words *const words = &filter->words;
  return filter->has_name || words->category || filter->level || filter->min_ns ||
         filter->arg_count;
}

bool prof_i_trace_filter_takes_place(const prof_i_trace_filter *of, uint32_t thread,
                                     uint64_t start_ns, prof_device device) {
  const char *const word = of->filter ? of->filter->words.device : NULL;
  return of->takes_process[thread] && prof_i_trace_filter_takes_time(of, start_ns, UINT64_MAX) &&
         (!word || prof_i_filter_takes_device(word, device));
}

bool prof_i_trace_filter_is_in_windows(const prof_i_trace_filter *of, uint64_t start_ns) {
  uint32_t low = 0, high = of->window_count; /* the last window that begins at start_ns or before */
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (of->windows[middle].from_ns <= start_ns)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 && start_ns < of->windows[low - 1].to_ns;
}

/* ---- steps ---- */

typedef struct step_search {
  prof_i_trace_filter *of;
  uint32_t room;
} step_search;

static int add_step(void *user, const prof_i_step *step) {
  step_search *const search = user;
  prof_i_trace_filter *const of = search->of;
  if (step->number < of->filter->first_step || step->number > of->filter->last_step) return 0;
  if (!prof_i_make_room((void **)&of->windows, &search->room, of->window_count,
                        sizeof *of->windows))
    return PROF_E_NO_MEMORY;
  of->windows[of->window_count++] =
      (prof_i_time_window){step->start_ns, step->start_ns + step->duration_ns};
  return 0;
}

static int window_compare(const void *a, const void *b) {
  const prof_i_time_window *const x = a, *const y = b;
  return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Steps that follow each other become one window. */
static void join_windows(prof_i_trace_filter *of) {
  uint32_t kept = 0;
  qsort(of->windows, of->window_count, sizeof *of->windows, window_compare);
  for (uint32_t i = 0; i < of->window_count; i++) {
    const prof_i_time_window window = of->windows[i];
    if (kept && window.from_ns <= of->windows[kept - 1].to_ns) {
      if (window.to_ns > of->windows[kept - 1].to_ns) of->windows[kept - 1].to_ns = window.to_ns;
    } else {
      of->windows[kept++] = window;
    }
  }
  of->window_count = kept;
}

/* Steps are the process's: a step of one thread holds for all. */
static int find_steps(prof_i_trace_filter *of) {
  step_search search = {.of = of};
  const int status = prof_i_trace_steps(of->trace, add_step, &search);
  if (status) return status;
  prof_i_time_window *const window = &of->window;
  if (of->window_count == 0) {
    window->to_ns = window->from_ns;
    return 0;
  }
  join_windows(of);
  const uint64_t first = of->windows[0].from_ns, end = of->windows[of->window_count - 1].to_ns;
  if (first > window->from_ns) window->from_ns = first;
  if (end < window->to_ns) window->to_ns = end;
  return 0;
}

/* ---- the trace ---- */

/* Plain scopes of a site have its names, no device, and the arguments of its record. A record that
   prof_i_trace_filter_reads_record() passes over is judged by them. */
static bool takes_plain(prof_i_trace_filter *of, uint32_t site) {
  const prof_trace *const trace = of->trace;
  const prof_i_span span = {
      .kind = PROF_EVENT_SCOPE, .site = site, .record = prof_i_trace_site(trace, site)->record};
  uint32_t thread = 0;
  if (trace->thread_count == 0) return false;
  while (thread < trace->thread_count && prof_i_thread_is_stream(&trace->threads[thread])) thread++;
  if (thread == trace->thread_count) thread = 0; /* only streams: all records are of devices */
  return prof_i_trace_filter_takes_record(of, thread, &span);
}

/* The parts of records that differ from the site's, and that the filter looks at. */
static uint32_t filter_record_flags(const prof_i_filter *filter) {
  return (filter->has_name ? PROF_I_FLAG_NAME : 0u) |
         (filter->words.category ? PROF_I_FLAG_CATEGORY : 0u) |
         (filter->words.device ? PROF_I_FLAG_DEVICE : 0u);
}

/* The filter's window, in times of a trace that starts at `offset_ns`. */
static prof_i_time_window window_at(const prof_i_filter *filter, uint64_t offset_ns) {
  const uint64_t from = filter->from_ns, to = filter->to_ns;
  return (prof_i_time_window){from > offset_ns ? from - offset_ns : 0, to == UINT64_MAX ? to
                                                                       : to > offset_ns
                                                                           ? to - offset_ns
                                                                           : 0};
}

int prof_i_trace_filter_init(prof_i_trace_filter *of, const prof_trace *trace,
                             const prof_i_filter *filter) {
  return prof_i_trace_filter_init_at(of, trace, filter, 0);
}

bool prof_i_filter_takes_trace(const prof_i_filter *filter, const prof_trace *trace) {
  if (!filter || (!filter->words.process && !filter->words.rank)) return true;
  uint32_t i = 0;
  while (i < trace->thread_count && !takes_process(filter, trace, i)) i++;
  return i < trace->thread_count;
}

int prof_i_trace_filter_init_at(prof_i_trace_filter *of, const prof_trace *trace,
                                const prof_i_filter *filter, uint64_t offset_ns) {
  memset(of, 0, sizeof *of);
  of->trace = trace;
  of->filter = filter;
  of->window.to_ns = UINT64_MAX;
  const uint32_t site_count = prof_i_trace_site_count(trace);
  of->takes_site = malloc(site_count + 1);
  of->takes_thread = malloc(trace->thread_count + 1);
  of->takes_process = malloc(trace->thread_count + 1);
  if (!of->takes_site || !of->takes_thread || !of->takes_process) {
    prof_i_trace_filter_fini(of);
    return PROF_E_NO_MEMORY;
  }
  for (uint32_t i = 0; i < site_count; i++) of->takes_site[i] = takes_plain(of, i);
  for (uint32_t i = 0; i < trace->thread_count; i++) {
    of->takes_process[i] = !filter || takes_process(filter, trace, i);
    of->takes_thread[i] = prof_i_filter_takes_thread(filter, trace, i);
  }
  if (!filter) return 0;
  of->min_ns = filter->min_ns;
  of->window = window_at(filter, offset_ns);
  of->record_flags = filter_record_flags(filter);
  of->has_args = filter->arg_count != 0;
  const int status = filter->has_steps ? find_steps(of) : 0;
  if (status)
    prof_i_trace_filter_fini(of);
  else if (of->window.from_ns >= of->window.to_ns)
    memset(of->takes_thread, false, trace->thread_count); /* no such step in the trace */
  return status;
}

void prof_i_trace_filter_fini(prof_i_trace_filter *of) {
  free(of->takes_site);
  free(of->takes_thread);
  free(of->takes_process);
  free(of->windows);
  of->takes_site = of->takes_thread = of->takes_process = NULL;
  of->windows = NULL;
}
