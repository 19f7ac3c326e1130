/* One walk of each trace for the HTML report: see html_data.h. */
#include "html_data.h"

#include <math.h>
#include <prof/status.h>
#include <stdlib.h>
#include <string.h>

#include "../base/text.h"
#include "../reader/walker.h"

/* ---- slices ---- */

/* Slices of the time line on a grid of a power of two: see html_data.h. They are added by
   falling start, inner ones first. So a slice's siblings and the slices inside of it are always the
   last ones of its track. */

typedef prof_i_html_slice slice;

enum {
  SLICES_ROOM = 2 * PROF_I_HTML_SLICES_MAX,
  SHIFT_MAX = 58,
  MERGED_SHIFT = 4 /* a merged slice is at most 16 times the grid long */
};

static bool slice_may_merge(const prof_i_html *html, const slice *s) {
  return s->count > 1 || s->end_ns - s->start_ns < UINT64_C(1) << html->shift;
}

/* Puts a slice behind the others, or into the last one. Removes those inside of a short one. */
static void slice_put(prof_i_html *html, const slice *given) {
  slice s = *given;
  const uint64_t grid_ns = UINT64_C(1) << html->shift;
  const bool is_short = slice_may_merge(html, &s);
  while (is_short && html->slice_count > 0) {
    const slice *const last = &html->slices[html->slice_count - 1];
    if (last->track != s.track || last->depth <= s.depth) break;
    s.count += last->count;
    html->slice_count--;
  }
  slice *const last = html->slice_count > 0 ? &html->slices[html->slice_count - 1] : NULL;
  if (last && is_short && last->track == s.track && last->depth == s.depth &&
      slice_may_merge(html, last) && last->end_ns - s.start_ns <= grid_ns << MERGED_SHIFT &&
      (last->start_ns < s.end_ns || last->start_ns - s.end_ns < grid_ns)) {
    last->start_ns = s.start_ns;
    if (s.end_ns > last->end_ns) last->end_ns = s.end_ns;
    last->count += s.count;
    if (last->name != s.name) last->name = PROF_I_HTML_MIXED;
  } else {
    html->slices[html->slice_count++] = s;
  }
}

/* By track; in a track as they were added. */
static int compare_slices(const void *a, const void *b) {
  const slice *const x = a, *const y = b;
  if (x->track != y->track) return x->track < y->track ? -1 : 1;
  if (x->start_ns != y->start_ns) return x->start_ns > y->start_ns ? -1 : 1;
  return (x->depth < y->depth) - (x->depth > y->depth);
}

/* Several lanes of a thread are added in turns. */
static void sort_by_track(prof_i_html *html) {
  if (html->has_side_lanes)
    qsort(html->slices, html->slice_count, sizeof *html->slices, compare_slices);
}

static void coarsen(prof_i_html *html, uint32_t wanted) {
  sort_by_track(html);
  while (html->slice_count > wanted && html->shift < SHIFT_MAX) {
    const uint32_t count = html->slice_count;
    html->shift++;
    html->slice_count = 0;
    for (uint32_t i = 0; i < count; i++) {
      const slice s = html->slices[i];
      slice_put(html, &s);
    }
  }
}

/* Adds a slice that begins before all others of its track, after those inside of it. */
static void html_add_slice(prof_i_html *html, const slice *given) {
  if (!html->slices) html->slices = malloc(SLICES_ROOM * sizeof *html->slices);
  if (!html->slices) html->is_out_of_memory = true;
  if (html->is_out_of_memory) return;
  if (html->slice_count == SLICES_ROOM) coarsen(html, SLICES_ROOM / 4 * 3);
  if (html->slice_count < SLICES_ROOM) slice_put(html, given);
}

/* At most PROF_I_HTML_SLICES_MAX slices, by track. */
static void html_finish_slices(prof_i_html *html) { coarsen(html, PROF_I_HTML_SLICES_MAX); }

typedef prof_i_html_map map;

typedef struct walk_state {
  prof_i_html *html;
  uint32_t thread; /* of the trace */
} walk_state;

/* ---- maps ---- */

static bool map_grow(map *m) {
  const map old = *m;
  m->room = old.room ? old.room * 2 : 1024;
  m->keys = calloc(m->room, sizeof *m->keys);
  m->values = calloc(m->room, sizeof *m->values);
  if (!m->keys || !m->values) {
    free(m->keys);
    free(m->values);
    *m = old;
    return false;
  }
  for (uint32_t i = 0; i < old.room; i++) {
    if (!old.keys[i]) continue;
    uint32_t at = (uint32_t)(old.keys[i] * 0x9e3779b97f4a7c15u >> 32) & (m->room - 1);
    while (m->keys[at]) at = (at + 1) & (m->room - 1);
    m->keys[at] = old.keys[i];
    m->values[at] = old.values[i];
  }
  free(old.keys);
  free(old.values);
  return true;
}

