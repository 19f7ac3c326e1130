/* How far a long piece of work is, on stderr: one line redrawn on a terminal, a line per quarter
   otherwise (a log is not flooded). One thread. SPDX-License-Identifier: MIT */
#ifndef MINILM_PROGRESS_H
#define MINILM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
  const char *what; /* "paragraphs" */
  int64_t total;
  double start_s;
  double drawn_s; /* when it was last drawn */
  int quarter;    /* last one that was printed */
  bool is_terminal;
} progress;

/* Seconds on a clock that only runs forward. */
double progress_now_s(void);

progress progress_begin(const char *what, int64_t total);
void progress_show(progress *p, int64_t done);

/* Clears the line on a terminal; returns the seconds since the beginning. */
double progress_end(const progress *p);

#endif
