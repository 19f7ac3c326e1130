/* Where an exporter's bytes go: a large buffer in front of a file (plain or as one gzip member) or
   of growing memory. A writer reserves room, writes there, and advances. The first failure sticks,
   and later bytes are dropped. So a format's code need not test each step, but should stop soon.
   Memory is constant, except for the memory sink, whose bound is given, and for held bytes. One
   thread at a time per sink.

   target.c has the file, gzip.c compresses. */
#ifndef PROF_SINK_SINK_H
#define PROF_SINK_SINK_H

#include <prof/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* ---- target.c ---- */

/* Where an output file lands. The bytes go to a file without a name (O_TMPFILE), or with a
   temporary name beside. It gets the final name only when it is complete. So no reader ever sees
   half a file, and a failure leaves nothing behind. FIFOs, /dev/null and /dev/stdout are written to
   straight; a directory or any other device is refused. Sends no signals: RLIMIT_FSIZE is checked
   before each write, because the kernel sends SIGXFSZ beyond it. A reader that went away is an
   error and no SIGPIPE. A descriptor that the program closed is noticed before another file under
   that number is written to. A file that replaces another one of the same user keeps its mode. */

/* A descriptor and what it was when we opened it. */
typedef struct prof_i_open_file {
  int fd; /* -1: none */
  dev_t device;
  ino_t inode;
} prof_i_open_file;

typedef struct prof_i_target {
  prof_i_open_file file;
  /* of the final name: a chdir meanwhile changes nothing; none when written straight */
  prof_i_open_file folder;
  pid_t pid;          /* of the process that opened it: no other one writes or names the file */
  char *path;         /* as the caller gave it, for the error texts; owned */
  const char *name;   /* its last part, in path */
  char temporary[48]; /* name in the folder; "" while the file has none */
  /* where in the file our bytes begin: not 0 only for a regular file as /dev/stdout */
  uint64_t begin_bytes;
  uint64_t written_bytes;
  uint64_t started_bytes; /* of them, on their way to the disk */
  bool is_direct;
  bool is_pipe;
  bool is_regular;
  bool is_live;
  bool must_be_new; /* an existing file is left alone: PROF_E_IO */
} prof_i_target;

/* Folder and temporary name of an unfinished output file. The name is empty if none exists. The
   command's signal handler removes the file. The name is set before the file is created. It is
   cleared after the file is renamed or removed. */
typedef struct prof_i_unfinished_file {
  int folder;
  char name[48];
} prof_i_unfinished_file;

/* The place where targets of this process store their unfinished file; NULL, as in a library:
   nowhere. One target at a time. Set it before the first target is opened. */
extern prof_i_unfinished_file *prof_i_target_unfinished;

/* All of these return 0 or a status whose text has been set (prof_i_fail). One thread at a time per
   target. */
int prof_i_target_open(prof_i_target *target, const char *path, bool must_be_new);
/* Gives the file its name now, and removes what it held. Readers see it grow. A link is refused. */
int prof_i_target_open_live(prof_i_target *target, const char *path);
int prof_i_target_write(prof_i_target *target, const void *bytes, size_t count);
/* Lets the kernel copy bytes of a file. *copied_out: fewer than `count` if it cannot copy the rest,
   or if the file is shorter. Then write the rest with prof_i_target_write(). */
int prof_i_target_copy(prof_i_target *target, int fd, uint64_t offset, uint64_t count,
                       uint64_t *copied_out);
/* Write or read bytes at any offset. Not for a pipe or a device. At the end of the file a read
   returns fewer bytes. */
int prof_i_target_write_at(prof_i_target *target, const void *bytes, size_t count, uint64_t at);
int prof_i_target_read_at(const prof_i_target *target, void *bytes, size_t count, uint64_t at,
                          size_t *read_out);
int prof_i_target_shorten(prof_i_target *target, uint64_t bytes);
/* Gives the file its final name. The target is closed, also on failure: then nothing is left of
   it. */
