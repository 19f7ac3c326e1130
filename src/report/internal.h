/* Functions that only files of this folder use: text in an SVG, plots in a terminal, and the page
   of the HTML report. */
#ifndef PROF_REPORT_INTERNAL_H
#define PROF_REPORT_INTERNAL_H

#include <prof/memory.h>

#include "../base/text_buffer.h"

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
