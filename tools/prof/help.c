/* prof help [--man] [COMMAND]: all commands, or what one takes, as text or as a page for man(1). */
#include <getopt.h>

#include "commands.h"

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
    command_man_print(stdout, command);
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
