/* The names and endings of the formats that prof writes. */
#ifndef PROF_TOOLS_FORMATS_H
#define PROF_TOOLS_FORMATS_H

#include <stdint.h>

/* Reads the name of a format as a prof_format. EXIT_USAGE, said on stderr: no such name. */
int choose_format(const char *command, const char *word, uint32_t *to);

/* Returns the path's ending if a format has it; the longest, if several match. NULL: no format has
   it. format_out may be NULL. */
const char *format_ending(const char *path, uint32_t *format_out);

/* All endings: ".json, .json.gz, ...". */
const char *format_endings_text(void);

/* What a file of the format cannot hold, or NULL. */
const char *format_lacks(uint32_t format);

#endif
