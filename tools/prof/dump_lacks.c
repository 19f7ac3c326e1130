/* What a file of prof dump does not have, because its format cannot hold it. Only what the capture
   has is named. See commands.h; docs/reference/export-formats.md has the whole list. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../src/export/exporter.h"
#include "commands.h"

enum { TEXT_BYTES = 512 };

typedef enum lacking_part {
  LACKS_ARGUMENTS = 1,
  LACKS_ARROWS = 2,
  LACKS_MEMORY = 4,
  LACKS_VALUES = 8,
  LACKS_STEPS = 16,
  LACKS_STACKS = 32,
  LACKS_CLOCKS = 64,
  LACKS_NOTES = 128,
  LACKS_LEVELS = 256,
  LACKS_PLACES = 512
} lacking_part;

/* What a format may lack. keeps: what it has of scopes, if that is less than the scopes. */
static const struct {
  uint32_t format, parts;
  const char *keeps;
} lacking_formats[] = {
    {PROF_FORMAT_RAF, LACKS_ARROWS | LACKS_MEMORY | LACKS_VALUES | LACKS_STEPS,
     "only whole microseconds"},
    {PROF_FORMAT_PERFETTO, LACKS_STACKS | LACKS_CLOCKS, NULL},
    {PROF_FORMAT_CSV, LACKS_ARGUMENTS | LACKS_ARROWS | LACKS_MEMORY, NULL},
    {PROF_FORMAT_FOLDED, 0, "only the self times of call paths"},
    {PROF_FORMAT_SPEEDSCOPE, 0, "only the self times of call paths"},
    {PROF_FORMAT_PPROF, 0, "only the calls and self times of call paths"},
    {PROF_FORMAT_SQLITE, LACKS_CLOCKS, NULL},
    {PROF_FORMAT_RPD, LACKS_ARGUMENTS | LACKS_ARROWS | LACKS_MEMORY | LACKS_PLACES, NULL},
    {FORMAT_PARQUET, LACKS_NOTES | LACKS_LEVELS | LACKS_CLOCKS, NULL},
    {FORMAT_ARROW, LACKS_NOTES | LACKS_LEVELS | LACKS_CLOCKS, NULL}};

/* "arguments of 20 scopes". Without a count: "arguments of scopes". */
typedef struct lacking_word {
  lacking_part part;
  uint64_t count;
  const char *before, *noun; /* the noun in the singular; its plural has an s */
  const char *behind;
} lacking_word;

static void append_part(char *to, const lacking_word *word, bool has_count) {
  const size_t used = strlen(to);
  char number[32] = "";
  if (has_count) snprintf(number, sizeof number, "%" PRIu64 " ", word->count);
  snprintf(to + used, TEXT_BYTES - used, "%s%s%s%s%s%s", used ? ", " : "", word->before, number,
           word->noun, has_count ? plural_ending(word->count) : "s", word->behind);
}

/* What is kept of scopes says nothing of a capture without scopes. */
static void say_kept(const char *output, uint32_t format, const char *keeps,
                     const prof_i_export_facts *facts) {
  if (!keeps) return;
  if (facts->scopes)
    say("prof dump: %s has %s", output, keeps);
  else if (format != PROF_FORMAT_RAF)
    say("prof dump: %s has %s, and the capture has no scopes", output, keeps);
}

void dump_say_lacks(const char *output, uint32_t format, const prof_i_export_lacks *lacks,
                    const prof_i_export_facts *facts, bool has_filter) {
  const lacking_word words[] = {
      {LACKS_ARGUMENTS, lacks->argument_scopes, "arguments of ", "scope", ""},
      {LACKS_ARROWS, lacks->arrows, "", "arrow", ""},
      {LACKS_MEMORY, lacks->memory, "", "memory event", ""},
      {LACKS_VALUES, lacks->values, "", "value", " of counters and instants"},
      {LACKS_STEPS, lacks->steps, "", "step", ""},
      {LACKS_STACKS, facts->functions, "stacks of ", "Python function", ""},
      {LACKS_NOTES, facts->notes, "", "note", ""},
      {LACKS_LEVELS, facts->level_changes, "", "change", " of the level"},
      {LACKS_CLOCKS, facts->device_clocks, "clocks of ", "device", ""},
      {LACKS_PLACES, facts->function_places, "source locations of ", "function", ""}};
  char text[TEXT_BYTES] = "";
  for (size_t i = 0; i < sizeof lacking_formats / sizeof *lacking_formats; i++) {
    if (lacking_formats[i].format != format) continue;
    say_kept(output, format, lacking_formats[i].keeps, facts);
    for (size_t word = 0; word < sizeof words / sizeof *words; word++)
      if (lacking_formats[i].parts & words[word].part && words[word].count)
        append_part(text, &words[word], !has_filter);
  }
  if (*text) say("prof dump: %s lacks %s", output, text);
}
