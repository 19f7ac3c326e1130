/* The progress of an import: what it counts and reports at the end, and how it gives up. The
   library has nothing of this folder, so running out of memory or of disk may end the process. */
#ifndef PROF_IMPORT_IMPORT_H
#define PROF_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is not taken, by reason: name, text. */
#define IMPORT_MISS_LIST(X)                                                                  \
  X(NOT_OBJECT, "elements that are no objects")                                              \
  X(PHASE, "of a kind that is not known (ph)")                                               \
  X(ASYNC, "asynchronous, with 1024 of their category beside them (ph b, n, e, S, T, F, p)") \
  X(STACK, "call stacks by number or address (sf, stack)")                                   \
  X(ARROW_END, "ends of arrows whose other end is not there (ph s, t, f)")                   \
  X(BOUND, "arrows at ends and instants, or at events that are not taken (bind_id)")         \
  X(NO_TIME, "without a time (ts)")                                                          \
  X(TIME, "with a time that is no number, or years away from the others")                    \
  X(NEGATIVE, "with a negative duration")                                                    \
  X(DURATION, "with a duration that is no number, or longer than a year")                    \
  X(END_ALONE, "ends without a begin (ph E, e, F)")                                          \
  X(NO_VALUE, "values of counters that are no numbers")                                      \
  X(MEMORY, "of memory, without address or bytes that can be")                               \
  X(SPAN, "rows about the tracing itself (Spans, Traces)")                                   \
  X(OWN_CHANGE, "changes of levels, mutes and budgets, which an export of prof tells")       \
  X(SAMPLES, "samples of processors (samples)")                                              \
  X(SYSTEM, "lines of a system's trace beside this one (systemTraceEvents)")                 \
  X(ROWS, "members beside the events, past 4096 of them")                                    \
  X(LABEL, "labels of processes (process_labels): exports make them anew")                   \
  X(SORT, "places of rows (process_sort_index, thread_sort_index): exports make them anew")  \
  X(METADATA, "metadata of a name that is not known (ph M)")                                 \
  X(DRAWN, "arrows and graphs that exports draw anew from what is taken")                    \
  X(LINK, "links to a second call, or between rows that are not in the database")            \
  X(ORPHAN, "arguments, counters and stack frames of rows that are not taken")               \
  X(TABLE, "rows of tables that are not known")                                              \
  X(NO_THREAD, "rows whose thread is not in the database")                                   \
  X(NO_NAME, "rows whose name or another text is not in the database")                       \
  X(NO_DEVICE, "rows whose device is not in the database")                                   \
  X(NO_POOL, "rows whose pool of memory is not in the database")                             \
  X(NULL_ROW, "rows that lack a value, or have a text in place of a number")                 \
  X(DELETED, "rows that prof wrote and that were deleted from the database")                 \
  X(BEHIND, "bytes behind the compressed data")

/* What is taken in another form than the trace has it. */
#define IMPORT_CHANGE_LIST(X)                                                                 \
  X(NO_DURATION, "without a duration: they take 0")                                           \
  X(LOST_END, "begun and without an end (ph B): they end with the scope around them")         \
  X(MEMBER, "with members that are not known")                                                \
  X(NOT_TEXT, "with a name, a category, arguments or another member of a wrong type")         \
  X(OPEN, "that had not ended, and count as calls here")                                      \
  X(UNENDED, "begun and never ended (ph B, b, S): they end with the trace")                   \
  X(CUT, "with a text cut or arguments left out")                                             \
  X(NULL_ARG, "with arguments that are null: these are left out")                             \
  X(UNNAMED, "without a name")                                                                \
  X(NO_LAUNCH, "of devices, whose launch is not in the trace")                                \
  X(EARLY, "of devices, begun before their launch: the trace's clocks disagree")              \
  X(NOT_NUMBER, "values that are no JSON (NaN, Infinity, over 64 digits)")                    \
  X(CONTROL, "raw control bytes in strings: they are blanks now")                             \
  X(SURROGATE, "halves of surrogate pairs in strings: they are U+FFFD now")                   \
  X(NOT_UTF8, "texts that are no UTF-8: exports have U+FFFD there")                           \
  X(INSTANT_SCOPE, "instants of a process or of all (s): they are their thread's now")        \
  X(ARROW_CATEGORY, "ends of arrows, without their category")                                 \
  X(ARROW_ARGS, "ends of arrows, without their arguments")                                    \
  X(AS_HOST, "taken as the host's: a device's name of their process is unknown or came late") \
  X(DEVICES, "of devices past 1024: they stand at the last of these")                         \
  X(LONG, "that would end after the last time there is: they end then")                       \
  X(BEGIN, "ns by which all is later: the trace begins before its clock's 0")                 \
  X(NO_GPU, "copies between agents that are no GPU: they stand at GPU 0")                     \
  X(NO_DEVICE, "rows whose device is not in the database: they are the host's now")

