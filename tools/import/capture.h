/* A capture out of what is known of a trace: src/format/layout.h has its bytes,
   docs/reference/file-format.md describes them. */
#ifndef PROF_IMPORT_CAPTURE_H
#define PROF_IMPORT_CAPTURE_H

#include "output.h"
#include "state.h"

void import_capture_write(import_state *state, import_output *output);

#endif
