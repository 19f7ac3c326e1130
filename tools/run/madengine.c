/* Does the work of madengine's own scripts where they are missing. See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"

/* A file of madengine in a cmd, and the words that replace it and its interpreter. */
static const struct {
  const char *file, *cmd;
  unsigned parts;
  bool has_marks;
} madengine_programs[] = {
    {"get_library_trace.py", "", RUN_PART_TRACE, false},
    {"rocprof_wrapper.sh", "{prof} run-rocprof", RUN_PART_COLLECT | RUN_PART_ROCPROF, true},
    {"rtl_trace_wrapper.sh", "rtl trace -o {output}/trace.db", RUN_PART_COLLECT, true},
    {"rocprof_output", "{output}", 0, true},
    {"compute_bound.txt", "{counters:compute}", 0, true},
    {"memory_bound.txt", "{counters:memory}", 0, true},
    {"communication_bound.txt", "{counters:communication}", 0, true},
    {"full_profile.txt", "{counters:full}", 0, true},
    {"instruction_mix.txt", "{counters:instructions}", 0, true},
};

/* Scripts of madengine. parts: what prof does instead. */
static const struct {
  const char *file;
  unsigned parts;
} madengine_scripts[] = {
    {"trace.sh", RUN_PART_COLLECT}, {"gpu_info_pre.sh", 0},
    {"gpu_info_post.sh", 0},        {"gpu_info_power_start.sh", RUN_PART_SAMPLE},
    {"gpu_info_power_stop.sh", 0},  {"gpu_info_vram_start.sh", RUN_PART_SAMPLE},
    {"gpu_info_vram_stop.sh", 0},   {"detect_therock.sh", RUN_PART_THEROCK},
};

/* ---- cmd ---- */

/* "bash" or "python3": the word in front of a script's path. */
static bool word_is_interpreter(const char *word) {
  const char *const name = run_base_name(word);
  return strcmp(name, "bash") == 0 || strcmp(name, "sh") == 0 || strncmp(name, "python", 6) == 0;
}

static void replace_words(run_tool *tool, const run_words *words, size_t at, size_t which) {
  const bool has_interpreter = at > 0 && word_is_interpreter(words->items[at - 1]);
  const char *const first = words->items[has_interpreter ? at - 1 : at];
  const char *const from = strstr(tool->cmd, first);
  const char *const file = strstr(from, words->items[at]);
  tool->cmd = run_text("%.*s%s%s", (int)(from - tool->cmd), tool->cmd,
                       madengine_programs[which].cmd, file + strlen(words->items[at]));
  tool->parts |= madengine_programs[which].parts;
  tool->has_marks |= madengine_programs[which].has_marks;
}

/* True: something was replaced. */
static bool replace_script(run_tool *tool) {
  run_words words = {0};
  run_words_split(&words, tool->cmd);
  for (size_t i = 0; i < words.count; i++)
    for (size_t p = 0; p < sizeof madengine_programs / sizeof *madengine_programs; p++) {
      if (strcmp(run_base_name(words.items[i]), madengine_programs[p].file) != 0) continue;
      /* a folder of an earlier run is not a file of madengine */
      const bool is_folder = strcmp(madengine_programs[p].file, "rocprof_output") == 0;
      if (!is_folder && access(words.items[i], F_OK) == 0) continue;
      replace_words(tool, &words, i, p);
      return true;
    }
  return false;
}

/* ---- scripts ---- */

static void drop_scripts(run_tool *tool, run_scripts *list) {
  size_t retained = 0;
  for (size_t i = 0; i < list->count; i++) {
    bool is_ours = false;
    for (size_t s = 0; s < sizeof madengine_scripts / sizeof *madengine_scripts; s++) {
      if (strcmp(run_base_name(list->items[i].path), madengine_scripts[s].file) != 0) continue;
      if (access(list->items[i].path, F_OK) == 0) continue;
      is_ours = true;
      tool->parts |= madengine_scripts[s].parts;
      if (strcmp(list->items[i].arguments, "rocprof") == 0) tool->parts |= RUN_PART_ROCPROF;
    }
    if (!is_ours) list->items[retained++] = list->items[i];
  }
  list->count = retained;
}

/* ---- library traces ---- */

static const char *const traces[] = {"rocblas_trace", "hipblaslt_trace", "miopen_trace",
                                     "tensile_trace", "rccl_trace"};

