/* prof completion SHELL: a script that completes prof's words, made from the table of commands. */
#include <getopt.h>
#include <string.h>

#include "commands.h"

/* ---- bash ---- */

static void put_bash_commands(FILE *to) {
  size_t count;
  const prof_command *const *const list = command_list(&count);
  for (size_t i = 0; i < count; i++) fprintf(to, "%s ", list[i]->name);
}

/* "-s|--sort" */
static void put_bash_pattern(FILE *to, const command_option *option, const char **between) {
  fputs(*between, to);
  if (option->letter) fprintf(to, "-%c|", option->letter);
  fprintf(to, "--%s", option->name);
  *between = "|";
}

static void put_bash_choices(FILE *to, const command_option *option) {
  const char *between = "\n        ";
  put_bash_pattern(to, option, &between);
  fprintf(to, ") _prof_%s '", option->is_list ? "list" : "words");
  for (const command_choice *each = option->choices; each->word; each++)
    fprintf(to, "%s%s", each == option->choices ? "" : " ", each->word);
  fputs("'; return ;;", to);
}

/* Other arguments are files, or what the user knows. */
static void put_bash_arguments(FILE *to, const command_option *const *options, size_t count) {
  const char *between = "\n        ";
  fputs("      case $prev in", to);
  for (size_t i = 0; i < count; i++)
    if (options[i]->choices) put_bash_choices(to, options[i]);
  for (size_t i = 0; i < count; i++)
    if (options[i]->argument && !options[i]->is_optional && !options[i]->choices)
      put_bash_pattern(to, options[i], &between);
  fprintf(to, "%s\n      esac\n", between[0] == '|' ? ") return ;;" : "");
}

static void put_bash_command(FILE *to, const prof_command *command) {
  const command_option *options[COMMAND_OPTIONS_MAX];
  const size_t count = command_options_list(command, options);
  fprintf(to, "    %s)\n", command->name);
  put_bash_arguments(to, options, count);
  fputs("      [[ $cur != -* ]] || _prof_words '", to);
  for (size_t i = 0; i < count; i++)
    if (!options[i]->is_hidden) fprintf(to, "--%s ", options[i]->name);
  fputs("'\n", to);
  if (strcmp(command->name, "completion") == 0)
    fputs("      [[ $cur == -* ]] || _prof_words 'bash zsh fish'\n", to);
  if (strcmp(command->name, "help") == 0) {
    fputs("      [[ $cur == -* ]] || _prof_words '", to);
    put_bash_commands(to);
    fputs("'\n", to);
  }
  fputs("      ;;\n", to);
}

static void print_bash(FILE *to) {
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
  put_bash_commands(to);
  fputs("--help --version'\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n", to);
  for (size_t i = 0; i < count; i++) put_bash_command(to, list[i]);
  fputs("  esac\n}\ncomplete -o default -F _prof prof\n", to);
}

/* ---- texts of zsh and fish ---- */

/* Characters between single quotes. special: what this shell needs a backslash before. */
static void put_quoted(FILE *to, const char *text, const char *special, const char *quote) {
  for (; *text; text++) {
    if (*text == '\'')
      fputs(quote, to);
    else if (*text == '\n')
      fputc(' ', to);
    else
      fprintf(to, "%s%c", strchr(special, *text) ? "\\" : "", *text);
  }
}

static void put_words(FILE *to, const command_choice *choices) {
  for (const command_choice *each = choices; each->word; each++)
    fprintf(to, "%s%s", each == choices ? "" : " ", each->word);
}

static void put_command_names(FILE *to) {
  size_t count;
  const prof_command *const *const list = command_list(&count);
  for (size_t i = 0; i < count; i++) fprintf(to, "%s%s", i ? " " : "", list[i]->name);
}

/* ---- zsh ---- */

static void put_zsh_text(FILE *to, const char *text) { put_quoted(to, text, "[]:\\", "'\\''"); }