int prof_i_target_commit(prof_i_target *target);

/* Closes the target without a trace of it, but for what was written straight. */
void prof_i_target_abandon(prof_i_target *target);

/* ---- sink.c ---- */

enum {
  /* of each write but the last: whole pages at whole places, or the kernel takes a fifth longer */
  PROF_I_SINK_BYTES = 512 << 10,
  PROF_I_SINK_RESERVE_MAX = 8 << 10, /* room behind it, so that no line need be cut for that */
  /* writers may touch so much past what they reserved: copies of a fixed size */
  PROF_I_SINK_SLACK = 64,
  /* 3 times as fast as zlib's usual 6, for a quarter more bytes: a trace shrinks to 1/7 */
  PROF_I_GZIP_LEVEL = 1
};

typedef struct prof_i_gzip prof_i_gzip;

typedef struct prof_i_sink {
  char *next; /* where the next byte goes */
  char *end;  /* of what may be reserved; PROF_I_SINK_SLACK bytes before the memory's end */
  char *buffer;
  char *held; /* all from here stays in the buffer (export/chrome.h); NULL: nothing need stay */
  int status; /* the first failure, whose text is set; PROF_OK until then */
  bool is_memory;
  size_t limit_bytes; /* of a memory sink */
  prof_i_target target;
  prof_i_gzip *gzip; /* NULL: plain */
} prof_i_sink;

/* All of these return PROF_OK or a status whose text is set. After a failed open there is nothing
   to close. */
int prof_i_sink_open_file(prof_i_sink *sink, const char *path, bool is_gzip, bool must_be_new);
/* A plain file that has its name at once. Flushed bytes stay, however the process ends. */
int prof_i_sink_open_live_file(prof_i_sink *sink, const char *path);
/* Writes all that is in the buffer of a plain file, at once. */
void prof_i_sink_flush(prof_i_sink *sink);
/* The file is its user's alone, whatever the umask. Right after the open. */
void prof_i_sink_keep_private(prof_i_sink *sink);
int prof_i_sink_open_memory(prof_i_sink *sink, size_t limit_bytes);

/* The target of a file sink, for a format that writes at any offset, such as a database. Then
   nothing else may write into the sink. Fails for a pipe, a device, gzip and memory. */
int prof_i_sink_target(prof_i_sink *sink, prof_i_target **target_out);

/* Closes a file sink. The file takes its name if nothing has failed; else the failure is returned
   and no file is there. */
int prof_i_sink_commit(prof_i_sink *sink);
/* Closes a memory sink and hands its text over, with a NUL behind; on failure there is nothing to
   free. */
int prof_i_sink_take(prof_i_sink *sink, char **text_out, size_t *bytes_out);
/* Closes either; the bytes are forgotten. */
void prof_i_sink_abandon(prof_i_sink *sink);

/* The slow path of reserve. Even after a failure there is room, for nothing. */
void prof_i_sink_make_room(prof_i_sink *sink, size_t wanted_bytes);

/* Room for `bytes` bytes, at most PROF_I_SINK_RESERVE_MAX. */
static inline char *prof_i_sink_reserve(prof_i_sink *sink, size_t bytes) {
  if (__builtin_expect((size_t)(sink->end - sink->next) < bytes, 0))
    prof_i_sink_make_room(sink, bytes);
  return sink->next;
}

static inline void prof_i_sink_advance(prof_i_sink *sink, const char *end) {
  sink->next += end - sink->next;
}

/* Copies bytes of a file, and returns their number. It is less than `count` if the file is shorter,
   cannot be read (errno is not 0), or if the sink has failed. Only for a plain file sink. */
uint64_t prof_i_sink_copy(prof_i_sink *sink, int fd, uint64_t offset, uint64_t count);

