/* Calls of libraries, from the lines that they print: rocBLAS, hipBLASLt, MIOpen, Tensile, RCCL,
   NCCL, cuBLAS, cuBLASLt and cuDNN. Each distinct call is a row of library_trace.csv, with how
   often it came. */
#ifndef PROF_TOOLS_RUN_LIBRARY_H
#define PROF_TOOLS_RUN_LIBRARY_H

#include <stdio.h>

#include "text.h"

/* ---- origin.c: where a line comes from: a process, and its rank ---- */

/* -1: not known. */
typedef struct run_origin {
  int64_t rank, pid;
} run_origin;

#define RUN_ORIGIN_UNKNOWN ((run_origin){-1, -1})

/* The rank that a launcher put in front of a line, or -1: "[1,3]<stderr>:" of mpirun --tag-output,
   "3: " of srun -l, "[3] " of mpiexec -l, "[rank3]:" and "[default3]:" of torchrun. */
int64_t run_origin_rank(const char *prefix, size_t bytes);

/* Of a log file NAME.PID.log in a folder that was given to the process in a variable. The rank is
   that of the process's environment. folder: absolute. */
run_origin run_origin_of_log(const char *path, const char *folder);

/* ---- library.c: rows of calls ---- */

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
typedef struct run_calls run_calls;

/* wanted: bits 1 << run_library. */
run_libraries *run_libraries_create(unsigned wanted);
/* Each call is added there as well, or NULL. Rows of rocBLAS's profile are not: they are sums of
   calls. */
void run_libraries_record(run_libraries *libraries, run_calls *calls);
void run_libraries_destroy(run_libraries *libraries);

/* Takes any line. Matches inside of the line, because launchers put a rank in front. */
void run_libraries_take(run_libraries *libraries, const run_line_source *from, const char *line,
                        size_t bytes);
/* The streams have ended. */
void run_libraries_finish(run_libraries *libraries);

/* How many rows there are. */
size_t run_libraries_count(const run_libraries *libraries);
const char *run_library_name(run_library library);
/* The libraries whose lines the tool reads, as bits. 0: none. */
unsigned run_library_wanted(const char *tool);

/* library_trace.csv as madengine writes it. jobid and model are JENKINS_BUILD_NUMBER
   and MAD_MODEL_NAME. context: the libraries. */
void run_libraries_put(FILE *to, const void *context);
/* Writes it. False with errno set. */
bool run_libraries_write(const run_libraries *libraries, const char *path);

/* ---- calls.c: calls as events of a capture, library_trace.prof ---- */

/* A call as an event: a name and arguments. */
typedef struct run_call_event run_call_event;

/* rocblas: "rocblas_gemm_ex" with the options m, n, k and so on. rccl: "ncclAllReduce" with count,
   datatype and bytes. Options that have no room are one argument "more". Free it with free(). */
run_call_event *run_call_event_create(const run_library_row *row);

/* Recording begins at the first call, so that no process of the workload inherits it. */
run_calls *run_calls_create(const char *path);

/* Adds a call, at the current time, to the row of its process. stream: for lines of unknown
   processes. */
void run_calls_add(run_calls *calls, run_call_event *event, const run_origin *origin, int stream);

/* Writes the capture, and frees all. False: there was no call, and there is no file. Prints errors
   and losses. */
bool run_calls_finish(run_calls *calls);

/* ---- logs.c: log files that libraries write by themselves, one for each process ---- */

typedef struct run_logs run_logs;

typedef struct run_logs_target {
  /* Each line, without its line end. from: the process that wrote it. */
  void (*on_line)(void *context, const run_origin *from, const char *line, size_t bytes);
  void *context;
  int log; /* a descriptor that gets all bytes, or -1 */
} run_logs_target;

run_logs *run_logs_create(const run_logs_target *target);
/* Reads all files *.log of that folder, also files created later. A file that is truncated is read
   from its begin again. A file that is renamed or deleted is read to its end. */
void run_logs_add(run_logs *logs, const char *folder);
/* A descriptor to poll: it is readable when a file was written. */
int run_logs_fd(const run_logs *logs);
/* Reads the new lines. */
void run_logs_take(run_logs *logs);
/* Reads the rest, also a last line without an end. */
void run_logs_destroy(run_logs *logs);

#endif
