/* Threads and streams by what the trace calls them, with the list of their events. */
#ifndef PROF_IMPORT_THREADS_H
#define PROF_IMPORT_THREADS_H

#include <stdbool.h>
#include <uthash.h>

#include "spool.h"

/* pid and tid may be texts ("Spans"): then they are made up out of them, and negative. */
typedef struct import_thread_id {
  int64_t pid, tid;
} import_thread_id;

/* Lines that are no thread's own: beside one, for functions of Python that overlap with scopes (see
   import_thread_part()), and for asynchronous events (async.h). */
enum { IMPORT_HOST = -1, IMPORT_PYTHON = -2, IMPORT_ASYNC = -3 };

/* A stream's device: the process's only one, if no event gives a number. */
#define IMPORT_DEVICE_UNSAID ((int64_t)INT32_MAX + 1)

enum { IMPORT_PROCESS_BYTES = 33 };

typedef struct import_thread {
  struct {
    import_thread_id id;
    /* IMPORT_HOST, IMPORT_PYTHON, IMPORT_ASYNC; else the device's number, as the trace has it, and
       id is process and stream */
    int64_t device;
  } key;
  UT_hash_handle hh;
  import_thread_id called; /* its row, for its name */
  uint32_t serial;
  import_entry *entries;
  size_t count, room;
  bool is_sorted;      /* its first entries are its scopes, by start: import_thread_find() */
  size_t sorted_count; /* so many */
  uint32_t device;     /* of a stream, in the capture: devices.c */
  bool has_functions;
} import_thread;

/* What M events say of a row, or of a process (tid: INT64_MIN); its text (tid: INT64_MIN + 1). */
typedef struct import_row {
  import_thread_id id;
  UT_hash_handle hh;
  /* What an export of prof's says that the row's thread or stream is; -1: nothing. */
  int64_t number;
  uint32_t bytes;
  char name[];
} import_row;

/* A row that a device's work stands on. */
typedef struct import_stream_row {
  import_thread_id id;
  UT_hash_handle hh;
  import_thread *thread;
} import_stream_row;

/* What an export of prof's says of the process whose work stands on a stream's row. */
typedef struct import_row_owner {
  import_thread_id id;
  UT_hash_handle hh;
  int64_t pid;
  uint32_t bytes;
  char name[];
} import_row_owner;

typedef struct import_threads {
  import_thread *all;
  import_thread *last; /* the one asked for last */
  import_row *rows;
  import_stream_row *streams;
  import_row_owner *owners;
  uint32_t count;
  /* by a thread's serial the one that its events went to; NULL: each has its own */
  uint32_t *joined;
} import_threads;

import_thread_id import_threads_id(const import_event *event);
/* The text that the event has for its process's or thread's number. False: it has a number. */
bool import_threads_text(const import_event *event, import_member member, import_text *out);
/* Keeps the text that the process has for its number. False: it was known. */
bool import_threads_keep_pid(import_threads *threads, import_thread_id row, import_text text);
import_text import_threads_pid_text(const import_threads *threads, int64_t pid); /* empty: none */
/* "process 12", "process Foo". */
void import_threads_put_process(const import_threads *threads, int64_t pid,
                                char to[IMPORT_PROCESS_BYTES]);
/* Has an export of prof's made up the number, for a thread that had none? */
bool import_threads_is_made(int64_t tid);

import_thread *import_threads_host(import_threads *threads, import_thread_id id);
import_thread *import_threads_python(import_threads *threads, import_thread_id id);
import_thread *import_threads_async(import_threads *threads, import_thread_id id);
import_thread *import_threads_stream(import_threads *threads, int64_t device, int64_t stream,
                                     import_thread_id row);
/* The stream whose work stands on that row; NULL: none. */
import_thread *import_threads_stream_of(const import_threads *threads, import_thread_id row);

void import_threads_name(import_threads *threads, import_thread_id id, import_text name);
/* empty: none */
import_text import_threads_name_of(const import_threads *threads, import_thread_id id);

/* What the thread, or the stream, of that row is called by the capture that prof exported. Before
   any event of the row. */
void import_threads_say_number(import_threads *threads, import_thread_id id, int64_t number);
/* That, or the fallback. */
int64_t import_threads_number_of(const import_threads *threads, import_thread_id id,
                                 int64_t fallback);

/* Keeps the owner of a stream's row; the first one said counts. */
void import_threads_say_owner(import_threads *threads, import_thread_id row, int64_t pid,
                              import_text name);
/* NULL: nothing is said. */
const import_row_owner *import_threads_owner(const import_threads *threads, import_thread_id row);

/* What the process of that number is called by the capture that prof exported. */
int64_t import_threads_process_number(const import_threads *threads, int64_t pid);

/* The last scope that began at that time or before; NULL: none. Marks that are added afterwards are
   not looked at. */
const import_entry *import_thread_find(import_thread *thread, uint64_t time);
/* The first scope that begins at that time or later; NULL: none. */
const import_entry *import_thread_next(import_thread *thread, uint64_t time);
/* All events of one go to the other. */
void import_thread_move(import_thread *from, import_thread *to);

void import_thread_add(import_thread *thread, import_entry entry);
/* What prof has put on the rows "NAME (overlapping N)" beside NAME's goes back to that one's
   thread. To be called once, when all has come; no thread may be added behind it. */
void import_threads_join(import_threads *threads);
/* Whose events those of that serial are now. */
uint32_t import_threads_serial(const import_threads *threads, uint32_t serial);

/* record_function() begins inside of __enter__() and ends inside of __exit__(): its scope overlaps
   with these functions. So that it stays on its thread's own line, around what it holds, functions
   that overlap with anything go to the line beside. */
void import_thread_part(import_threads *threads, import_thread *thread);
/* By end; the inner ones first. Of scopes with one begin and one end, the first in the file is the
   outer one, as in viewers. */
void import_thread_sort(import_thread *thread);

void import_threads_fini(import_threads *threads);

#endif
