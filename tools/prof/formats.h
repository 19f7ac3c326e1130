/* The names of the formats that prof writes. src/export/exporter.h has their endings. */
#ifndef PROF_TOOLS_FORMATS_H
#define PROF_TOOLS_FORMATS_H

#include <stdint.h>

/* Reads the name of a format as a prof_format. EXIT_USAGE, said on stderr: no such name. */
int choose_format(const char *command, const char *word, uint32_t *to);

/* All endings: ".json, .json.gz, ...". */
const char *format_endings_text(void);

/* What a file of the format cannot hold, or NULL. */
const char *format_lacks(uint32_t format);

#endif
