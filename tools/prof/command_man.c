/* Pages for man(1), from the table. See command_line.h. */
#include <ctype.h>
#include <string.h>

#include "commands.h"

/* A text's characters as roff. A line must not begin as a request would: it begins with "\&". */
static void put_text(FILE *to, const char *text) {
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
static void put_paragraphs(FILE *to, const char *text) {
  while (*text) {
    const size_t bytes = strcspn(text, "\n");
    fputs("\\&", to);
    for (size_t i = 0; i < bytes; i++) {
      const char letter[] = {text[i], '\0'};
      put_text(to, letter);
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
  put_text(to, summary);
  fputc('\n', to);
}

static void put_synopsis(FILE *to, const char *name, const char *words) {
  fputs(".SH SYNOPSIS\n.B prof", to);
  if (name) fprintf(to, " %s", name);
  fputs("\n\\&", to);
  put_text(to, words);
  fputc('\n', to);
}

static void put_option(FILE *to, const command_option *option) {
  fputs(".TP\n", to);
  if (option->letter) fprintf(to, "\\fB\\-%c\\fR, ", option->letter);
  fputs("\\fB\\-\\-", to);
  put_text(to, option->name);
  fputs("\\fR", to);
  if (option->argument) {
    fputs(option->is_optional ? "[=\\fI" : " \\fI", to);
    put_text(to, option->argument);
    fputs(option->is_optional ? "\\fR]" : "\\fR", to);
  }
  fputc('\n', to);
  put_paragraphs(to, option->help);
}

static void put_options(FILE *to, const prof_command *command) {
  const command_option *options[COMMAND_OPTIONS_MAX];
  const size_t count = command_options_list(command, options);
  fputs(".SH OPTIONS\n", to);
  for (size_t i = 0; i < count; i++) {
    if (options[i]->is_hidden) continue;
    if (options[i]->group) {
      fputs(".SS ", to);
      put_text(to, options[i]->group);
      fputc('\n', to);
    }
    put_option(to, options[i]);
  }
}

static void put_statuses(FILE *to, const char *text) {
  static const char title[] = "Exit status: ";
  if (strncmp(text, title, sizeof title - 1) == 0) text += sizeof title - 1;
  fputs(".SH EXIT STATUS\n", to);
  put_paragraphs(to, text);
}

static void put_examples(FILE *to, const command_example *examples) {
  if (examples && examples->line) fputs(".SH EXAMPLES\n", to);
  for (const command_example *each = examples; each && each->line; each++) {
    fputs(".TP\n\\fB", to);
    put_text(to, each->line);
    fputs("\\fR\n", to);
    put_paragraphs(to, each->text);
  }
}

static void print_page_of_prof(FILE *to) {
  size_t count;
  const prof_command *const *const list = command_list(&count);
  put_title(to, NULL, "records programs and shows what took time and memory");
  put_synopsis(to, NULL, "COMMAND [OPTION...] [FILE...]");
  fputs(".SH DESCRIPTION\n", to);
  put_paragraphs(to, COMMAND_FILE_WORDS);
  fputs(".SH COMMANDS\n", to);
  for (size_t i = 0; i < count; i++) {
    fprintf(to, ".TP\n\\fBprof\\-%s\\fR(1)\n", list[i]->name);
    put_paragraphs(to, list[i]->summary);
  }
  put_statuses(to, command_statuses(NULL));
}

void command_man_print(FILE *to, const prof_command *command) {
  if (!command) {
    print_page_of_prof(to);
    return;
  }
  put_title(to, command->name, command->summary);
  put_synopsis(to, command->name, command->words);
  fputs(".SH DESCRIPTION\n", to);
  put_paragraphs(to, command->about);
  put_options(to, command);
  if (command->notes) {
    fputs(".SH NOTES\n", to);
    put_paragraphs(to, command->notes);
  }
  put_statuses(to, command_statuses(command));
  put_examples(to, command->examples);
  fputs(".SH SEE ALSO\n.BR prof (1)\n", to);
}
