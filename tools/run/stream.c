/* See stream.h: the two streams. */
#define _GNU_SOURCE
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 << 10, STREAMS = 2, READS_AT_END = 1 << 12 };

static bool watch_has_lines(const run_stream_watch *watch) {
  return watch->log >= 0 || watch->on_line || watch->is_noise_line;
}

/* Or occupied by main(). */
static bool descriptor_is_closed(int fd) {
  const int flags = fcntl(fd, F_GETFD);
  return flags < 0 || flags & FD_CLOEXEC;
}

static bool are_same_file(int a, int b) {
  struct stat x, y;
  if (descriptor_is_closed(a) || descriptor_is_closed(b) || fstat(a, &x) != 0 || fstat(b, &y) != 0)
    return false;
  return x.st_dev == y.st_dev && x.st_ino == y.st_ino && x.st_rdev == y.st_rdev;
}

static void open_stream_pipe(run_stream *s) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) run_fail("cannot make a pipe: %s", strerror(errno));
  fcntl(ends[1], F_SETPIPE_SZ, 1 << 20); /* fewer wake-ups; it may be refused */
  s->read_end = ends[0];
  s->write_end = ends[1];
}

/* Our stream is shared with others, so it is not made non-blocking itself. */
static void open_own(run_stream *s) {
  struct stat file;
  if (fstat(s->to, &file) != 0) return;
  s->is_file = !S_ISFIFO(file.st_mode) && !S_ISSOCK(file.st_mode) && !isatty(s->to);
  s->is_socket = S_ISSOCK(file.st_mode);
  if (!S_ISFIFO(file.st_mode) && !isatty(s->to)) return;
  const int own =
      open(run_text("/proc/self/fd/%d", s->to), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (own >= 0) s->own = own;
}

/* Each stream keeps its kind. If the two are different terminals, the second is not read. */
static void open_stream(run_streams *streams, run_stream *s) {
  const bool is_terminal = isatty(s->to);
  if (descriptor_is_closed(s->to)) return; /* it stays so */
  if (is_terminal && streams->terminal.outer >= 0) return;
  if (is_terminal) {
    run_terminal_open(&streams->terminal, s->to, !streams->watch->is_stderr_alone);
    s->read_end = streams->terminal.master;
    s->write_end = streams->terminal.slave;
  } else {
    open_stream_pipe(s);
  }
  fstat(s->write_end, &s->file);
  open_own(s);
  s->line = run_make(RUN_LINE_BYTES_MAX, 1);
}

void run_streams_open(run_streams *streams, const run_stream_watch *watch) {
  *streams = (run_streams){.watch = watch, .terminal = {.outer = -1, .master = -1, .slave = -1}};
  streams->is_one = !watch->is_stderr_alone && are_same_file(STDOUT_FILENO, STDERR_FILENO);
  for (int i = 0; i < STREAMS; i++) {
    run_stream *const s = &streams->streams[i];
    *s = (run_stream){.read_end = -1, .write_end = -1, .to = i + 1, .own = i + 1};
    const bool is_ours = (i == 0 && watch->is_stderr_alone) || (i == 1 && streams->is_one);
    if (watch_has_lines(watch) && !is_ours) open_stream(streams, s);
  }
  if (watch_has_lines(watch)) streams->buffer = run_make(BUFFER_BYTES, 1);
}

void run_streams_be_child(const run_streams *streams) {
  if (streams->terminal.is_controlling) dup2(streams->terminal.slave, STDIN_FILENO);
  for (int i = 0; i < STREAMS; i++) {
    const int from = streams->streams[i == 1 && streams->is_one ? 0 : i].write_end;
    if (from >= 0) dup2(from, streams->streams[i].to);
  }
}

void run_streams_be_parent(run_streams *streams) {
  for (int i = 0; i < STREAMS; i++) {
    run_stream *const s = &streams->streams[i];
    if (s->write_end >= 0 && s->write_end != streams->terminal.slave) close(s->write_end);
    s->write_end = -1;
    if (s->read_end >= 0) fcntl(s->read_end, F_SETFL, O_NONBLOCK);
  }
  run_terminal_be_parent(&streams->terminal);
}

void run_streams_tell_keeper(const run_streams *streams, run_keeper_plan *plan) {
  for (int i = 0; i < STREAMS; i++) {
    const run_stream *const s = &streams->streams[i];
    const bool is_pipe = s->write_end >= 0 && s->write_end != streams->terminal.slave;
    plan->streams[i] = (run_keeper_stream){s->read_end, s->own};
    plan->write_ends[i] = is_pipe ? s->write_end : -1;
  }
  plan->log = streams->watch->log;
  plan->terminal = &streams->terminal;
}

nfds_t run_streams_poll(const run_streams *streams, struct pollfd *polls) {
  nfds_t count = 0;
  for (int i = 0; i < STREAMS; i++)
    if (streams->streams[i].read_end >= 0)
      polls[count++] = (struct pollfd){.fd = streams->streams[i].read_end, .events = POLLIN};
  return count;
}

/* Writes a part that does not block, if it can be told. */
static ssize_t stream_write_some(const run_stream *s, const char *at, size_t bytes) {
  if (s->is_file || s->own != s->to) return write(s->own, at, bytes);
  if (s->is_socket) return send(s->to, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (poll(&(struct pollfd){.fd = s->to, .events = POLLOUT}, 1, 0) == 0) {
    errno = EAGAIN;
    return -1;
  }
  return write(s->to, at, bytes < PIPE_BUF ? bytes : PIPE_BUF);
}

/* False: errno has the reason; 0: the user gave up. */
static bool stream_write_all(const run_streams *streams, const run_stream *s, const char *at,
                             size_t bytes) {
  while (bytes > 0) {
    const ssize_t done = stream_write_some(s, at, bytes);
    if (done >= 0) {
      at += done;
      bytes -= (size_t)done;
    } else if (errno == EAGAIN) {
      if (streams->wait_for_descriptor(streams->context, s->own)) continue;
      errno = 0;
      return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

static void note_failure(run_streams *streams, const char *of) {
  if (!streams->failed)
    streams->failed = run_text("%s: %s", of, errno ? strerror(errno) : "nobody read it");
}

/* If our reader has closed, so do we: the workload gets SIGPIPE, as without us. Any other error may
   pass: the workload is not ended for it. */
static void write_own(run_streams *streams, run_stream *s, const char *at, size_t bytes) {
  if (s->is_broken || stream_write_all(streams, s, at, bytes)) return;
  if (errno == EPIPE)
    s->is_broken = true;
  else
    note_failure(streams, s->to == STDOUT_FILENO ? "stdout" : "stderr");
}

static void write_log(run_streams *streams, const char *at, size_t bytes) {
  while (bytes > 0) {
    const ssize_t done = write(streams->watch->log, at, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      note_failure(streams, "the log");
      return;
    }
    at += done;
    bytes -= (size_t)done;
  }
}

/* line: with its line end, if it has one. */
static void report_stream_line(run_streams *streams, run_stream *s, const char *line,
                               size_t bytes) {
  const run_stream_watch *const watch = streams->watch;
  const size_t whole = bytes;
  if (bytes > 0 && line[bytes - 1] == '\n') bytes--;
  if (bytes > 0 && line[bytes - 1] == '\r') bytes--;
  if (watch->on_line)
    watch->on_line(watch->context, s->to, line, bytes);
  else if (!watch->is_noise_line(watch->context, line, bytes))
    write_own(streams, s, line, whole);
}

/* Keeps the begin of an incomplete line. A line that is too long to be noise is forwarded at
   once. */
static void keep_stream_bytes(run_streams *streams, run_stream *s, const char *at, size_t bytes) {
  const size_t room = RUN_LINE_BYTES_MAX - s->line_bytes, taken = bytes < room ? bytes : room;
  if (bytes > room && streams->watch->is_noise_line) {
    write_own(streams, s, s->line, s->line_bytes);
    write_own(streams, s, at, bytes);
    s->line_bytes = 0;
    return;
  }
  memcpy(s->line + s->line_bytes, at, taken);
  s->line_bytes += taken;
}

static void split_stream_lines(run_streams *streams, run_stream *s, const char *at, size_t bytes) {
  const char *const end = at + bytes;
  for (const char *next; at < end && (next = memchr(at, '\n', (size_t)(end - at))) != NULL;
       at = next + 1) {
    const size_t line_bytes = (size_t)(next + 1 - at);
    if (s->line_bytes == 0) {
      report_stream_line(streams, s, at, line_bytes);
      continue;
    }
    keep_stream_bytes(streams, s, at, line_bytes);
    report_stream_line(streams, s, s->line, s->line_bytes);
    s->line_bytes = 0;
  }
  keep_stream_bytes(streams, s, at, (size_t)(end - at));
}

static void close_end(const run_streams *streams, run_stream *s) {
  if (s->read_end != streams->terminal.master) {
    close(s->read_end);
    if (s->is_broken) run_keeper_close(streams->keeper, (int)(s - streams->streams));
  }
  s->read_end = -1;
}

static void stream_pass_on(run_streams *streams, run_stream *s, size_t bytes) {
  const bool is_by_lines = streams->watch->is_noise_line != NULL;
  /* the log first: it has what anybody has seen */
  if (streams->watch->log >= 0) write_log(streams, streams->buffer, bytes);
  if (!is_by_lines) write_own(streams, s, streams->buffer, bytes);
  if (streams->watch->on_line || is_by_lines)
    split_stream_lines(streams, s, streams->buffer, bytes);
}

/* False: there is nothing now. */
static bool stream_take(run_streams *streams, run_stream *s) {
  const ssize_t bytes = read(s->read_end, streams->buffer, BUFFER_BYTES);
  if (bytes < 0 && errno == EINTR) return true;
  if (bytes < 0 && errno == EAGAIN) return false;
  if (bytes > 0) stream_pass_on(streams, s, (size_t)bytes);
  if (bytes > 0 && !s->is_broken) return true;
  close_end(streams, s);
  return false;
}

void run_streams_take(run_streams *streams, int fd) {
  for (int i = 0; i < STREAMS; i++)
    if (streams->streams[i].read_end == fd) stream_take(streams, &streams->streams[i]);
}

void run_streams_finish(run_streams *streams) {
  for (int i = 0; i < STREAMS; i++) {
    run_stream *const s = &streams->streams[i];
    /* output that remaining processes write later is not waited for */
    for (int reads = 0; reads < READS_AT_END && s->read_end >= 0 && stream_take(streams, s);)
      reads++;
    s->has_writer = s->read_end >= 0;
    if (s->has_writer) close_end(streams, s);
    if (s->line_bytes > 0) report_stream_line(streams, s, s->line, s->line_bytes);
    s->line_bytes = 0;
    free(s->line);
    s->line = NULL;
    if (s->own != s->to) close(s->own);
    s->own = s->to;
  }
  if (streams->terminal.outer >= 0) run_terminal_close(&streams->terminal);
  free(streams->buffer);
  streams->buffer = NULL;
}
