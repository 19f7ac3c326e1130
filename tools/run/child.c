/* See child.h. The workload runs in its own process group, as under a shell with job
   control: a signal reaches all of it, and no process of our caller. */
#define _GNU_SOURCE
#include "child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "process_tree.h"
#include "stream.h"

/* ---- our streams, as our caller gave them to us, and to others ---- */

enum { STREAMS = 3 };

typedef struct inherited_streams {
  int flags[STREAMS]; /* before the workload; -1: it is not to be restored */
} inherited_streams;

static void inherited_take(inherited_streams *streams) {
  for (int fd = 0; fd < STREAMS; fd++) streams->flags[fd] = fcntl(fd, F_GETFL);
}

/* The workload may have made them non-blocking, for all processes that share them. */
static void inherited_restore(const inherited_streams *streams) {
  const int *const flags = streams->flags;
  for (int fd = 0; fd < STREAMS; fd++)
    if (flags[fd] >= 0 && fcntl(fd, F_GETFL) != flags[fd]) fcntl(fd, F_SETFL, flags[fd]);
}

bool run_input_release(void) {
  struct stat file;
  if (fstat(STDIN_FILENO, &file) != 0) return false;
  if (!S_ISFIFO(file.st_mode) && !S_ISSOCK(file.st_mode)) return false;
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) return false;
  dup2(null, STDIN_FILENO);
  close(null);
  return true;
}

/* ---- processes that a workload leaves behind ---- */

/* Scans /proc: no call lists the members of a process group, or the processes that have a file
   open. */

/* Which processes are meant: of the group, or with one of the files open. */
typedef struct leftovers {
  pid_t group;
  pid_t except; /* not this one, nor ourselves */
  struct stat files[2];
  size_t file_count;
} leftovers;

/* The group by /proc/PID/stat: "PID (NAME) STATE PARENT GROUP ..."; NAME may hold anything. */
static bool stat_is_of_group(const char *stat, pid_t group) {
  const char *const behind = strrchr(stat, ')');
  if (!behind || strlen(behind) < 4) return false;
  const char state = behind[2];
  char *at;
  (void)strtol(behind + 3, &at, 10); /* the parent */
  return strtol(at, NULL, 10) == group && state != 'Z' && state != 'X';
}

static bool file_is_searched(const leftovers *left, const struct stat *file) {
  for (size_t i = 0; i < left->file_count; i++)
    if (left->files[i].st_dev == file->st_dev && left->files[i].st_ino == file->st_ino) return true;
  return false;
}

static bool process_has_file_open(const char *process, const leftovers *left) {
  DIR *const all = opendir(run_text("/proc/%s/fd", process));
  bool is_found = false;
  struct stat file;
  if (!all) return false;
  for (struct dirent *entry; !is_found && (entry = readdir(all)) != NULL;)
    is_found = fstatat(dirfd(all), entry->d_name, &file, 0) == 0 && file_is_searched(left, &file);
  closedir(all);
  return is_found;
}

static bool process_is_leftover(const char *process, const char *stat, const leftovers *left) {
  const pid_t pid = (pid_t)strtol(process, NULL, 10);
  if (pid == getpid() || pid == left->except) return false;
  return stat_is_of_group(stat, left->group) ||
         (left->file_count > 0 && process_has_file_open(process, left));
}

/* Adds "NAME (PID)" of each. */
static void find_leftovers(const leftovers *left, run_words *to) {
  DIR *const all = opendir("/proc");
  if (!all) return;
  for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
    if (entry->d_name[strspn(entry->d_name, "0123456789")] != '\0') continue;
    size_t bytes;
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
    char *const stat = run_file_read(path, 4096, &bytes);
    if (!stat) continue; /* it has ended */
    const char *const name = strchr(stat, '('), *const end = strrchr(stat, ')');
    if (name && end && process_is_leftover(entry->d_name, stat, left))
      run_words_add(to, run_text("%.*s (%s)", (int)(end - name - 1), name + 1, entry->d_name));
    free(stat);
  }
  closedir(all);
}

