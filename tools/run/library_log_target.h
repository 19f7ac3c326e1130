/* Where libraries write their lines. */
#ifndef PROF_TOOLS_RUN_LIBRARY_WHERE_H
#define PROF_TOOLS_RUN_LIBRARY_WHERE_H

#include "stack.h"

/* If a variable, the user's or the tool's, sends a library's lines to a place where prof does not
   read them: prints a line. The variables stay: rocBLAS ends a program whose path it cannot open.
   The tools' folders must be made. */
void run_library_log_target_check(const run_stack *stack);

#endif
