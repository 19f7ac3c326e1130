/* Completion in bash, from the table. See command_line.h. */
#include <string.h>

#include "command_line.h"

static void put_commands(FILE *to) {
  size_t count;
  const prof_command *const *const list = command_list(&count);
  for (size_t i = 0; i < count; i++) fprintf(to, "%s ", list[i]->name);
}

/* "-s|--sort" */
static void put_pattern(FILE *to, const command_option *option, const char **between) {
  fputs(*between, to);
  if (option->letter) fprintf(to, "-%c|", option->letter);
  fprintf(to, "--%s", option->name);
  *between = "|";
}

static void put_choices(FILE *to, const command_option *option) {
  const char *between = "\n        ";
  put_pattern(to, option, &between);
  fprintf(to, ") _prof_%s '", option->is_list ? "list" : "words");
  for (const command_choice *each = option->choices; each->word; each++)
    fprintf(to, "%s%s", each == option->choices ? "" : " ", each->word);
  fputs("'; return ;;", to);
}

/* Other arguments are files, or what the user knows. */
static void put_arguments(FILE *to, const command_option *const *options, size_t count) {
  const char *between = "\n        ";
  fputs("      case $prev in", to);
  for (size_t i = 0; i < count; i++)
    if (options[i]->choices) put_choices(to, options[i]);
  for (size_t i = 0; i < count; i++)
    if (options[i]->argument && !options[i]->is_optional && !options[i]->choices)
      put_pattern(to, options[i], &between);
  fprintf(to, "%s\n      esac\n", between[0] == '|' ? ") return ;;" : "");
}

static void put_command(FILE *to, const prof_command *command) {
  const command_option *options[COMMAND_OPTIONS_MAX];
  const size_t count = command_options_list(command, options);
  fprintf(to, "    %s)\n", command->name);
  put_arguments(to, options, count);
  fputs("      [[ $cur != -* ]] || _prof_words '", to);
  for (size_t i = 0; i < count; i++)
    if (!options[i]->is_hidden) fprintf(to, "--%s ", options[i]->name);
  fputs("'\n", to);
  if (strcmp(command->name, "completion") == 0)
    fputs("      [[ $cur == -* ]] || _prof_words 'bash zsh fish'\n", to);
  if (strcmp(command->name, "help") == 0) {
    fputs("      [[ $cur == -* ]] || _prof_words '", to);
    put_commands(to);
    fputs("'\n", to);
  }
  fputs("      ;;\n", to);
}

void command_completion_bash(FILE *to) {
  size_t count;
  const prof_command *const *const list = command_list(&count);
  fputs(
      "# Completes the words of prof in bash. Made by: prof completion bash\n"
      "_prof_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$cur\")); }\n"
      "# The last word of a comma list.\n"
      "_prof_list() {\n"
      "  local head=\n"
      "  [[ $cur != *,* ]] || head=${cur%,*},\n"
      "  COMPREPLY=($(compgen -P \"$head\" -W \"$1\" -- \"${cur##*,}\"))\n"
      "}\n"
      "_prof() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  COMPREPLY=()\n"
      "  # --name=word is three words\n"
      "  if [[ $cur == = ]]; then\n"
      "    cur=\n"
      "  elif [[ $prev == = ]]; then\n"
      "    prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  fi\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    _prof_words '",
      to);
  put_commands(to);
  fputs("--help --version'\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n", to);
  for (size_t i = 0; i < count; i++) put_command(to, list[i]);
  fputs("  esac\n}\ncomplete -o default -F _prof prof\n", to);
}