/* ROCBLAS_TRACE of rocblas_trace. */
static const char *switch_name(const char *trace) {
  char *const name = run_text("%s", trace);
  for (char *at = name; *at; at++)
    if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
  return name;
}

static bool name_is_listed(const char *list, const char *name) {
  const size_t bytes = strlen(name);
  for (const char *at = list; at && *at;) {
    at += strspn(at, ", ");
    const size_t word = strcspn(at, ", ");
    if (word == bytes && memcmp(at, name, bytes) == 0) return true;
    at += word;
  }
  return false;
}

/* Adds the library's own variables, unless the user has set them. */
static void set_variable(run_tool *tool, const char *trace) {
  const run_tool *const known = run_tool_find(trace);
  for (size_t i = 0; known && i < known->variables.count; i++) {
    const char *const variable = known->variables.items[i];
    const char *const name = run_copy(variable, strcspn(variable, "="));
    if (!run_variable_get(&tool->variables, name))
      run_variable_set(&tool->variables, name, variable + strlen(name) + 1);
  }
  if (known && known->parts & RUN_PART_LOGS) { /* its variables name files in {output} */
    tool->parts |= RUN_PART_LOGS;
    tool->has_marks = true;
  }
  run_words_add(&tool->traces, trace);
}

void run_madengine_adopt(run_tool *tool) {
  while (replace_script(tool)) continue;
  drop_scripts(tool, &tool->before);
  drop_scripts(tool, &tool->after);
  if (!(tool->parts & RUN_PART_TRACE)) return;
  const char *const mode = run_variable_get(&tool->variables, "TRACE_MODE");
  for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
    const char *const value = run_variable_get(&tool->variables, switch_name(traces[i]));
    if ((value && *value) || name_is_listed(mode, traces[i])) set_variable(tool, traces[i]);
  }
}

/* ---- TheRock ---- */

enum { MANIFEST_BYTES_MAX = 1 << 20 };

/* A member of a JSON file that is a text, or NULL. */
static const char *read_json_member(const char *path, const char *key) {
  size_t bytes;
  run_json_error error;
  const char *const text = run_file_read(path, MANIFEST_BYTES_MAX, &bytes);
  const run_json *const json = text ? run_json_parse(text, &error) : NULL;
  const run_json *const value = run_json_get(json, key);
  return value && value->kind == RUN_JSON_TEXT ? value->text : NULL;
}

/* True: it is one. */
static bool report_therock(const char *root) {
  const char *const manifest = run_text("%s/share/therock/therock_manifest.json", root);
  const char *const about = run_text("%s/share/therock/dist_info.json", root);
  if (access(manifest, F_OK) != 0 && access(about, F_OK) != 0) return false;
  const char *const commit = read_json_member(manifest, "the_rock_commit");
  const char *const targets = read_json_member(about, "dist_amdgpu_targets");
  say("prof run: ROCm in '%s' comes from TheRock; commit %s, for %s", root,
      commit ? commit : "not known", targets ? targets : "targets that are not known");
  return true;
}

/* What `rocm-sdk path --root` prints: the Python package's folder. */
static const char *package_is_therock(void) {
  static char line[4096];
  // NOLINTNEXTLINE(cert-env33-c): the text is ours; a shell finds the program on PATH
  FILE *const from = popen("rocm-sdk path --root 2>/dev/null", "re");
  const bool is_there = from && fgets(line, sizeof line, from);
  if (from) pclose(from);
  line[strcspn(line, "\r\n")] = '\0';
  return is_there && *line ? line : NULL;
}

void run_therock_check(void) {
  run_words roots = {0};
  static const char *const variables[] = {"ROCM_PATH", "ROCM_HOME", "HIP_PATH"};
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const char *const value = getenv(variables[i]);
    if (value && *value) run_words_add(&roots, value);
  }
  const char *const package = package_is_therock();
  if (package) run_words_add(&roots, package);
  glob_t found;
  if (glob("/opt/rocm*", 0, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; i++)
      run_words_add(&roots, run_text("%s", found.gl_pathv[i]));
  globfree(&found);
  bool is_any = false;
  for (size_t i = 0; i < roots.count; i++)
    if (run_words_find(&roots, roots.items[i]) == (ptrdiff_t)i)
      is_any |= report_therock(roots.items[i]);
  if (!is_any) say("prof run: no ROCm of TheRock is on this machine");
}
