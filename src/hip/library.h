/* The HIP runtime of the process: found where the program has loaded it, opened when somebody asks
   whether it could be used, never linked, never closed. */
#ifndef PROF_HIP_LIBRARY_H
#define PROF_HIP_LIBRARY_H

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

/* Written by prof_i_hip_library_open() alone; whoever calls one has seen that return OK. */
extern prof_i_hip_functions prof_i_hip __attribute__((visibility("hidden")));

/* A copy that the process has already comes first, of whatever major; then the newest. UNSUPPORTED:
   this build opens no libraries; ABSENT; VERSION: it lacks a function. One thread at a time. */
int prof_i_hip_library_open(void);

/* Has the program loaded it? Any thread. */
int prof_i_hip_library_is_loaded(void);

#endif