/* ---- the process ---- */

typedef struct workload_child {
  pid_t pid;
  run_streams streams;
  int terminal;        /* which we gave to the group, or -1 */
  bool wants_terminal; /* the group gets the terminal when we are in the foreground */
  run_keeper keeper;
  int orphan; /* a pidfd of a workload whose keeper was killed, or -1 */
  bool has_ended, is_given_up, is_stopped;
  int status;
  double begun;
  inherited_streams inherited;
  run_stream_watch passing; /* after a fault of ours: nothing reads its output */
} workload_child;

static workload_child *running; /* until its end was taken, or NULL */

/* What the new process does. */
typedef struct child_exec_context {
  const workload_child *workload_child;
  const run_command *command;
  int (*run)(void *context); /* instead of a command, or NULL */
  void *context;
} child_exec_context;

static double now_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* In the new process. */
static void execute_child(void *context) {
  const child_exec_context *const b = context;
  int status;
  run_streams_be_child(&b->workload_child->streams);
  run_signals_be_child();
  if (b->run) {
    status = b->run(b->context);
  } else {
    for (size_t i = 0; i < b->command->variables.count; i++)
      run_export(b->command->variables.items[i]);
    status = run_execute(b->command->words.items);
  }
  fflush(NULL);
  _exit(status);
}

/* A child of ours. */
static bool start_directly(workload_child *c, child_exec_context *b) {
  c->wants_terminal = run_terminal_is_for_us_alone();
  c->terminal = c->wants_terminal ? run_terminal_own() : -1;
  c->pid = fork();
  if (c->pid < 0) return false;
  if (c->pid == 0) {
    setpgid(0, 0);
    if (c->terminal >= 0) tcsetpgrp(c->terminal, getpid());
    execute_child(b);
  }
  setpgid(c->pid, c->pid); /* both processes call this: the order is not known */
  return true;
}

/* A child of the keeper, on a pty. */
static bool start_on_terminal(workload_child *c) {
  run_news news;
  ssize_t bytes;
  while ((bytes = read(c->keeper.news, &news, sizeof news)) < 0 && errno == EINTR) continue;
  if (bytes != (ssize_t)sizeof news || news.pid <= 0) return false;
  c->pid = news.pid;
  fcntl(c->keeper.news, F_SETFL, O_NONBLOCK);
  return true;
}

static void report_no_keeper(void) {
  say("prof run: there is no second process that passes the output on, so that if prof run is "
      "killed, its program is, too: %s",
      strerror(errno));
}

static bool start_child(workload_child *c, child_exec_context *b) {
  run_keeper_plan plan = {.execute_child = execute_child, .context = b};
  const bool is_on_terminal = c->streams.terminal.is_controlling;
  fflush(NULL); /* nothing is printed twice */
  run_terminal_be_raw(&c->streams.terminal);
  /* the keeper is first: we may be killed at once, and the workload then needs it */
  bool has_keeper = false;
  if (c->streams.buffer) {
    run_streams_tell_keeper(&c->streams, &plan);
    has_keeper = run_keeper_start(&c->keeper, &plan);
    if (!has_keeper && !is_on_terminal) report_no_keeper();
  }
  bool is_started = is_on_terminal ? has_keeper && start_on_terminal(c) : start_directly(c, b);
  if (!is_started && has_keeper && !is_on_terminal) { /* the number of processes is limited */
    report_no_keeper();
    run_keeper_end(&c->keeper);
    is_started = start_directly(c, b);
  }
  run_streams_be_parent(&c->streams);
  if (is_started && c->streams.watch->is_last && run_input_release())
    c->inherited.flags[STDIN_FILENO] = -1;
  if (!is_started) say("prof run: cannot make a process: %s", strerror(errno));
  return is_started;
}

/* ---- until it ends ---- */

