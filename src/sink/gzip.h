/* One gzip member through zlib: chrome://tracing and most others read only the first of several.
   Without zlib in the build, or on the machine, create refuses. Called by sink.c alone. */
#ifndef PROF_SINK_GZIP_H
#define PROF_SINK_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "sink.h"

typedef struct prof_i_gzip prof_i_gzip;

/* All return PROF_OK or a status whose text is set. level as zlib counts: 1 to 9. */
int prof_i_gzip_create(int level, prof_i_gzip **gzip_out);
void prof_i_gzip_destroy(prof_i_gzip *gzip); /* NULL is ignored */

/* Compresses into the target; the last call ends the member. */
int prof_i_gzip_write(prof_i_gzip *gzip, prof_i_target *target, const void *bytes, size_t count,
                      bool is_last);

/* One gzip member in memory, which the caller frees. */
int prof_i_gzip_text(int level, const void *bytes, size_t count, unsigned char **gzip_out,
                     size_t *gzip_bytes_out);

#endif
