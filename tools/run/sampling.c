/* See sampler.h: the settings. */
#define _GNU_SOURCE
#include "sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RATE_LEAST 0.001
#define RATE_MOST 1e9

enum { DEVICES_MAX = 64 };

/* ---- names ---- */

/* The names in madengine's guide, and those that its sampler program uses. */
static const char *const setting_names[] = {"DEVICE",   "SAMPLING_RATE", "MODE",
                                            "DUAL-GCD", "DUAL_GCD",      "OUTPUT_FILE"};
enum { SETTING_NAMES = sizeof setting_names / sizeof *setting_names };

static bool tool_is_vram(const run_tool *tool) {
  for (size_t i = 0; i < tool->variables.count; i++)
    if (strncmp(tool->variables.items[i], "VRAM_", 5) == 0) return true;
  return strstr(tool->name, "vram") != NULL;
}

static const char *with_prefix(const run_tool *tool, const char *name) {
  return run_text("%s_%s", tool_is_vram(tool) ? "VRAM" : "POWER", name);
}

/* A value, and the variable that it comes from. */
typedef struct setting {
  const char *name, *value;
} setting;

static bool find_setting(const run_tool *tool, const char *name, setting *to) {
  const char *const value = run_variable_get(&tool->variables, name);
  if (!value) return false;
  *to = (setting){name, value};
  return true;
}

static setting get_setting(const run_tool *tool, const char *name, const char *otherwise) {
  setting found = {name, otherwise};
  if (!find_setting(tool, name, &found)) find_setting(tool, with_prefix(tool, name), &found);
  return found;
}

static setting get_dual_setting(const run_tool *tool) {
  setting found = {"DUAL-GCD", "false"};
  if (!find_setting(tool, "DUAL-GCD", &found) && !find_setting(tool, "DUAL_GCD", &found) &&
      !find_setting(tool, with_prefix(tool, "DUAL-GCD"), &found))
    find_setting(tool, with_prefix(tool, "DUAL_GCD"), &found);
  return found;
}

/* ---- values ---- */

static _Noreturn void refuse_setting(const run_tool *tool, setting wrong, const char *right) {
  run_fail("%s: %s is '%s'; it must be %s", tool->name, wrong.name, wrong.value, right);
}

static int device_compare_number(const void *a, const void *b) {
  const unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;
  return (x > y) - (x < y);
}

/* "1, 0,1" becomes "0,1": the columns are in this order. */
static const char *read_devices(const run_tool *tool) {
  static const char right[] = "\"all\" or numbers with commas between, as in \"0,1\"";
  const setting told = get_setting(tool, "DEVICE", "all");
  unsigned long numbers[DEVICES_MAX];
  size_t count = 0;
  if (strcmp(told.value, "all") == 0) return "all";
  for (const char *at = told.value;;) {
    at += strspn(at, " ");
    const size_t digits = strspn(at, "0123456789");
    if (digits == 0 || digits > 4 || count == DEVICES_MAX) refuse_setting(tool, told, right);
    numbers[count++] = strtoul(at, NULL, 10);
    at += digits;
    at += strspn(at, " ");
    if (*at == '\0') break;
    if (*at++ != ',') refuse_setting(tool, told, right);
  }
  qsort(numbers, count, sizeof *numbers, device_compare_number);
  char *text = NULL;
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && numbers[i] == numbers[i - 1]) continue;
    text = text ? run_text("%s,%lu", text, numbers[i]) : run_text("%lu", numbers[i]);
  }
  return text;
}

bool run_sampling_reads(const char *text, uint64_t *interval_ns_out) {
  char *end = NULL;
  const double seconds = strtod(text, &end);
  if (end == text || *end || !(seconds >= RATE_LEAST) || !(seconds <= RATE_MOST)) return false;
  *interval_ns_out = (uint64_t)llround(seconds * 1e9);
  return true;
}

const run_sampling *run_sampling_of_prof(const char *seconds, const char *file) {
  run_sampling *const made = run_make(1, sizeof *made);
  *made = (run_sampling){.devices = "all", .mode = "all", .file = file};
  run_sampling_reads(seconds, &made->interval_ns);
  return made;
}

static uint64_t read_rate(const run_tool *tool) {
  const setting told = get_setting(tool, "SAMPLING_RATE", "0.1");
  uint64_t interval_ns = 0;
  if (!run_sampling_reads(told.value, &interval_ns))
    refuse_setting(tool, told, "a number of seconds from 0.001 to 1e9, as in \"0.1\"");
  return interval_ns;
}

static const char *read_mode(const run_tool *tool) {
  const setting told = get_setting(tool, "MODE", tool_is_vram(tool) ? "vram" : "power");
  if (strcmp(told.value, "power") != 0 && strcmp(told.value, "vram") != 0)
    refuse_setting(tool, told, "\"power\" or \"vram\"");
  return told.value;
}

static bool read_dual(const run_tool *tool) {
  const setting told = get_dual_setting(tool);
  const bool is_true = strcmp(told.value, "true") == 0;
  if (!is_true && strcmp(told.value, "false") != 0)
    refuse_setting(tool, told, "\"true\" or \"false\"");
  return is_true;
}

static const char *read_setting_file(const run_tool *tool) {
  const setting told = get_setting(tool, "OUTPUT_FILE", run_text("%s_output.csv", tool->name));
  const size_t bytes = strlen(told.value);
  if (bytes == 0 || told.value[bytes - 1] == '/') refuse_setting(tool, told, "the name of a file");
  return told.value;
}

run_sampling run_sampling_read(const run_tool *tool) {
  return (run_sampling){.devices = read_devices(tool),
                        .mode = read_mode(tool),
                        .interval_ns = read_rate(tool),
                        .is_dual = read_dual(tool),
                        .file = read_setting_file(tool)};
}

/* ---- the workload's environment ---- */

static bool variable_is_ours(const run_tool *tool, const char *variable) {
  const size_t bytes = strcspn(variable, "=");
  for (size_t i = 0; i < SETTING_NAMES; i++)
    if ((strlen(setting_names[i]) == bytes && memcmp(setting_names[i], variable, bytes) == 0) ||
        (strlen(with_prefix(tool, setting_names[i])) == bytes &&
         memcmp(with_prefix(tool, setting_names[i]), variable, bytes) == 0))
      return true;
  return false;
}

void run_samplings_prepare(run_stack *stack) {
  for (size_t i = 0; i < stack->count; i++) {
    run_tool *const tool = &stack->tools[i];
    if (!(tool->parts & RUN_PART_SAMPLE)) continue;
    run_sampling *const sampling = run_make(1, sizeof *sampling);
    *sampling = run_sampling_read(tool);
    tool->sampling = sampling;
    run_words rest = {0}; /* a new list: runs that repeat share the old one */
    for (size_t v = 0; v < tool->variables.count; v++)
      if (!variable_is_ours(tool, tool->variables.items[v]))
        run_words_add(&rest, tool->variables.items[v]);
    tool->variables = rest;
  }
}
