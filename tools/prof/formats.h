/* The names of the formats that prof writes. src/export/exporter.h has their endings. */
#ifndef PROF_TOOLS_FORMATS_H
#define PROF_TOOLS_FORMATS_H

#include <stdbool.h>
#include <stdint.h>

/* Formats that dump_columns.h writes, not the library. No prof_format has these numbers. */
enum { FORMAT_PARQUET = 1u << 16, FORMAT_ARROW };

/* Reads the name of a format as a prof_format. with_columns: also accepts the formats above.
   EXIT_USAGE, with a message: there is no such name. */
int choose_format(const char *command, const char *word, bool with_columns, uint32_t *to);

/* The name of FORMAT_PARQUET or FORMAT_ARROW. NULL: it is neither. */
const char *format_of_columns(uint32_t format);

/* Whether the path has the ending of one of them. If so, *to is its number. */
bool format_of_columns_by_path(const char *path, uint32_t *to);

/* All endings of the library's formats: ".json, .json.gz, ...". */
const char *format_endings_text(void);

/* What a file of the format cannot hold, or NULL. */
const char *format_lacks(uint32_t format);

#endif
