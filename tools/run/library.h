/* Calls of libraries, from the lines that they print: rocBLAS, hipBLASLt, MIOpen, Tensile, RCCL,
   NCCL, cuBLAS, cuBLASLt and cuDNN. Each distinct call is a row of library_trace.csv, with how
   often it came. */
#ifndef PROF_TOOLS_RUN_LIBRARY_H
#define PROF_TOOLS_RUN_LIBRARY_H

#include <stdio.h>

#include "origin.h"
#include "text.h"

/* In the order of the rows in the file. The first five are madengine's. */
typedef enum run_library {
  RUN_LIBRARY_ROCBLAS,          /* bench lines, one a call */
  RUN_LIBRARY_HIPBLASLT,        /* bench lines, one a call */
  RUN_LIBRARY_ROCBLAS_FUNCTION, /* the profile at exit; its call_count is the number of calls */
  RUN_LIBRARY_MIOPEN,
  RUN_LIBRARY_TENSILE,
  RUN_LIBRARY_MIOPEN_FIND, /* searches for an algorithm: no calls */
  RUN_LIBRARY_RCCL,
  RUN_LIBRARY_NCCL,
  RUN_LIBRARY_CUBLAS,
  RUN_LIBRARY_CUBLASLT,
  RUN_LIBRARY_CUDNN,
  RUN_LIBRARIES,
} run_library;

typedef struct run_library_row {
  run_library library;
  const char *config;
  uint64_t calls;
} run_library_row;

/* Where a line was read: a stream, 1 or 2, and what is known of its process without the line. */
typedef struct run_line_source {
  int stream;
  run_origin origin;
} run_line_source;

typedef struct run_libraries run_libraries;
struct run_calls;

/* wanted: bits 1 << run_library. */
run_libraries *run_libraries_create(unsigned wanted);
/* Each call is added there as well, or NULL. Rows of rocBLAS's profile are not: they are sums of
   calls. */
void run_libraries_record(run_libraries *libraries, struct run_calls *calls);
void run_libraries_destroy(run_libraries *libraries);

/* Takes any line. Matches inside of the line, because launchers put a rank in front. */
void run_libraries_take(run_libraries *libraries, const run_line_source *from, const char *line,
                        size_t bytes);
/* The streams have ended. */
void run_libraries_finish(run_libraries *libraries);

/* By library, then by first appearance. */
size_t run_libraries_count(const run_libraries *libraries);
const run_library_row *run_libraries_row(const run_libraries *libraries, size_t index);
const char *run_library_name(run_library library);
/* The libraries whose lines the tool reads, as bits. 0: none. */
unsigned run_library_wanted(const char *tool);

/* library_trace.csv as madengine writes it. jobid and model are JENKINS_BUILD_NUMBER
   and MAD_MODEL_NAME. context: the libraries. */
void run_libraries_put(FILE *to, const void *context);
/* Writes it. False with errno set. */
bool run_libraries_write(const run_libraries *libraries, const char *path);

#endif
