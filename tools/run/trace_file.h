/* `-o FILE`: captures become files of that name. */
#ifndef PROF_TOOLS_RUN_FILE_H
#define PROF_TOOLS_RUN_FILE_H

#include "text.h"

/* True: the ending says that it is a file, and of which format. */
bool run_trace_file_is(const char *pattern);

/* Whether the file, by its ending, is a capture. */
bool run_trace_file_is_capture(const char *pattern);

/* The name is that of a file which prof does not write: what to write instead. Else NULL. */
const char *run_trace_file_refusal(const char *pattern);

/* The pattern with -RANK in front of the ending, if a launcher has set a rank and there is no %r.
   Ends the process with a message if the marks are wrong, or the folder cannot be written. */
const char *run_trace_file_of_rank(const char *pattern);

/* Makes a folder for captures beside the file. It has the same file system, so that a capture can
   be renamed. */
char *run_trace_file_folder(const char *pattern);
/* Its path before it is made, with XXXXXX. */
char *run_trace_file_folder_pattern(const char *pattern);

/* Converts the captures to files, and removes the folder if nothing is left in it. The process that
   began first has the pattern's own name. Others have NAME.PID.ENDING, unless the pattern has %p.
   Ranks that the workload's own launcher has started have NAME-RANK, unless the pattern has %r.
   Samples have NAME.samples.ENDING, calls of libraries NAME.library_trace.ENDING. Prints what is
   where. has_first: the pattern's own name is taken, by a script in Python. is_packed: captures
   are packed; one that cannot be packed stays plain. */
void run_trace_file_write(const char *pattern, const char *folder, const run_words *captures,
                          bool has_first, bool is_quiet, bool is_packed);

#endif
