/* The progress line, see commands.h. A thread writes it, so that the loops of the work need not
   read a clock. */
#define _GNU_SOURCE
#include "commands.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../src/live/live.h"
#include "../../src/reader/internal.h"
#include "inputs.h"

enum { FIRST_SECONDS = 2, EACH_NS = 500000000, BLOCK_BYTES = 512, DONE_MOST = 99 };
#define ERASE_LINE "\r\x1b[K"

/* The thread has the lock, except while it waits. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t end;
  pthread_t thread;
  const char *command;
  unsigned passes;
  uint64_t expected_bytes;
  struct timespec begin;
  bool is_running, is_ending;
  atomic_bool is_shown, is_killed; /* also used by a signal handler */
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_for_a_person(void) {
  const char *const terminal = getenv("TERM"), *const ci = getenv("CI");
  return isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0 && !(ci && *ci);
}

static double seconds_since(const struct timespec *begin) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

static void erase_line(void) {
  if (progress.is_shown) fputs(ERASE_LINE, stderr);
  progress.is_shown = false;
}

/* Passes differ, so the work may exceed what was expected. */
static void show_line(void) {
  const uint64_t done = atomic_load_explicit(&prof_i_progress_bytes, memory_order_relaxed);
  if (!progress.expected_bytes || progress.is_killed) return;
  progress.is_shown = true;
  const double share = (double)done / (double)progress.expected_bytes;
  const unsigned percent = share * 100 < DONE_MOST ? (unsigned)(share * 100) : DONE_MOST;
  fprintf(stderr, ERASE_LINE "prof %s: %u %%", progress.command, percent);
  if (percent > 0 && percent < DONE_MOST) {
    const double left = seconds_since(&progress.begin) * (1 - share) / share;
    fprintf(stderr, left < 100 ? ", about %.0f s left" : ", about %.0f min left",
            left < 100 ? left : left / 60);
  }
}

/* Sleeps until the end of the work, or at most this long. */
static void wait_for_end(time_t seconds, long ns) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += seconds + (until.tv_nsec + ns) / 1000000000;
  until.tv_nsec = (until.tv_nsec + ns) % 1000000000;
  while (!progress.is_ending &&
         pthread_cond_timedwait(&progress.end, &progress.lock, &until) == 0) {
  }
}

static void *show_progress(void *unused) {
  pthread_mutex_lock(&progress.lock);
  wait_for_end(FIRST_SECONDS, 0);
  while (!progress.is_ending) {
    show_line();
    wait_for_end(0, EACH_NS);
  }
  erase_line();
  pthread_mutex_unlock(&progress.lock);
  return unused;
}

/* Without a thread there is no line. */
void progress_begin(const char *command, unsigned passes) {
  sigset_t all, old;
  pthread_condattr_t monotonic;
  if (progress.is_running || !is_for_a_person()) return;
  output_clean_up_if_killed();
  progress.command = command;
  progress.passes = passes;
  clock_gettime(CLOCK_MONOTONIC, &progress.begin);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&progress.end, &monotonic);
  pthread_condattr_destroy(&monotonic);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  progress.is_running = pthread_create(&progress.thread, NULL, show_progress, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (progress.is_running) atexit(progress_end);
}

bool progress_has_begun(void) { return progress.is_running; }

bool progress_has_line(void) { return progress.is_running && progress.expected_bytes > 0; }

uint64_t progress_bytes(void) {
  return atomic_load_explicit(&prof_i_progress_bytes, memory_order_relaxed);
}

/* A capture has a fifth to a half of the bytes of the JSON trace that it was imported from. */
static uint64_t guess_imported_bytes(uint64_t trace_bytes) { return trace_bytes / 4; }

/* A capture that is being recorded may have holes. A packed one is unpacked first. */
static uint64_t capture_bytes(const struct stat *file, const prof_i_packed_head *packed) {
  const uint64_t whole = (uint64_t)file->st_size, on_disk = (uint64_t)file->st_blocks * BLOCK_BYTES;
  if (packed->magic == PROF_I_PACKED_MAGIC) return whole + progress.passes * packed->plain_count;
  return progress.passes * (on_disk && on_disk < whole ? on_disk : whole);
}

static uint64_t trace_bytes(const struct stat *file) {
  return (uint64_t)file->st_size * PROF_I_PROGRESS_IMPORT_WEIGHT +
         progress.passes * guess_imported_bytes((uint64_t)file->st_size);
}

static void expect_more(uint64_t bytes) {
  pthread_mutex_lock(&progress.lock);
  progress.expected_bytes += bytes;
  pthread_mutex_unlock(&progress.lock);
}

/* A part of a merged capture has no file of its own. */
static uint64_t part_bytes(const char *path) {
  prof_i_capture_bytes part;
  if (prof_i_capture_bytes_open(path, &part) != PROF_OK) return 0;
  close(part.fd);
  return part.bytes;
}

/* For `prof import` the number of passes is 0, so only the trace counts. */
void progress_expect(const char *path) {
  struct stat file;
  if (!progress.is_running) return;
  if (stat(path, &file) != 0) {
    expect_more(progress.passes * part_bytes(path));
    return;
  }
  if (!S_ISREG(file.st_mode)) return;
  const input_begin begin = input_begin_read(path);
  expect_more(begin.header.magic == PROF_I_MAGIC ? capture_bytes(&file, &begin.packed)
                                                 : trace_bytes(&file));
}

/* Replaces the guess by the size of the capture. */
void progress_imported(const char *trace, const char *capture, uint64_t bytes_before) {
  struct stat from, to;
  if (!progress.is_running || stat(trace, &from) != 0 || stat(capture, &to) != 0) return;
  const input_begin begin = input_begin_read(capture);
  expect_more(progress_bytes() - bytes_before + capture_bytes(&to, &begin.packed) -
              trace_bytes(&from));
}

void progress_killed(void) {
  progress.is_killed = true;
  if (progress.is_shown && write(STDERR_FILENO, ERASE_LINE, strlen(ERASE_LINE)) < 0) return;
}

void progress_end(void) {
  if (!progress.is_running) return;
  pthread_mutex_lock(&progress.lock);
  progress.is_ending = true;
  pthread_cond_signal(&progress.end);
  pthread_mutex_unlock(&progress.lock);
  pthread_join(progress.thread, NULL);
  progress.is_running = false;
}

void progress_pause(void) {
  if (!progress.is_running) return;
  pthread_mutex_lock(&progress.lock);
  erase_line();
}

void progress_resume(void) {
  if (progress.is_running) pthread_mutex_unlock(&progress.lock);
}
