/* See internal.h. A killed process cannot write when it ended. The header of its capture has room
   for when it was last seen, so that open scopes end there, not at the last event. */
#define _GNU_SOURCE
#include "internal.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "../../src/format/layout.h"

/* False: no whole header of a capture that is still marked as being recorded. */
static bool read_open_header(int fd, prof_i_header *header) {
  return pread(fd, header, sizeof *header, 0) == (ssize_t)sizeof *header &&
         header->magic == PROF_I_MAGIC && header->state == PROF_I_STATE_RECORDING;
}

/* A process that executed another program leaves a capture of each. Only the last one lasted as
   long as the process. */
static bool capture_is_last(const run_captures *captures, const run_capture *capture) {
  for (size_t i = 0; i < captures->count; i++) {
    const run_capture *const other = &captures->items[i];
    if (other != capture && other->pid == capture->pid && other->start_ns > capture->start_ns)
      return false;
  }
  return true;
}

/* The program that the process executed last is that of the capture. */
static bool capture_is_of_program(const run_capture *capture, const run_process *m) {
  return m && m->inner_pid == m->pid && strncmp(capture->process, m->name, RUN_COMM_BYTES - 1) == 0;
}

static void write_last_seen(const char *path, uint32_t pid, uint64_t seen_ns) {
  prof_i_header header;
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  if (read_open_header(fd, &header) && header.pid == pid && header.start_monotonic_ns < seen_ns)
    (void)!pwrite(fd, &seen_ns, sizeof seen_ns, offsetof(prof_i_header, seen_ns));
  close(fd);
}

void run_last_seen_report(const run_captures *captures, const run_process_tree *process_tree,
                          const run_child_end *end) {
  for (size_t i = 0; process_tree && i < captures->count; i++) {
    const run_capture *const capture = &captures->items[i];
    if (capture->is_own || capture->error || capture->is_live || capture->was_clean) continue;
    const run_process *const m = run_process_tree_find(process_tree, (pid_t)capture->pid);
    if (!capture_is_of_program(capture, m) || !capture_is_last(captures, capture)) continue;
    const bool is_ours = end->pid == m->pid && end->ended_ns > m->seen_ns;
    write_last_seen(capture->path, capture->pid, is_ours ? end->ended_ns : m->seen_ns);
  }
}
