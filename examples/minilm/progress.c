/* See progress.h. SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_S 0.1

double progress_now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

progress progress_begin(const char *what, int64_t total) {
  return (progress){.what = what,
                    .total = total,
                    .start_s = progress_now_s(),
                    .is_terminal = isatty(STDERR_FILENO)};
}

static bool is_due(progress *p, int64_t done, double now_s) {
  if (p->is_terminal) return now_s - p->drawn_s >= REDRAW_S;
  const int quarter = (int)(4 * done / p->total);
  const bool is_new = quarter > p->quarter;
  p->quarter = quarter;
  return is_new;
}

void progress_show(progress *p, int64_t done) {
  const double now_s = progress_now_s();
  if (!is_due(p, done, now_s)) return;
  p->drawn_s = now_s;
  fprintf(stderr, "%s%lld of %lld %s, %.1f s%s", p->is_terminal ? "\r  " : "  ", (long long)done,
          (long long)p->total, p->what, now_s - p->start_s, p->is_terminal ? "  " : "\n");
  fflush(stderr);
}

double progress_end(const progress *p) {
  if (p->is_terminal) fprintf(stderr, "\r\033[K");
  return progress_now_s() - p->start_s;
}
