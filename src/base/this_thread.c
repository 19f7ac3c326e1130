/* See this_thread.h. */
#include "this_thread.h"

/* The model again: gcc forgets the declaration's, and a handler's first scope would call into the
   dynamic linker. */
__thread prof_i_thread_flags prof_i_this_flags
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
