/* RAF's own log: a beginning and an end for each scope, both with its arguments as one text. One
   line for each category. */
#ifndef PROF_EXPORT_RAF_H
#define PROF_EXPORT_RAF_H

#include <prof/trace.h>

#include "../sink/sink.h"
#include "window.h"

/* PROF_OK, or the sink's or the reader's failure. */
int prof_i_raf_write(const prof_trace *trace, const prof_i_window *window, prof_i_sink *sink);

#endif
