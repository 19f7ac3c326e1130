/* See stack.h. The words are built from the inside out: first the workload, then each tool's cmd in
   front of it. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <limits.h>
#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "output.h"
#include "sampler.h"

/* ---- environment ---- */

static bool name_is_list(const char *name, size_t bytes) {
  static const char *const lists[] = {"LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PATH"};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    if (strlen(lists[i]) == bytes && memcmp(lists[i], name, bytes) == 0) return true;
  return false;
}

/* The value that the variable gets. */
static const char *exported_value(const char *variable, const char **name_out) {
  const size_t bytes = strcspn(variable, "=");
  const char *const value = variable + bytes + (variable[bytes] == '=');
  const char *const name = *name_out = run_copy(variable, bytes);
  const char *const old = name_is_list(name, bytes) ? getenv(name) : NULL;
  if (old && !*value) return old;
  return old && *old ? run_text("%s:%s", value, old) : value;
}

void run_export(const char *variable) {
  const char *name;
  const char *const value = exported_value(variable, &name);
  if (setenv(name, value, 1) != 0)
    run_fail("cannot set the variable '%s': %s", name, strerror(errno));
}

run_words run_exports(const run_words *variables) {
  run_words all = {0};
  for (size_t i = 0; i < variables->count; i++) {
    const char *name;
    const char *const value = exported_value(variables->items[i], &name);
    run_words_add(&all, run_text("%s=%s", name, value));
  }
  return all;
}

int run_execute(char **words) {
  execvp(words[0], words);
  const int error = errno;
  say("prof run: cannot execute '%s': %s", words[0], strerror(error));
  return error == ENOENT || error == ENOTDIR ? RUN_NOT_FOUND : RUN_CANNOT_EXECUTE;
}

/* Without /proc, the path by which we were executed. */
const char *run_own_path(void) {
  static char path[PATH_MAX];
  const ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
  const int error = errno;
  if (bytes > 0) {
    path[bytes] = '\0';
    return path;
  }
  const char *const executed = (const char *)(uintptr_t)getauxval(AT_EXECFN);
  if (executed && realpath(executed, path)) return path;
  run_fail(
      "the path of prof is not known: cannot read /proc/self/exe: %s; mount /proc, or execute "
      "prof by its whole path",
      strerror(error));
}

static void put_variables_around(run_words *words, run_words *variables) {
  if (variables->count == 0) return;
  run_words all = {0};
  run_words_add(&all, run_own_path());
  run_words_add(&all, "run-with");
  run_words_add_all(&all, variables);
  run_words_add(&all, "--");
  run_words_add_all(&all, words);
  *words = all;
  *variables = (run_words){0};
}

/* ---- cmd ---- */

static void put_cmd_around(run_words *words, const char *cmd) {
  run_words all = {0};
  if (run_needs_shell(cmd)) {
    run_words_add(&all, "/bin/sh");
    run_words_add(&all, "-c");
    run_words_add(&all, run_text(RUN_SHELL_OUTLIVES "%s \"$@\"", cmd));
    run_words_add(&all, "sh");
  } else {
    run_words_split(&all, cmd);
  }
  run_words_add_all(&all, words);
  *words = all;
}

/* The value of {output}, {prof} or {counters:KIND}. NULL: it has no value. */
static const char *mark_value(const run_tool *tool, const char *mark, size_t bytes) {
  static const char counters[] = "counters:";
  const char *const text = run_copy(mark, bytes);
  if (strcmp(text, "prof") == 0) return run_own_path();
  if (!tool->folder) return NULL;
  if (strcmp(text, "output") == 0) return tool->folder;
  if (strncmp(text, counters, strlen(counters)) == 0)
    return run_rocprof_counters(text + strlen(counters), tool->folder, !tool->is_planned);
  return NULL;
}

static const char *replace_marks(const run_tool *tool, const char *text, bool is_shell) {
  const char *made = "";
  for (const char *at = text;;) {
    const char *const open = strchr(at, '{'), *const close = open ? strchr(open, '}') : NULL;
    const char *const word = close ? mark_value(tool, open + 1, (size_t)(close - open - 1)) : NULL;
    if (!close) return run_text("%s%s", made, at);
    made = word ? run_text("%s%.*s%s", made, (int)(open - at), at,
                           is_shell ? run_word_quoted(word) : word)
                : run_text("%s%.*s", made, (int)(close + 1 - at), at);
    at = close + 1;
  }
}

