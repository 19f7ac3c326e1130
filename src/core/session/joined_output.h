/* The output of a program that starts while a capture runs, and joins it (PROF_JOIN). The capture
   belongs to the environment, and has an output of its own. Control lock held. */
#ifndef PROF_CORE_SESSION_JOINED_OUTPUT_H
#define PROF_CORE_SESSION_JOINED_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* An absolute path, with marks. "": there is none any more. */
void prof_i_joined_output_set(const char *path);
bool prof_i_joined_output_is_set(void);

/* Where the program's prof_dump(NULL) writes. Without %p, a forked child's has its pid, and so has
   one whose name another process has written since. False: it does not fit. */
bool prof_i_joined_output_path(char *to, size_t room);

#endif
