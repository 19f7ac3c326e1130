/* Status codes of functions that can fail, with names and texts, and the export macro. Includes
   nothing of prof.
   SPDX-License-Identifier: MIT */
#ifndef PROF_STATUS_H
#define PROF_STATUS_H

#include <stddef.h>
#include <stdint.h>

#define PROF_API __attribute__((visibility("default")))

/* A call takes the function's address from the GOT itself, which saves the PLT's jump. With
   libprof.a the linker makes a plain call of it. */
#if defined(__x86_64__) && defined(__has_attribute)
#if __has_attribute(noplt)
#define PROF_I_NO_PLT __attribute__((noplt))
#endif
#endif
#ifndef PROF_I_NO_PLT
#define PROF_I_NO_PLT
#endif

#ifdef __cplusplus
#define PROF_I_EXTERN_C_BEGIN extern "C" {
#define PROF_I_EXTERN_C_END }
#define PROF_I_NOEXCEPT noexcept
#else
#define PROF_I_EXTERN_C_BEGIN
#define PROF_I_EXTERN_C_END
#define PROF_I_NOEXCEPT
#endif

/* All codes: name, value, text. */
#define PROF_STATUS_LIST(X)                                                                  \
  X(PROF_OK, 0, "success")                                                                   \
  X(PROF_E_INVALID, -1, "invalid argument")                                                  \
  X(PROF_E_LEVEL, -2,                                                                        \
    "the level must be 1 (kernels and operators) or 2 (also the runtime around them)")       \
  X(PROF_E_RUNNING, -3, "a capture is running; stop it first")                               \
  X(PROF_E_NOT_RUNNING, -4, "no capture is running")                                         \
  X(PROF_E_NO_MEMORY, -5, "out of memory")                                                   \
  X(PROF_E_IO, -6, "input or output failed")                                                 \
  X(PROF_E_NOT_FOUND, -7, "no such file or directory")                                       \
  X(PROF_E_PERMISSION, -8, "permission denied")                                              \
  X(PROF_E_NO_SPACE, -9, "no space left on the device, or past a file size limit")           \
  X(PROF_E_NOT_CAPTURE, -10, "not a prof capture")                                           \
  X(PROF_E_VERSION, -11, "the capture was written by a newer prof")                          \
  X(PROF_E_TRUNCATED, -12, "the capture is cut off before its first page ends")              \
  X(PROF_E_TOO_LARGE, -13, "the result is larger than the stated limit")                     \
  X(PROF_E_UNSUPPORTED, -14, "not supported by this build or on this system")                \
  X(PROF_E_CHECK, -15, "written, but the self-check found faults; see the trace's metadata") \
  X(PROF_E_FILE_TYPE, -16, "the path names a directory or a device, not a regular file")     \
  X(PROF_E_BUSY, -17, "called from inside another prof call of this thread")                 \
  X(PROF_E_OPERATOR, -18, "a callback of the operator, or of its timer, failed")

/* The result of a function that can fail: PROF_OK, or a negative code. A failed call leaves outputs
   and state unchanged. */
typedef enum prof_status {
#define PROF_I_ENUM(name, value, text) name = (value),
  PROF_STATUS_LIST(PROF_I_ENUM)
#undef PROF_I_ENUM
} prof_status;

PROF_I_EXTERN_C_BEGIN

/* Returns a code's name, for example "PROF_E_LEVEL". An unknown value gives "PROF_E_UNKNOWN".
   Static text.
   Any thread. */
PROF_API const char *prof_status_name(int status) PROF_I_NOEXCEPT;

/* Returns a code's text, lowercase, without a full stop. Static text. Any thread. */
PROF_API const char *prof_status_text(int status) PROF_I_NOEXCEPT;

/* Returns the message of this thread's last failed call, with its values, such as "level is 7". If
   no call failed, it is empty. The text belongs to prof, and is valid until this thread's next
   failed call. Only the 64 threads that failed last have messages.
   Any thread. */
PROF_API const char *prof_last_error(void) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