/* Any number of bytes, as they are. */
void prof_i_sink_bytes(prof_i_sink *sink, const void *bytes, size_t count);
static inline void prof_i_sink_text(prof_i_sink *sink, const char *text) {
  prof_i_sink_bytes(sink, text, strlen(text));
}

/* A field of CSV by RFC 4180. prof_i_sink_csv() always quotes it, prof_i_sink_csv_bare() only if
   necessary. U+FFFD replaces invalid UTF-8, and NUL, which readers refuse. */
void prof_i_sink_csv(prof_i_sink *sink, const char *text, size_t bytes);
void prof_i_sink_csv_bare(prof_i_sink *sink, const char *text);
/* without the quotes */
void prof_i_sink_csv_part(prof_i_sink *sink, const char *text, size_t bytes);

/* A frame of folded stacks. Separators are replaced: ';' by ':', and control characters by spaces.
   U+FFFD as above. */
void prof_i_sink_frame(prof_i_sink *sink, const char *text, size_t bytes);

/* Pieces of JSON: a string in quotes out of any bytes (text.h), and numbers. */
void prof_i_sink_string(prof_i_sink *sink, const char *text, size_t bytes);
/* without the quotes */
void prof_i_sink_string_part(prof_i_sink *sink, const char *text, size_t bytes);
void prof_i_sink_u64(prof_i_sink *sink, uint64_t value);
void prof_i_sink_i64(prof_i_sink *sink, int64_t value);
/* "null" of NaN and infinite numbers */
void prof_i_sink_double(prof_i_sink *sink, double value);
/* ,"key": and ,"key":value */
void prof_i_sink_key(prof_i_sink *sink, const char *key);
void prof_i_sink_key_u64(prof_i_sink *sink, const char *key, uint64_t value);

/* ---- sink.c: arguments of events as JSON ---- */

/* Shared by the formats, and independent of their layouts. */

/* One argument as a JSON value. What JSON or a double cannot hold becomes a string: NaN,
   infinities, integers past 2^53, pointers. */
void prof_i_value_json(prof_i_sink *sink, const prof_trace_arg *arg);

/* As the inside of a JSON string that has been opened. */
void prof_i_value_text(prof_i_sink *sink, const prof_trace_arg *arg);

/* Whether the text is a list of texts in JSON, an argument of a PyTorch range. _torch_ranges.py of
   the Python package writes a mark byte after the opening bracket. Other JSON and the texts of
   programs do not have this byte. */
bool prof_i_value_is_text_list(const prof_trace_arg *arg);

/* An event's arguments: an object of pairs, or of values without keys an array. Of shapes the first
   `shape_count` ones come together as "Input Dims". Not of PROF_ARGS_FORMAT, which is a text. */
void prof_i_value_args(prof_i_sink *sink, const prof_event *event, uint32_t shape_count);

/* "[[2, 3], []]" of the first `count` arguments. */
void prof_i_value_shapes(prof_i_sink *sink, const prof_event *event, uint32_t count);

/* "[2, 3]" of a tensor; "[]" of anything else. The same as JSON and as text. */
void prof_i_value_dims(prof_i_sink *sink, const prof_trace_arg *arg);

/* ---- gzip.c ---- */

/* One gzip member through zlib: chrome://tracing and most others read only the first of several.
   Without zlib in the build, or on the machine, create refuses. */

/* All return PROF_OK or a status whose text is set. level as zlib counts: 1 to 9. */
int prof_i_gzip_create(int level, prof_i_gzip **gzip_out);
void prof_i_gzip_destroy(prof_i_gzip *gzip); /* NULL is ignored */

/* Compresses into the target; the last call ends the member. */
int prof_i_gzip_write(prof_i_gzip *gzip, prof_i_target *target, const void *bytes, size_t count,
                      bool is_last);

/* One gzip member in memory, which the caller frees. */
int prof_i_gzip_text(int level, const void *bytes, size_t count, unsigned char **gzip_out,
                     size_t *gzip_bytes_out);

#endif
