/* See stream.h: the two terminals. */
#define _GNU_SOURCE
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../prof/commands.h"

static bool are_same_terminal(int a, int b) {
  struct stat x, y;
  return isatty(a) && isatty(b) && fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_rdev == y.st_rdev;
}

int run_terminal_own(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (isatty(fd) && tcgetpgrp(fd) == getpgrp()) return fd;
  return -1;
}

bool run_terminal_is_there(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (tcgetpgrp(fd) >= 0) return true;
  return false;
}

void run_terminal_tell_refused(void) {
  say("prof run: the program uses the terminal, and cannot get it: %s; it is stopped",
      strerror(errno));
}

bool run_terminal_is_for_us_alone(void) {
  return getpgrp() == getpid() && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* While our terminal is not raw it adds CR to line ends, so the pty must not. */
static void leave_cr_to_ours(run_terminal *terminal) {
  struct termios inner;
  if (tcgetattr(terminal->master, &inner) != 0 || !(inner.c_oflag & OPOST)) return;
  inner.c_oflag &= ~(tcflag_t)OPOST;
  terminal->adds_no_cr = tcsetattr(terminal->master, TCSANOW, &inner) == 0;
}

static void leave_cr_to_pty(run_terminal *terminal) {
  struct termios inner;
  if (!terminal->adds_no_cr || tcgetattr(terminal->master, &inner) != 0) return;
  inner.c_oflag |= OPOST;
  terminal->adds_no_cr = tcsetattr(terminal->master, TCSANOW, &inner) != 0;
}

void run_terminal_open(run_terminal *terminal, int outer, bool has_all) {
  char name[128];
  *terminal = (run_terminal){.outer = outer, .slave = -1};
  terminal->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal->master < 0 || grantpt(terminal->master) != 0 || unlockpt(terminal->master) != 0 ||
      ptsname_r(terminal->master, name, sizeof name) != 0)
    run_fail("cannot make a pseudo-terminal: %s", strerror(errno));
  terminal->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal->slave < 0) run_fail("cannot open '%s': %s", name, strerror(errno));
  terminal->is_controlling =
      has_all && are_same_terminal(STDIN_FILENO, outer) && are_same_terminal(STDOUT_FILENO, outer);
  terminal->has_input = terminal->is_controlling;
  if (tcgetattr(outer, &terminal->before) == 0) {
    struct termios inner = terminal->before;
    if (!terminal->has_input) inner.c_lflag &= ~(tcflag_t)ECHO; /* nobody types here */
    tcsetattr(terminal->slave, TCSANOW, &inner);
    leave_cr_to_ours(terminal);
  }
  run_terminal_resize(terminal);
}

void run_terminal_be_parent(run_terminal *terminal) {
  if (terminal->slave >= 0) close(terminal->slave);
  terminal->slave = -1;
}

void run_terminal_resize(const run_terminal *terminal) {
  struct winsize size;
  if (ioctl(terminal->outer, TIOCGWINSZ, &size) == 0) ioctl(terminal->master, TIOCSWINSZ, &size);
}

bool run_terminal_is_ours(const run_terminal *terminal) {
  return tcgetpgrp(terminal->outer) == getpgrp();
}

void run_terminal_be_raw(run_terminal *terminal) {
  if (terminal->is_raw || !terminal->has_input || !run_terminal_is_ours(terminal)) return;
  if (tcgetattr(terminal->outer, &terminal->before) != 0) return;
  struct termios raw = terminal->before;
  cfmakeraw(&raw);
  terminal->is_raw = tcsetattr(terminal->outer, TCSADRAIN, &raw) == 0;
  if (terminal->is_raw) leave_cr_to_pty(terminal);
}

void run_terminal_restore(run_terminal *terminal) {
  if (!terminal->is_raw) return;
  tcsetattr(terminal->outer, TCSADRAIN, &terminal->before);
  leave_cr_to_ours(terminal);
  terminal->is_raw = false;
}

/* Nobody else turns off both of these: a shell that edits a line keeps them. */
void run_terminal_repair(const run_terminal *terminal) {
  struct termios now;
  if (terminal->outer < 0 || !terminal->has_input || tcgetattr(terminal->outer, &now) != 0) return;
  if (now.c_lflag & ISIG || now.c_oflag & OPOST) return;
  tcsetattr(terminal->outer, TCSANOW, &terminal->before);
}

void run_terminal_type(run_terminal *terminal) {
  char typed[4096];
  const ssize_t bytes = read(STDIN_FILENO, typed, sizeof typed);
  if (bytes <= 0) {
    if (bytes == 0 || (errno != EINTR && errno != EAGAIN)) terminal->has_input = false;
    return;
  }
  for (ssize_t done = 0; done < bytes;) {
    const ssize_t now = write(terminal->master, typed + done, (size_t)(bytes - done));
    if (now > 0)
      done += now;
    else if (errno != EINTR)
      return; /* the workload does not read: the input is lost */
  }
}

void run_terminal_close(run_terminal *terminal) {
  run_terminal_restore(terminal);
  run_terminal_be_parent(terminal);
  if (terminal->master >= 0) close(terminal->master);
  terminal->master = -1;
}
