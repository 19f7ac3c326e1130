/* Chrome JSON: the user's counters. A graph is one row of a process, whichever threads count.
   chrome://tracing draws its values in the order of the file. So they are kept until all threads
   have been walked, and written in the order of time. */
#include <math.h>
#include <stdlib.h>

#include "../base/log.h"
#include "../base/text.h"
#include "../reader/capture.h"
#include "chrome.h"

bool prof_i_chrome_add_counter(prof_i_chrome *w, const prof_i_span *span) {
  if (!isfinite(w->event->value)) {
    w->check.findings.counts[PROF_I_FINDING_NOT_FINITE]++;
    return true;
  }
  prof_i_counter_values *const c = &w->counters;
  if (!prof_i_make_room((void **)&c->items, &c->room, c->count, sizeof *c->items)) return false;
  const prof_i_text category = {w->event->category, w->event->category_bytes},
                    name = {w->event->name, w->event->name_bytes};
  c->items[c->count] = (prof_i_counter_value){span->start_ns,   w->event->value, category, name,
                                              w->event->device, w->thread,       c->count};
  c->count++;
  return true;
}

/* A thread's came from the last to the first. */
static int counter_compare_time(const void *a, const void *b) {
  const prof_i_counter_value *const x = a, *const y = b;
  if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
  if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
  return x->number > y->number ? -1 : 1;
}

static void put_counter(prof_i_chrome *w, const prof_i_counter_value *counter) {
  prof_i_sink *const sink = w->sink;
  const prof_i_text category = prof_i_text_or(counter->category, "scope"),
                    name = prof_i_text_or(counter->name, "(unnamed)");
  prof_i_chrome_begin_value(w, counter->device, category);
  prof_i_sink_string_part(sink, name.data, name.bytes);
  prof_i_chrome_put_value_time(w, counter->device, counter->ns);
  prof_i_sink_text(sink, ",\"args\":{\"value\":");
  prof_i_sink_double(sink, counter->value);
  prof_i_sink_text(sink, "}},\n");
  w->written.counter_count++;
}

void prof_i_chrome_put_counters(prof_i_chrome *w) {
  prof_i_counter_values *const c = &w->counters;
  if (c->count) qsort(c->items, c->count, sizeof *c->items, counter_compare_time);
  for (uint32_t i = 0; i < c->count && w->sink->status == PROF_OK; i++) {
    if (i == 0 || c->items[i].thread != w->thread)
      prof_i_chrome_select_thread(w, c->items[i].thread);
    put_counter(w, &c->items[i]);
  }
}
