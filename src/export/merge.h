/* Several captures in one file: processes or ranks of a program, on one time line. The captures
   are placed first. Then an exporter runs for each of them. In prof_i_export_place.shared, they
   share numbers of rows and texts. */
#ifndef PROF_EXPORT_MERGE_H
#define PROF_EXPORT_MERGE_H

#include "exporter.h"

/* What is known of a capture before it is written. */
typedef struct prof_i_merge_capture {
  char host[64];
  char boot_id[40]; /* empty: not known, as of an imported trace */
  uint32_t pid;
  uint32_t least_pid, most_pid; /* of all its processes */
  int32_t rank;                 /* -1: none */
  bool has_processes;           /* of others beside pid: an imported trace */
  uint64_t start_ns;            /* CLOCK_MONOTONIC */
  uint64_t start_unix_ns, duration_ns;
  uint64_t event_count;
  prof_i_export_facts facts;
  uint64_t error_ns; /* bound of the error of both clocks, and of the wall clock's steps */
  /* prof_i_merge_align() fills what follows. */
  uint32_t host_number;     /* index of the first capture of the same boot of a machine */
  uint64_t placed_unix_ns;  /* where the capture starts on the common time line */
  int64_t wall_moved_ns;    /* the wall clock was set by that much since the host's first capture */
  uint64_t pid_offset;      /* to add modulo 2^64, so that no two processes have one number */
  char label[128];          /* "rank 3", "process 77 on node1" */
  bool is_process_labelled; /* the name of the process does not say enough */
} prof_i_merge_capture;

void prof_i_merge_describe(const prof_trace *trace, prof_i_merge_capture *capture_out);

enum { PROF_I_MERGE_HOST_BYTES = 80 };

/* "host 'node1'", or "an unknown host", as of an imported trace. Returns `to`. */
const char *prof_i_merge_host_text(const prof_i_merge_capture *capture,
                                   char to[PROF_I_MERGE_HOST_BYTES]);

/* Places captures of one boot by CLOCK_MONOTONIC, and hosts by their wall clocks. Refuses hosts
   that did not record at the same time, because then a wall clock is wrong; with is_unaligned the
   hosts start together instead. PROF_OK, PROF_E_INVALID or PROF_E_NO_MEMORY. */
int prof_i_merge_align(prof_i_merge_capture *captures, uint32_t count, bool is_unaligned);

enum { PROF_I_MERGE_MAX = 4096 };

/* What to write. The format has PROF_I_EXPORT_MERGED. */
typedef struct prof_i_merge_plan {
  uint32_t format; /* prof_format */
  bool is_gzip;
  const prof_i_merge_capture *captures; /* placed */
  uint32_t count;
  prof_i_window window;        /* from the start of the time line */
  const prof_i_filter *filter; /* NULL: none */
} prof_i_merge_plan;

typedef struct prof_i_merge {
  prof_i_merge_plan plan;
  const prof_i_exporter *exporter;
  prof_i_sink sink;
  prof_i_findings findings;
  prof_i_export_filtered filtered; /* sums */
  prof_i_export_lacks lacks;       /* sums */
  uint64_t start_unix_ns;          /* of the time line */
  uint32_t count, next_sequence;
  void *shared; /* prof_i_export_place.shared */
} prof_i_merge;

/* The window in times of a capture, which are from its own start. */
prof_i_window prof_i_merge_window(const prof_i_merge_capture *captures, uint32_t count,
                                  uint32_t index, const prof_i_window *window);

/* When the first capture starts. */
uint64_t prof_i_merge_start_unix_ns(const prof_i_merge_capture *captures, uint32_t count);

/* Each returns PROF_OK or a status whose text is set. Memory is that of one capture, and of what
   the format keeps for its end. After a failure of add, abandon the merge. */
int prof_i_merge_begin(prof_i_merge *merge, const char *path, const prof_i_merge_plan *plan);
/* The plan's next capture. */
int prof_i_merge_add(prof_i_merge *merge, const prof_trace *trace);
/* The file gets its name, unless no event passed the filter. PROF_E_CHECK: it has its name, and
   findings. */
int prof_i_merge_commit(prof_i_merge *merge);
/* Nothing stays. */
void prof_i_merge_abandon(prof_i_merge *merge);

#endif
