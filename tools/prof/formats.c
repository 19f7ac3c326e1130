/* See formats.h. */
#define _GNU_SOURCE
#include "formats.h"

#include <prof/trace.h>
#include <stdio.h>
#include <string.h>

#include "../../src/base/path.h"
#include "command_line.h"

/* The endings select a format without --format. lacks: what the command says of the file. */
static const struct {
  const char *word;
  prof_format format;
  const char *endings[2];
  const char *lacks;
} formats[] = {
    {"chrome", PROF_FORMAT_CHROME, {".json", ".json.gz"}, NULL},
    {"raf", PROF_FORMAT_RAF, {NULL, NULL}, "only scopes, in whole microseconds"},
    {"capture", PROF_FORMAT_CAPTURE, {".prof", NULL}, NULL},
    {"perfetto",
     PROF_FORMAT_PERFETTO,
     {".pftrace", ".pftrace.gz"},
     "no stacks of Python functions, no clocks of devices"},
    {"csv", PROF_FORMAT_CSV, {".csv", ".csv.gz"}, "no arguments, arrows or memory"},
    {"folded", PROF_FORMAT_FOLDED, {".folded", ".folded.gz"}, "only the self times of call paths"},
    {"speedscope",
     PROF_FORMAT_SPEEDSCOPE,
     {".speedscope.json", ".speedscope.json.gz"},
     "only the self times of call paths"},
    {"pprof", PROF_FORMAT_PPROF, {".pb.gz", ".pb"}, "only the calls and self times of call paths"}};
enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

int choose_format(const char *command, const char *word, uint32_t *to) {
  command_choice choices[FORMAT_COUNT + 1] = {{NULL, 0}};
  for (int i = 0; i < FORMAT_COUNT; i++)
    choices[i] = (command_choice){formats[i].word, formats[i].format};
  return command_read_choice(command, "--format", word, choices, to);
}

const char *format_ending(const char *path, uint32_t *format_out) {
  size_t longest = 0;
  for (int i = 0; i < FORMAT_COUNT; i++)
    for (int k = 0; k < 2 && formats[i].endings[k]; k++) {
      const size_t bytes = strlen(formats[i].endings[k]);
      if (bytes <= longest || !prof_i_path_ends_in(path, formats[i].endings[k])) continue;
      longest = bytes;
      if (format_out) *format_out = formats[i].format;
    }
  return longest ? path + strlen(path) - longest : NULL;
}

const char *format_endings_text(void) {
  enum { ENDING_BYTES_MAX = 24 }; /* with ", " */
  static char text[FORMAT_COUNT * 2 * ENDING_BYTES_MAX];
  size_t used = 0;
  for (int i = 0; i < FORMAT_COUNT; i++)
    for (int k = 0; k < 2 && formats[i].endings[k] && used < sizeof text; k++)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "",
                               formats[i].endings[k]);
  return text;
}

const char *format_lacks(uint32_t format) {
  for (int i = 0; i < FORMAT_COUNT; i++)
    if ((uint32_t)formats[i].format == format) return formats[i].lacks;
  return NULL;
}
