/* See stack.h: names that a user types. */
#define _GNU_SOURCE
#include "stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../prof/commands.h"

/* ---- nearest ---- */

enum { NAME_BYTES_MAX = 64, NEAREST_MAX = 3 };

/* How many letters differ: added, left out, or another. */
static size_t edit_distance(const char *a, const char *b) {
  size_t row[NAME_BYTES_MAX + 1];
  const size_t of_a = strlen(a), of_b = strlen(b);
  if (of_a > NAME_BYTES_MAX || of_b > NAME_BYTES_MAX) return SIZE_MAX;
  for (size_t j = 0; j <= of_b; j++) row[j] = j;
  for (size_t i = 1; i <= of_a; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= of_b; j++) {
      const size_t above = row[j];
      size_t least = diagonal + (a[i - 1] != b[j - 1]);
      if (above + 1 < least) least = above + 1;
      if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
      row[j] = least;
      diagonal = above;
    }
  }
  return row[of_b];
}

/* SIZE_MAX: they are not alike. */
static size_t name_difference(const char *name, const char *known) {
  const size_t bytes = strlen(name), apart = edit_distance(name, known);
  if (apart <= 1 + bytes / 4) return apart;
  return bytes >= 3 && strstr(known, name) ? bytes : SIZE_MAX;
}

/* The name of the list that is most alike, or NULL: none is. */
static const char *nearest_name(const char *name, const run_words *names) {
  const char *nearest = NULL;
  size_t least = SIZE_MAX;
  for (size_t i = 0; i < names->count; i++) {
    const size_t apart = name_difference(name, names->items[i]);
    if (apart >= least) continue;
    least = apart;
    nearest = names->items[i];
  }
  return nearest;
}

/* "perf, rocprof or rocprofv3", or "". */
static const char *all_nearest(const char *name, const run_words *all) {
  run_words found = {0}, names = {0};
  run_words_add_all(&names, all);
  for (const char *one; found.count < NEAREST_MAX && (one = nearest_name(name, &names));) {
    run_words_add(&found, one);
    const size_t at = (size_t)run_words_find(&names, one);
    memmove(names.items + at, names.items + at + 1, (--names.count - at) * sizeof *names.items);
  }
  const char *text = "";
  for (size_t i = 0; i < found.count; i++)
    text = run_text("%s%s%s", text,
                    i == 0                 ? ""
                    : i + 1 == found.count ? " or "
                                           : ", ",
                    found.items[i]);
  return text;
}

/* ---- names that are wrong in themselves ---- */

bool run_name_has_control(const char *name) {
  for (; *name; name++)
    if ((unsigned char)*name < 0x20 || *name == 0x7f) return true;
  return false;
}

bool run_name_is_of_tool(const char *name) {
  return *name && *name != '.' && !strchr(name, '/') && !run_name_has_control(name);
}

/* ---- lists for a terminal ---- */

enum { COLUMNS_DEFAULT = 80, COLUMNS_LEAST = 40 };

