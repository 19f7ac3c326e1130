/* What the files of this folder share, and what the command calls: `prof diff`, `prof events`,
   `prof tree`, `prof flame` and `prof report`. The table and the memory report have their own
   headers. */
#ifndef PROF_REPORT_INTERNAL_H
#define PROF_REPORT_INTERNAL_H

#include <prof/memory.h>
#include <prof/trace.h>
#include <stdbool.h>

#include "../analysis/internal.h"
#include "../analysis/paths.h"
#include "../base/display.h"

/* ---- diff.c ---- */

/* A comparison (analysis/compare.h) as text for a terminal, as JSON and as CSV. The caller frees
   the texts. Called by `prof diff`. */

struct prof_i_comparison;

enum { PROF_I_DIFF_ROWS_DEFAULT = 40 };

typedef struct prof_i_diff_options {
  uint32_t width; /* columns of a line at most; 0: any */
  /* Titles of the columns of keys; count 0: Name alone. */
  const char *titles[PROF_I_GROUP_KEYS_MAX];
  uint32_t title_count;
  uint32_t rows_limit; /* those with the largest change of the total; UINT32_MAX: all */
} prof_i_diff_options;

/* PROF_OK, or PROF_E_NO_MEMORY with its text set. */
int prof_i_diff_text(const struct prof_i_comparison *comparison, const prof_i_diff_options *options,
                     char **text_out);
int prof_i_diff_json(const struct prof_i_comparison *comparison, char **text_out);
int prof_i_diff_csv(const struct prof_i_comparison *comparison, char **text_out);

/* ---- table_cells.c: names of threads and processes, the same in all texts ---- */

enum { PROF_I_PLACE_TEXT_BYTES = 192 };

/* "main (4711)", "worker (fiber 3)". Any bytes. */
void prof_i_thread_text(const prof_trace_thread *thread, char to[PROF_I_PLACE_TEXT_BYTES]);

/* "rank 0, python (4711)", the rank if it is known (-1: it is not); "process 4711" without a name;
   only the name if the import made the number (pid -1). Any bytes. */
void prof_i_process_text(const char *name, int64_t pid, int32_t rank_number,
                         char to[PROF_I_PLACE_TEXT_BYTES]);

/* ---- scope_list.c ---- */

/* Single scopes as text, CSV or JSON, a line each. Called by `prof events`. */

typedef enum prof_i_scope_list_form {
  PROF_I_SCOPE_LIST_TEXT,
  PROF_I_SCOPE_LIST_CSV,
  PROF_I_SCOPE_LIST_JSON /* an object a line */
} prof_i_scope_list_form;

typedef struct prof_i_scope_list_options {
  prof_i_scopes_options scopes;
  prof_i_scope_list_form form;
  uint32_t width; /* of a line of text; 0: any */
} prof_i_scope_list_options;

/* A capture, as a row shows it. */
typedef struct prof_i_scope_list_capture {
  uint64_t pid_offset; /* to add to the numbers of its processes */
  const char *label;   /* "rank 3"; NULL: it is the only capture */
} prof_i_scope_list_capture;

/* Takes the next bytes. Non-zero stops. */
typedef int (*prof_i_scope_list_write)(void *user, const char *bytes, size_t count);

/* captures: of each trace. Memory is that of prof_i_traces_scopes(). Returns PROF_OK, what `write`
   returned, or a negative error whose text is set. */
int prof_i_scope_list(const prof_i_placed_trace *traces, const prof_i_scope_list_capture *captures,
                      uint32_t count, const prof_i_scope_list_options *options,
                      prof_i_scope_list_write write, void *user, prof_i_scopes_result *result_out);

/* ---- tree.c ---- */

/* The call tree as text or JSON: calls, total and self time of each path (analysis/paths.h). A
   recursion is a path below its outer call, so no total is above that of its parent's calls. Called
   by `prof tree`. */

/* Of paths below one path. Equal ones are in the order in which they were first seen; of names, the
   longest comes first. */
