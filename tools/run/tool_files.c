/* See internal.h: files that tools write, and what is made of them. */
#define _GNU_SOURCE
#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "output.h"

/* ---- files in the working directory ---- */

/* Each run holds a read lock of the directory. If a write lock is refused, there is another run.
   The first run that ends takes only its own files, the last one all that are left. */

#ifndef F_OFD_GETLK /* before glibc 2.20 */
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#endif

void run_stray_files_begin(run_stray_files *stray_files) {
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
  stray_files->before = run_folder_names(".");
  clock_gettime(CLOCK_REALTIME, &stray_files->begun);
  stray_files->lock = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (stray_files->lock >= 0) fcntl(stray_files->lock, F_OFD_SETLK, &lock);
}

void run_stray_files_end(run_stray_files *stray_files) {
  if (stray_files->lock >= 0) close(stray_files->lock);
  stray_files->lock = -1;
}

static bool stray_file_is_new(const run_stray_files *stray_files, const char *name) {
  return run_words_find(&stray_files->before, name) < 0;
}

/* True: another run that collects such files runs in the directory. */
static bool stray_files_has_rival(const run_stray_files *stray_files) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return stray_files->lock >= 0 && fcntl(stray_files->lock, F_OFD_GETLK, &lock) == 0 &&
         lock.l_type != F_UNLCK;
}

/* The file has the name PID_..., was written since the begin, and the process is of this run. */
static bool stray_file_is_own(const run_stray_files *stray_files, const char *folder,
                              const char *name) {
  char *end;
  struct stat is;
  const long pid = strtol(name, &end, 10);
  if (end == name || *end != '_' || pid <= 0 || !stray_files->process_tree) return false;
  char *const path = run_text("%s/%s", folder, name);
  const bool is_there = stat(path, &is) == 0 && is.st_mtim.tv_sec >= stray_files->begun.tv_sec;
  free(path);
  return is_there && run_process_tree_has(stray_files->process_tree, (pid_t)pid);
}

/* ---- rocprof ---- */

