/* The word that call sites read, and what happens at load: with PROF_LEVEL or PROF_MEMORY set,
   recording starts, and at exit the trace is written. Every user of a scope pulls this object in,
   also from the static library. Without them nothing is taken: one look at the environment. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <prof/memory.h>
#include <prof/profiler.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/error.h"
#include "../base/process.h"
#include "../base/text.h"
#include "../core/buffer/arena.h"
#include "../core/record/mute.h"
#include "../core/session/control.h"
#include "../device/internal.h"
#include "../sampler/internal.h"

static const uint32_t level_off; /* the level before any start */
const uint32_t *prof_i_level_1 = &level_off;

static struct {
  enum { START_NOT_TRIED, START_UNDER_WAY, START_DONE } start_once; /* at the environment */
  int started;    /* by the environment: then exit dumps */
  int has_memory; /* PROF_MEMORY, and it was started */
  bool is_packed; /* PROF_PACK */
} autostart PROF_I_WRITTEN_AT_LOAD;

/* At exit at most two seconds are spent. Of capture converted in one: as JSON, bound by a slow
   disk's 500 MB/s; as .gz, by zlib. An event of memory becomes two in JSON, eleven times the bytes
   of its record. */
enum {
  EXIT_SECONDS = 2,
  PLAIN_BYTES_A_SECOND = 64 << 20,
  GZIP_BYTES_A_SECOND = 6 << 20,
  MEMORY_TAKES = 2
};

/* True when the variable is unset or a number in the range; a bad one is said, and the program runs
   on without a profiler. */
static int read_number(const char *name, unsigned long long low, unsigned long long high,
                       unsigned long long *to) {
  const char *const text = secure_getenv(name);
  if (!text || !*text) return 1;
  char *end;
  errno = 0;
  *to = strtoull(text, &end, 10);
  if (!errno && !*end && text[0] >= '0' && text[0] <= '9' && *to >= low && *to <= high) return 1;
  prof_i_log("%s='%s' is not a number from %llu to %llu; not recording", name, text, low, high);
  return 0;
}

static int read_choice(const char *name, const char *const *words, int count, uint32_t *to) {
  const char *const text = secure_getenv(name);
  if (!text || !*text) return 1;
  for (int i = 0; i < count; i++) {
    if (strcmp(text, words[i]) != 0) continue;
    *to = (uint32_t)i;
    return 1;
  }
  char all[64] = "";
  for (int i = 0; i < count; i++)
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", words[i]);
  prof_i_log("%s='%s' is none of its words (%s); not recording", name, text, all);
  return 0;
}

/* Where the word ends: a backslash keeps the comma behind it. */
static size_t mute_word_bytes(const char *text) {
  size_t at = 0;
  while (text[at] && text[at] != ',') at += text[at] == '\\' && text[at + 1] ? 2 : 1;
  return at;
}

/* A backslash stands for the comma, "@" or backslash behind it; else for itself. Returns the "@"
   before the category, or NULL. */
static char *unescape_mute_word(char *word) {
  char *to = word, *category = NULL;
  for (const char *from = word; *from; from++) {
    const bool is_escape = from[0] == '\\' && from[1] && strchr(",@\\", from[1]);
    if (is_escape)
      from++;
    else if (*from == '@' && !category)
      category = to;
    *to++ = *from;
  }
  *to = '\0';
  return category;
}

/* PROF_MUTE: "name", "name@category" or "@category", by commas; blanks around them do not count. */
static int mute_all(void) {
  const char *text = secure_getenv("PROF_MUTE");
  for (; text && *text; text += *text == ',') {
    char word[256];
    const char *const blanks = " \t";
    const size_t whole = mute_word_bytes(text), before = strspn(text, blanks);
    size_t bytes = before < whole ? whole - before : 0;
    while (bytes > 0 && strchr(blanks, text[before + bytes - 1])) bytes--;
    snprintf(word, sizeof word, "%.*s", (int)(bytes < sizeof word ? bytes : sizeof word - 1),
             text + before);
    char *const category = unescape_mute_word(word);
    if (category) *category = '\0';
    const int status = bytes == 0 ? PROF_E_INVALID
                                  : prof_mute(*word ? word : NULL,
                                              category && category[1] ? category + 1 : NULL, 1);
    if (status != PROF_OK) {
      if (category) *category = '@';
      prof_i_log("PROF_MUTE='%s': '%s' is %s; not recording", secure_getenv("PROF_MUTE"), word,
                 status == PROF_E_TOO_LARGE ? "one too many"
                 : bytes == 0 || bytes == 1 ? "empty"
                                            : "longer than 127 bytes");
      return 0;
    }
    text += whole;
  }
  return 1;
}

