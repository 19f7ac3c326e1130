/* Text in an SVG. Called by memory_svg.c, flame.c and html.c. */
#ifndef PROF_REPORT_SVG_TEXT_H
#define PROF_REPORT_SVG_TEXT_H

#include "../base/text_buffer.h"

/* Appends valid UTF-8 without controls, with XML's special characters escaped. */
void prof_i_svg_put_escaped(prof_i_text_buffer *page, const char *text);

/* The same of a name of any bytes, which is repaired, and cut if it is very long. */
void prof_i_svg_put_name(prof_i_text_buffer *page, const char *name);

#endif
