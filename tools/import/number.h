/* Numbers out of their digits, as integers: a double of microseconds since 1970 has a grid of 250
   ns. */
#ifndef PROF_IMPORT_NUMBER_H
#define PROF_IMPORT_NUMBER_H

#include "event.h"

/* False: the text is no such number, or one that does not fit. */
bool import_number_i64(import_text text, int64_t *out);
bool import_number_u64(import_text text, uint64_t *out);
bool import_number_double(import_text text, double *out);

/* An integer, or a float that is one: 7, 7.0, 7e0. */
bool import_number_whole(import_text text, int64_t *out);

/* Microseconds with a fraction as ns; digits behind the third are rounded. */
bool import_number_us(import_text text, int64_t *ns_out);

#endif