typedef enum import_drop_reason {
#define IMPORT_ENUM(name, text) IMPORT_MISS_##name,
  IMPORT_MISS_LIST(IMPORT_ENUM)
#undef IMPORT_ENUM
      IMPORT_MISS_COUNT
} import_drop_reason;

typedef enum import_change {
#define IMPORT_ENUM(name, text) IMPORT_CHANGE_##name,
  IMPORT_CHANGE_LIST(IMPORT_ENUM)
#undef IMPORT_ENUM
      IMPORT_CHANGE_COUNT
} import_change;

typedef struct import_counts {
  uint64_t scopes, device_scopes, instants, counters, flow_ends, memory_events;
  uint64_t threads, streams, steps, processes;
  uint64_t step_marks; /* of the steps: what prof_step() marked, which are no scopes */
  uint64_t missed[IMPORT_MISS_COUNT], changed[IMPORT_CHANGE_COUNT];
  char outlier[64];                         /* the first that was missed for its time */
  char member[32], metadata[32], table[64]; /* the first of each that is not known */
  char original[256]; /* of an export of prof: what its capture has lost. "": nothing */
  /* The same: scopes that a filter left out, and whether it has a time span only. */
  uint64_t filtered;
  bool is_span;
} import_counts;

typedef enum import_end {
  IMPORT_WHOLE,
  /* a bare array that nobody closed, behind a whole element: the format allows it */
  IMPORT_OPEN_ARRAY,
  IMPORT_CUT_SHORT,
  IMPORT_DAMAGED,
  IMPORT_NO_TRACE, /* JSON, but there is no traceEvents in it */
  IMPORT_CAPTURE,  /* already a capture of prof: nothing to import */
  IMPORT_REFUSED   /* a refused database: error has the reason, to be put after the file's name */
} import_end;

typedef struct import_result {
  import_counts counts;
  import_end end;
  uint64_t at; /* of what was read (unpacked): where it ended, or is damaged */
  /* is_packing_cut: what was compressed could not be unpacked to its end */
  bool was_packed, is_packing_cut;
  char error[512]; /* DAMAGED, REFUSED: the reader's words */
} import_result;

/* Reads `from`, writes the capture `to`, which appears under its name when it is whole; nothing is
   written where nothing could be read. must_be_new: a file that is there stays. */
void import_run(const char *from, const char *to, bool must_be_new, import_result *result_out);

/* Removes the unfinished file of an output. Signal-safe. */
void import_output_remove_unfinished(void);

/* Whether the caller shows the progress itself. Then the next imports do not. */
void import_has_other_line(bool has);

enum { IMPORT_NOTES_MAX = IMPORT_MISS_COUNT + IMPORT_CHANGE_COUNT + 3, IMPORT_NOTE_BYTES = 512 };

/* What was dropped, or taken otherwise, one line a reason, and that the trace is not whole. index:
   below IMPORT_NOTES_MAX. False: there is nothing to say of that reason. */
bool import_note(const import_result *result, int index, char to[IMPORT_NOTE_BYTES]);

/* "prof import: ..." on stderr, and the process ends; the output is not there then. */
_Noreturn void import_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* So many bytes of zeros; the process ends where there is no memory. */
void *import_make(size_t bytes);

/* Room for `count` elements, doubled when it is used up. */
void *import_make_room(void *array, size_t *room, size_t count, size_t element_bytes);

#endif
