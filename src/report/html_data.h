/* The data of an HTML report: what is collected from traces, and how it is written. Called by
   html.c. */
#ifndef PROF_REPORT_HTML_DATA_H
#define PROF_REPORT_HTML_DATA_H

#include <stdbool.h>

#include "../analysis/filter.h"
#include "../reader/capture.h"
#include "../sink/sink.h"

/* ---- html_collect.c ---- */

/* What the report draws of single scopes: slices of the time line, steps and counters. One walk of
   each trace collects them. Memory is bounded: when there are too many slices, the grid of the time
   line is doubled, and neighbours that are shorter than it merge. Several traces lie on one time
   line by their wall clocks. */

enum {
  PROF_I_HTML_SLICES_MAX = 200000, /* in a page */
  PROF_I_HTML_NAMES_MAX = 8000,    /* further names share one */
  PROF_I_HTML_STEPS_MAX = 20000,
  PROF_I_HTML_COUNTERS_MAX = 32,
  PROF_I_HTML_COLUMNS = 600, /* of a counter's or a pool's curve */
  PROF_I_HTML_MIXED = 0      /* the name of scopes of several names */
};

/* A scope, or neighbours of one parent. */
typedef struct prof_i_html_slice {
  uint64_t start_ns, end_ns;
  uint64_t count; /* scopes in it, with those inside of them that have no slice */
  uint32_t track; /* thread and lane */
  uint32_t name;
  uint16_t depth;
} prof_i_html_slice;

typedef struct prof_i_html_name {
  prof_i_text name, category;
} prof_i_html_name;

typedef struct prof_i_html_step {
  uint64_t start_ns, duration_ns, number;
  uint32_t thread; /* that ended it */
} prof_i_html_step;

typedef struct prof_i_html_counter {
  uint32_t name;
  double highest[PROF_I_HTML_COLUMNS]; /* NAN: no value */
} prof_i_html_counter;

/* Open addressing; a key is never 0. */
typedef struct prof_i_html_map {
  uint64_t *keys, *values;
  uint32_t count, room; /* a power of two */
} prof_i_html_map;

typedef struct prof_i_html {
  const prof_trace *const *traces;
  size_t trace_count;
  uint64_t start_unix_ns, end_ns; /* of all traces */
  /* The current trace: where it begins, and the threads of those before it. */
  const prof_trace *trace;
  uint64_t offset_ns;
  uint32_t threads_before;
  uint32_t thread_count; /* of all traces */
  prof_i_html_slice *slices;
  uint32_t slice_count, shift; /* the grid is 1 << shift ns */
  bool has_side_lanes, is_out_of_memory;
  prof_i_html_name *names;
  uint32_t name_count, *site_name; /* by site of the trace: 1 + its name; 0: not met */
  prof_i_html_map name_map;
  prof_i_html_step *steps;
  uint32_t step_count;
  uint64_t left_out_steps;
  prof_i_html_counter *counters;
  uint32_t counter_count;
  const prof_i_filter *filter;  /* NULL: all */
  prof_i_trace_filter filtered; /* of the current trace, if there is a filter */
  uint64_t passed_count, left_out_count;
  const struct prof_i_html_options *options; /* of internal.h: keys of the table's rows */
  prof_event event;                          /* scratch */
} prof_i_html;

enum { PROF_I_HTML_LANE_BITS = 11 };

static inline uint32_t prof_i_html_track(uint32_t thread, uint32_t lane) {
  return thread << PROF_I_HTML_LANE_BITS | lane;
}

/* 0 or PROF_E_NO_MEMORY; fini frees in both cases. */
int prof_i_html_collect(prof_i_html *html, const prof_trace *const *traces, size_t count,
                        const prof_i_filter *filter);
void prof_i_html_fini(prof_i_html *html);

/* Where a trace begins on the common time line. */
uint64_t prof_i_html_offset(const prof_i_html *html, const prof_trace *trace);

/* ---- html_data.c ---- */

/* The data begins with the length of a JSON text in 4 bytes (little endian), and the text. The
   columns of the slices follow, as numbers of 7 bits a byte. report.js reads them. */

enum {
  PROF_I_HTML_ROWS_MAX = 10000,
  PROF_I_HTML_PATHS_MAX = 20000, /* of each kind of flame graph */
  PROF_I_HTML_POOLS_MAX = 16,
  PROF_I_HTML_LIVE_MAX = 12,
  PROF_I_HTML_TEXTS_BYTES = 1 << 20, /* names are cut so that their sum stays near this */
  PROF_I_HTML_DATA_MAX = 1 << 30
};

/* What all parts of the JSON need. */
typedef struct prof_i_html_json {
  prof_i_sink *sink;
  const prof_i_html *html;
  size_t text_bytes; /* longer names are cut */
} prof_i_html_json;

/* The caller frees *data_out. PROF_OK or an error whose text is set. */
int prof_i_html_data(const prof_i_html *html, const prof_rows *rows, char **data_out,
                     size_t *bytes_out);

/* A string of a JSON text, cut. */
void prof_i_html_put_text(const prof_i_html_json *json, const char *text, size_t bytes);

/* ---- html_lists.c: each puts ,"key":VALUE; int: PROF_OK or an error whose text is set ---- */

void prof_i_html_put_rows(const prof_i_html_json *json, const prof_rows *rows);
int prof_i_html_put_flames(const prof_i_html_json *json);
int prof_i_html_put_pools(const prof_i_html_json *json);
void prof_i_html_put_devices(const prof_i_html_json *json);

#endif
