/* Values as people read them, by whole numbers: the locale may have another point. Pure functions;
   they write and return as snprintf() does. */
#ifndef PROF_BASE_UNITS_H
#define PROF_BASE_UNITS_H

#include <prof/profiler.h>

/* "12.345ms". unit: 0 by magnitude, from us to s; 3 ms, 6 us, 9 ns as powers. */
int prof_i_put_time(char *to, size_t room, uint64_t ns, uint32_t unit);

/* "12.34%" */
int prof_i_put_share(char *to, size_t room, uint64_t part, uint64_t all);

/* "cuda:0"; of types without a name "9:0". */
int prof_i_put_device(char *to, size_t room, prof_device device);

/* "1.53 GiB"; below 1 KiB as they are, "12 B". */
int prof_i_put_bytes(char *to, size_t room, int64_t bytes);

/* RAF's MB, which are 2^20 bytes: "12.345". */
int prof_i_put_mb(char *to, size_t room, int64_t bytes);

/* Where a number ends in zeros behind its point, they go, and the point: "1.50 GiB" becomes "1.5
   GiB". In place. */
void prof_i_trim_zeros(char *text);

#endif
