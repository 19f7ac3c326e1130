/* The OpenCL library of the process: opened when somebody asks for it, never linked, never
   closed. */
#ifndef PROF_OPENCL_LIBRARY_H
#define PROF_OPENCL_LIBRARY_H

#include "api.h"

typedef struct prof_i_opencl_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define PROF_I_CL_MEMBER(need, name, arguments) int32_t(*name) arguments;
  PROF_I_CL_FUNCTIONS(PROF_I_CL_MEMBER)
#undef PROF_I_CL_MEMBER
} prof_i_opencl_functions;

/* Written by prof_i_opencl_library_open() alone; whoever calls one has seen that return OK. */
extern prof_i_opencl_functions prof_i_opencl __attribute__((visibility("hidden")));

/* A copy that the process has already comes first. UNSUPPORTED: this build opens no libraries;
   ABSENT; VERSION: it lacks a function. One thread at a time. */
int prof_i_opencl_library_open(void);

#endif
