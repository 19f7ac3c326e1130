/* Writing a trace for prof's own use. */
#ifndef PROF_EXPORT_DUMP_H
#define PROF_EXPORT_DUMP_H

#include <prof/trace.h>
#include <stdbool.h>

/* Writes the trace to `path`, expanded; where it is NULL to own_path, as it is. is_kept_out: is all
   of the trace in a file that stays? Returns a status with its text. */
int prof_i_dump(const prof_trace *trace, const char *path, const char *own_path,
                const prof_dump_options *options, bool *is_kept_out);

#endif
