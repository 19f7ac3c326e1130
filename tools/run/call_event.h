/* A row of library_trace.csv as an event: a name and arguments. */
#ifndef PROF_TOOLS_RUN_CALL_FORM_H
#define PROF_TOOLS_RUN_CALL_FORM_H

#include <prof/scope.h>

#include "library.h"

/* Two arguments are left for the rank and the process. */
enum { RUN_CALL_ARGS_MAX = PROF_ARGS_MAX - 2 };

typedef struct run_call_event {
  prof_site site;
  const char *name, *category;
  uint32_t arg_count;
  prof_arg args[]; /* behind them is the text of names, keys and values */
} run_call_event;

/* rocblas: "rocblas_gemm_ex" with the options m, n, k and so on. rccl: "ncclAllReduce" with count,
   datatype and bytes. Options that have no room are one argument "more". Free it with free(). */
run_call_event *run_call_event_create(const run_library_row *row);

#endif
