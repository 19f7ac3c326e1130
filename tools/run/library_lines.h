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

/* ---- calls that libraries print as several lines: cuBLAS and cuDNN ---- */

/* A call under construction. */
typedef struct run_block {
  bool is_open;
  bool is_mixed;  /* it has a line of another call: no argument can be trusted */
  bool has_ended; /* its last line, which has the process, has come */
  run_library library;
  int64_t rank, pid; /* or -1 */
  size_t bytes, name_bytes;
  char text[8192]; /* "cublasSgemm_v2 transa=CUBLAS_OP_T(1) m=2": pointers are left out */
} run_block;

/* The current call of each stream and rank. Initialise with {0}. */
typedef struct run_blocks {
  struct run_block_entry *entries;
} run_blocks;

typedef enum run_block_part {
  RUN_BLOCK_NONE,  /* the line is not part of a call */
  RUN_BLOCK_MORE,  /* a line of the call */
  RUN_BLOCK_BEGIN, /* the first line of a call */
} run_block_part;

/* before_out->bytes is 0 if no call was completed. If threads print calls at the same time, their
   lines are mixed, and nothing in a line says whose it is. A call whose lines are seen to be mixed
   has no arguments. */
run_block_part run_blocks_take(run_blocks *blocks, int stream, run_line line,
                               run_block *before_out);

/* The streams end. Returns the stream of a complete call, or 0: there are no more. */
int run_blocks_end(run_blocks *blocks, run_block *before_out);
void run_blocks_destroy(run_blocks *blocks);

#endif