/* The value of a key, which begins as 0. NULL: no memory. */
static uint64_t *map_at(map *m, uint64_t key) {
  if (m->count >= m->room / 2 && !map_grow(m)) return NULL;
  uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (m->room - 1);
  while (m->keys[at] && m->keys[at] != key) at = (at + 1) & (m->room - 1);
  if (!m->keys[at]) m->count++;
  m->keys[at] = key;
  return &m->values[at];
}

static void map_fini(map *m) {
  free(m->keys);
  free(m->values);
}

/* ---- names ---- */

static bool texts_equal(prof_i_text a, prof_i_text b) {
  return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, (size_t)a.bytes) == 0);
}

static uint64_t text_hash(uint64_t hash, prof_i_text text) {
  hash = prof_i_hash64(hash, text.data, (size_t)text.bytes);
  return (hash ^ text.bytes) * 0x9e3779b97f4a7c15u;
}

/* The number of a name and category. Beyond the limit: that of mixed names. */
static uint32_t name_find(prof_i_html *html, prof_i_text name, prof_i_text category) {
  uint64_t key = text_hash(text_hash(PROF_I_HASH64_SEED, name), category) | 1;
  for (;; key += 2) {
    uint64_t *const number = map_at(&html->name_map, key);
    if (!number) break;
    if (*number) {
      const prof_i_html_name *const n = &html->names[*number - 1];
      if (texts_equal(n->name, name) && texts_equal(n->category, category))
        return (uint32_t)*number - 1;
      continue;
    }
    if (html->name_count == PROF_I_HTML_NAMES_MAX) return PROF_I_HTML_MIXED;
    html->names[html->name_count] = (prof_i_html_name){name, category};
    *number = ++html->name_count;
    return html->name_count - 1;
  }
  html->is_out_of_memory = true;
  return PROF_I_HTML_MIXED;
}

static uint32_t span_name(walk_state *w, const prof_i_span *span) {
  prof_i_html *const html = w->html;
  uint32_t *const known = &html->site_name[span->site];
  if (!span->record && *known) return *known - 1;
  prof_event *const e = &html->event;
  prof_i_trace_expand(html->trace, w->thread, span, e);
  const prof_i_text name = {e->name, e->name_bytes}, category = {e->category, e->category_bytes};
  if (*known) {
    const prof_i_html_name *const n = &html->names[*known - 1];
    if (n->name.data == name.data && n->name.bytes == name.bytes &&
        n->category.data == category.data)
      return *known - 1;
  }
  const uint32_t number = name_find(html, name, category);
  if (!span->record || !*known) *known = number + 1;
  return number;
}

/* ---- spans ---- */

static void add_step(prof_i_html *html, const prof_i_span *span, uint32_t thread) {
  if (html->step_count == PROF_I_HTML_STEPS_MAX) {
    html->left_out_steps++;
    return;
  }
  if (!html->steps) html->steps = malloc(PROF_I_HTML_STEPS_MAX * sizeof *html->steps);
  if (!html->steps) {
    html->is_out_of_memory = true;
    return;
  }
  html->steps[html->step_count++] = (prof_i_html_step){.start_ns = html->offset_ns + span->start_ns,
                                                       .duration_ns = span->duration_ns,
                                                       .number = html->event.id,
                                                       .thread = html->threads_before + thread};
}

static void add_counter(prof_i_html *html, uint32_t name, uint64_t at_ns, double value) {
  uint32_t i = 0;
  while (i < html->counter_count && html->counters[i].name != name) i++;
  if (i == PROF_I_HTML_COUNTERS_MAX || !isfinite(value)) return;
  if (i == html->counter_count) {
    prof_i_html_counter *const more = realloc(html->counters, (i + 1) * sizeof *more);
    if (!more) {
      html->is_out_of_memory = true;
      return;
    }
    html->counters = more;
    html->counter_count++;
    more[i].name = name;
    for (size_t c = 0; c < PROF_I_HTML_COLUMNS; c++) more[i].highest[c] = NAN;
  }
  const double share = html->end_ns ? (double)at_ns / (double)html->end_ns : 0;
  const size_t column =
      share >= 1 ? PROF_I_HTML_COLUMNS - 1 : (size_t)(share * PROF_I_HTML_COLUMNS);
  double *const to = &html->counters[i].highest[column];
  if (!(*to >= value)) *to = value;
}

static void add_scope(walk_state *w, const prof_i_span *span) {
  prof_i_html *const html = w->html;
  const uint32_t name = span_name(w, span);
  html->has_side_lanes |= span->lane != 0;
  const prof_i_html_slice added = {
      .start_ns = html->offset_ns + span->start_ns,
      .end_ns = html->offset_ns + span->start_ns + span->duration_ns,
      .count = 1,
      .track = prof_i_html_track(html->threads_before + w->thread, span->lane & 1023),
      .name = name,
      .depth = span->depth};
  html_add_slice(html, &added);
}

