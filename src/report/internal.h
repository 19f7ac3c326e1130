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

/* ---- memory_plot.c ---- */

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
