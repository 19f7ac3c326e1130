/* Memory of a trace: instants called [memory] and [OutOfMemory]. */
#ifndef PROF_IMPORT_MEMORY_H
#define PROF_IMPORT_MEMORY_H

#include "take.h"

void import_take_memory(import_state *state, const import_event *event, uint64_t at);
void import_take_out_of_memory(import_state *state, const import_event *event, uint64_t at);

#endif
