/* The properties of a PyTorch operator, stored in its call site. Such a site has no file, so its
   line number is free: libprof_torch.so writes them there (inject/torch/calls.c), and readers
   of a capture decode them. Otherwise the site is like any other. */
#ifndef PROF_FORMAT_OBSERVED_H
#define PROF_FORMAT_OBSERVED_H

#include <stdbool.h>
#include <stdint.h>

enum {
  PROF_I_OBSERVED_MARK = 1 << 30, /* set in the line of each such site */
  PROF_I_OBSERVED_FOR_SHIFT = 8,
  PROF_I_OBSERVED_FOR_MASK = 0xff,
  PROF_I_OBSERVED_SCOPE_MASK = 0xff,
  /* The observer: an observe() of one thread has a number from 1 on, unique while it is active. */
  PROF_I_OBSERVED_NUMBERS = 16,
  PROF_I_OBSERVED_FOR_ALL = 0xff /* all threads, or a thread that got no number */
};

/* scope: at::RecordScope. */
static inline uint32_t prof_i_observed_line(uint32_t scope, uint32_t for_whom) {
  return PROF_I_OBSERVED_MARK | for_whom << PROF_I_OBSERVED_FOR_SHIFT | scope;
}

static inline bool prof_i_observed_has(uint32_t line, uint64_t file_bytes) {
  return file_bytes == 0 && (line & PROF_I_OBSERVED_MARK) != 0;
}
static inline uint32_t prof_i_observed_scope(uint32_t line) {
  return line & PROF_I_OBSERVED_SCOPE_MASK;
}
static inline uint32_t prof_i_observed_for(uint32_t line) {
  return line >> PROF_I_OBSERVED_FOR_SHIFT & PROF_I_OBSERVED_FOR_MASK;
}

#endif
