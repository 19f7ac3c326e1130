/* What a file is that is no trace, by its first bytes. */
#ifndef PROF_IMPORT_SNIFF_H
#define PROF_IMPORT_SNIFF_H

#include <stddef.h>

/* "a zip archive; unpack it first". NULL: it may be JSON. bytes: the begin of the file. */
const char *import_sniff(const char *bytes, size_t count);

/* The kinds of files that an import takes, for messages. */
extern const char import_kinds[];

#endif
