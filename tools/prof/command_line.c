/* The table of commands, and their options as getopt_long() reads them. See command_line.h. */
#define _GNU_SOURCE
#include "command_line.h"

#include <getopt.h>
#include <string.h>

#include "commands.h"

enum { LONG_VALUE = 1000, WORD_MAX = 64 };

static const command_option help_option = {.name = "help", .letter = 'h', .help = "this text"};

static const command_option strict_option = {
    .name = "strict",
    .help = "a capture that is damaged or cut off is an error (status 1), and not only a warning"};

/* ---- commands ---- */

const prof_command *const *command_list(size_t *count_out) {
#define PROF_COMMAND_ADDRESS(name) &command_##name,
  static const prof_command *const list[] = {PROF_COMMANDS(PROF_COMMAND_ADDRESS)};
#undef PROF_COMMAND_ADDRESS
  *count_out = sizeof list / sizeof *list;
  return list;
}

const prof_command *command_find(const char *name) {
  size_t count;
  const prof_command *const *const list = command_list(&count);
  for (size_t i = 0; i < count; i++)
    if (strcmp(list[i]->name, name) == 0) return list[i];
  return NULL;
}

static size_t least_of(size_t a, size_t b) { return a < b ? a : b; }

/* Insertions, removals, replacements, and swaps of neighbours. */
size_t command_word_distance(const char *word, const char *other) {
  size_t rows[3][WORD_MAX + 1];
  const size_t count = strlen(word), length = strlen(other);
  if (count > WORD_MAX || length > WORD_MAX) return SIZE_MAX;
  for (size_t j = 0; j <= length; j++) rows[0][j] = j;
  for (size_t i = 1; i <= count; i++) {
    size_t *const row = rows[i % 3], *const above = rows[(i + 2) % 3],
                  *const two = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= length; j++) {
      row[j] = least_of(least_of(above[j], row[j - 1]) + 1,
                        above[j - 1] + (word[i - 1] != other[j - 1]));
      if (i > 1 && j > 1 && word[i - 1] == other[j - 2] && word[i - 2] == other[j - 1])
        row[j] = least_of(row[j], two[j - 2] + 1);
    }
  }
  const size_t distance = rows[count % 3][length];
  return distance <= (length > 5 ? length / 3 : 1) ? distance : SIZE_MAX;
}

const char *command_nearest(const char *word) {
  size_t count, best = SIZE_MAX;
  const prof_command *const *const list = command_list(&count);
  const char *nearest = NULL;
  for (size_t i = 0; i < count; i++) {
    const size_t distance = command_word_distance(word, list[i]->name);
    if (distance >= best) continue;
    best = distance;
    nearest = list[i]->name;
  }
  return nearest;
}

/* ---- options ---- */

/* Lists of `more` hold no others. */
static size_t add_options(const command_option *options, size_t count,
                          const command_option *to[COMMAND_OPTIONS_MAX]) {
  const command_option *outer = NULL;
  for (const command_option *at = options; at && (at->name || at->more || outer);) {
    if (at->name) {
      if (count < COMMAND_OPTIONS_MAX - 2) to[count++] = at;
      at++;
    } else if (at->more) {
      outer = at + 1;
      at = at->more;
    } else {
      at = outer;
      outer = NULL;
    }
  }
  return count;
}

size_t command_options_list(const prof_command *command,
                            const command_option *to[COMMAND_OPTIONS_MAX]) {
  size_t count = add_options(command->options, 0, to);
  for (size_t i = 0; i < count; i++)
    if (strcmp(to[i]->name, help_option.name) == 0) return count;
  if (command->reads_captures) to[count++] = &strict_option;
  to[count++] = &help_option;
  return count;
}

/* What getopt_long() takes. */
static struct {
  const prof_command *command;
  const command_option *options[COMMAND_OPTIONS_MAX], *found;
  size_t count;
  bool is_strict;
  struct option words[COMMAND_OPTIONS_MAX + 1];
  char letters[3 * COMMAND_OPTIONS_MAX + 3];
} parser;

static void prepare_parser(const prof_command *command) {
  if (parser.command == command) return;
  parser.command = command;
  parser.count = command_options_list(command, parser.options);
  char *letter = parser.letters;
  if (command->stops_at_word) *letter++ = '+';
  *letter++ = ':';
  for (size_t i = 0; i < parser.count; i++) {
    const command_option *const option = parser.options[i];
    const int arguments = !option->argument ? 0 : option->is_optional ? 2 : 1;
    parser.words[i] = (struct option){option->name, arguments, NULL, LONG_VALUE + (int)i};
    if (!option->letter) continue;
    *letter++ = option->letter;
    for (int j = 0; j < arguments; j++) *letter++ = ':';
  }
  *letter = '\0';
  parser.words[parser.count] = (struct option){0};
}

int command_option_peek(const prof_command *command, int argc, char **argv) {
  prepare_parser(command);
  const int c = getopt_long(argc, argv, parser.letters, parser.words, NULL);
  if (c == -1 || c == '?' || c == ':') return c;
  parser.found = NULL;
  for (size_t i = 0; i < parser.count && !parser.found; i++)
    if (c >= LONG_VALUE ? (size_t)(c - LONG_VALUE) == i : parser.options[i]->letter == c)
      parser.found = parser.options[i];
  return parser.found->id ? parser.found->id : parser.found->letter;
}

const command_option *command_option_found(void) { return parser.found; }

bool command_is_strict(void) { return parser.is_strict; }

/* The long option that is most like the word, or NULL. */
static const char *nearest_option(const char *word) {
  const char *nearest = NULL;
  size_t best = SIZE_MAX;
  char name[WORD_MAX];
  const size_t bytes = strcspn(word, "=");
  if (bytes >= sizeof name) return NULL;
  memcpy(name, word, bytes);
  name[bytes] = '\0';
  for (size_t i = 0; i < parser.count; i++) {
    const size_t distance = command_word_distance(name, parser.options[i]->name);
    if (distance >= best) continue;
    best = distance;
    nearest = parser.options[i]->name;
  }
  return nearest;
}

/* Says what getopt_long() has just refused. */
static void refuse_found(const prof_command *command, int c, int argc, char **argv) {
  const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";
  const bool is_long = strncmp(word, "--", 2) == 0;
  const char letter[] = {'-', (char)optopt, '\0'};
  if (!is_long && optopt > ' ' && optopt < 0x7f) word = letter;
  if (c == ':') {
    refuse_words(command->name, "needs an argument:", word);
    return;
  }
  if (is_long && optopt >= LONG_VALUE) {
    refuse_words(command->name, "takes no argument:", word);
    return;
  }
  const char *const nearest = is_long ? nearest_option(word + 2) : NULL;
  if (nearest)
    say("prof %s: not an option: %s; did you mean --%s? see prof %s --help", command->name, word,
        nearest, command->name);
  else
    refuse_words(command->name, "not an option:", word);
}

int command_option_next(const prof_command *command, int argc, char **argv) {
  int c;
  while ((c = command_option_peek(command, argc, argv)) == 0 && parser.found == &strict_option)
    parser.is_strict = true;
  if (c != '?' && c != ':') return c;
  refuse_found(command, c, argc, argv);
  return '?';
}