/* Without a pty the group has our terminal while we are in the foreground. */
static bool give_terminal(workload_child *c) {
  const int terminal = run_terminal_own();
  if (terminal < 0 || tcsetpgrp(terminal, c->pid) != 0) return false;
  c->terminal = terminal;
  return true;
}

static void take_terminal_back(const workload_child *c) {
  if (c->terminal >= 0 && tcgetpgrp(c->terminal) == c->pid) tcsetpgrp(c->terminal, getpgrp());
}

/* After a stop, or when we have come to the foreground. */
static void child_continue(workload_child *c) {
  run_terminal *const terminal = &c->streams.terminal;
  if (terminal->outer >= 0) run_terminal_resize(terminal);
  run_terminal_be_raw(terminal);
  if (c->wants_terminal && !terminal->is_controlling) (void)give_terminal(c);
  c->is_stopped = false;
  kill(-c->pid, SIGCONT);
}

/* We stop as well, so that our shell has the terminal, and until it continues us. A workload that
   asked for the terminal gets it at once if we are in the foreground. */
static void stop_with_child(workload_child *c, int number) {
  run_terminal *const terminal = &c->streams.terminal;
  const bool is_asking = number == SIGTTIN || number == SIGTTOU;
  c->is_stopped = true;
  if (!run_terminal_is_there()) { /* who stopped it can continue it */
    if (is_asking) run_terminal_tell_refused();
    return;
  }
  if (is_asking) c->wants_terminal = true;
  const bool is_for_ours = is_asking && !terminal->is_controlling,
             is_background = is_for_ours && run_terminal_own() < 0;
  if (is_for_ours && !is_background) {
    if (give_terminal(c)) return child_continue(c);
    run_terminal_tell_refused();
  }
  run_terminal_restore(terminal);
  take_terminal_back(c);
  run_signals_stop_us(number != SIGSTOP, is_background);
  if (!is_asking) child_continue(c);
}

static void take_status(workload_child *c, int status) {
  if (WIFSTOPPED(status)) {
    stop_with_child(c, WSTOPSIG(status));
    return;
  }
  const bool had_terminal = c->streams.terminal.is_controlling || c->terminal >= 0;
  c->has_ended = true;
  c->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  /* also the status of a shell around it */
  if (had_terminal && (c->status == 128 + SIGINT || c->status == 128 + SIGQUIT))
    run_signals_note_terminal(c->status - 128);
}

