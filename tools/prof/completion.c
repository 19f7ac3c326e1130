/* prof completion SHELL: a script that completes prof's words. */
#include <getopt.h>
#include <string.h>

#include "commands.h"

static const struct {
  const char *word;
  void (*print)(FILE *to);
} shells[] = {{"bash", command_completion_bash},
              {"zsh", command_completion_zsh},
              {"fish", command_completion_fish}};

static int execute_completion(int argc, char **argv) {
  if (command_option_next(&command_completion, argc, argv) != -1) return EXIT_USAGE;
  if (argc - optind != 1) return refuse_words("completion", "takes bash, zsh or fish", NULL);
  for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
    if (strcmp(argv[optind], shells[i].word) != 0) continue;
    shells[i].print(stdout);
    return EXIT_OK;
  }
  return refuse_words("completion", "knows bash, zsh and fish, not", argv[optind]);
}

static const command_example examples[] = {
    {"source <(prof completion bash)", "in ~/.bashrc; for zsh likewise in ~/.zshrc"},
    {"prof completion fish > prof.fish", "for ~/.config/fish/completions"},
    {0}};

const prof_command command_completion = {
    .name = "completion",
    .summary = "a script that completes prof's words in a shell",
    .words = "bash|zsh|fish",
    .about = "Prints a script that completes commands, options and their words in this shell.",
    .examples = examples,
    .execute = execute_completion};
