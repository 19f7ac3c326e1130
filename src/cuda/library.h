/* The CUDA driver's library and its errors. Opened when a caller asks whether it could be used. */
#ifndef PROF_CUDA_LIBRARY_H
#define PROF_CUDA_LIBRARY_H

#include "../device/vendor.h"
#include "api.h"

typedef struct prof_i_cuda_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define PROF_I_CU_MEMBER(need, name, symbol, arguments) int32_t(*name) arguments;
  PROF_I_CU_FUNCTIONS(PROF_I_CU_MEMBER)
#undef PROF_I_CU_MEMBER
} prof_i_cuda_functions;

/* Written only by prof_i_cuda_library_open(). Call these only after it returned OK. */
extern prof_i_cuda_functions prof_i_cuda __attribute__((visibility("hidden")));

/* See prof_i_vendor_library_open(). ABSENT, VERSION, UNSUPPORTED. One thread at a time. */
int prof_i_cuda_library_open(void);

/* True if the program has loaded it. Any thread. */
int prof_i_cuda_library_is_loaded(void);

/* Keeps a text such as "cuEventRecord: CUDA_ERROR_INVALID_HANDLE (400), invalid resource handle",
   in the driver's words, and returns the result that fits. */
int prof_i_cuda_fail_call(const char *function, int32_t error);

/* Not OK after a call of prof's returned one of PROF_I_CU_FATAL_ERRORS: CUDA does nothing more in
   this process, and prof calls it no more. The program's own calls report the error, too. Any
   thread. */
int prof_i_cuda_check_fatal(void);

#endif
