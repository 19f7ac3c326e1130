/* Where a capture's file stands. */
#ifndef PROF_CORE_PLACE_H
#define PROF_CORE_PLACE_H

#include <stddef.h>

/* Is this an output path that a dump could write? Its directory is there and writable, and it names no directory or device.
   0 or a status with its text. */
int prof_i_place_check_output(const char *path);

/* Creates the capture's file beside `output`, or in $PROF_CAPTURE_DIR, $TMPDIR, /dev/shm, whichever truly reserves room. Returns its
   descriptor and its path; -1: none qualifies, and `reason` says why. In both cases reason is "" only when it is beside the output. */
int prof_i_place_create(const char *output, char *path_out, size_t path_room, char *reason_out, size_t reason_room);

#endif
