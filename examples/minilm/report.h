/* Reads the capture back in the process that made it and prints what it says: the operators, what the VM costs around them,
   and whether anything was lost. SPDX-License-Identifier: MIT */
#ifndef MINILM_REPORT_H
#define MINILM_REPORT_H

#include <prof/trace.h>

#include "failure.h"

/* To stdout. Refused: the trace cannot be aggregated. */
int report_print(const prof_trace *trace, failure *why);

#endif
