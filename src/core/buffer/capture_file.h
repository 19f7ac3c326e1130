/* Where a capture's file goes. What takes an output's path uses memory that the control lock
   guards. */
#ifndef PROF_CORE_BUFFER_CAPTURE_FILE_H
#define PROF_CORE_BUFFER_CAPTURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../base/text.h"

enum {
  PROF_I_HOST_BYTES = 64,
  PROF_I_BASE_BYTES_MAX =
      /* of the output's name in the capture's: with what is added, no more than a directory takes
         (255) */
  140,
  /* A capture's mode: while its process finds out whether it may have the output's name, and from
     then on. See below. */
  PROF_I_MODE_CLAIMING = 0700,
  PROF_I_MODE_CLAIMED = 0600
};

/* Puts a relative pattern (text.h) behind the working directory, with the directory's percent signs
   doubled. Returns `to`, or the pattern as it is. It stays if it is absolute. It also stays if the
   directory is gone, cannot be reached by its path, or is too long for the names of a capture. */
const char *prof_i_output_make_absolute(const char *pattern, char *to, size_t room);

/* Is this an output path that a dump could write? Its directory is there and writable, and it names
   no directory or device. 0 or a status with its text. */
int prof_i_output_check(const char *path);

/* Says to other processes, as long as the descriptor is open, that its capture is being recorded
   into. */
void prof_i_capture_file_lock(int fd);

/* The output's name with `.pid` before its ending: trace.json -> trace.123.json. 0, or
   PROF_E_INVALID when it does not fit. */
int prof_i_output_add_suffix(char *output, size_t room);

/* Creates the capture's file beside `output`, or in $PROF_CAPTURE_DIR, $TMPDIR, /dev/shm, whichever
   truly reserves room. Returns its descriptor and its path; -1: none qualifies, and `reason` says
   why. In both cases reason is "" only when it is beside the output. A child takes the directories
   of its parent's environment. Signal-safe for a child; otherwise prof_i_output_claim_settle()
   comes next. */
int prof_i_capture_file_create(const char *output, bool is_child, char *path_out, size_t path_room,
                               char *reason_out, size_t reason_room);

/* Does what is written there take memory, as on tmpfs? */
bool prof_i_capture_file_is_memory(int fd);

/* Gives the capture in force, into which nobody records any more, the output's name in place of its
   own, without reading it; its mode stays 0600. Not over a capture that another
   process records into, nor to another file system. 0, or a status with its text: then it stands as
   it was. */
int prof_i_capture_file_rename(const char *capture, const char *output);

/* ---- which process keeps the name ---- */

/* Decides which of several processes with one output keeps its name. The first process keeps the
   name. Others add their pid to their names. A process creates its capture first and searches
   afterwards. So if two start at the same time, at least one sees the other. Its file has mode 0700
   during the search, and 0600 when it keeps the name. If two search at once, the one whose file
   name sorts first waits for the other, which gives up the name at once. No lock is shared, so a
   process with another output cannot delay a start. */

/* Searches for other processes that record for `output`: beside it, and where else their captures
   may be. One in memory is not seen. If there is one, `output` gets this process's pid
   (prof_i_output_add_suffix()), and the capture, open as fd (-1: none, it is in memory), its name
   in `path`. An output that was written since then is another one's, too; 0: it may be replaced. 0,
   or PROF_E_INVALID when the path becomes too long. Reads directories and allocates: never inside
   of a scope. */
int prof_i_output_claim_settle(char *output, size_t output_room, uint64_t since_realtime_ns, int fd,
                               char *path, size_t path_room);

/* The same of an open file. */
typedef enum prof_i_lock_state {
  PROF_I_LOCK_NONE, /* or its process has closed the descriptor */
  PROF_I_LOCK_HELD,
  PROF_I_LOCK_UNKNOWN /* locks are not to be had there */
} prof_i_lock_state;
prof_i_lock_state prof_i_output_claim_lock_state(int fd);

#endif
