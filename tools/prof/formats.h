/* The formats that prof writes: their words and endings. */
#ifndef PROF_TOOLS_FORMATS_H
#define PROF_TOOLS_FORMATS_H

#include <stdint.h>

/* Reads the name of a format as a prof_format. EXIT_USAGE, said on stderr: no such name. */
int choose_format(const char *command, const char *word, uint32_t *to);

/* The longest ending of a format that the path has, in the path. *format_out: of it, if it is not
   NULL. NULL: the path has none. */
const char *format_ending(const char *path, uint32_t *format_out);

/* ".json, .json.gz, ...": all endings. */
const char *format_endings_text(void);

/* What a file of the format cannot hold, or NULL. */
const char *format_lacks(uint32_t format);

#endif
