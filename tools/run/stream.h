/* Forwards the workload's stdout and stderr to ours: all bytes, unchanged and at once. A log gets
   them, too, and a callback gets each line. */
#ifndef PROF_TOOLS_RUN_STREAM_H
#define PROF_TOOLS_RUN_STREAM_H

#include <poll.h>
#include <sys/stat.h>

#include "child.h"
#include "keeper.h"
#include "terminal.h"

typedef struct run_stream {
  int read_end, write_end; /* of a pipe or a pty; -1: the workload has our own stream */
  int to;                  /* 1 or 2 */
  int own; /* our stream, if it can be opened again so that writing does not block; else `to` */
  bool is_file; /* nobody reads our stream, so writing does not wait */
  bool is_socket;
  char *line; /* the current line: its end has not arrived */
  size_t line_bytes;
  bool is_broken;   /* our own end is closed */
  bool has_writer;  /* after the workload's end: a process can still write */
  struct stat file; /* that the workload writes to */
} run_stream;

typedef struct run_streams {
  const run_stream_watch *watch;
  run_stream streams[2];
  bool is_one;           /* our stdout and stderr are one file, so the workload's are, too */
  run_terminal terminal; /* outer: -1: there is no pty */
  const char *failed;    /* see run_child_end */
  char *buffer;
  run_keeper *keeper; /* reads the same pipes */
  /* Called when our stream takes nothing now: waits until it may. False: the rest is dropped. */
  bool (*wait_for_descriptor)(void *context, int fd);
  void *context;
} run_streams;

void run_streams_open(run_streams *streams, const run_stream_watch *watch);
/* After fork(), in the child and in the parent. */
void run_streams_be_child(const run_streams *streams);
void run_streams_be_parent(run_streams *streams);
/* Fills in the streams of a keeper's plan. */
void run_streams_tell_keeper(const run_streams *streams, run_keeper_plan *plan);
/* Fills at most 2 polls; returns how many. */
nfds_t run_streams_poll(const run_streams *streams, struct pollfd *polls);
/* Reads once from that end. */
void run_streams_take(run_streams *streams, int fd);
/* After the workload's end: reads the rest of its output, and closes. */
void run_streams_finish(run_streams *streams);

#endif
