/* The output of a program that starts while a capture runs, and joins it (PROF_JOIN). The capture
   belongs to the environment, and has an output of its own. See internal.h. */
#define _GNU_SOURCE

#include <prof/profiler.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/path.h"
#include "../../base/port.h"
#include "../buffer/arena.h"
#include "../buffer/capture_file.h"
#include "internal.h"

static struct {
  char pattern[PROF_I_OUTPUT_ROOM];
  char name[PROF_I_OUTPUT_ROOM]; /* expanded at the first dump; "": not yet */
  pid_t pid;                     /* of the process that `name` is for */
  uint64_t since_realtime_ns;
} joined_output;

void prof_i_joined_output_set(const char *path) {
  if (joined_output.pid == getpid() && strcmp(joined_output.pattern, path) == 0) return;
  snprintf(joined_output.pattern, sizeof joined_output.pattern, "%s", path);
  joined_output.name[0] = '\0';
  joined_output.pid = getpid();
  joined_output.since_realtime_ns = prof_i_port_realtime_ns();
}

bool prof_i_joined_output_is_set(void) { return joined_output.pattern[0] != '\0'; }

static bool was_written_since(const char *path, uint64_t realtime_ns) {
  struct stat is;
  if (stat(path, &is) != 0 || !S_ISREG(is.st_mode)) return false;
  const uint64_t second_ns = 1000000000;
  return (uint64_t)is.st_mtim.tv_sec * second_ns + (uint64_t)is.st_mtim.tv_nsec > realtime_ns;
}

static bool choose_name(void) {
  char host[64] = "host";
  const bool is_child = joined_output.pid != getpid();
  gethostname(host, sizeof host - 1);
  const prof_i_path_words words = {(uint32_t)getpid(), prof_i_identity_rank(), host};
  joined_output.pid = getpid();
  int status = prof_i_expand_path(joined_output.pattern, &words, joined_output.name,
                                  sizeof joined_output.name);
  const bool is_another_s =
      is_child || was_written_since(joined_output.name, joined_output.since_realtime_ns);
  if (status == PROF_OK && is_another_s && !prof_i_path_has(joined_output.pattern, 'p'))
    status = prof_i_output_add_suffix(joined_output.name, sizeof joined_output.name);
  if (status != PROF_OK) joined_output.name[0] = '\0';
  return status == PROF_OK;
}

bool prof_i_joined_output_path(char *to, size_t room) {
  if ((!joined_output.name[0] || joined_output.pid != getpid()) && !choose_name()) return false;
  if (strlen(joined_output.name) >= room) return false;
  memcpy(to, joined_output.name, strlen(joined_output.name) + 1);
  return true;
}
