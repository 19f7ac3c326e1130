/* What uftrace has recorded. */
#ifndef PROF_TOOLS_RUN_UFTRACE_H
#define PROF_TOOLS_RUN_UFTRACE_H

/* folder: with uftrace.data. Returns one line if no program in it calls a hook of uftrace, so that
   there is little to show. Else NULL, also if the folder cannot be read. */
const char *run_uftrace_hint(const char *folder);

#endif
