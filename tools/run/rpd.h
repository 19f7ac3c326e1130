/* The databases of rpd and rocm-trace-lite as Chrome traces. */
#ifndef PROF_TOOLS_RUN_RPD_H
#define PROF_TOOLS_RUN_RPD_H

#include "stack.h"

/* Makes trace.json of trace.rpd or trace.db in the tool's folder, by prof's own import. An existing
   trace.json stays. If the database cannot be read, or the tool rpd or rocm_trace_lite wrote
   none, prints one line; the database stays. */
void run_rpd_convert(const run_tool *tool);

/* True: the tool is rpd or rocm_trace_lite. */
bool run_rpd_is_of(const run_tool *tool);

#endif
