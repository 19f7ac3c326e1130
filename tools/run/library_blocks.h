/* Calls that libraries print as several lines: cuBLAS and cuDNN. */
#ifndef PROF_TOOLS_RUN_LIBRARY_BLOCKS_H
#define PROF_TOOLS_RUN_LIBRARY_BLOCKS_H

#include "library_lines.h"

/* The current call of one stream. Initialise with {0}. */
typedef struct run_block {
  bool is_open;
  run_library library;
  size_t bytes;
  char text[8192]; /* "cublasSgemm_v2 transa=CUBLAS_OP_T(1) m=2": pointers are left out */
} run_block;

typedef enum run_block_part {
  RUN_BLOCK_NONE,  /* the line is not part of a call */
  RUN_BLOCK_MORE,  /* a line of the call */
  RUN_BLOCK_BEGIN, /* the first line of a call: the one before is complete, in *before_out */
} run_block_part;

/* before_out->bytes is 0 if no call was completed. If threads print calls at the same time, their
   lines are mixed, and a call may have arguments of others. */
run_block_part run_block_take(run_block *block, run_line line, run_block *before_out);

/* The stream ends. True: *block is a complete call. */
bool run_block_end(run_block *block);

#endif
