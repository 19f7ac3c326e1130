/* Chrome JSON: graphs, of the user's counters and of memory, and changes of memory. All of it comes
   after all threads. The viewer chrome://tracing draws a graph's values in the order of the file,
   and of two at one moment viewers take the later one. So a graph's time never runs back. Called by
   chrome.c and chrome_event.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/memory.h"
#include "../base/error.h"
#include "../base/text.h"
#include "../reader/capture.h"
#include "chrome.h"

/* ---- counters ---- */

/* A graph is one row of a process, whichever threads count. Values are kept until all threads have
   been walked, and written in the order of time. */

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

/* ---- memory ---- */

/* Each change is an instant of its thread, as torch.profiler writes it. Graphs show what a pool
   uses and has allocated, and begin with what it held. Both come in the pools' own order. If a
   thread was late with a value, it has the time of the previous value. */

/* Two graphs of one pool, in one session. */
typedef struct pool_graphs {
  uint64_t begin_ns, ns; /* where they begin; and of the last value */
  int64_t used, allocated;
  bool is_known;                        /* what stands at begin_ns is */
  bool is_used_open, is_allocated_open; /* values have been written */
  bool says_device, says_serial;        /* another pool has its name */
} pool_graphs;

typedef struct memory_writer {
  prof_i_chrome *chrome;
  prof_memory *memory;
  pool_graphs *pool_graphs; /* as the catalog's pools */
} memory_writer;

static const prof_i_pool_record *writer_pool(const memory_writer *w, uint32_t index) {
  return &w->memory->trace->catalog.pools[index];
}

/* ---- which pool a graph is of ---- */

static int pool_compare_name(const prof_i_pool_record *x, const prof_i_pool_record *y) {
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  if (x->name.bytes != y->name.bytes) return x->name.bytes < y->name.bytes ? -1 : 1;
  return x->name.bytes ? memcmp(x->name.data, y->name.data, (size_t)x->name.bytes) : 0;
}

static int pool_compare_device(const prof_i_pool_record *x, const prof_i_pool_record *y) {
  if (x->device.type != y->device.type) return x->device.type < y->device.type ? -1 : 1;
  return (x->device.index > y->device.index) - (x->device.index < y->device.index);
}

static int pool_compare(const void *a, const void *b) {
  const prof_i_pool_record *const x = *(const prof_i_pool_record *const *)a,
                                  *const y = *(const prof_i_pool_record *const *)b;
  const int name = pool_compare_name(x, y), device = name ? name : pool_compare_device(x, y);
  return device ? device : (x->serial > y->serial) - (x->serial < y->serial);
}

/* Pools of one name differ by their devices, and those of one device by their numbers. A
   pool's sessions share its graphs. */
static bool set_name_parts(memory_writer *w) {
  const uint32_t count = w->memory->trace->catalog.pool_count;
  const prof_i_pool_record **const sorted = malloc(count * sizeof *sorted);
  if (!sorted) return false;
  for (uint32_t i = 0; i < count; i++) sorted[i] = writer_pool(w, i);
  qsort(sorted, count, sizeof *sorted, pool_compare);
  for (uint32_t i = 0, end, device_end; i < count; i = end) {
    for (end = i + 1; end < count && pool_compare_name(sorted[i], sorted[end]) == 0;) end++;
    const bool has_devices = pool_compare_device(sorted[i], sorted[end - 1]) != 0;
    for (uint32_t d = i; d < end; d = device_end) {
      for (device_end = d + 1;
           device_end < end && pool_compare_device(sorted[d], sorted[device_end]) == 0;)
        device_end++;
      const bool has_serials = sorted[d]->serial != sorted[device_end - 1]->serial;
      for (uint32_t at = d; at < device_end; at++) {
        pool_graphs *const g = &w->pool_graphs[sorted[at] - writer_pool(w, 0)];
        g->says_device = has_devices;
        g->says_serial = has_serials;
      }
    }
  }
  free((void *)sorted);
  return true;
}

/* ---- graphs ---- */

static void put_i64(prof_i_chrome *c, int64_t value) { prof_i_sink_i64(c->sink, value); }

