/* prof help [--man] [COMMAND]: all commands, or what one takes, as text or as a page for man(1).
   Both are made from the table of commands. */
#define _GNU_SOURCE
#include <ctype.h>
#include <getopt.h>
#include <string.h>

#include "commands.h"

/* ---- text ---- */

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

/* Exit statuses of a command, a sentence. NULL: those of most commands. */
static const char *command_statuses(const prof_command *command) {
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

/* ---- pages for man(1) ---- */

/* A text's characters as roff. A line must not begin as a request would: it begins with "\&". */
static void put_roff_text(FILE *to, const char *text) {
  for (; *text; text++) {
    if (*text == '\\')
      fputs("\\e", to);
    else if (*text == '-')
      fputs("\\-", to);
    else if (*text == '\'')
      fputs("\\(aq", to);
    else
      fputc(*text, to);
  }
}

/* Paragraphs, of which each line begins a new one. */
static void put_roff_paragraphs(FILE *to, const char *text) {
  while (*text) {
    const size_t bytes = strcspn(text, "\n");
    fputs("\\&", to);
    for (size_t i = 0; i < bytes; i++) {
      const char letter[] = {text[i], '\0'};
      put_roff_text(to, letter);
    }
    fputc('\n', to);
    text += bytes;
    if (*text) fputs(text[1] == '\n' ? ".PP\n" : ".br\n", to);
    while (*text == '\n') text++;
  }
}

static void put_title(FILE *to, const char *name, const char *summary) {
  fputs(".TH PROF", to);
  if (name) fputs("\\-", to);
  for (const char *at = name; at && *at; at++) fputc(toupper((unsigned char)*at), to);
  fprintf(to, " 1 \"\" \"prof %s\" \"prof\"\n.ad l\n.nh\n.SH NAME\nprof", prof_version());
  if (name) fprintf(to, "\\-%s", name);
  fputs(" \\- ", to);
  put_roff_text(to, summary);
  fputc('\n', to);
}

static void put_synopsis(FILE *to, const char *name, const char *words) {
  fputs(".SH SYNOPSIS\n.B prof", to);
  if (name) fprintf(to, " %s", name);
  fputs("\n\\&", to);
  put_roff_text(to, words);
  fputc('\n', to);
}

static void put_option(FILE *to, const command_option *option) {
  fputs(".TP\n", to);
  if (option->letter) fprintf(to, "\\fB\\-%c\\fR, ", option->letter);
  fputs("\\fB\\-\\-", to);
  put_roff_text(to, option->name);
  fputs("\\fR", to);
  if (option->argument) {
    fputs(option->is_optional ? "[=\\fI" : " \\fI", to);
    put_roff_text(to, option->argument);
    fputs(option->is_optional ? "\\fR]" : "\\fR", to);
  }
  fputc('\n', to);
  put_roff_paragraphs(to, option->help);
}

static void put_options(FILE *to, const prof_command *command) {
  const command_option *options[COMMAND_OPTIONS_MAX];
  const size_t count = command_options_list(command, options);
  fputs(".SH OPTIONS\n", to);
  for (size_t i = 0; i < count; i++) {
    if (options[i]->is_hidden) continue;
    if (options[i]->group) {
      fputs(".SS ", to);
      put_roff_text(to, options[i]->group);
      fputc('\n', to);
    }
    put_option(to, options[i]);
  }
}

static void put_statuses(FILE *to, const char *text) {
  static const char title[] = "Exit status: ";
  if (strncmp(text, title, sizeof title - 1) == 0) text += sizeof title - 1;
  fputs(".SH EXIT STATUS\n", to);
  put_roff_paragraphs(to, text);
}

static void put_examples(FILE *to, const command_example *examples) {
  if (examples && examples->line) fputs(".SH EXAMPLES\n", to);
  for (const command_example *each = examples; each && each->line; each++) {
    fputs(".TP\n\\fB", to);
    put_roff_text(to, each->line);
    fputs("\\fR\n", to);
    put_roff_paragraphs(to, each->text);
  }
}

static void print_page_of_prof(FILE *to) {
  size_t count;
  const prof_command *const *const list = command_list(&count);
  put_title(to, NULL, "records programs and shows what took time and memory");
  put_synopsis(to, NULL, "COMMAND [OPTION...] [FILE...]");
  fputs(".SH DESCRIPTION\n", to);
  put_roff_paragraphs(to, COMMAND_FILE_WORDS);
  fputs(".SH COMMANDS\n", to);
  for (size_t i = 0; i < count; i++) {
    fprintf(to, ".TP\n\\fBprof\\-%s\\fR(1)\n", list[i]->name);
    put_roff_paragraphs(to, list[i]->summary);
  }
  put_statuses(to, command_statuses(NULL));
}

/* A page for man(1). NULL: that of prof itself. */
static void print_man_page(FILE *to, const prof_command *command) {
  if (!command) {
    print_page_of_prof(to);
    return;
  }
  put_title(to, command->name, command->summary);
  put_synopsis(to, command->name, command->words);
  fputs(".SH DESCRIPTION\n", to);
  put_roff_paragraphs(to, command->about);
  put_options(to, command);
  if (command->notes) {
    fputs(".SH NOTES\n", to);
    put_roff_paragraphs(to, command->notes);
  }
  put_statuses(to, command_statuses(command));
  put_examples(to, command->examples);
  fputs(".SH SEE ALSO\n.BR prof (1)\n", to);
}

/* ---- the command ---- */

static int execute_help(int argc, char **argv) {
  bool is_man = false;
  for (int c; (c = command_option_next(&command_help, argc, argv)) != -1;) {
    if (c == '?') return EXIT_USAGE;
    is_man |= c == 'm';
  }
  if (argc - optind > 1) return refuse_words("help", "takes one command, not", argv[optind + 1]);
  const char *const name = argv[optind];
  const prof_command *const command = name ? command_find(name) : NULL;
  if (name && !command) return refuse_command(name);
  if (is_man)
    print_man_page(stdout, command);
  else if (command)
    command_help_print(stdout, command);
  else
    command_overview_print(stdout);
  return EXIT_OK;
}

static const command_option options_of_help[] = {
    {.name = "man", .help = "as a page for man(1)", .id = 'm'}, {0}};

static const command_example examples[] = {
    {"prof help table", "the options of prof table"},
    {"prof help --man table | man -l -", "the same as a manual page"},
    {0}};

const prof_command command_help = {.name = "help",
                                   .summary = "all commands, or the options of one",
                                   .words = "[--man] [COMMAND]",
                                   .about = "Lists all commands, or prints what COMMAND takes.",
                                   .options = options_of_help,
                                   .examples = examples,
                                   .execute = execute_help};