/* False: a variable is bad, or none asks for a capture. options->level 0: only memory. */
static int read_options(prof_options *options, unsigned long long *memory) {
  static const char *const policies[] = {"default", "keep", "ring", "stream"};
  static const char *const clocks[] = {"default", "tsc", "monotonic"};
  static const char *const actions[] = {"default", "level", "mute"};
  static const char *const devices[] = {"default", "scopes", "records", "memory"};
  unsigned long long level = 0, cap = 0, helper = 0, permille = 0, events = 0, least = 0, pack = 0;
  if (!read_number("PROF_LEVEL", 0, 2, &level) || !read_number("PROF_MEMORY", 0, 1, memory) ||
      (!level && !*memory))
    return 0;
  /* libprof_memory.so's own: it reads it again */
  if (!read_number("PROF_MEMORY_MIN", 0, 1ull << 40, &least)) return 0;
  if (!read_number("PROF_PACK", 0, 1, &pack)) return 0;
  if (!read_number("PROF_CAP_BYTES", 1 << 20, 1ull << 40, &cap) ||
      !read_number("PROF_HELPER_THREAD", 0, 1, &helper))
    return 0;
  if (!read_choice("PROF_POLICY", policies, 4, &options->policy) ||
      !read_choice("PROF_CLOCK", clocks, 3, &options->clock))
    return 0;
  if (!read_number("PROF_BUDGET_PERMILLE", 0, 1000, &permille) ||
      !read_number("PROF_BUDGET_EVENTS", 0, UINT64_MAX, &events))
    return 0;
  if (!read_choice("PROF_BUDGET_ACTION", actions, 3, &options->budget_action) ||
      !read_choice("PROF_DEVICES", devices, 4, &options->devices) || !mute_all())
    return 0;
  options->budget_permille = (uint32_t)permille;
  options->budget_events = events;
  options->level = (uint32_t)level;
  options->cap_bytes = cap;
  options->helper_thread = (uint32_t)helper;
  options->path = secure_getenv("PROF_OUTPUT");
  if (options->path && !*options->path) options->path = NULL;
  autostart.is_packed = pack != 0 && options->path && prof_i_path_ends_in(options->path, ".prof");
  if (pack && !autostart.is_packed)
    prof_i_log("PROF_PACK=1 has no effect: PROF_OUTPUT is not FILE.prof");
  if (options->policy != PROF_POLICY_STREAM || options->path) return 1;
  prof_i_log("PROF_POLICY=stream needs a file: set PROF_OUTPUT too; not recording");
  return 0;
}

/* PROF_JOIN: `prof run` records a program that may also start a capture of its own. */
static void join_by_environment(void) {
  const char *const text = secure_getenv("PROF_JOIN");
  if (text && strcmp(text, "1") == 0 && prof_i_duplicate_is_in_force()) prof_i_control_join(true);
}

/* Defined by the command prof alone, which never records itself: the variables are for programs. */
extern const char prof_i_is_command __attribute__((weak, visibility("default")));

/* Most programs have none of prof's variables. Compared by hand: a call and a string would each
   touch one more page while prof is loaded. */
static PROF_I_COLD bool has_prof_variable(void) {
  for (char **at = environ; at && *at; at++) {
    const char *const name = *at;
    if (name[0] == 'P' && name[1] == 'R' && name[2] == 'O' && name[3] == 'F' && name[4] == '_')
      return true;
  }
  return false;
}

/* "0.1": seconds, with a point in any locale. False: it is no such number, or more than a day. */
static bool read_sample_seconds(const char *text, uint64_t *ns_out) {
  const uint64_t second_ns = 1000000000, longest_ns = 86400 * second_ns;
  uint64_t ns = 0, digit_ns = second_ns;
  bool is_behind = false;
  if (!isdigit((unsigned char)*text)) return false;
  for (; *text; text++) {
    if (*text == '.' && !is_behind) {
      is_behind = true;
      continue;
    }
    if (!isdigit((unsigned char)*text) || ns > longest_ns) return false;
    const uint64_t digit = (uint64_t)(*text - '0');
    if (is_behind)
      ns += digit * (digit_ns /= 10);
    else
      ns = ns * 10 + digit * second_ns;
  }
  *ns_out = ns;
  return ns > 0 && ns <= longest_ns;
}

