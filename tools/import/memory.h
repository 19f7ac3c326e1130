/* Memory of a trace: instants called [memory] and [OutOfMemory]. */
#ifndef PROF_IMPORT_MEMORY_H
#define PROF_IMPORT_MEMORY_H

#include "convert.h"

void import_convert_memory(import_state *state, const import_event *event, uint64_t at);
void import_convert_out_of_memory(import_state *state, const import_event *event, uint64_t at);

#endif
