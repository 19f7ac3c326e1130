/* See child.h. SIGPIPE is ignored meanwhile: our own stream may close before the workload. */
#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "stream.h"

/* That ask a program to end. */
static const int ending_signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
/* That a terminal or a user sends for something else. */
static const int passed_signals[] = {SIGUSR1, SIGUSR2,  SIGALRM, SIGTSTP,
                                     SIGCONT, SIGWINCH, SIGCHLD};

static struct held_signals {
  unsigned depth;
  int fd;
  int interrupt;
  bool is_ours_alone; /* our group did not get it */
  sigset_t mask, mask_before;
  struct sigaction child_before; /* of SIGCHLD: our caller may ignore it */
  struct sigaction pipe_before;  /* of SIGPIPE */
} held_signals;

/* ---- signals of libc itself ---- */

/* sigaction() refuses these two signals. libc sets its handlers when the first thread starts, and
   exec() resets handlers to the default. So an executed program would no longer ignore signals that
   the caller of prof ignored, such as make, which ignores both. */
static const int libc_signals[] = {32, 33};
enum { LIBC_SIGNALS = sizeof libc_signals / sizeof *libc_signals, KERNEL_SET_BYTES = 8 };

typedef struct kernel_sigaction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)(void);
  uint64_t mask;
} kernel_sigaction;

static bool libc_signal_is_ignored[LIBC_SIGNALS], are_libc_signals_known;

/* Must be called before the first thread starts. */
static void look_at_libc_signals(void) {
  for (size_t i = 0; i < LIBC_SIGNALS && !are_libc_signals_known; i++) {
    kernel_sigaction action = {0};
    libc_signal_is_ignored[i] =
        syscall(SYS_rt_sigaction, libc_signals[i], NULL, &action, KERNEL_SET_BYTES) == 0 &&
        action.handler == SIG_IGN;
  }
  are_libc_signals_known = true;
}

static void ignore_libc_signals(void) {
  const kernel_sigaction action = {.handler = SIG_IGN};
  for (size_t i = 0; i < LIBC_SIGNALS; i++)
    if (libc_signal_is_ignored[i])
      syscall(SYS_rt_sigaction, libc_signals[i], &action, NULL, KERNEL_SET_BYTES);
}

/* Ignored before us, it asks nobody to end, as under nohup. */
bool run_signals_is_end(int number) {
  struct sigaction action;
  for (size_t i = 0; i < sizeof ending_signals / sizeof *ending_signals; i++)
    if (ending_signals[i] == number)
      return sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN;
  return false;
}

void run_signals_hold(void) {
  if (held_signals.depth++ > 0) return;
  look_at_libc_signals();
  held_signals.interrupt = 0;
  held_signals.is_ours_alone = false;
  sigemptyset(&held_signals.mask);
  for (size_t i = 0; i < sizeof ending_signals / sizeof *ending_signals; i++)
    sigaddset(&held_signals.mask, ending_signals[i]);
  for (size_t i = 0; i < sizeof passed_signals / sizeof *passed_signals; i++)
    sigaddset(&held_signals.mask, passed_signals[i]);
  held_signals.fd = signalfd(-1, &held_signals.mask, SFD_CLOEXEC | SFD_NONBLOCK);
  if (held_signals.fd < 0) run_fail("cannot make a signalfd: %s", strerror(errno));
  sigset_t blocked = held_signals.mask;
  sigaddset(&blocked, SIGTTOU); /* tcsetpgrp() from the background */
  /* without these we would not see that the program has ended */
  if (sigprocmask(SIG_BLOCK, &blocked, &held_signals.mask_before) != 0 ||
      sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &held_signals.child_before) !=
          0 ||
      sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &held_signals.pipe_before) !=
          0)
    run_fail("signals cannot be set up: %s; a sandbox may refuse sigaction() or sigprocmask()",
             strerror(errno));
}

static void restore_signals(void) {
  sigaction(SIGCHLD, &held_signals.child_before, NULL);
  sigaction(SIGPIPE, &held_signals.pipe_before, NULL);
  sigprocmask(SIG_SETMASK, &held_signals.mask_before, NULL);
}

void run_signals_release(void) {
  if (held_signals.depth == 0 || --held_signals.depth > 0) return;
  while (run_signals_next() != 0) continue; /* we end by ourselves now */
  close(held_signals.fd);
  restore_signals();
}

void run_signals_be_child(void) {
  restore_signals();
  ignore_libc_signals();
}

int run_signals_fd(void) { return held_signals.fd; }

int run_signals_next(void) {
  struct signalfd_siginfo info;
  if (read(held_signals.fd, &info, sizeof info) != (ssize_t)sizeof info) return 0;
  const int number = (int)info.ssi_signo;
  if (held_signals.interrupt == 0 && run_signals_is_end(number)) held_signals.interrupt = number;
  return number;
}

int run_signals_interrupt(void) {
  sigset_t asked;
  sigemptyset(&asked);
  for (size_t i = 0; i < sizeof ending_signals / sizeof *ending_signals; i++)
    if (run_signals_is_end(ending_signals[i])) sigaddset(&asked, ending_signals[i]);
  for (int number; (number = sigtimedwait(&asked, NULL, &(struct timespec){0})) > 0;)
    if (held_signals.interrupt == 0) held_signals.interrupt = number;
  return held_signals.interrupt;
}

void run_signals_note_terminal(int number) {
  if (held_signals.interrupt != 0) return;
  held_signals.interrupt = number;
  held_signals.is_ours_alone = true;
}

void run_signals_end_as(int status) {
  const bool is_interrupted = held_signals.interrupt == SIGINT && status == 128 + SIGINT;
  if (held_signals.depth > 0 || !is_interrupted || run_terminal_own() < 0) return;
  fflush(NULL);
  kill(held_signals.is_ours_alone ? 0 : getpid(), SIGINT);
}

bool run_signals_wait(int fd) {
  enum { LOOK_MS = 200 };
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  while (held_signals.depth > 0 && poll(&ready, 1, LOOK_MS) <= 0)
    if (run_signals_interrupt()) return false;
  return true;
}

/* SIGTSTP, not SIGSTOP: the kernel leaves it out where no shell could continue us. A stop signal
   discards a pending SIGCONT, so one that is pending came after the last Ctrl-Z. Then a shell that
   has seen others of our group stop has continued all of it.
   A shell may bring us to the foreground in between. It gives us the terminal, and sends no SIGCONT
   as it has not seen us stop. What it sends later discards our SIGTSTP. */
void run_signals_stop_us(bool is_all, bool is_background) {
  const pid_t whom = is_all ? 0 : getpid();
  sigset_t stop, pending;
  if (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1) return;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  kill(whom, SIGTSTP);
  if (is_background && run_terminal_own() >= 0) kill(whom, SIGCONT);
  sigprocmask(SIG_UNBLOCK, &stop, NULL);
  sigprocmask(SIG_BLOCK, &stop, NULL);
}

static void ignore_signal(int number) { (void)number; }

void run_signals_outlive(void) {
  static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM};
  const struct sigaction action = {.sa_handler = ignore_signal, .sa_flags = SA_RESTART};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    struct sigaction before;
    sigaction(numbers[i], NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(numbers[i], &action, NULL);
  }
}