/* A graph shows a whole pool, so a filter selects it by time, process and device only. */
static bool filter_takes_value(const memory_writer *w, uint32_t index, uint32_t thread,
                               uint64_t ns) {
  const prof_i_selection *const selection = w->chrome->selection;
  return !selection || prof_i_trace_filter_takes_place(selection->filter, thread, ns,
                                                       writer_pool(w, index)->device);
}

/* "used bytes (tensors)", "used bytes (tensors, GPU 1, #7)", "used bytes (query, asked)" */
static void put_pool_value(const memory_writer *w, uint32_t index, uint64_t ns, const char *what,
                           int64_t bytes) {
  const prof_i_pool_record *const pool = writer_pool(w, index);
  const pool_graphs *const g = &w->pool_graphs[index];
  prof_i_sink *const sink = w->chrome->sink;
  if (!filter_takes_value(w, index, w->chrome->thread, ns)) return;
  prof_i_chrome_begin_value(w->chrome, pool->device, (prof_i_text){"memory", 6});
  prof_i_sink_text(sink, what);
  prof_i_sink_text(sink, " bytes (");
  prof_i_sink_string_part(sink, pool->name.data, pool->name.bytes);
  if (g->says_device) {
    char device[PROF_I_DEVICE_NAME_BYTES];
    prof_i_device_name(pool->device, device);
    prof_i_sink_text(sink, ", ");
    prof_i_sink_text(sink, device);
  }
  if (g->says_serial) {
    prof_i_sink_text(sink, ", #");
    prof_i_sink_u64(sink, pool->serial);
  }
  prof_i_sink_text(sink, pool->kind == PROF_MEMORY_QUERY ? ", asked)" : ")");
  prof_i_chrome_put_value_time(w->chrome, pool->device, ns);
  prof_i_sink_text(sink, ",\"args\":{\"value\":");
  put_i64(w->chrome, bytes);
  prof_i_sink_text(sink, "}},\n");
  w->chrome->written.counter_count++;
}

/* What stands where they begin: at the session's begin, or at the window's. */
static void open_used_graph(const memory_writer *w, uint32_t index) {
  pool_graphs *const g = &w->pool_graphs[index];
  if (g->is_known && !g->is_used_open) put_pool_value(w, index, g->begin_ns, "used", g->used);
  g->is_used_open = true;
}

/* Where something says what is allocated. */
static void open_allocated_graph(const memory_writer *w, uint32_t index) {
  pool_graphs *const g = &w->pool_graphs[index];
  if (g->is_known && !g->is_allocated_open)
    put_pool_value(w, index, g->begin_ns, "allocated", g->allocated);
  g->is_allocated_open = true;
}

/* The graphs begin with what the pool held. */
static void begin_graphs(const memory_writer *w, uint32_t index) {
  const prof_i_pool_record *const pool = writer_pool(w, index);
  pool_graphs *const g = &w->pool_graphs[index];
  g->begin_ns = w->chrome->window.from_ns;
  if (pool->kind != PROF_MEMORY_POOL) return; /* not asked yet */
  const uint64_t begin_ns = prof_i_memory_begin_ns(w->memory, index);
  if (begin_ns > g->begin_ns) g->begin_ns = begin_ns;
  g->ns = g->begin_ns;
  if (w->memory->from_ns) { /* what came before is not read */
    g->used = w->memory->pools[index].begin_used;
    g->allocated = w->memory->pools[index].begin_allocated;
    g->is_known = true;
    return;
  }
  g->used = prof_i_memory_bytes_bounded(pool->used_before);
  g->allocated = prof_i_memory_bytes_bounded(pool->allocated_before);
  /* or else something of it was forgotten since */
  g->is_known = pool->ticks >= w->memory->trace->floor;
}

