/* Reads the capture back in the process that made it and prints what it says: the operators, what
   the VM costs around them, and whether anything was lost. SPDX-License-Identifier: MIT */
#ifndef MINILM_REPORT_H
#define MINILM_REPORT_H

#include <prof/trace.h>
#include <stdbool.h>

#include "failure.h"

/* To stdout, the most expensive operators first: by the device's time if they ran on one. Refused:
   the trace cannot be aggregated. */
int report_print(const prof_trace *trace, bool is_on_device, failure *why);

#endif
