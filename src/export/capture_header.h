/* Builds the header of a copy of a capture. Used by capture_copy.c and capture_pack.c. */
#ifndef PROF_EXPORT_CAPTURE_HEADER_H
#define PROF_EXPORT_CAPTURE_HEADER_H

#include <prof/trace.h>

#include "../format/header.h"

/* A copy of what is being recorded says so, or it would be taken for what a process left that
   died. */
void prof_i_capture_header(const prof_trace *trace, prof_i_header *header_out);

#endif
