/* Functions of `prof import` that have one caller or two, by the file that defines them. */
#ifndef PROF_IMPORT_INTERNAL_H
#define PROF_IMPORT_INTERNAL_H

#include <stddef.h>

#include "convert.h"
#include "event.h"
#include "json.h"
#include "output.h"
#include "state.h"

/* capture.c: writes the capture of a trace. src/format/layout.h has its bytes, and
   docs/reference/file-format.md describes them. */

void import_capture_write(import_state *state, import_output *output);

/* run.c: creates a parser that adds events to the state. */

import_json *import_state_json(import_state *state);
void import_state_note_cleaned(import_state *state, const import_json_cleaner *cleaner);

/* memory.c: the instants of a trace with the names [memory] and [OutOfMemory]. */

void import_convert_memory(import_state *state, const import_event *event, uint64_t at);
void import_convert_out_of_memory(import_state *state, const import_event *event, uint64_t at);

#endif
