/* See formats.h. */
#define _GNU_SOURCE
#include "formats.h"

#include <prof/trace.h>
#include <stdio.h>
#include <string.h>

#include "../../src/export/exporter.h"
#include "command_line.h"

/* lacks: what the file does not have, for a message. The exporters have the endings. */
static const struct {
  const char *word;
  uint32_t format;
  const char *lacks;
} formats[] = {
    {"chrome", PROF_FORMAT_CHROME, NULL},
    {"raf", PROF_FORMAT_RAF, "only scopes, in whole microseconds"},
    {"capture", PROF_FORMAT_CAPTURE, NULL},
    {"perfetto", PROF_FORMAT_PERFETTO, "no stacks of Python functions, no clocks of devices"},
    {"csv", PROF_FORMAT_CSV, "no arguments, arrows or memory"},
    {"folded", PROF_FORMAT_FOLDED, "only the self times of call paths"},
    {"speedscope", PROF_FORMAT_SPEEDSCOPE, "only the self times of call paths"},
    {"pprof", PROF_FORMAT_PPROF, "only the calls and self times of call paths"},
    {"sqlite", PROF_FORMAT_SQLITE, "no clocks of devices"},
    {"rpd", PROF_FORMAT_RPD,
     "no arguments of scopes, no memory, no arrows between scopes, no places of functions"},
    {"parquet", FORMAT_PARQUET, "no notes, no changes of the level, no clocks of devices"},
    {"arrow", FORMAT_ARROW, "no notes, no changes of the level, no clocks of devices"}};
enum { FORMAT_COUNT = sizeof formats / sizeof *formats, COLUMNS_COUNT = 2 };

int choose_format(const char *command, const char *word, bool with_columns, uint32_t *to) {
  command_choice choices[FORMAT_COUNT + 1] = {{NULL, 0}};
  for (int i = 0; i < FORMAT_COUNT - (with_columns ? 0 : COLUMNS_COUNT); i++)
    choices[i] = (command_choice){formats[i].word, formats[i].format};
  return command_read_choice(command, "--format", word, choices, to);
}

const char *format_endings_text(void) {
  enum { ENDING_BYTES_MAX = 24 }; /* with ", " */
  static char text[FORMAT_COUNT * PROF_I_EXPORT_SUFFIXES * ENDING_BYTES_MAX];
  size_t used = 0;
  for (int i = 0; i < FORMAT_COUNT - COLUMNS_COUNT; i++)
    for (const char *const *ending = prof_i_export_suffixes(formats[i].format);
         *ending && used < sizeof text; ending++)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", *ending);
  return text;
}

const char *format_of_columns(uint32_t format) {
  for (int i = FORMAT_COUNT - COLUMNS_COUNT; i < FORMAT_COUNT; i++)
    if (formats[i].format == format) return formats[i].word;
  return NULL;
}

/* The ending of such a file is the name of its format. */
bool format_of_columns_by_path(const char *path, uint32_t *to) {
  const char *const ending = strrchr(path, '.');
  for (int i = FORMAT_COUNT - COLUMNS_COUNT; i < FORMAT_COUNT; i++)
    if (ending && strcmp(ending + 1, formats[i].word) == 0) {
      *to = formats[i].format;
      return true;
    }
  return false;
}

const char *format_lacks(uint32_t format) {
  for (int i = 0; i < FORMAT_COUNT; i++)
    if (formats[i].format == format) return formats[i].lacks;
  return NULL;
}