/* The pool's own count at the end, where the events behind which it stands are lost. */
static void put_last_state(const memory_writer *w, uint32_t index) {
  const prof_i_pool_record *const pool = writer_pool(w, index);
  const pool_graphs *const g = &w->pool_graphs[index];
  const prof_trace *const trace = w->memory->trace;
  if (pool->kind != PROF_MEMORY_POOL || (!trace->is_settled && !trace->header.full_ticks)) return;
  const int64_t used = prof_i_used_bytes(pool->state.used),
                allocated = prof_i_memory_bytes_bounded(pool->state.allocated - PROF_I_USED_ZERO);
  const uint64_t ns = w->memory->end_ns > g->ns ? w->memory->end_ns : g->ns;
  if (used != g->used) put_pool_value(w, index, ns, "used", used);
  if (allocated != g->allocated) put_pool_value(w, index, ns, "allocated", allocated);
}

/* Of a pool of which nothing is heard inside: what it has is not nothing. */
static void end_graphs(const memory_writer *w, uint32_t index) {
  const pool_graphs *const g = &w->pool_graphs[index];
  const uint64_t to_ns = w->chrome->window.to_ns;
  if (to_ns && g->begin_ns >= to_ns) return;
  if (g->used) open_used_graph(w, index);
  if (g->allocated) open_allocated_graph(w, index);
  if (!to_ns) put_last_state(w, index);
}

/* ---- changes ---- */

/* Frees have negative bytes. Device type 0 is the host's, 1 any other's, and the host's index
   -1. */
static void put_memory_change(memory_writer *w, uint32_t index, const prof_i_memory_item *item,
                              const prof_i_memory_record *record) {
  const prof_i_pool_record *const pool = writer_pool(w, index);
  const bool is_host = pool->device.type == PROF_DEVICE_CPU;
  prof_i_sink *const sink = w->chrome->sink;
  prof_i_sink_text(
      sink, record->verb == PROF_I_VERB_OOM
                ? "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[OutOfMemory]"
                : "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]");
  prof_i_chrome_put_track_time(w->chrome, item->ns);
  prof_i_sink_text(sink, ",\"args\":{\"Addr\":");
  prof_i_sink_u64(sink, record->address);
  prof_i_sink_text(sink, ",\"Bytes\":");
  put_i64(w->chrome,
          record->verb == PROF_I_VERB_FREE ? (int64_t)(0 - record->bytes) : (int64_t)record->bytes);
  prof_i_sink_text(sink, ",\"Total Allocated\":");
  put_i64(w->chrome, w->pool_graphs[index].used);
  prof_i_sink_text(sink, ",\"Total Reserved\":");
  put_i64(w->chrome, w->pool_graphs[index].allocated);
  prof_i_sink_text(
      sink, is_host ? ",\"Device Type\":0,\"Device Id\":-1" : ",\"Device Type\":1,\"Device Id\":");
  if (!is_host) put_i64(w->chrome, pool->device.index);
  prof_i_sink_text(sink, ",\"finished\":false,\"Ev Idx\":"); /* as Kineto says of moments */
  prof_i_sink_u64(sink, w->chrome->numbers.memory_next++);
  if (record->requested != record->bytes) {
    prof_i_sink_text(sink, ",\"Requested\":");
    prof_i_sink_u64(sink, record->requested);
  }
  if (record->tag) {
    const prof_i_text tag = prof_i_catalog_site(&w->memory->trace->catalog, record->tag)->name;
    prof_i_sink_text(sink, ",\"Tag\":\"");
    prof_i_sink_string_part(sink, tag.data, tag.bytes);
    prof_i_sink_text(sink, "\"");
  }
  prof_i_sink_text(sink, "}},\n");
  w->chrome->written.instant_count++;
}

static bool filter_takes_change(const memory_writer *w, uint32_t index,
                                const prof_i_memory_item *item,
                                const prof_i_memory_record *record) {
  const prof_i_selected_memory event = {.address = record->address,
                                        .ns = item->ns,
                                        .thread = item->thread,
                                        .pool = record->pool,
                                        .device = writer_pool(w, index)->device,
                                        .is_free = record->verb == PROF_I_VERB_FREE};
  return !w->chrome->selection || prof_i_selection_takes_memory(w->chrome->selection, &event);
}

static bool verb_is_change(prof_i_verb verb) {
  return verb == PROF_I_VERB_ALLOC || verb == PROF_I_VERB_FREE || verb == PROF_I_VERB_OOM;
}