static bool path_is_folder(const char *path) {
  struct stat is;
  return lstat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

static bool folder_has_match(const char *folder, const char *pattern) {
  const run_words names = run_folder_names(folder);
  for (size_t i = 0; i < names.count; i++)
    if (fnmatch(pattern, names.items[i], 0) == 0) return true;
  return false;
}

/* Tables that other programs read under names of their own. */
static const char *const table_kinds[] = {"agent_info",   "domain_stats",  "kernel_stats",
                                          "kernel_trace", "hip_api_trace", "counter_collection"};
enum { TABLES = sizeof table_kinds / sizeof *table_kinds };

/* The folder HOST of rocprofv3, its default: all files are PID_KIND. */
static bool folder_is_of_rocprofv3(const char *folder) {
  static const char *const endings[] = {"csv", "db", "json", "pftrace", "otf2", "txt"};
  const run_words names = run_folder_names(folder);
  for (size_t i = 0; i < names.count; i++) {
    const char *const name = names.items[i], *const dot = strrchr(name, '.');
    const size_t digits = strspn(name, "0123456789");
    bool is_known = false;
    for (size_t e = 0; dot && e < sizeof endings / sizeof *endings; e++)
      is_known |= strcmp(dot + 1, endings[e]) == 0;
    if (digits == 0 || name[digits] != '_' || !is_known) return false;
  }
  return names.count > 0;
}

static bool folder_has_table(const char *folder) {
  bool has = folder_has_match(folder, "*_trace.csv");
  for (size_t i = 0; i < TABLES && !has; i++)
    has = folder_has_match(folder, run_text("*_%s.csv", table_kinds[i]));
  return has;
}

static void copy_file(const char *from, const char *to) {
  if (!run_output_copy(from, to))
    say("prof run: cannot copy '%s' to '%s': %s", from, to, strerror(errno));
}

static void move_file(const char *from, const char *to) {
  if (!run_output_move(from, to))
    say("prof run: cannot move '%s' to '%s': %s", from, to, strerror(errno));
}

/* Copies all *.csv of a folder into a folder of the same name. */
static void copy_tables(const char *from, const char *to) {
  const run_words names = run_folder_names(from);
  mkdir(to, 0777); /* an error shows in copy_file() */
  for (size_t i = 0; i < names.count; i++)
    if (fnmatch("*.csv", names.items[i], 0) == 0)
      copy_file(run_text("%s/%s", from, names.items[i]), run_text("%s/%s", to, names.items[i]));
}

/* Moves the files of processes of this run. */
static void take_own_files(const run_stray_files *stray_files, const char *from, const char *to) {
  const run_words names = run_folder_names(from);
  for (size_t i = 0; i < names.count; i++) {
    if (!stray_file_is_own(stray_files, from, names.items[i])) continue;
    mkdir(to, 0777); /* an error shows in move_file() */
    move_file(run_text("%s/%s", from, names.items[i]), run_text("%s/%s", to, names.items[i]));
  }
  rmdir(from); /* unless another run's are in it */
}

/* Of this run or of another: the folder of a tool, or that of -o. */
static bool path_is_of_a_run(const char *path, const char *name) {
  return fnmatch("*_output", name, 0) == 0 || fnmatch("*_output.[0-9]*", name, 0) == 0 ||
         folder_has_match(path, "run.live.log") || folder_has_match(path, "run.[0-9]*.live.log");
}

/* A folder of rocprofv3 has the host's name: runs share it. */
static void take_folder(const run_stray_files *stray_files, const char *from, const char *name,
                        const char *folder) {
  const char *const path = run_text("%s/%s", from, name);
  if (path_is_of_a_run(path, name)) return;
  const char *const to = run_text("%s/%s", folder, name);
  const bool is_new = stray_file_is_new(stray_files, name);
  const bool is_ours = fnmatch("results*", name, 0) == 0 || fnmatch("rocprofv3-*", name, 0) == 0;
  const bool is_in_folder = path_is_folder(path);
  const bool has_results =
      is_in_folder && (folder_is_of_rocprofv3(path) || folder_has_match(path, "*_results.db"));
  const bool has_tables = is_in_folder && folder_has_table(path);
  if ((has_results || has_tables) && (!is_new || stray_files_has_rival(stray_files)))
    take_own_files(stray_files, path, to);
  else if (is_new && (is_ours || has_results))
    move_file(path, to);
  else if (is_new && has_tables)
    copy_tables(path, to);
}

/* ---- tables under the names that other programs read ---- */

static struct {
  const char *pattern;
  char *found; /* the first by its path, so that it is the same each time */
} file_search;

enum { LEVELS_MAX = 4, OPEN_FOLDERS = 16 };

static int visit_file(const char *path, const struct stat *is, int kind, struct FTW *at) {
  (void)is;
  if (kind == FTW_F && at->level <= LEVELS_MAX &&
      fnmatch(file_search.pattern, path + at->base, 0) == 0 &&
      (!file_search.found || strcmp(path, file_search.found) < 0))
    file_search.found = run_text("%s", path);
  return 0;
}

static void name_tables(const char *folder) {
  for (size_t i = 0; i < TABLES; i++) {
    const char *const to = run_text("%s/rocprofv3_output_%s.csv", folder, table_kinds[i]);
    if (access(to, F_OK) == 0) continue;
    file_search.pattern = run_text("*%s.csv", table_kinds[i]);
    file_search.found = NULL;
    nftw(folder, visit_file, OPEN_FOLDERS, FTW_PHYS);
    if (file_search.found) copy_file(file_search.found, to);
  }
}

void run_rocprof_collect(const char *from, const run_stray_files *stray_files, const char *folder) {
  const run_words now = run_folder_names(from);
  for (size_t i = 0; i < now.count; i++) take_folder(stray_files, from, now.items[i], folder);
  name_tables(folder);
  run_histogram_write(folder);
}

void run_rocprof_move(const char *from, const run_stray_files *stray_files, const char *folder,
                      const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const char *const path = run_text("%s/%s", from, names[i]);
    if (!stray_file_is_new(stray_files, names[i]) || access(path, F_OK) != 0) continue;
    if (stray_files_has_rival(stray_files))
      say("prof run: '%s' stays, since another prof run in this directory may write to it: give "
          "each run a directory of its own",
          path);
    else
      move_file(path, run_text("%s/%s", folder, names[i]));
  }
}

/* ---- databases of rpd and rocm-trace-lite as Chrome traces ---- */

/* The import ends its process on errors, so it is a process of its own. */

