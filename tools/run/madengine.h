/* madengine's own configuration, without madengine's files. */
#ifndef PROF_TOOLS_RUN_ADOPT_H
#define PROF_TOOLS_RUN_ADOPT_H

#include "stack.h"

/* If the tool's cmd or scripts name a missing file of madengine, prof does the work of that file:
   get_library_trace.py, rocprof_wrapper.sh, rtl_trace_wrapper.sh, trace.sh, gpu_info_*.sh,
   detect_therock.sh. If a variable enables a library trace (ROCBLAS_TRACE=1, TRACE_MODE), the
   library's own variables are added. Files that exist are used. */
void run_madengine_adopt(run_tool *tool);

#endif
