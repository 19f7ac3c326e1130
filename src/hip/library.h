/* The HIP runtime's library and its errors. Opened when a caller asks whether it could be used. */
#ifndef PROF_HIP_LIBRARY_H
#define PROF_HIP_LIBRARY_H

#include "../device/vendor.h"
#include "api.h"

typedef struct prof_i_hip_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define PROF_I_HIP_MEMBER(need, name, arguments) int32_t(*name) arguments;
  PROF_I_HIP_FUNCTIONS(PROF_I_HIP_MEMBER)
#undef PROF_I_HIP_MEMBER
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define PROF_I_HIP_MEMBER(name, arguments) const char *(*name)arguments;
  PROF_I_HIP_TEXTS(PROF_I_HIP_MEMBER)
#undef PROF_I_HIP_MEMBER
} prof_i_hip_functions;

/* Written only by prof_i_hip_library_open(). Call these only after it returned OK. */
extern prof_i_hip_functions prof_i_hip __attribute__((visibility("hidden")));

/* See prof_i_vendor_library_open(). A loaded copy of any major comes first, then the newest.
   ABSENT, VERSION, UNSUPPORTED. One thread at a time. */
int prof_i_hip_library_open(void);

/* True if the program has loaded it. Any thread. */
int prof_i_hip_library_is_loaded(void);

/* Keeps a text such as "hipEventRecord: hipErrorInvalidHandle (400), invalid resource handle", in
   the runtime's words, and returns the result that fits. */
int prof_i_hip_fail_call(const char *function, int32_t error);

/* Not OK after a call of prof's returned one of PROF_I_HIP_FATAL_ERRORS: HIP does nothing more in
   this process, and prof calls it no more. The error is left to the program. Any thread. */
int prof_i_hip_check_fatal(void);

#endif
