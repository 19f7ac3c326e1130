/* The forms of the lines that libraries print for a call. */
#ifndef PROF_TOOLS_RUN_LIBRARY_LINES_H
#define PROF_TOOLS_RUN_LIBRARY_LINES_H

#include "library.h"

/* A longer config is cut. */
enum { RUN_CONFIG_BYTES_MAX = 16 << 10 };

typedef struct run_line {
  const char *at;
  size_t bytes;
} run_line;

typedef struct run_call {
  run_library library; /* of RCCL and NCCL, which print the same: RUN_LIBRARY_RCCL */
  run_line config;     /* in the line, or in text */
  uint64_t calls;
  size_t prefix_bytes; /* in front of the call: a launcher's */
  run_origin origin;   /* as the line itself has it */
  char text[RUN_CONFIG_BYTES_MAX];
} run_call;

/* wanted: bits 1 << run_library. False: the line is no call of these. */
bool run_line_is_call(run_line line, unsigned wanted, run_call *to);

#endif
