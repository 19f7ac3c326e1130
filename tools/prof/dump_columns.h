/* prof dump to Parquet and Arrow: executes Python, because pyarrow writes these files. */
#ifndef PROF_TOOLS_DUMP_COLUMNS_H
#define PROF_TOOLS_DUMP_COLUMNS_H

#include "inputs.h"
#include "shared_options.h"

typedef struct columns_request {
  const char *input;  /* a capture */
  const char *to;     /* the file to write */
  const char *shown;  /* its name in messages */
  const char *format; /* "parquet", "arrow" */
  uint64_t from_ns, to_ns;
  const filter_options *filter;
  const merge_files *merged; /* placed; NULL: the input is one capture */
} columns_request;

/* Writes the file. Returns an exit status. EXIT_FAILED: the reason was said. EXIT_NO: no event
   passed the filter. */
int dump_columns(const columns_request *request);

#endif