static size_t terminal_columns_of(int fd) {
  struct winsize size;
  const char *const told = getenv("COLUMNS");
  size_t columns = told ? strtoul(told, NULL, 10) : 0;
  if (columns == 0 && ioctl(fd, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (columns == 0) columns = COLUMNS_DEFAULT;
  return columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns;
}

static run_words all_names(void) {
  size_t count;
  run_words names = {0};
  const run_tool *const tools = run_tools(&count);
  for (size_t i = 0; i < count; i++) run_words_add(&names, tools[i].name);
  return names;
}

static size_t longest_name_bytes(const run_words *names) {
  size_t most = 0;
  for (size_t i = 0; i < names->count; i++)
    if (strlen(names->items[i]) > most) most = strlen(names->items[i]);
  return most;
}

/* Row by row on stderr. */
static void print_columns(const run_words *names, size_t columns) {
  const size_t width = longest_name_bytes(names) + 2;
  const size_t a_row = columns / width > 0 ? columns / width : 1;
  for (size_t i = 0; i < names->count; i += a_row) {
    const char *row = "";
    for (size_t j = i; j < i + a_row && j < names->count; j++)
      row = run_text("%s  %-*s", row, (int)(width - 2), names->items[j]);
    size_t bytes = strlen(row);
    while (bytes > 0 && row[bytes - 1] == ' ') bytes--;
    say("%.*s", (int)bytes, row);
  }
}

void run_tool_names_refuse(const char *name) {
  const run_words names = all_names();
  const char *const nearest = all_nearest(name, &names);
  if (*nearest)
    say("prof run: there is no tool '%s'; did you mean %s? There are:", name, nearest);
  else
    say("prof run: there is no tool '%s'. There are:", name);
  print_columns(&names, terminal_columns_of(STDERR_FILENO));
  say("To add a tool of your own: --tools-config FILE");
  exit(RUN_FAILED);
}

/* Prints the text, wrapped at blanks. The first line begins at column `at`, others at `indent`. */
static void print_wrapped(const char *text, size_t at, size_t indent, size_t columns) {
  for (bool is_first = true; *text;) {
    const size_t bytes = strcspn(text, " ");
    if (!is_first && at + 1 + bytes > columns) {
      printf("\n%*s", (int)indent, "");
      at = indent;
    } else if (!is_first) {
      putchar(' ');
      at++;
    }
    print_text(stdout, text, bytes);
    at += bytes;
    text += bytes + strspn(text + bytes, " ");
    is_first = false;
  }
  putchar('\n');
}

/* What a tool that cannot work needs is in the reason. Most need the program of their own name. */
static const char *tool_description(const run_tool *tool, bool is_here) {
  const char *const text = tool->about ? tool->about : tool->cmd;
  if (!*text) return "a tool of --tools-config";
  if (!is_here || !tool->program || strcmp(tool->program, tool->name) == 0) return text;
  return run_text("%s; needs %s", text, tool->program);
}

/* Devices fail for several reasons, which `prof doctor` has one by one. */
static const char *short_reason(const run_tool *tool, const char *why) {
  if (!(tool->parts & RUN_PART_SAMPLE) || !strstr(why, "; prof doctor says more")) return why;
  return run_text("%.*s; prof doctor says why", (int)strcspn(why, ";"), why);
}

/* The tools that cannot work for the same reason. */
static void print_reason(const char *reason, const run_words *reasons, const run_words *names,
                         size_t columns) {
  const char *text = NULL;
  for (size_t i = 0; i < names->count; i++)
    if (strcmp(reasons->items[i], reason) == 0)
      text = text ? run_text("%s, %s", text, names->items[i]) : names->items[i];
  fputs("  ", stdout);
  print_wrapped(run_text("%s:", text), 2, 2, columns);
  fputs("      ", stdout);
  print_wrapped(reason, 6, 6, columns);
}

void run_tool_names_list(void) {
  static const char is_there[] = "yes ", is_missing[] = "no  ";
  size_t count;
  run_words names = all_names(), missing = {0}, reasons = {0};
  const run_tool *const tools = run_tools(&count);
  const size_t columns = terminal_columns_of(STDOUT_FILENO), width = longest_name_bytes(&names);
  const size_t indent = width + 2 + strlen("HERE  ");
  printf("%-*s  HERE  WHAT IT DOES\n", (int)width, "TOOL");
  for (size_t i = 0; i < count; i++) {
    const char *const why = run_tool_refusal(&tools[i]);
    printf("%-*s  %s  ", (int)width, tools[i].name, why ? is_missing : is_there);
    print_wrapped(tool_description(&tools[i], !why), indent, indent, columns);
    if (!why) continue;
    run_words_add(&missing, tools[i].name);
    run_words_add(&reasons, short_reason(&tools[i], why));
  }
  if (missing.count > 0) printf("\nCannot work here:\n");
  for (size_t i = 0; i < missing.count; i++)
    if (run_words_find(&reasons, reasons.items[i]) == (ptrdiff_t)i)
      print_reason(reasons.items[i], &reasons, &missing, columns);
}

/* ---- keys of contexts ---- */

static const char *const own_keys[] = {"tools", "pre_scripts", "post_scripts",
                                       "encapsulate_script"};

/* Keys of madengine that have no meaning here. */
static const char *const other_keys[] = {"MAD_CONTAINER_IMAGE",
                                         "cleanup_on_failure",
                                         "context",
                                         "credentials",
                                         "data",
                                         "data_config",
                                         "debug",
                                         "deploy",
                                         "deployment_config",
                                         "distributed",
                                         "docker_build_arg",
                                         "docker_cpus",
                                         "docker_env_vars",
                                         "docker_gpus",
                                         "docker_image",
                                         "docker_mounts",
                                         "env_vars",
                                         "gen_sys_env_details",
                                         "generate_sys_env_details",
                                         "gpu_renderDs",
                                         "gpu_vendor",
                                         "gpus_per_node",
                                         "guest_os",
                                         "host_os",
                                         "k8s",
                                         "kubernetes",
                                         "launcher",
                                         "live_output",
                                         "log_error_benign_patterns",
                                         "log_error_pattern_scan",
                                         "log_error_patterns",
                                         "model_args",
                                         "monitor",
                                         "numa_balancing",
                                         "rocenv_mode",
                                         "rocm_path",
                                         "shared_data",
                                         "skip_perf_collection",
                                         "slurm",
                                         "timeout",
                                         "timeout_multiplier",
                                         "vllm"};

static void add_all_names(run_words *to, const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++) run_words_add(to, names[i]);
}

static void warn_of_key(const char *key, const run_words *names, const char *known,
                        const char *from) {
  const bool is_comment = *key == '_'; /* in madengine's examples */
  if (is_comment || run_words_find(names, key) >= 0) return;
  const char *const nearest = nearest_name(key, names);
  if (nearest)
    say("prof run: %s: the key \"%s\" is not known and is ignored; did you mean \"%s\"?", from, key,
        nearest);
  else
    say("prof run: %s: the key \"%s\" is not known and is ignored; known are %s", from, key, known);
}

void run_names_warn_of_key(const char *key, const char *from) {
  run_words names = {0};
  add_all_names(&names, own_keys, sizeof own_keys / sizeof *own_keys);
  add_all_names(&names, other_keys, sizeof other_keys / sizeof *other_keys);
  warn_of_key(key, &names, "tools, pre_scripts, post_scripts and encapsulate_script", from);
}

void run_names_warn_of_tool_key(const char *key, const char *from) {
  static const char *const keys[] = {"cmd", "env_vars", "pre_scripts", "post_scripts"};
  run_words names = {0};
  add_all_names(&names, keys, sizeof keys / sizeof *keys);
  warn_of_key(key, &names, "cmd, env_vars, pre_scripts and post_scripts", from);
}
