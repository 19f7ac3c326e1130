/* The bytes of the trace, unpacked where they are gzip's, of one member or several. */
#ifndef PROF_IMPORT_INPUT_H
#define PROF_IMPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct import_input import_input;

/* Ends the process where it cannot be opened. */
import_input *import_input_open(const char *path);
void import_input_close(import_input *input);

/* 0: the end. is_cut: it ended inside of a gzip member. */
size_t import_input_read(import_input *input, char *to, size_t room);
/* Behind what was compressed, if they are not all zeros. */
uint64_t import_input_trailing_bytes(const import_input *input);
bool import_input_is_cut(const import_input *input);
bool import_input_is_capture(const import_input *input);  /* of prof's, not compressed */
bool import_input_is_database(const import_input *input); /* SQLite's */
/* Do these bytes, the first ones that were unpacked, begin such a file? */
bool import_input_begins_database(const char *bytes, size_t count);
bool import_input_is_packed(const import_input *input);

/* How much of the file has been read, in thousandths. */
unsigned import_input_share(const import_input *input);

#endif