/* The workload may have another working directory. */
static const char *absolute_variable(const char *variable) {
  const char *const value = strchr(variable, '=') + 1;
  char *const folder = *value == '/' ? NULL : getcwd(NULL, 0);
  if (!folder) return variable;
  const char *const path = strncmp(value, "./", 2) == 0 ? value + 2 : value;
  return run_text("%.*s%s/%s", (int)(value - variable), variable, folder, path);
}

/* ---- $PROF_RUN_FOLDER ---- */

static const char folder_name[] = "PROF_RUN_FOLDER";

void run_folder_export(run_words *variables, const char *folder) {
  run_words_add(variables, absolute_variable(run_text("%s=%s", folder_name, folder)));
}

static bool scripts_have_folder(const run_scripts *scripts) {
  for (size_t i = 0; i < scripts->count; i++)
    if (strstr(scripts->items[i].path, folder_name) ||
        strstr(scripts->items[i].arguments, folder_name))
      return true;
  return false;
}

bool run_tool_has_folder(const run_tool *tool) {
  if (tool->parts & (RUN_PART_COLLECT | RUN_PART_LOGS)) return true;
  if (strstr(tool->cmd, folder_name)) return true;
  for (size_t i = 0; i < tool->variables.count; i++)
    if (strstr(tool->variables.items[i], folder_name)) return true;
  return scripts_have_folder(&tool->before) || scripts_have_folder(&tool->after);
}

/* The folder in place of $PROF_RUN_FOLDER or ${PROF_RUN_FOLDER}. */
static const char *add_folder(const char *text, const char *folder) {
  const char *made = "";
  for (const char *at = text;;) {
    const char *const mark = strstr(at, run_text("$%s", folder_name));
    const char *const braced = strstr(at, run_text("${%s}", folder_name));
    const char *const next = !mark || (braced && braced < mark) ? braced : mark;
    if (!next) return run_text("%s%s", made, at);
    made = run_text("%s%.*s%s", made, (int)(next - at), at, folder);
    at = next + strlen(folder_name) + (next == braced ? 3 : 1);
  }
}

/* The user's own cmd has the folder as a variable, and so have the user's values. */
static void set_folder(run_tool *tool) {
  run_words variable = {0};
  run_folder_export(&variable, tool->folder);
  const char *const folder = strchr(variable.items[0], '=') + 1;
  for (size_t i = 0; i < tool->variables.count; i++)
    tool->variables.items[i] = (char *)add_folder(tool->variables.items[i], folder);
  if (!tool->has_marks && !run_is_blank(tool->cmd)) run_words_add_all(&tool->variables, &variable);
}

void run_marks_replace(run_tool *tool) {
  const run_tool *const known = run_tool_find(tool->name);
  if (tool->has_marks) tool->cmd = replace_marks(tool, tool->cmd, true);
  for (size_t i = 0; known && i < tool->variables.count; i++) {
    char **const variable = &tool->variables.items[i];
    const bool is_own = run_words_find(&known->variables, *variable) >= 0;
    if (is_own && known->has_marks && strstr(*variable, "{output}"))
      *variable = (char *)absolute_variable(replace_marks(tool, *variable, false));
  }
  if (tool->folder) set_folder(tool);
}

/* ---- the command line ---- */

run_command run_compose(const run_stack *stack, const run_words *workload) {
  run_command command = {0};
  run_words_add_all(&command.words, workload);
  if (stack->encapsulate && !run_is_blank(stack->encapsulate))
    put_cmd_around(&command.words, stack->encapsulate);
  for (size_t i = 0; i < stack->count; i++) {
    const run_tool *const tool = &stack->tools[i];
    const char *const cmd = tool->cmd;
    if (!run_is_blank(cmd)) {
      /* its own processes have the inner variables, too: `prof run-with` would be followed */
      if (!run_follows_one_program(tool)) put_variables_around(&command.words, &command.variables);
      put_cmd_around(&command.words, cmd);
    }
    /* an inner tool's value applies to the workload: it would be set last */
    for (size_t v = 0; v < tool->variables.count; v++) {
      const char *const variable = tool->variables.items[v];
      char *const name = run_copy(variable, strcspn(variable, "="));
      const char *const old = run_variable_get(&command.variables, name);
      const char *const value = variable + strlen(name) + 1;
      if (!old)
        run_variable_set(&command.variables, name, value);
      else if (name_is_list(name, strlen(name)) && *value)
        run_variable_set(&command.variables, name, run_text("%s:%s", old, value));
    }
  }
  return command;
}