/* Runs `prof WORDS`, and keeps the last line that it prints on stderr. True: its status is 0. */
static bool run_prof(char **words, char *line, size_t room) {
  int ends[2], status;
  if (pipe2(ends, O_CLOEXEC) != 0) run_fail("cannot make a pipe: %s", strerror(errno));
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) dup2(null, STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execv(run_own_path(), words);
    _exit(RUN_CANNOT_EXECUTE);
  }
  close(ends[1]);
  FILE *const from = pid > 0 ? fdopen(ends[0], "r") : NULL;
  char text[1024];
  *line = '\0';
  while (from && fgets(text, sizeof text, from)) snprintf(line, room, "%s", text);
  line[strcspn(line, "\n")] = '\0';
  if (from)
    fclose(from);
  else
    close(ends[0]);
  while (pid > 0 && waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return false;
  return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* "prof import: 'x' is empty": the words behind the path. */
static const char *reason_in_log(const char *line, const char *path) {
  const char *const at = strstr(line, path);
  if (at && at[strlen(path)] == '\'') return at + strlen(path) + 2;
  return *line ? line : "prof import has crashed";
}

static void convert_database(const char *database, const char *json) {
  char line[1024];
  char *const capture = run_text("%s.%d.prof", database, (int)getpid());
  char *import[] = {"prof", "import", (char *)database, "-o", capture, NULL};
  char *dump[] = {"prof", "dump", capture, "-o", (char *)json, NULL};
  const bool is_done = run_prof(import, line, sizeof line) && run_prof(dump, line, sizeof line);
  unlink(capture);
  if (!is_done)
    say("prof run: '%s' stays, and there is no trace.json of it: it %s", database,
        reason_in_log(line, database));
}

static const struct {
  const char *tool, *file;
} databases[] = {{"rpd", "trace.rpd"}, {"rocm_trace_lite", "trace.db"}};
enum { DATABASES = sizeof databases / sizeof *databases };

static bool tool_writes_database(const run_tool *tool, size_t database) {
  const char *const name = databases[database].tool;
  return strncmp(tool->name, name, strlen(name)) == 0;
}

bool run_rpd_is_of(const run_tool *tool) {
  for (size_t i = 0; i < DATABASES; i++)
    if (tool_writes_database(tool, i)) return true;
  return false;
}

void run_rpd_convert(const run_tool *tool) {
  const char *const folder = tool->folder;
  char *const json = run_text("%s/trace.json", folder);
  const bool has_json = access(json, F_OK) == 0 || access(run_text("%s.gz", json), F_OK) == 0;
  for (size_t i = 0; i < DATABASES; i++) {
    char *const path = run_text("%s/%s", folder, databases[i].file);
    const bool is_there = access(path, F_OK) == 0;
    if (is_there && !has_json) convert_database(path, json);
    if (!is_there && tool_writes_database(tool, i))
      say("prof run: %s wrote no %s: see its messages", tool->name, databases[i].file);
  }
}

/* ---- uftrace ---- */

/* uftrace.data/task.txt has a line for each program that was executed:
   SESS timestamp=T pid=P sid=S exename="PATH". */

/* What gcc and clang call at the begin of a function: -pg, -mfentry, -finstrument-functions. */
static const char *const hooks[] = {"mcount", "__fentry__", "__cyg_profile_func_enter"};

/* True, too, if it cannot be read. */
static bool file_has_hook(const char *path) {
  if (access(path, R_OK) != 0) return true;
  for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
    if (run_program_mentions(path, hooks[i], strlen(hooks[i]) + 1)) return true;
  return false;
}

/* The programs, without prof itself, which starts the first one. */
static run_words task_programs(char *tasks) {
  static const char mark[] = "exename=\"";
  run_words programs = {0};
  char *state = NULL;
  for (char *line = strtok_r(tasks, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
    char *const name = strncmp(line, "SESS ", 5) == 0 ? strstr(line, mark) : NULL;
    char *const end = name ? strrchr(name, '"') : NULL;
    if (!end || end < name + sizeof mark - 1) continue;
    *end = '\0';
    const char *const path = name + sizeof mark - 1;
    if (strcmp(path, run_own_path()) != 0 && run_words_find(&programs, path) < 0)
      run_words_add(&programs, path);
  }
  return programs;
}

const char *run_uftrace_hint(const char *folder) {
  enum { TASKS_BYTES = 16 << 20, NAMES_MAX = 3 };
  size_t bytes;
  const char *const path = run_text("%s/uftrace.data/task.txt", folder);
  char *const tasks = run_file_read(path, TASKS_BYTES, &bytes);
  if (!tasks) return NULL;
  const run_words programs = task_programs(tasks);
  const char *names = "";
  for (size_t i = 0; i < programs.count; i++) {
    const char *const program = programs.items[i];
    if (file_has_hook(program)) return NULL;
    if (i < NAMES_MAX) names = run_text("%s%s%s", names, i ? ", " : "", run_base_name(program));
  }
  if (programs.count == 0) return NULL;
  return run_text(
      "uftrace has few calls or none: %s%s %s not built with -pg or "
      "-finstrument-functions",
      names, programs.count > NAMES_MAX ? " and others" : "", programs.count == 1 ? "was" : "were");
}
