/* The thread's last error, with its values, and lines on stderr. Control path only: never called
   from a scope. */
#ifndef PROF_BASE_ERROR_H
#define PROF_BASE_ERROR_H

#include <stdbool.h>

/* Keeps the text for prof_last_error() and returns status. Keeps errno as it was. */
int prof_i_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts the file's name before the text of the last error, and returns status. */
int prof_i_fail_in(const char *path, int status);

/* Switches the texts of this thread's failures off, or on again. A forked child creates its capture
   inside a scope. Nobody reads a text there, and printf and strerror() are not async-signal-safe.
   */
void prof_i_fail_silently(bool is_silent);

/* As strerror(); while this thread fails silently without the locale's catalogue, and its lock. */
const char *prof_i_error_text(int error);

/* The status that fits an errno; its text is then the caller's to give. */
int prof_i_status_of_errno(int error);

/* One line on stderr, "prof: ...". Only for what the user asked by environment variables, and by
   prof_memory_oom(); nothing else writes there. */
void prof_i_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