/* ---- DUAL-GCD ---- */

run_words run_dual_workload(const run_stack *stack, const run_words *workload) {
  run_words words = {0};
  for (size_t i = 0; i < stack->count && words.count == 0; i++) {
    if (!stack->tools[i].sampling || !stack->tools[i].sampling->is_dual) continue;
    run_words_add(&words, run_own_path());
    run_words_add(&words, "run-dual");
  }
  run_words_add_all(&words, workload);
  return words;
}

/* ---- the tool prof ---- */

static const char *library_place(void) {
  const char *const folder = library_folder();
  return folder ? folder : "a folder that is not known";
}

/* A library beside libprof.so, or NULL. */
static const char *library_path(const char *name) {
  const char *const folder = library_folder();
  const char *const path = run_text("%s/%s", folder ? folder : ".", name);
  return folder && access(path, R_OK) == 0 ? path : NULL;
}

static void add_memory(run_tool *tool) {
  const char *const path = library_path("libprof_memory.so");
  if (!path)
    run_fail("--memory needs libprof_memory.so beside libprof.so, and it is not in %s",
             library_place());
  run_variable_set(&tool->variables, "LD_PRELOAD", path);
  run_variable_set(&tool->variables, "PROF_MEMORY", "1");
}

/* Each is loaded by the vendor's library: by OpenCL's loader, CUDA's driver, rocprofiler-sdk. */
static const struct {
  const char *variable, *library;
  bool is_list;
} opencl_layers[] = {{"OPENCL_LAYERS", "libprof_opencl.so", true},
                     {"CUDA_INJECTION64_PATH", "libprof_cuda.so", false},
                     {"ROCP_TOOL_LIBRARIES", "libprof_hip.so", true}};

static void add_layer(run_tool *tool, size_t which, const char *path) {
  const char *const name = opencl_layers[which].variable, *const old = getenv(name);
  if (!old || !*old)
    run_variable_set(&tool->variables, name, path);
  else if (opencl_layers[which].is_list)
    run_variable_set(&tool->variables, name, run_text("%s:%s", path, old));
  else if (strcmp(old, path) != 0)
    run_fail(
        "--devices: %s is '%s' already, and holds one library; unset it, or leave out "
        "--devices",
        name, old);
}

/* ITT's tasks are scopes. They are recorded unless another tool has its library there. Python's
   package listens by itself. */
static void add_itt(run_tool *tool) {
  static const char name[] = "INTEL_LIBITTNOTIFY64";
  const char *const path = library_path("libprof_itt.so");
  if (path && !getenv(name)) run_variable_set(&tool->variables, name, path);
}

static void add_devices(run_tool *tool, const run_request *request) {
  size_t count = 0;
  if (!request->has_devices) return;
  if (!request->python) add_itt(tool);
  for (size_t i = 0; i < sizeof opencl_layers / sizeof *opencl_layers; i++) {
    const char *const path = library_path(opencl_layers[i].library);
    if (!path) continue;
    add_layer(tool, i, path);
    count++;
  }
  if (count == 0)
    run_fail(
        "--devices needs libprof_opencl.so, libprof_cuda.so or libprof_hip.so beside "
        "libprof.so, and none is in %s",
        library_place());
  run_variable_set(&tool->variables, "PROF_DEVICES", "records");
}

void run_record_prepare(run_tool *tool, const run_request *request, const char *folder) {
  const char *const name = run_program_name(run_workload_name(&request->workload));
  const char *const stem = run_output_escaped(run_text("%s/%s", folder, name));
  add_devices(tool, request);
  if (request->python) return;
  run_variable_set(&tool->variables, "PROF_LEVEL", run_text("%u", request->level));
  run_variable_set(&tool->variables, "PROF_JOIN", "1"); /* the program may start prof itself */
  run_variable_set(&tool->variables, "PROF_OUTPUT", run_text("%s.%%p.prof", stem));
  if (request->has_memory) add_memory(tool);
}