/* "'(-s --sort)'{-s,--sort=}'[help]:BY:(total self)'" */
static void put_zsh_option(FILE *to, const command_option *option) {
  const char *const mark = !option->argument ? "" : option->is_optional ? "=-" : "=";
  fputs(" \\\n        ", to);
  if (option->letter)
    fprintf(to, "{-%c%s,--%s%s}'[", option->letter, option->argument ? "+" : "", option->name,
            mark);
  else
    fprintf(to, "'--%s%s[", option->name, mark);
  put_zsh_text(to, option->help);
  fputc(']', to);
  if (option->argument) {
    fputs(option->is_optional ? "::" : ":", to);
    put_zsh_text(to, option->argument);
    if (option->choices) {
      fputs(option->is_list ? ":_values -s , word " : ":(", to);
      put_words(to, option->choices);
      fputs(option->is_list ? "" : ")", to);
    } else {
      fputs(":_files", to);
    }
  }
  fputc('\'', to);
}

static void put_zsh_command(FILE *to, const prof_command *command) {
  const command_option *options[COMMAND_OPTIONS_MAX];
  const size_t count = command_options_list(command, options);
  fprintf(to, "    %s)\n      _arguments", command->name);
  for (size_t i = 0; i < count; i++)
    if (!options[i]->is_hidden) put_zsh_option(to, options[i]);
  fputs(" \\\n        ", to);
  if (command->stops_at_word) {
    fputs("'*::program:_normal'", to);
  } else if (strcmp(command->name, "completion") == 0) {
    fputs("'1:shell:(bash zsh fish)'", to);
  } else if (strcmp(command->name, "help") == 0) {
    fputs("'1:command:(", to);
    put_command_names(to);
    fputs(")'", to);
  } else {
    fputs("'*:file:_files'", to);
  }
  fputs("\n      ;;\n", to);
}

static void print_zsh(FILE *to) {
  size_t count;
  const prof_command *const *const list = command_list(&count);
  fputs(
      "#compdef prof\n"
      "# Completes the words of prof in zsh. Made by: prof completion zsh\n"
      "_prof() {\n"
      "  local -a commands\n"
      "  commands=(",
      to);
  for (size_t i = 0; i < count; i++) {
    fprintf(to, "\n    '%s:", list[i]->name);
    put_zsh_text(to, list[i]->summary);
    fputc('\'', to);
  }
  fputs(
      ")\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $command in\n",
      to);
  for (size_t i = 0; i < count; i++) put_zsh_command(to, list[i]);
  fputs(
      "  esac\n}\n"
      "if [[ $funcstack[1] == _prof ]]; then\n"
      "  _prof \"$@\"\n"
      "else\n"
      "  compdef _prof prof\n"
      "fi\n",
      to);
}

/* ---- fish ---- */

static void put_fish_text(FILE *to, const char *text) { put_quoted(to, text, "\\", "\\'"); }

static void put_fish_option(FILE *to, const prof_command *command, const command_option *option) {
  fprintf(to, "complete -c prof -n '__fish_seen_subcommand_from %s' -l %s", command->name,
          option->name);
  if (option->letter) fprintf(to, " -s %c", option->letter);
  if (option->choices) {
    fputs(option->is_list ? " -x -a '(__fish_append , " : " -x -a '", to);
    put_words(to, option->choices);
    fputs(option->is_list ? ")'" : "'", to);
  } else if (option->argument && !option->is_optional) {
    fputs(" -r", to);
  }
  fputs(" -d '", to);
  put_fish_text(to, option->help);
  fputs("'\n", to);
}

static void put_fish_command(FILE *to, const prof_command *command) {
  const command_option *options[COMMAND_OPTIONS_MAX];
  const size_t count = command_options_list(command, options);
  fprintf(to, "complete -c prof -n __fish_use_subcommand -f -a %s -d '", command->name);
  put_fish_text(to, command->summary);
  fputs("'\n", to);
  for (size_t i = 0; i < count; i++)
    if (!options[i]->is_hidden) put_fish_option(to, command, options[i]);
}

static void print_fish(FILE *to) {
  size_t count;
  const prof_command *const *const list = command_list(&count);
  fputs("# Completes the words of prof in fish. Made by: prof completion fish\n", to);
  for (size_t i = 0; i < count; i++) put_fish_command(to, list[i]);
  fputs(
      "complete -c prof -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n"
      "complete -c prof -n '__fish_seen_subcommand_from help' -f -a '",
      to);
  put_command_names(to);
  fputs("'\n", to);
}

/* ---- the command ---- */

static const struct {
  const char *word;
  void (*print)(FILE *to);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

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