static void put_memory_event(memory_writer *w, uint32_t index, const prof_i_memory_item *item,
                             const prof_i_memory_record *record) {
  prof_i_chrome *const c = w->chrome;
  pool_graphs *const g = &w->pool_graphs[index];
  if (c->window.to_ns && item->ns >= c->window.to_ns) return;
  const bool says_allocated = record->verb >= PROF_I_VERB_RESERVE;
  const bool is_inside = prof_i_window_contains(&c->window, item->ns, item->ns);
  const bool is_value = is_inside && record->verb != PROF_I_VERB_COLLECT &&
                        record->verb != PROF_I_VERB_WRONG &&
                        filter_takes_value(w, index, item->thread, item->ns);
  if (is_inside && item->thread != c->thread) prof_i_chrome_select_thread(c, item->thread);
  if (is_value) open_used_graph(w, index);
  if (is_value && (says_allocated || g->allocated)) open_allocated_graph(w, index);
  g->used = record->verb == PROF_I_VERB_SAMPLE ? prof_i_memory_bytes_bounded(record->bytes)
                                               : prof_i_used_bytes(record->counter);
  if (says_allocated)
    g->allocated = prof_i_memory_bytes_bounded(record->allocated - PROF_I_USED_ZERO);
  g->is_known |= !is_inside; /* from the window's begin on */
  if (is_inside && verb_is_change(record->verb)) {
    if (filter_takes_change(w, index, item, record))
      put_memory_change(w, index, item, record);
    else
      c->numbers.memory_next++; /* the other rows keep their numbers */
  }
  if (!is_value) return;
  if (item->ns > g->ns) g->ns = item->ns;
  put_pool_value(w, index, g->ns, "used", g->used);
  if (says_allocated) put_pool_value(w, index, g->ns, "allocated", g->allocated);
}

static void put_all_pools(memory_writer *w) {
  const prof_memory *const m = w->memory;
  const uint32_t pool_count = m->trace->catalog.pool_count;
  for (uint32_t i = 0; i < pool_count; i++) begin_graphs(w, i);
  if (m->trace->thread_count)
    prof_i_chrome_select_thread(w->chrome, 0);
  else
    prof_i_chrome_select_process(
        w->chrome); /* a pool has something, and nobody has recorded anything */
  for (uint32_t i = 0; i < m->item_count && w->chrome->sink->status == PROF_OK; i++) {
    const prof_i_memory_item *const item = &m->items[m->order[i]];
    const prof_i_memory_record record = prof_i_memory_item_read(item);
    const uint32_t index = prof_i_memory_pool_index(m, record.pool);
    if (index != UINT32_MAX) put_memory_event(w, index, item, &record);
  }
  for (uint32_t i = 0; i < pool_count; i++) end_graphs(w, i);
}

/* Older events need not be read: a pool's first event says what it had before. A query's answer
   does not say what the previous answer was. */
static uint64_t read_from_ns(const prof_i_chrome *chrome) {
  const prof_i_catalog *const catalog = &chrome->trace->catalog;
  for (uint32_t i = 0; i < catalog->pool_count; i++)
    if (catalog->pools[i].kind != PROF_MEMORY_POOL) return 0;
  return chrome->window.from_ns;
}

int prof_i_chrome_put_memory(prof_i_chrome *chrome) {
  const uint32_t pool_count = chrome->trace->catalog.pool_count;
  if (pool_count == 0 || prof_i_window_is_empty(&chrome->window)) return PROF_OK;
  memory_writer w = {.chrome = chrome};
  int status = prof_i_memory_order(chrome->trace, read_from_ns(chrome), &w.memory);
  if (status) return status;
  w.pool_graphs = calloc(pool_count, sizeof *w.pool_graphs);
  if (w.pool_graphs && set_name_parts(&w))
    put_all_pools(&w);
  else
    status =
        prof_i_fail(PROF_E_NO_MEMORY, "no memory to write what %u pools have used", pool_count);
  free(w.pool_graphs);
  prof_i_memory_destroy(w.memory);
  return status;
}
