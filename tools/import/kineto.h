/* What events mean: as torch.profiler's Kineto writes them, and, beyond that, the trace event
   format of chrome://tracing. */
#ifndef PROF_IMPORT_KINETO_H
#define PROF_IMPORT_KINETO_H

#include "event.h"
#include "state.h"

void import_kineto_event(import_state *state, const import_event *event);
void import_kineto_metadata(import_state *state, import_text key, const import_value *value,
                            import_text text);

/* Behind the last event: what was begun ends, and what was said of the whole is written down. */
void import_kineto_end(import_state *state);

#endif
