/* The part of a capture that is written. */
#ifndef PROF_EXPORT_WINDOW_H
#define PROF_EXPORT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* What ends after from_ns and begins before to_ns, both from the capture's start; 0: no bound. */
typedef struct prof_i_window {
  uint64_t from_ns;
  uint64_t to_ns;
} prof_i_window;

static inline bool prof_i_window_contains(const prof_i_window *window, uint64_t start_ns,
                                          uint64_t end_ns) {
  return (window->from_ns == 0 || end_ns > window->from_ns) &&
         (window->to_ns == 0 || start_ns < window->to_ns);
}

#endif