static bool read_sample_mode(const char *text, uint32_t *mode_out) {
  static const char *const modes[] = {"all", "power", "vram", "utilisation", "clock"};
  for (uint32_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(text, modes[i]) != 0) continue;
    *mode_out = i;
    return true;
  }
  return false;
}

static const char *read_sample_variable(const char *name) {
  const char *const text = secure_getenv(name);
  return text && *text ? text : NULL;
}

/* PROF_SAMPLE and the other variables of the sampler. An error is logged, and the program runs on
   without it. Recording has begun. */
static void start_sampler(void) {
  prof_sampler_options options = {.size = sizeof options,
                                  .devices = read_sample_variable("PROF_SAMPLE_DEVICES"),
                                  .csv_path = read_sample_variable("PROF_SAMPLE_CSV")};
  const char *const seconds = read_sample_variable("PROF_SAMPLE"), *const mode =
                                                                       read_sample_variable(
                                                                           "PROF_SAMPLE_MODE");
  if (!seconds) return;
  if (!read_sample_seconds(seconds, &options.interval_ns)) {
    prof_i_log("PROF_SAMPLE='%s' is no number of seconds up to a day (0.1); not sampling", seconds);
  } else if (mode && !read_sample_mode(mode, &options.mode)) {
    prof_i_log(
        "PROF_SAMPLE_MODE='%s' is none of its words (all, power, vram, utilisation, clock); not "
        "sampling",
        mode);
  } else if (prof_i_sampler_begin(&options) != PROF_OK) {
    prof_i_log("PROF_SAMPLE: %s; not sampling", prof_last_error());
  }
}

static PROF_I_COLD void start_by_environment(void) {
  if (!has_prof_variable() || &prof_i_is_command) return;
  unsigned long long memory = 0;
  prof_options options = {.size = sizeof options};
  join_by_environment();
  /* the copy that is in force starts itself */
  if ((!secure_getenv("PROF_LEVEL") && !secure_getenv("PROF_MEMORY")) ||
      !prof_i_duplicate_is_in_force())
    return;
  if (!read_options(&options, &memory)) return;
  const char *const starter = options.level ? "PROF_LEVEL" : "PROF_MEMORY";
  const int status = prof_i_control_start_environment(&options, starter);
  const char *const variable = status == PROF_E_UNSUPPORTED ? "PROF_CLOCK"
                               : options.path               ? "PROF_OUTPUT"
                                                            : starter;
  if (status != PROF_OK) {
    prof_i_log("%s: %s: %s; not recording", variable, prof_status_text(status), prof_last_error());
    return;
  }
  if (prof_i_the_arena.is_cap_cut) prof_i_log("%s: %s", starter, prof_i_the_arena.reason);
  autostart.started = options.path != NULL;
  autostart.has_memory = memory != 0;
  start_sampler();
}

/* Once; libprof_memory.so may be before on_load(), and comes in between, when the start itself
   allocates. */
static void start_once(void) {
  if (autostart.start_once != START_NOT_TRIED) return;
  autostart.start_once = START_UNDER_WAY;
  start_by_environment();
  autostart.start_once = START_DONE;
}

static void __attribute__((constructor)) on_load(void) {
  prof_i_collector_prepare();
  start_once();
}

/* A program that was written for prof may write its capture by itself; the others, for which
   libprof_memory.so is there, do not. So it is said here alone. PROF_RUN: prof's Python package
   runs a script of `prof run` in this process, and starts and writes itself. */
int prof_i_start_early(void) {
  start_once();
  if (autostart.start_once == START_UNDER_WAY) return -1;
  if (autostart.has_memory && !autostart.started && !secure_getenv("PROF_RUN"))
    prof_i_log(
        "PROF_MEMORY: malloc() is recorded, but nothing will be written, unless the program calls "
        "prof_dump(): set PROF_OUTPUT=FILE.prof, too");
  return autostart.has_memory;
}

