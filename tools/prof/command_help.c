/* Help as text, from the table. See command_line.h. */
#define _GNU_SOURCE
#include <string.h>

#include "command_line.h"

#define USUAL_STATUSES \
  "Exit status: 0 done, 1 it could not be done, 2 wrong words, 3 done and the answer is no."

enum { WIDTH = 80, OPTION_COLUMN = 25, NAME_COLUMN = 14 };

/* Prints words from column `at` on, in lines that begin at column `indent`. */
static void print_wrapped(FILE *to, const char *text, int at, int indent) {
  int column = at;
  bool is_first = true;
  while (*text) {
    const int word = (int)strcspn(text, " \n");
    if (!is_first && column + 1 + word > WIDTH) {
      fprintf(to, "\n%*s", indent, "");
      column = indent;
      is_first = true;
    }
    column += fprintf(to, "%s%.*s", is_first ? "" : " ", word, text);
    is_first = false;
    text += word;
    if (*text == ' ') text++;
    for (; *text == '\n'; text++) {
      fprintf(to, "\n%*s", text[1] == '\n' ? 0 : indent, "");
      column = indent;
      is_first = true;
    }
  }
  fputc('\n', to);
}

static void print_option(FILE *to, const command_option *option) {
  int column = option->letter ? fprintf(to, "  -%c, --%s", option->letter, option->name)
                              : fprintf(to, "      --%s", option->name);
  if (option->argument)
    column += option->is_optional ? fprintf(to, "[=%s]", option->argument)
                                  : fprintf(to, " %s", option->argument);
  if (column + 2 > OPTION_COLUMN) {
    fputc('\n', to);
    column = 0;
  }
  fprintf(to, "%*s", OPTION_COLUMN - column, "");
  print_wrapped(to, option->help, OPTION_COLUMN, OPTION_COLUMN);
}

static void print_options(FILE *to, const prof_command *command) {
  const command_option *options[COMMAND_OPTIONS_MAX];
  const size_t count = command_options_list(command, options);
  fputc('\n', to);
  for (size_t i = 0; i < count; i++) {
    if (options[i]->is_hidden) continue;
    if (options[i]->group) fprintf(to, "%s%s:\n", i ? "\n" : "", options[i]->group);
    print_option(to, options[i]);
  }
}

const char *command_statuses(const prof_command *command) {
  return command && command->statuses ? command->statuses : USUAL_STATUSES;
}

void command_help_print(FILE *to, const prof_command *command) {
  fprintf(to, "usage: prof %s%s%s\n\n", command->name, *command->words ? " " : "", command->words);
  print_wrapped(to, command->about, 0, 0);
  print_options(to, command);
  if (command->notes) {
    fputc('\n', to);
    print_wrapped(to, command->notes, 0, 0);
  }
  for (const command_example *each = command->examples; each && each->line; each++) {
    fprintf(to, "%s  %s\n%*s", each == command->examples ? "\nExamples:\n" : "", each->line, 6, "");
    print_wrapped(to, each->text, 6, 6);
  }
  fputc('\n', to);
  print_wrapped(to, command_statuses(command), 0, 0);
}

void command_overview_print(FILE *to) {
  size_t count;
  const prof_command *const *const list = command_list(&count);
  fputs("usage: prof COMMAND [OPTION...] [FILE...]\n\n", to);
  for (size_t i = 0; i < count; i++) {
    const int column = fprintf(to, "  %-*s", NAME_COLUMN - 3, list[i]->name);
    fputc(' ', to);
    print_wrapped(to, list[i]->summary, column + 1, NAME_COLUMN);
  }
  fputs("  prof help COMMAND | prof COMMAND --help | prof --version\n\n", to);
  print_wrapped(to, COMMAND_FILE_WORDS, 0, 0);
  print_wrapped(to,
                "The Python package is libprof: pip install libprof. PyPI's package prof is "
                "another program.",
                0, 0);
  print_wrapped(to, USUAL_STATUSES " run and diff have others: see their --help.", 0, 0);
}
