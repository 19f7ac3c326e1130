/* The arguments of options: choices, numbers, sizes and times. See command_line.h. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "commands.h"

enum { TEXT_BYTES = 1024, COUNT_MAX = 1000000000 };

typedef struct unit {
  const char *word;
  double factor;
} unit;

/* "--by takes one of name, category, not" */
static int refuse_choice(const char *command, const char *option, const char *word,
                         const command_choice *choices) {
  char text[TEXT_BYTES];
  const char *nearest = NULL;
  size_t best = SIZE_MAX;
  for (const command_choice *each = choices; each->word; each++) {
    const size_t distance = command_word_distance(word, each->word);
    if (distance >= best) continue;
    best = distance;
    nearest = each->word;
  }
  if (nearest) {
    say("prof %s: %s takes no %s; did you mean %s? see prof %s --help", command, option, word,
        nearest, command);
    return EXIT_USAGE;
  }
  size_t at = (size_t)snprintf(text, sizeof text, "%s takes one of ", option);
  for (const command_choice *each = choices; each->word && at < sizeof text; each++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", each == choices ? "" : ", ",
                           each->word);
  if (at < sizeof text) snprintf(text + at, sizeof text - at, ", not");
  return refuse_words(command, text, *word ? word : "an empty word");
}

int command_read_choice(const char *command, const char *option, const char *text,
                        const command_choice *choices, uint32_t *to) {
  for (const command_choice *each = choices; each->word; each++) {
    if (strcmp(text, each->word) != 0) continue;
    *to = each->value;
    return EXIT_OK;
  }
  return refuse_choice(command, option, text, choices);
}

int command_read_choices(const char *command, const char *option, const char *text,
                         const command_choice *choices, uint32_t *to) {
  char *const words = strdup(text);
  int status = words ? EXIT_OK : EXIT_FAILED;
  uint32_t bits = 0;
  for (char *rest = words, *word; status == EXIT_OK && (word = strsep(&rest, ",")) != NULL;) {
    uint32_t value = 0;
    status = command_read_choice(command, option, word, choices, &value);
    bits |= value;
  }
  free(words);
  if (status == EXIT_OK) *to |= bits;
  return status;
}

static int refuse_value(const char *command, const char *option, const char *what,
                        const char *text) {
  char line[TEXT_BYTES];
  snprintf(line, sizeof line, "%s takes %s, not", option, what);
  return refuse_words(command, line, text);
}

/* other: "", or what the option takes besides. */
static int read_number_or(const char *command, const char *option, const char *other,
                          const char *text, uint64_t least, uint64_t most, uint64_t *to) {
  char *end, what[TEXT_BYTES / 2];
  const unsigned long long value = strtoull(text, &end, 10);
  if (!*end && text[0] >= '0' && text[0] <= '9' && value >= least && value <= most) {
    *to = value;
    return EXIT_OK;
  }
  snprintf(what, sizeof what, "%sa number from %llu to %llu", other, (unsigned long long)least,
           (unsigned long long)most);
  return refuse_value(command, option, what, text);
}

int command_read_number(const char *command, const char *option, const char *text, uint64_t least,
                        uint64_t most, uint64_t *to) {
  return read_number_or(command, option, "", text, least, most, to);
}

int command_read_limit(const char *command, const char *option, const char *text, uint64_t *to) {
  *to = UINT64_MAX;
  if (strcmp(text, "all") == 0) return EXIT_OK;
  return read_number_or(command, option, "all, or ", text, 1, COUNT_MAX, to);
}

int command_read_width(const char *command, const char *text, uint64_t least, uint64_t most,
                       command_width *to) {
  uint64_t columns = 0;
  const int status = strcmp(text, "0") == 0
                         ? EXIT_OK
                         : command_read_number(command, "--width", text, least, most, &columns);
  if (status == EXIT_OK) *to = (command_width){(uint32_t)columns, true};
  return status;
}

uint32_t command_width_columns(const command_width *width) {
  return width->is_given ? width->columns : terminal_columns(STDOUT_FILENO);
}

int command_read_rows(const char *command, const char *text, uint32_t *to) {
  uint64_t value = 0;
  *to = UINT32_MAX;
  if (strcmp(text, "-1") == 0) return EXIT_OK;
  /* to the library 0 is as many as it shows by itself */
  if (command_read_limit(command, "--rows", text, &value) != EXIT_OK) return EXIT_USAGE;
  if (value != UINT64_MAX) *to = (uint32_t)value;
  return EXIT_OK;
}

/* Digits, with a point or without, and a unit. The locale is "C": main() does not change it. */
static bool read_with_unit(const char *text, const unit *units, double most, uint64_t *to) {
  char *end;
  if ((text[0] < '0' || text[0] > '9') && text[0] != '.') return false;
  if (text[0] == '0' && strchr("xX", text[1]) && text[1]) return false;
  const double number = strtod(text, &end);
  if (end == text) return false;
  for (; units->word; units++) {
    if (strcasecmp(end, units->word) != 0) continue;
    const double value = number * units->factor;
    if (!(value >= 0 && value <= most)) return false;
    *to = (uint64_t)(value + 0.5);
    return true;
  }
  return false;
}

int command_read_size(const char *command, const char *option, const char *text, uint64_t *bytes) {
  static const unit units[] = {{"", 1},         {"b", 1},        {"k", 0x1p10},   {"kb", 0x1p10},
                               {"kib", 0x1p10}, {"m", 0x1p20},   {"mb", 0x1p20},  {"mib", 0x1p20},
                               {"g", 0x1p30},   {"gb", 0x1p30},  {"gib", 0x1p30}, {"t", 0x1p40},
                               {"tb", 0x1p40},  {"tib", 0x1p40}, {NULL, 0}};
  if (read_with_unit(text, units, 0x1p62, bytes)) return EXIT_OK;
  return refuse_value(command, option, "a size (4096, 64k, 256M, 1.5G)", text);
}

int command_read_time(const char *command, const char *option, const char *text, uint64_t *ns) {
  static const unit units[] = {{"", 1e9},    {"ns", 1},     {"us", 1e3},   {"ms", 1e6}, {"s", 1e9},
                               {"sec", 1e9}, {"min", 6e10}, {"h", 3.6e12}, {NULL, 0}};
  if (read_with_unit(text, units, 0x1p62, ns)) return EXIT_OK;
  return refuse_value(command, option, "a time (10us, 2.5ms, 1.5s; a plain number: seconds)", text);
}
