/* See scripts.h. */
#include "scripts.h"

#include "../prof/commands.h"
#include "signals.h"

const char *run_script_text(const run_script *script) {
  run_words path = {0};
  run_words_add(&path, script->path);
  return run_text("bash %s%s%s", run_words_quoted(&path), *script->arguments ? " " : "",
                  script->arguments);
}

/* folder: of the tool's files, or NULL. */
static int run_script_now(const run_script *script, const char *folder, const run_watch *watch) {
  run_command command = {0};
  if (folder) run_folder_export(&command.variables, folder);
  run_words_add(&command.words, "/bin/sh");
  run_words_add(&command.words, "-c");
  run_words_add(&command.words, run_text(RUN_SHELL_OUTLIVES "%s", run_script_text(script)));
  return run_child(&command, watch).status;
}

/* Runs all of them in order. before: stops at the first that fails, or when we are asked to end.
   Returns the status. */
static int run_scripts_now(const run_scripts *scripts, const run_watch *watch, bool is_before,
                           const char *of, const char *folder, run_summary *summary) {
  for (size_t i = 0; i < scripts->count; i++) {
    if (is_before && run_signals_interrupt()) return RUN_FAILED;
    const int status = run_script_now(&scripts->items[i], folder, watch);
    run_summary_add_script(summary, of, is_before, run_script_text(&scripts->items[i]), status);
    if (status == 0) continue;
    say("prof run: %s-script of %s ended with status %d: %s", is_before ? "pre" : "post", of,
        status, run_script_text(&scripts->items[i]));
    if (is_before) return status;
  }
  return 0;
}

int run_scripts_before(const run_stack *stack, const run_watch *watch, run_summary *summary) {
  for (size_t i = stack->count; i > 0; i--) {
    const run_tool *const tool = &stack->tools[i - 1];
    const int status =
        run_scripts_now(&tool->before, watch, true, tool->name, tool->folder, summary);
    if (status != 0) return status;
  }
  return run_scripts_now(&stack->before, watch, true, "the context", NULL, summary);
}

void run_scripts_after(const run_stack *stack, const run_watch *watch, run_summary *summary) {
  run_scripts_now(&stack->after, watch, false, "the context", NULL, summary);
  for (size_t i = 0; i < stack->count; i++)
    run_scripts_now(&stack->tools[i].after, watch, false, stack->tools[i].name,
                    stack->tools[i].folder, summary);
}

bool run_scripts_follow(const run_stack *stack) {
  size_t count = stack->after.count;
  for (size_t i = 0; i < stack->count; i++) count += stack->tools[i].after.count;
  return count > 0;
}
