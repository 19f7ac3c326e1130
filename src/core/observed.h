/* What the call site of a PyTorch operator says of it. Such a site has no file, so its line is
   free: libprof_torch.so writes this there (src/preload/torch/calls.c), and readers of a capture
   look at it. Beside that the site is like any other. */
#ifndef PROF_CORE_OBSERVED_H
#define PROF_CORE_OBSERVED_H

#include <stdbool.h>
#include <stdint.h>

enum {
  PROF_I_OBSERVED_MARK = 1 << 30, /* set in the line of each such site */
  PROF_I_OBSERVED_FOR_SHIFT = 8,
  PROF_I_OBSERVED_FOR_MASK = 0xff,
  PROF_I_OBSERVED_SCOPE_MASK = 0xff,
  /* Whom it was recorded for: of an observe() of one thread its number, from 1 on. While it is on
     no other one has that number. */
  PROF_I_OBSERVED_NUMBERS = 16,
  PROF_I_OBSERVED_FOR_ALL = 0xff /* all threads, or one of more threads than there are numbers */
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
