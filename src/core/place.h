/* Where a capture's file stands. */
#ifndef PROF_CORE_PLACE_H
#define PROF_CORE_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* A relative pattern (path.h) put behind the working directory, whose own percent signs are doubled. Returns `to`; or the pattern as it is:
   absolute, or the directory is gone, cannot be reached by its path, or is too long for the names that a capture makes of it. */
const char *prof_i_place_make_absolute(const char *pattern, char *to, size_t room);

/* Is this an output path that a dump could write? Its directory is there and writable, and it names no directory or device.
   0 or a status with its text. */
int prof_i_place_check_output(const char *path);

/* Is another living process recording for the same output? Then this one's trace needs a name of its own. Judged by the captures that
   stand beside the output and where they go instead; one in memory is not seen. Hold prof_i_place_lock() while asking and creating. */
bool prof_i_place_is_taken(const char *output);

/* Says to other processes, as long as the descriptor is open, that its capture is being recorded into. */
void prof_i_place_hold(int fd);

/* One process at a time decides about this output's directory; waits at most a second. -1 when it cannot be locked. */
int prof_i_place_lock(const char *output);
void prof_i_place_unlock(int lock);

/* The output's name with `.pid` before its ending: trace.json -> trace.123.json. 0, or PROF_E_INVALID when it does not fit. */
int prof_i_place_add_suffix(char *output, size_t room);

/* Creates the capture's file beside `output`, or in $PROF_CAPTURE_DIR, $TMPDIR, /dev/shm, whichever truly reserves room. Returns its
   descriptor and its path; -1: none qualifies, and `reason` says why. In both cases reason is "" only when it is beside the output. */
int prof_i_place_create(const char *output, char *path_out, size_t path_room, char *reason_out, size_t reason_room);

/* Does what is written there take memory, as on tmpfs? */
bool prof_i_place_is_memory(int fd);

/* Gives the capture in force, into which nobody records any more, the output's name in place of its own, without reading it; its mode stays 0600. Not over a
   capture that another process records into, nor to another file system. 0, or a status with its text: then it stands as it was. */
int prof_i_place_rename(const char *capture, const char *output);

#endif