/* Whether the span passes the filter. Steps and counters are compared by time only. */
static bool span_passes(walk_state *w, const prof_i_span *span) {
  prof_i_html *const html = w->html;
  prof_i_trace_filter *const filter = &html->filtered;
  if (!html->filter) return true;
  if (span->kind == PROF_EVENT_STEP || span->kind == PROF_EVENT_COUNTER)
    return prof_i_trace_filter_takes_time(filter, span->start_ns, UINT64_MAX);
  if (span->kind != PROF_EVENT_SCOPE && span->kind != PROF_EVENT_OPEN) return false;
  const bool passes = prof_i_trace_filter_takes(filter, w->thread, span);
  ++*(passes ? &html->passed_count : &html->left_out_count);
  return passes;
}

static int visit_spans(void *user, const prof_i_span *spans, size_t count) {
  walk_state *const w = user;
  for (size_t i = 0; i < count; i++) {
    const prof_i_span *const span = &spans[i];
    prof_i_html *const html = w->html;
    if (!span_passes(w, span)) continue;
    if (span->kind == PROF_EVENT_STEP || span->kind == PROF_EVENT_COUNTER)
      prof_i_trace_expand(html->trace, w->thread, span, &html->event);
    if (span->kind == PROF_EVENT_STEP) add_step(html, span, w->thread);
    if (span->kind == PROF_EVENT_COUNTER)
      add_counter(html,
                  name_find(html, (prof_i_text){html->event.name, html->event.name_bytes},
                            (prof_i_text){html->event.category, html->event.category_bytes}),
                  html->offset_ns + span->start_ns, html->event.value);
    if (span->kind == PROF_EVENT_SCOPE || span->kind == PROF_EVENT_OPEN ||
        span->kind == PROF_EVENT_STEP)
      add_scope(w, span);
  }
  return w->html->is_out_of_memory ? PROF_E_NO_MEMORY : 0;
}

/* ---- the walk ---- */

static int walk_thread(prof_i_html *html, uint32_t thread) {
  walk_state w = {.html = html, .thread = thread};
  prof_i_walker *const walker = prof_i_walker_create(html->trace, thread, visit_spans, &w);
  if (!walker) return PROF_E_NO_MEMORY;
  const int status = prof_i_walker_run(walker);
  prof_i_walker_destroy(walker);
  return status;
}

static int walk_trace(prof_i_html *html, const prof_trace *trace) {
  html->trace = trace;
  html->offset_ns = prof_i_html_offset(html, trace);
  free(html->site_name);
  html->site_name = calloc((size_t)prof_i_trace_site_count(trace) + 1, sizeof *html->site_name);
  if (!html->site_name) return PROF_E_NO_MEMORY;
  int status = html->filter ? prof_i_trace_filter_init(&html->filtered, trace, html->filter) : 0;
  if (status) return status;
  for (uint32_t i = 0; i < trace->thread_count && !status; i++)
    status = html->is_out_of_memory ? PROF_E_NO_MEMORY : walk_thread(html, i);
  if (html->filter) prof_i_trace_filter_fini(&html->filtered);
  html->threads_before += trace->thread_count;
  return status;
}

uint64_t prof_i_html_offset(const prof_i_html *html, const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  return info.start_unix_ns - html->start_unix_ns;
}

static void find_window(prof_i_html *html) {
  prof_trace_info info = {.size = sizeof info};
  html->start_unix_ns = UINT64_MAX;
  for (size_t i = 0; i < html->trace_count; i++) {
    prof_trace_info_get(html->traces[i], &info);
    html->thread_count += info.thread_count;
    if (info.start_unix_ns < html->start_unix_ns) html->start_unix_ns = info.start_unix_ns;
  }
  for (size_t i = 0; i < html->trace_count; i++) {
    prof_trace_info_get(html->traces[i], &info);
    const uint64_t end_ns = info.start_unix_ns - html->start_unix_ns + info.duration_ns;
    if (end_ns > html->end_ns) html->end_ns = end_ns;
  }
}

static int compare_steps(const void *a, const void *b) {
  const prof_i_html_step *const x = a, *const y = b;
  return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

int prof_i_html_collect(prof_i_html *html, const prof_trace *const *traces, size_t count,
                        const prof_i_filter *filter) {
  *html = (prof_i_html){.traces = traces, .trace_count = count, .filter = filter};
  html->names = calloc(PROF_I_HTML_NAMES_MAX, sizeof *html->names);
  if (!html->names) return PROF_E_NO_MEMORY;
  html->names[0] = (prof_i_html_name){{"(several names)", 15}, {"", 0}};
  html->name_count = 1;
  find_window(html);
  for (size_t i = 0; i < count; i++) {
    const int status = walk_trace(html, traces[i]);
    if (status) return status;
  }
  if (html->steps) qsort(html->steps, html->step_count, sizeof *html->steps, compare_steps);
  html_finish_slices(html);
  return html->is_out_of_memory ? PROF_E_NO_MEMORY : 0;
}

void prof_i_html_fini(prof_i_html *html) {
  free(html->slices);
  free(html->names);
  free(html->site_name);
  map_fini(&html->name_map);
  free(html->steps);
  free(html->counters);
}
