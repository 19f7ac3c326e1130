/* Several processes with one output: whose trace has the output's own name. The name is the first
   one's. Any other puts its pid into its own.

   Each process makes its capture first and looks around afterwards, so of two that start at the
   same time one sees the other at least. While it looks, its file has mode 0700, and 0600 once it
   keeps the name. If two search at once, the one whose file name comes first waits for the other,
   which gives up the name at once. No lock is shared, so nobody who is not of this output can delay
   a start. */
#ifndef PROF_CORE_BUFFER_OUTPUT_CLAIM_H
#define PROF_CORE_BUFFER_OUTPUT_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Searches for other processes that record for `output`: beside it, and where else their captures
   may be. One in memory is not seen. If there is one, `output` gets this process's pid
   (prof_i_output_add_suffix()), and the capture, open as fd (-1: none, it is in memory), its name
   in `path`. An output that was written since then is another one's, too; 0: it may be replaced. 0,
   or PROF_E_INVALID when the path becomes too long. Reads directories and allocates: never inside
   of a scope. */
int prof_i_output_claim_settle(char *output, size_t output_room, uint64_t since_realtime_ns, int fd,
                               char *path, size_t path_room);

/* Does another process, or another copy of prof in this one, record into that file, as far as locks
   tell? */
bool prof_i_output_claim_is_held(int folder, const char *name);

/* The same of an open file. */
typedef enum prof_i_lock_state {
  PROF_I_LOCK_NONE, /* or its process has closed the descriptor */
  PROF_I_LOCK_HELD,
  PROF_I_LOCK_UNKNOWN /* locks are not to be had there */
} prof_i_lock_state;
prof_i_lock_state prof_i_output_claim_lock_state(int fd);

#endif
