/* See rpd.h. The import ends its process on errors, so it is a process of its own. */
#define _GNU_SOURCE
#include "rpd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "compose.h"

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