/* A misspelt name mutes nothing, and the trace does not show why. */
static void report_unfit_mutes(void) {
  char names[512];
  if (secure_getenv("PROF_MUTE") && prof_i_mute_list_unfit(names, sizeof names))
    prof_i_log("PROF_MUTE: no scope was named %s", names);
}

static void report_no_capture(void) {
  char why[512];
  prof_i_control_lock();
  prof_i_control_no_capture_reason(why, sizeof why);
  prof_i_control_unlock();
  if (why[0]) prof_i_log("PROF_OUTPUT: there is no capture: %s", why);
}

/* `prof run` has a file for each pid, and pids are not unique: each PID namespace has a 1. Then our
   capture keeps its first name, which prof run finds, too. */
static bool has_other_with_our_pid(const char *output) {
  const char *const joins = secure_getenv("PROF_JOIN");
  return joins && strcmp(joins, "1") == 0 && prof_i_the_arena.is_file && prof_i_the_arena.path[0] &&
         access(output, F_OK) == 0;
}

/* False: the capture is kept plain. */
static bool dump_packed(const char *output, uint64_t bytes, bool is_large) {
  static const prof_dump_options packed = {.size = sizeof packed, .format = PROF_FORMAT_PACKED};
  if (is_large)
    prof_i_log(
        "PROF_PACK: the capture has %llu MiB, too many to pack at exit; to pack it: prof "
        "dump %s -o %s --pack",
        (unsigned long long)(bytes >> 20), output, output);
  else if (prof_dump_with(NULL, &packed) == PROF_OK)
    return true;
  else
    prof_i_log("PROF_PACK: %s: %s; the capture is not packed", output, prof_last_error());
  return false;
}

static void write_trace(void) {
  char output[PROF_I_PATH_BYTES];
  prof_i_process_is_own(); /* a child without handlers has no capture of its own */
  if (autostart.started) prof_i_control_join(false); /* the output is the environment's */
  if (autostart.started && !prof_i_the_arena.base) report_no_capture();
  /* the program may have started otherwise since */
  if (!autostart.started || !prof_i_the_arena.base || !prof_i_output_path(output, sizeof output))
    return;
  prof_i_control_end_process();
  report_unfit_mutes();
  const uint64_t bytes = prof_i_arena_readable_bytes();
  const char *const ending = strrchr(output, '.');
  const uint64_t plain_rate =
      ending && strcmp(ending, ".gz") == 0 ? GZIP_BYTES_A_SECOND : PLAIN_BYTES_A_SECOND;
  const uint64_t rate = autostart.has_memory ? plain_rate / MEMORY_TAKES : plain_rate;
  const bool is_large = prof_i_the_arena.is_file && bytes > EXIT_SECONDS * rate,
             is_capture = ending && strcmp(ending, ".prof") == 0;
  if (is_capture && has_other_with_our_pid(output)) return;
  if (is_large && !prof_i_the_arena.path[0]) {
    prof_i_log("the capture has %llu MiB, and the program has dumped it: %s is not written at exit",
               (unsigned long long)(bytes >> 20), output);
    return;
  }
  if (is_large && !is_capture) {
    prof_i_log("the capture has %llu MiB; to convert it: prof dump %s -o %s",
               (unsigned long long)(bytes >> 20), prof_i_the_arena.path, output);
    return;
  }
  if (autostart.is_packed && dump_packed(output, bytes, is_large)) return;
  const int status = is_large ? prof_i_capture_rename(output) : prof_dump(NULL);
  if (status != PROF_OK && status != PROF_E_CHECK)
    prof_i_log("PROF_OUTPUT: %s: %s%s%s", prof_status_text(status), prof_last_error(),
               prof_i_the_arena.path[0] ? "; the capture is " : "", prof_i_the_arena.path);
}

/* exit() of a signal handler that came while its thread was inside prof: what that had, a lock or
   half a file, nobody will give back. */
static void report_interrupted(void) {
  if (autostart.started)
    prof_i_log(
        "PROF_OUTPUT: exit() was called in a signal handler that interrupted a call of prof: the "
        "trace is not written%s%s",
        prof_i_the_arena.path[0] ? "; the capture is " : "", prof_i_the_arena.path);
}

static void __attribute__((destructor)) on_unload(void) {
  if (prof_i_thread_is_interrupted()) {
    report_interrupted();
    return;
  }
  write_trace();
  if (prof_i_duplicate_can_unload()) prof_i_control_unload();
}
