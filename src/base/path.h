/* Paths with marks: %p process id, %h host, %r rank, %% a percent sign. Any other % stays as it is,
   because it is a legal part of a name. Used for outputs and for capture files. Also endings.
   Pure; any thread. Signal-safe. */
#ifndef PROF_BASE_PATH_H
#define PROF_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct prof_i_path_words {
  uint32_t pid;
  int32_t rank;     /* below 0: unknown, written as 0 */
  const char *host; /* a slash in it becomes '_' */
} prof_i_path_words;

enum { PROF_I_PATH_BYTES = 4096 }; /* enough for any path that the kernel takes, with the NUL */

/* Has the pattern a place of this letter? */
bool prof_i_path_has(const char *pattern, char letter);

/* PROF_OK, or PROF_E_INVALID with its text set when the result does not fit in `room`, NUL
   included; `to` is then "". */
int prof_i_expand_path(const char *pattern, const prof_i_path_words *words, char *to, size_t room);

/* "a.json.gz" ends in ".json.gz". An ending alone is no name. */
bool prof_i_path_ends_in(const char *path, const char *ending);

#endif
