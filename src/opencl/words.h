/* Why a call failed, in words, for each thread its own. */
#ifndef PROF_OPENCL_WORDS_H
#define PROF_OPENCL_WORDS_H

#include <prof/backend.h>

/* Keeps the text for prof_i_opencl_last_error() and returns result. Any thread. */
int prof_i_opencl_fail(int result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of a static text, at the cost of keeping a pointer: for what may fail at every scope. */
int prof_i_opencl_refuse(int result, const char *text);

/* "clEnqueueMarker: CL_OUT_OF_RESOURCES (-5)", and the result that fits. */
int prof_i_opencl_fail_call(const char *function, int32_t error);

const char *prof_i_opencl_last_error(prof_backend_self *self);

#endif
