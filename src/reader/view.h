/* A view is a trace that shares the data of another one, and shows a part. It serves the profile of
   one thread while other threads have profiles (include/prof/python.h). The walk asks the view for
   each record. */
#ifndef PROF_READER_VIEW_H
#define PROF_READER_VIEW_H

#include "capture.h"

typedef struct prof_i_view prof_i_view;

/* Whether the trace hides a scope of this site on this thread. words: of a long record, or NULL. */
bool prof_i_view_hides_scope(const prof_trace *trace, uint32_t thread, uint32_t site,
                             const uint64_t *words);

/* The same for a memory record. */
bool prof_i_view_hides_memory(const prof_trace *trace, uint32_t thread, const uint64_t *words);

void prof_i_view_destroy(prof_i_view *view);

#endif
