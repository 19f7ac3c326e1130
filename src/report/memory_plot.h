/* A pool over time, drawn in a terminal's columns: used filled, allocated as a line, the two peaks
   marked. */
#ifndef PROF_REPORT_MEMORY_PLOT_H
#define PROF_REPORT_MEMORY_PLOT_H

#include <prof/memory.h>

#include "../base/text_buffer.h"

enum { PROF_I_PLOT_WIDTH_MIN = 40, PROF_I_PLOT_WIDTH_MAX = 500 };

/* 0, or an error whose text is set. */
int prof_i_memory_plot(prof_i_text_buffer *page, const prof_memory *memory, uint32_t index,
                       uint32_t width, bool is_ascii);

#endif