/* As PID 1 of a container we are the parent of each orphan, too. */
static void reap_children(workload_child *c) {
  int status;
  for (pid_t pid; !c->has_ended && (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;)
    if (pid == c->pid) take_status(c, status);
}

/* After the workload's end we may still wait for the reader of our output. */
static void take_late_signal(workload_child *c, int number) {
  if (number == SIGTSTP)
    run_signals_stop_us(false, false);
  else if (run_signals_is_end(number))
    c->is_given_up = true;
}

/* The kernel tells the workload if the pty is its controlling terminal. */
static void send_terminal_size(const workload_child *c) {
  const run_terminal *const terminal = &c->streams.terminal;
  if (terminal->outer >= 0) run_terminal_resize(terminal);
  if (!terminal->is_controlling) kill(-c->pid, SIGWINCH);
}

/* A stopped program gets what asks for its end when it is continued. */
static void pass_signal(workload_child *c, int number) {
  if (!run_process_passes_signals(c->pid) || kill(c->pid, number) != 0) kill(-c->pid, number);
  if (!c->is_stopped || !run_signals_is_end(number)) return;
  c->is_stopped = false;
  kill(-c->pid, SIGCONT);
}

static void take_signals(workload_child *c) {
  for (int number; (number = run_signals_next()) != 0;) {
    if (number == SIGCHLD)
      reap_children(c);
    else if (c->has_ended)
      take_late_signal(c, number);
    else if (number == SIGCONT)
      child_continue(c);
    else if (number == SIGWINCH)
      send_terminal_size(c);
    else
      pass_signal(c, number);
  }
}

/* The keeper was killed. The kernel has sent SIGHUP to the workload, which may ignore it. */
static void lose_keeper(workload_child *c) {
  close(c->keeper.news);
  c->keeper.news = -1;
  c->status = RUN_FAILED;
#ifdef SYS_pidfd_open
  c->orphan = (int)syscall(SYS_pidfd_open, c->pid, 0);
#endif
  c->has_ended = c->orphan < 0;
  say("prof run: the process that waits for the workload was killed; how it ends is not known");
}

static void read_keeper_news(workload_child *c) {
  run_news news;
  const ssize_t bytes = read(c->keeper.news, &news, sizeof news);
  if (bytes == (ssize_t)sizeof news)
    take_status(c, news.status);
  else if (bytes >= 0 || (errno != EAGAIN && errno != EINTR))
    lose_keeper(c);
}

/* ---- waiting ---- */

enum { POLL_SIGNALS, POLL_NEWS, POLL_ORPHAN, POLL_TYPED, POLL_FIXED };

/* Fills what is polled at any time. Returns for how long: a shell's fg does not tell us. */
static int begin_polls(workload_child *c, struct pollfd polls[POLL_FIXED]) {
  enum { FOREGROUND_MS = 200 };
  run_terminal *const terminal = &c->streams.terminal;
  const bool has_input = terminal->has_input;
  if (has_input && !terminal->is_raw && !c->has_ended && run_terminal_is_ours(terminal)) {
    run_terminal_resize(terminal);
    run_terminal_be_raw(terminal);
  }
  const bool is_typed = has_input && terminal->is_raw;
  const int fds[POLL_FIXED] = {[POLL_SIGNALS] = run_signals_fd(),
                               [POLL_NEWS] = c->has_ended ? -1 : c->keeper.news,
                               [POLL_ORPHAN] = c->has_ended ? -1 : c->orphan,
                               [POLL_TYPED] = is_typed ? STDIN_FILENO : -1};
  for (int i = 0; i < POLL_FIXED; i++) polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
  return has_input && !is_typed ? FOREGROUND_MS : -1;
}

static void end_polls(workload_child *c, const struct pollfd polls[POLL_FIXED]) {
  if (polls[POLL_TYPED].revents) run_terminal_type(&c->streams.terminal);
  if (polls[POLL_SIGNALS].revents) take_signals(c);
  if (polls[POLL_NEWS].revents && !c->has_ended) read_keeper_news(c);
  if (polls[POLL_ORPHAN].revents) c->has_ended = true;
}

/* poll() may fail for lack of memory. Then we check all descriptors often. Typed input waits,
   because reading it may block. */
static int handle_polls(const workload_child *c, struct pollfd *polls, nfds_t count) {
  const struct timespec nap = {.tv_nsec = 5000000};
  nanosleep(&nap, NULL);
  for (nfds_t i = 0; i < count; i++) polls[i].revents = polls[i].fd >= 0 ? POLLIN : 0;
  polls[POLL_TYPED].revents = 0;
  if (polls[POLL_ORPHAN].fd >= 0 && kill(c->pid, 0) == 0) polls[POLL_ORPHAN].revents = 0;
  return 1;
}

/* poll() without those that are closed: it refuses more entries than a process may have files. */
static int poll_open(const workload_child *c, struct pollfd *polls, nfds_t count, int timeout_ms) {
  struct pollfd open[POLL_FIXED + 3];
  nfds_t used = 0;
  for (nfds_t i = 0; i < count; i++)
    if (polls[i].fd >= 0) open[used++] = polls[i];
  const int ready = poll(open, used, timeout_ms);
  if (ready < 0 && errno != EINTR) return handle_polls(c, polls, count);
  for (nfds_t i = count; ready > 0 && i-- > 0;)
    if (polls[i].fd >= 0) polls[i].revents = open[--used].revents;
  return ready;
}

/* See run_streams. */
static bool wait_for_descriptor(void *context, int fd) {
  workload_child *const c = context;
  struct pollfd polls[POLL_FIXED + 1];
  const int timeout_ms = begin_polls(c, polls);
  polls[POLL_FIXED] = (struct pollfd){.fd = fd, .events = POLLOUT};
  if (poll_open(c, polls, POLL_FIXED + 1, timeout_ms) > 0) end_polls(c, polls);
  return !c->is_given_up;
}

static void child_loop(workload_child *c) {
  while (!c->has_ended) {
    struct pollfd polls[POLL_FIXED + 3];
    const int timeout_ms = begin_polls(c, polls);
    const run_stream_watch *const watch = c->streams.watch;
    polls[POLL_FIXED] = (struct pollfd){.fd = watch->extra, .events = POLLIN};
    const nfds_t count = POLL_FIXED + 1 + run_streams_poll(&c->streams, polls + POLL_FIXED + 1);
    if (poll_open(c, polls, count, timeout_ms) < 0) continue;
    for (nfds_t i = POLL_FIXED + 1; i < count; i++)
      if (polls[i].revents) run_streams_take(&c->streams, polls[i].fd);
    if (polls[POLL_FIXED].revents) watch->on_extra(watch->context);
    end_polls(c, polls);
  }
}

/* ---- the whole ---- */

static void find_left(const workload_child *c, run_words *to) {
  leftovers left = {.group = c->pid, .except = c->keeper.pid};
  for (int i = 0; i < 2; i++)
    if (c->streams.streams[i].has_writer)
      left.files[left.file_count++] = c->streams.streams[i].file;
  find_leftovers(&left, to);
}

/* Takes what is left of its output, and releases all. */
static void child_finish(workload_child *c, run_child_end *end) {
  c->has_ended = true;
  run_streams_finish(&c->streams);
  if (c->pid > 0) find_left(c, &end->left);
  if (end->left.count == 0) inherited_restore(&c->inherited);
  if (end->left.count > 0)
    run_keeper_leave(&c->keeper);
  else
    run_keeper_end(&c->keeper);
  if (c->orphan >= 0) close(c->orphan);
  c->orphan = -1;
  end->failed = c->streams.failed;
  running = NULL;
  run_signals_release();
}

static void wait_for_end(workload_child *c, run_child_end *end) {
  child_loop(c);
  end->status = c->status;
  const double now = now_seconds();
  end->seconds = now - c->begun;
  end->pid = c->pid;
  end->ended_ns = (uint64_t)(now * 1e9);
  take_terminal_back(c);
}

static run_child_end run_workload_child(child_exec_context b, const run_stream_watch *watch) {
  workload_child c = {.terminal = -1, .orphan = -1, .keeper = {.pid = -1, .news = -1, .alive = -1}};
  run_child_end end = {.status = RUN_FAILED};
  b.workload_child = &c;
  run_signals_hold();
  inherited_take(&c.inherited);
  run_streams_open(&c.streams, watch);
  c.streams.keeper = &c.keeper;
  c.streams.wait_for_descriptor = wait_for_descriptor;
  c.streams.context = &c;
  c.begun = now_seconds();
  if (start_child(&c, &b)) {
    running = &c;
    wait_for_end(&c, &end);
  }
  child_finish(&c, &end);
  return end;
}

bool run_child_is_running(void) { return running != NULL; }

/* The frame of run_workload_child() still exists: the fault came inside of it. */
void run_child_go_on(run_child_end *end) {
  workload_child *const c = running;
  if (!c) return;
  running = NULL; /* a second fault ends us */
  c->passing = *c->streams.watch;
  c->passing.on_line = NULL;
  c->passing.extra = -1;
  c->streams.watch = &c->passing;
  wait_for_end(c, end);
  child_finish(c, end);
}

run_child_end run_child(const run_command *command, const run_stream_watch *watch) {
  return run_workload_child((child_exec_context){.command = command}, watch);
}

int run_child_call(int (*run)(void *context), void *context) {
  const run_stream_watch nothing = {.log = -1, .extra = -1};
  return run_workload_child((child_exec_context){.run = run, .context = context}, &nothing).status;
}