typedef enum prof_i_tree_order {
  PROF_I_TREE_BY_TOTAL = 0,
  PROF_I_TREE_BY_SELF = 1,
  PROF_I_TREE_BY_CALLS = 2,
  PROF_I_TREE_BY_NAME = 3
} prof_i_tree_order;

typedef struct prof_i_tree_options {
  prof_i_tree_order order;
  uint32_t depth;   /* at most so many levels; 0: all */
  double min_share; /* of all time, 0.01 is 1 %: paths with less are not shown */
  uint32_t width;   /* of a line; 0: any */
  bool is_ascii;    /* lines of the tree */
  bool is_json;     /* an object a line */
} prof_i_tree_options;

/* Of the new side. path_count_out gets the number of paths with calls, shown or not. The caller
   frees the text. PROF_OK or PROF_E_NO_MEMORY. */
int prof_i_tree(const prof_i_paths *paths, const prof_i_tree_options *options, char **text_out,
                uint32_t *path_count_out);

/* ---- flame.c ---- */

/* Flame graphs of paths (analysis/paths.h): folded stacks, and a self-contained SVG with search and
   zoom by a small script. Both are of one side, or the difference of two. The caller frees the
   texts. Called by `prof flame` and the HTML report. */

typedef enum prof_i_flame_kind {
  PROF_I_FLAME_HOST = 0,   /* self time of host scopes, ns */
  PROF_I_FLAME_DEVICE = 1, /* time of a device's work, below the scopes that launched it, ns */
  PROF_I_FLAME_MEMORY = 2  /* allocated bytes */
} prof_i_flame_kind;

typedef struct prof_i_flame_options {
  prof_i_flame_kind kind;
  /* Widths are of the new side. true: colours compare it with the base, and values are means of
     the runs. */
  bool is_difference;
  uint32_t runs_count[PROF_I_SIDES]; /* of a difference; else not used */
  const char *title;                 /* any bytes */
} prof_i_flame_options;

/* A path's own time or bytes, without those below it. */
double prof_i_flame_value(const prof_i_paths *paths, uint32_t index,
                          const prof_i_flame_options *options, prof_i_side side);

/* Values of a path on each side: its own, and with those of the paths below it. */
typedef struct prof_i_flame_sums {
  double own[PROF_I_SIDES], total[PROF_I_SIDES];
} prof_i_flame_sums;

/* Fills sums[i] for each path. Returns the largest change of an own value between both sides. */
double prof_i_flame_sum(const prof_i_paths *paths, const prof_i_flame_options *options,
                        prof_i_flame_sums *sums);

/* The sum of all frames. 0: there is nothing to draw. */
double prof_i_flame_total(const prof_i_paths *paths, const prof_i_flame_options *options);

/* "outer;inner 123", as flamegraph.pl and speedscope read it. A difference has two values: of the
   base and of the new side. ';' in a name becomes ':'. PROF_OK or PROF_E_NO_MEMORY. */
int prof_i_flame_folded(const prof_i_paths *paths, const prof_i_flame_options *options,
                        char **text_out);
int prof_i_flame_svg(const prof_i_paths *paths, const prof_i_flame_options *options,
                     char **text_out);

/* ---- html.c ---- */

/* The HTML report: one file that a browser opens without a network. Called by `prof report`.

   html_collect.c collects slices, distributions, steps and counters.

   html_data.c and html_lists.c write the data as JSON and columns.

   html.c writes the summary and the page around the data.

   html_page.c has the page's own HTML, CSS and script, made from src/report/html. */

/* From the base to the new side. The traces of the page are those of the new side. */
typedef struct prof_i_html_difference {
  const char *text;                  /* of prof_i_diff_text() */
  const prof_i_paths *paths;         /* of both sides */
  uint32_t runs_count[PROF_I_SIDES]; /* captures, not 0 */
} prof_i_html_difference;

