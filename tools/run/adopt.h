/* madengine's own configuration, without madengine's files. */
#ifndef PROF_TOOLS_RUN_ADOPT_H
#define PROF_TOOLS_RUN_ADOPT_H

#include "stack.h"

/* Where the tool's cmd or scripts name a file of madengine's that is not there, prof does that
   part: get_library_trace.py, rocprof_wrapper.sh, rtl_trace_wrapper.sh, trace.sh, gpu_info_*.sh,
   detect_therock.sh. A variable that turns a library trace on (ROCBLAS_TRACE=1, TRACE_MODE) then
   has its library's own variables beside it. Files that are there are used. */
void run_adopt(run_tool *tool);

#endif
