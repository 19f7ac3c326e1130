/* Opens packed captures (../format/packed.h). */
#ifndef PROF_READER_UNPACK_H
#define PROF_READER_UNPACK_H

#include "source.h"

/* If the source is a packed capture, replaces its bytes with those of the plain capture. They are
   in memory if prof_i_source_hold() allows it, else in a temporary file. *bad_count is increased by
   the number of damaged parts, whose units become zero. On an error the source is unchanged:
   PROF_E_NO_MEMORY, PROF_E_NO_SPACE for the temporary file, PROF_E_UNSUPPORTED if zstd cannot be
   opened, or PROF_E_BUSY in a child that a signal handler forked meanwhile. */
int prof_i_source_unpack(prof_i_source *source, uint64_t *bad_count);

#endif