typedef struct prof_i_html_options {
  const char *title;                        /* any bytes; NULL: the first process's name */
  const prof_i_html_difference *difference; /* NULL: there is no base */
  /* Selects the scopes; NULL: all. It does not apply to memory and devices. */
  const struct prof_i_filter *filter;
  /* The groups of the table's rows: bits of prof_group and of analysis/internal.h; 0: name and
     category. keys: those that the page shows. arg_key: of PROF_I_GROUP_ARG. */
  uint32_t group;
  uint32_t keys[PROF_I_GROUP_KEYS_MAX];
  uint32_t key_count;
  const char *arg_key;
} prof_i_html_options;

/* Writes the file under a temporary name, and renames it at the end. *is_empty_out: no scope passes
   the filter, or no scope has what the rows are grouped by. Then no file is written. PROF_OK or an
   error whose text is set. */
int prof_i_html_write(const prof_trace *const *traces, size_t count,
                      const prof_i_html_options *options, const char *path, bool *is_empty_out);

/* ---- memory_svg.c ---- */

/* Text in an SVG or a page. Also called by flame.c and html.c. */

/* Appends valid UTF-8 without controls, with XML's special characters escaped. */
void prof_i_svg_put_escaped(prof_i_text_buffer *page, const char *text);

/* The same of a name of any bytes, which is repaired, and cut if it is very long. */
void prof_i_svg_put_name(prof_i_text_buffer *page, const char *name);

/* ---- memory_plot.c: the curve of a pool ---- */

/* The data of a pool's plot: used and allocated over time, the axis with its ticks, and the two
   peaks. The terminal plot, the SVG and the HTML report draw the same. */

typedef struct prof_i_memory_mark {
  int64_t bytes;
  uint64_t ns;
  uint32_t column;
} prof_i_memory_mark;

typedef struct prof_i_memory_curve {
  uint32_t count; /* of columns */
  /* in each the highest, between low and high; one array, allocated behind used */
  int64_t *used, *allocated;
  uint64_t begin_ns, end_ns; /* begin before end */
  int64_t low, high;         /* of the axis, multiples of step; 0 lies between them */
  /* between its ticks: a power of two, so that they read well in KiB, MiB, GiB */
  int64_t step;
  prof_i_memory_mark used_peak, allocated_peak;
  uint32_t has_allocated; /* 0: a pool without blocks, as malloc()'s: allocated is not drawn */
} prof_i_memory_curve;

/* index below prof_memory_pool_count(). 0, or an error whose text is set; then there is nothing to
   free. */
int prof_i_memory_curve_init(prof_i_memory_curve *curve, const prof_memory *memory, uint32_t index,
                             uint32_t count);
void prof_i_memory_curve_fini(prof_i_memory_curve *curve);

/* 1, 2 or 5 times a power of ten, so that the span has at most this many ticks. */
uint64_t prof_i_memory_time_step(uint64_t span_ns, uint32_t ticks_max);
/* "1.5 MiB", "200ms", "0": as short as a tick needs it. */
void prof_i_memory_tick_bytes(char *to, size_t room, int64_t bytes);
void prof_i_memory_tick_time(char *to, size_t room, uint64_t ns);

/* ---- memory_plot.c: the plot in a terminal ---- */

/* A pool over time, drawn in a terminal's columns: used filled, allocated as a line, the two peaks
   marked. */

enum { PROF_I_PLOT_WIDTH_MIN = 40, PROF_I_PLOT_WIDTH_MAX = 500 };

/* 0, or an error whose text is set. */
int prof_i_memory_plot(prof_i_text_buffer *page, const prof_memory *memory, uint32_t index,
                       uint32_t width, bool is_ascii);

/* ---- html_page.c ---- */

/* The HTML, CSS and script of a report. html_page.c is made from src/report/html by
   tools/report_page.py; a test checks that it is current. */

/* A piece that begins with it is a place: title, summary, encoding or data. */
enum { PROF_I_HTML_PLACE = 1 };

/* Pieces of the page, and NULL. */
extern const char *const prof_i_html_page[];

#endif
