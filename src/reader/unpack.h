/* Packed captures (../format/packed.h). */
#ifndef PROF_READER_UNPACK_H
#define PROF_READER_UNPACK_H

#include "source.h"

/* If these are the bytes of a packed capture, replaces them with those of the plain one. They take
   memory as far as prof_i_source_hold() allows, and a temporary file above. Adds damaged parts to
   *bad_count: their units are zero. If it fails, the source stays. PROF_E_NO_MEMORY,
   PROF_E_UNSUPPORTED: zstd cannot be opened. */
int prof_i_source_unpack(prof_i_source *source, uint64_t *bad_count);

#endif
