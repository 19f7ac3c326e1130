/* Why a call of one of prof's own back ends failed, as a text. One text for each thread, of its
   last call. */
#ifndef PROF_DEVICE_BACKEND_ERROR_H
#define PROF_DEVICE_BACKEND_ERROR_H

#include "../base/library.h"

/* Keeps the text for prof_i_backend_last_error() and returns result. Any thread. */
int prof_i_backend_fail(int result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of a static text, at the cost of keeping a pointer: for what may fail at every scope. */
int prof_i_backend_fail_text(int result, const char *text);

/* The same of a library that could not be opened, behind a text before its own, and the result that
   fits. */
int prof_i_backend_fail_library(const char *before, const prof_i_library_error *why);

/* "": nothing failed yet. Valid until the thread's next. */
const char *prof_i_backend_last_error(void);

#endif
