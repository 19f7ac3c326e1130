/* zstd, opened at run time where it is installed: prof does not depend on it. */
#ifndef PROF_BASE_ZSTD_H
#define PROF_BASE_ZSTD_H

#include <stdbool.h>
#include <stddef.h>

typedef struct prof_i_zstd prof_i_zstd;

/* Returns PROF_OK, PROF_E_UNSUPPORTED or PROF_E_NO_MEMORY, with an error text that begins with
   `what`, such as "the capture is packed". One thread at a time uses the object. */
int prof_i_zstd_create(const char *what, prof_i_zstd **zstd_out);
void prof_i_zstd_destroy(prof_i_zstd *zstd); /* NULL is ignored */

/* Returns the bytes written, at most `room`. 0: they did not fit, or there was no memory. */
size_t prof_i_zstd_compress(prof_i_zstd *zstd, void *to, size_t room, const void *from,
                            size_t count);

/* False: the input is damaged, or does not decompress to exactly to_count bytes. */
bool prof_i_zstd_decompress(prof_i_zstd *zstd, void *to, size_t to_count, const void *from,
                            size_t count);

#endif
