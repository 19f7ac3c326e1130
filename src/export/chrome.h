/* Chrome JSON as torch.profiler writes it: what the files chrome_*.c share. It is strict JSON, one
   event a line, metadata first. Times are in us with three decimals, from a base that all ranks
   share. docs/reference/export-formats.md says what the file holds, and what each reader needs. */
#ifndef PROF_EXPORT_CHROME_H
#define PROF_EXPORT_CHROME_H

#include <prof/trace.h>
#include <stdbool.h>

#include "../analysis/call_stacks.h"
#include "../analysis/launch.h"
#include "../analysis/torch.h"
#include "../reader/walker.h"
#include "../sink/sink.h"
#include "exporter.h"
#include "flow.h"
#include "names.h"

/* ---- chrome_numbers.c ---- */

/* Numbers of rows. The walk hands out spans from the last begin to the first, thread by thread. So
   a first walk counts the rows or finds their order, and a second walk has the numbers. */

/* ---- chrome_numbers.c: owners of calls ---- */

/* Assigns the "External id" of a vendor's call in a trace with PyTorch's operators. As in Kineto,
   it is the id of the innermost operator or range around the call. Traced functions and other calls
   around it are skipped. The walk visits a call before the scopes around it. So a first walk finds
   each call's operator, and the second walk (chrome_event.c) writes its id. */

/* Deeper than Perfetto draws. Calls below this depth belong to no scope. */
enum { PROF_I_OWNER_DEPTHS = 512 };

/* The id that the calls in a scope will get from it. */
typedef struct prof_i_reserved_id {
  uint64_t id;    /* of the operator; 0: it was no operator */
  uint32_t outer; /* the reservation of the scope around it, if that has the id; 0: none */
} prof_i_reserved_id;

typedef struct prof_i_call_owners {
  uint64_t *calls; /* of each call on lane 0, in the order of both walks: its operator's id; 0 */
  uint32_t call_count, call_room;
  uint32_t call_at; /* of the second walk: the next call */
  /* These of the thread that the first walk is at. */
  uint32_t call_first;
  prof_i_reserved_id *reserved; /* from 1 on */
  uint32_t reserved_count, reserved_room;
  uint32_t open_count; /* depths with a reservation */
  uint32_t open[PROF_I_OWNER_DEPTHS];
} prof_i_call_owners;

/* The operator's id of the call that the second walk has just handed out; 0: it has none. */
uint64_t prof_i_call_owners_next_id(prof_i_call_owners *owners, const prof_i_span *span);

/* ---- chrome_numbers.c: numbers of rows ---- */

/* "Ev Idx", the number of a row among those that torch.profiler numbers, from 0 on. First come
   operators and ranges (cpu_op, user_annotation), thread by thread and of each thread by begin.
   Then come changes of memory, then calls of traced functions, as operators. Numbers are given
   downwards. If rows overlap without nesting, their order between lanes is not by begin. Only a
   trace with PyTorch's operators has numbers. The "External id" of an operator or range is its
   number + 1. Calls inside of it have the same id. */

typedef enum prof_i_number_kind {
  PROF_I_NUMBER_NONE,
  PROF_I_NUMBER_OPERATOR, /* or a range, or a step */
  PROF_I_NUMBER_FUNCTION
} prof_i_number_kind;

/* Of one thread: how many of its rows have no number yet, and the first number of the others. */
typedef struct prof_i_thread_numbers {
  uint64_t operator_first, operators_left;
  uint64_t function_first, functions_left;
} prof_i_thread_numbers;

typedef struct prof_i_event_numbers {
  const prof_trace *trace;
  uint8_t *kinds;                 /* prof_i_number_kind by site; NULL: the trace has no operators */
  prof_i_thread_numbers *threads; /* by number */
  uint64_t operators_end;         /* behind those of all threads' operators */
  uint64_t end;                   /* behind all numbers */
  uint64_t memory_next;           /* of the next change of memory */
  prof_i_call_owners owners;
} prof_i_event_numbers;

/* Counts what is in the window; changes of memory where with_memory. first: the first number.
   PROF_OK or PROF_E_NO_MEMORY. */
int prof_i_event_numbers_init(prof_i_event_numbers *numbers, const prof_trace *trace,
                              uint32_t thread_count, prof_i_window window, bool with_memory,
                              uint64_t first);
void prof_i_event_numbers_fini(prof_i_event_numbers *numbers);

/* Of a scope, an open scope or a step of the host's. */
prof_i_number_kind prof_i_event_numbers_kind(const prof_i_event_numbers *numbers,
                                             const prof_i_span *span);

/* The number of such a span of that kind that the thread's walk has just handed out. */
uint64_t prof_i_event_numbers_next(prof_i_event_numbers *numbers, uint32_t thread,
                                   prof_i_number_kind kind);

/* ---- chrome_numbers.c: calls of functions ---- */

/* "Python id" and "Python parent id" of a traced function's call, and of a module's. They are as
   torch.profiler counts, and events() of Python: calls of all threads by their begins, from 1 on.
   What began before the window begins with it. Of those that begin together, those of the earlier
   thread come first, and of one thread the outer ones. A call's parent is the innermost such call
   around it. */

typedef struct prof_i_python_ids {
  const prof_trace *trace;
  uint8_t *is_function; /* by site; NULL: the trace has no functions */
  uint32_t *numbers;    /* of each call, in the order in which both walks hand them out */
  uint32_t call_count;
  uint64_t before;  /* calls of the captures before, in a merged file */
  uint32_t call_at; /* of the second walk: the next call */
  /* Both walks visit a call after its inner calls. So a number is reserved for it, from 1 on, the
     same one in both walks. */
  uint32_t *holders; /* by reservation: its call, in the order of the walks */
  uint32_t reserved_count;
  uint32_t reserved_last;   /* reservations so far in this walk */
  uint32_t *reserved_index; /* by place on lane 0's stack: the call's reservation; 0: none */
  uint32_t room;
} prof_i_python_ids;

typedef struct prof_i_python_id {
  uint64_t own, parent; /* parent 0: none */
} prof_i_python_id;

/* Walks the trace where it has functions. before: the numbers begin behind this one. PROF_OK, or
   PROF_E_NO_MEMORY. */
int prof_i_python_ids_init(prof_i_python_ids *ids, const prof_trace *trace, uint32_t thread_count,
                           prof_i_window window, uint64_t before);
void prof_i_python_ids_fini(prof_i_python_ids *ids);

static inline bool prof_i_python_ids_any(const prof_i_python_ids *ids) {
  return ids->is_function != NULL;
}
/* Are plain scopes of that site calls of functions? */
static inline bool prof_i_python_ids_has(const prof_i_python_ids *ids, uint32_t site) {
  return ids->is_function && ids->is_function[site];
}
/* Is the span a call of a function? */
bool prof_i_python_ids_is_call(const prof_i_python_ids *ids, const prof_i_span *span);

/* For the function's span that the second walk has just handed out. Both walks hand out the same
   spans. False: no memory. */
bool prof_i_python_ids_next(prof_i_python_ids *ids, prof_i_walker *walker, const prof_i_span *span,
                            prof_i_python_id *id_out);

/* ---- the writer ---- */

enum {
  /* ts is cut here: the digits above change ten times a second, the eight below each time */
  PROF_I_CHROME_HIGH_NS = 100000000,
  PROF_I_SITE_CACHE_COUNT = 4096, /* 1 MiB of rendered call sites, found by number */
  PROF_I_SITE_TEXT_BYTES = 246,
  PROF_I_TRACK_TEXT_BYTES = 64,
  PROF_I_KEY_BYTES =
      448, /* an argument's key, 64 bytes escaped to 6 each, with what makes it unique */
  PROF_I_LOCATION_BYTES =
      32768, /* a path of 4096 bytes, escaped to 6 each, and more; what is longer is left out */
  PROF_I_JSON_BYTES = 16385 /* more than a record holds */
};

/* The text of one call site's scopes: {"ph":"X","cat":"operator","name":"conv2d. A traced
   function's has the end of its arguments too. Both lengths are 0 if the texts are too long, or if
   its scopes have a stack. Such scopes go to chrome_event.c. */
typedef struct prof_i_site_json {
  uint32_t site_plus_one;
  uint16_t bytes, location_bytes;
  bool is_function;    /* each of its calls has a number */
  uint8_t number_kind; /* prof_i_number_kind */
  char text[PROF_I_SITE_TEXT_BYTES];
} prof_i_site_json;

/* The keys of one "args" object so far: none may come twice. */
typedef struct prof_i_keys {
  unsigned count;
  uint32_t bytes[PROF_ARGS_MAX + 8];
  char text[PROF_ARGS_MAX + 8][PROF_I_KEY_BYTES];
} prof_i_keys;

typedef struct prof_i_written_counts {
  uint64_t scope_count;
  uint64_t open_count;
  uint64_t step_count;
  uint64_t instant_count;
  uint64_t counter_count;
  uint64_t flow_count; /* ends, two an arrow */
  uint64_t mark_count; /* of these, those in no scope */
} prof_i_written_counts;

enum { PROF_I_NAMED_DEVICES = 64 };

/* A value of the user's, or of a sampler's. */
typedef struct prof_i_counter_value {
  uint64_t ns;
  double value;
  prof_i_text category, name; /* the trace's bytes */
  prof_device device;
  uint32_t thread, number; /* number: as they came */
} prof_i_counter_value;

typedef struct prof_i_counter_values {
  prof_i_counter_value *items;
  uint32_t count, room;
} prof_i_counter_values;

/* Of a launch: the number of the host's scope or call, once that is written; 0 before. */
typedef struct prof_i_correlation {
  uint64_t id;
  uint64_t external_id; /* of that scope; of the one that the call stands in */
  uint32_t lane;        /* of the host's scope */
  bool has_arrow;       /* the device's side is written, and the filter takes the launch */
} prof_i_correlation;

/* A run of a thread's scopes that begin and end together. The walk hands out the inner ones first
   (src/reader/internal.h). Viewers take the first of two equal scopes for the outer one. So the
   texts of a run change their order in the sink before they are written: outer ones first. */
typedef struct prof_i_reversal {
  uint64_t start_ns, duration_ns;
  size_t *begins; /* of its texts but the first, in bytes behind the first */
  uint32_t count, room;
} prof_i_reversal;

/* Nothing begins at this moment. */
#define PROF_I_REVERSAL_NONE UINT64_MAX

/* What the captures of a merged file share. Numbers continue from capture to capture. */
typedef struct prof_i_chrome_shared {
  prof_i_sink accounts; /* in memory: the member "prof" of each capture */
  uint64_t arrow_count;
  uint64_t number_next; /* of External id and Ev Idx */
  uint64_t python_count;
} prof_i_chrome_shared;

typedef struct prof_i_chrome {
  const prof_i_export *run;
  const prof_i_export_place *place; /* NULL: the capture is alone in the file */
  prof_i_chrome_shared *shared;     /* NULL: the same */
  const prof_trace *trace;
  prof_i_sink *sink;
  prof_i_window window;
  uint64_t first_ns; /* where the first of what is written begins, or the window before it */
  bool with_marks, with_memory;
  prof_i_metadata metadata;
  prof_trace_info info;
  uint64_t base_ns;     /* the base time, Unix ns */
  uint64_t epoch_ns;    /* the capture's start after the base time */
  uint64_t external_id; /* given last */
  /* Ids that are reserved for the next scope of each depth, because a call inside of it has the id
     already. 0: none. */
  uint64_t owner_ids[PROF_I_OWNER_DEPTHS];
  uint32_t owner_count;         /* the number of reserved ones */
  prof_i_call_numbers backward; /* of the backward call that this thread's row was last for */
  uint64_t backward_start_ns;
  uint32_t backward_depth;
  prof_i_written_counts written;
  prof_i_self_check check;
  prof_i_reversal reversal; /* of the thread that is written */
  prof_i_flows flows;
  prof_i_forwards forwards;
  prof_i_counter_values counters;
  uint64_t named_pids[PROF_I_NAMED_DEVICES]; /* processes of devices that have a name so far */
  uint32_t named_count;
  const prof_i_tids *tids; /* of each thread */
  prof_i_launches launches;
  prof_i_correlation *correlations; /* of each of them */
  /* the thread's launches; some of what vendors' own tracing told, which any scope may have
     launched */
  bool has_launches, has_records;

  /* The track that is being written: ","pid":1,"tid":2,"ts":123   with the digits of ts that stand
     for whole 10^8 ns */
  uint32_t thread;
  uint32_t lane;
  uint32_t lanes_named; /* lanes of this thread that have a name so far */
  prof_i_tids ids;
  uint64_t high_ns; /* what those digits stand for */
  uint32_t track_bytes;
  uint32_t track_fixed_bytes; /* of them before the digits */
  char track_text[PROF_I_TRACK_TEXT_BYTES];

  uint32_t whole_us[1000];    /* "7", "77", "777", and its length in the highest byte */
  uint32_t fraction_us[1000]; /* ".007" */

  prof_i_stack_folders stack_folders;
  prof_i_call_stacks call_stacks; /* if stacks are an option, and functions are traced */
  prof_i_walker *walker;          /* of the thread, there or where there are functions; else NULL */
  prof_i_python_ids python_ids;
  prof_i_event_numbers numbers;

  const prof_i_selection *selection;      /* NULL: no filter */
  const prof_i_export_filtered *filtered; /* set if there is a filter */
  bool is_passing_over;                   /* the row at hand is left out */
  prof_i_sink unread;                     /* discards the rows that a filter leaves out */
  prof_event *event; /* the event at hand: the driver's, which may be changed */
  prof_i_keys keys;
  /* the event at hand is a function's: the keys of its place are taken, for prof import believes
     them */
  bool has_location;
  bool has_python_id; /* the event at hand is a traced function's or a module's */
  char location_text[PROF_I_LOCATION_BYTES];
  char json_text[PROF_I_JSON_BYTES]; /* an argument that is JSON already, with a NUL */
  char format_text[PROF_I_FORMAT_BYTES];
  prof_i_site_json sites[PROF_I_SITE_CACHE_COUNT];
} prof_i_chrome;

static inline char *prof_i_chrome_append(char *to, const char *text) {
  const size_t bytes = strlen(text);
  memcpy(to, text, bytes);
  return to + bytes;
}

/* chrome.c: prepares a state of zeros to write parts of the run's trace into the sink. shared: NULL
   if the capture is alone in the file. */
void prof_i_chrome_use(prof_i_chrome *w, prof_i_export *run, prof_i_sink *sink,
                       prof_i_chrome_shared *shared);
void prof_i_chrome_shared_fini(prof_i_chrome_shared *shared);

/* The kernel's number of the main thread, which is its process's own number. */
static inline uint64_t prof_i_chrome_main_tid(const prof_i_chrome *w) {
  return w->info.pid - (w->place ? w->place->pid_offset : 0);
}

/* chrome_meta.c: the thread or the process becomes the current track. */
void prof_i_chrome_select_thread(prof_i_chrome *w, uint32_t index);
void prof_i_chrome_select_process(prof_i_chrome *w);
/* Makes a lane of w->ids the current track. */
void prof_i_chrome_set_track(prof_i_chrome *w, uint32_t lane);
/* A moment of the capture, as ts has it. */
void prof_i_chrome_put_time(prof_i_chrome *w, uint64_t start_ns);
/* The end of a name, then pid, tid and ts. */
void prof_i_chrome_put_track_time(prof_i_chrome *w, uint64_t start_ns);
void prof_i_chrome_put_process(prof_i_chrome *w, uint64_t pid, const char *name, const char *label);
void prof_i_chrome_put_thread(prof_i_chrome *w, uint64_t pid, uint64_t tid, prof_i_text name,
                              uint64_t order);
/* The same of a lane of a thread's or a stream's, with the trace's own number of that. */
void prof_i_chrome_put_row(prof_i_chrome *w, const prof_i_tids *ids, uint32_t lane,
                           prof_i_text name, uint64_t order);

/* chrome_plain.c: prof_i_exporter.plain, and what chrome_event.c writes in the same way. */
size_t prof_i_chrome_put_plain(prof_i_export *run, const prof_i_span *spans, size_t count);
/* Once, before the first scope. */
void prof_i_chrome_fill_short_us(prof_i_chrome *w);
char *prof_i_chrome_put_python_id(char *to, const prof_i_python_id *id);
char *prof_i_chrome_put_event_number(char *to, prof_i_number_kind kind, uint64_t number);
/* Does a scope of that site and name have the traced functions around it among its arguments? A
   function has not, because the viewer shows them. A module has, because it is a row of tables. */
bool prof_i_chrome_has_callers(const prof_i_chrome *w, uint32_t site, prof_i_text name);

/* chrome_event.c: event, counter and flow of prof_i_exporter. */
int prof_i_chrome_put_event(prof_i_export *run, prof_i_export_event *event);

/* chrome_arrows.c: writes the arrows. */
void prof_i_chrome_put_flows(prof_i_chrome *w);

/* chrome_graphs.c: keeps the counter w->event until all threads have been walked (false: no
   memory); then writes all. */
bool prof_i_chrome_add_counter(prof_i_chrome *w, const prof_i_span *span);
void prof_i_chrome_put_counters(prof_i_chrome *w);

/* All that the trace says of memory, after its threads. PROF_OK or a failure. */
int prof_i_chrome_put_memory(prof_i_chrome *chrome);

/* chrome_args.c: the members of "args" of w->event, without the braces; has_members: something
   stands before them. */
void prof_i_chrome_put_args(prof_i_chrome *w, bool has_members);
/* False: it would write none. */
bool prof_i_chrome_has_args(const prof_event *event);

/* An id as a number, or as text in hexadecimal, which viewers read back as the same number, where a
   double would not hold it. */
void prof_i_chrome_put_id(prof_i_chrome *w, uint64_t id);

/* Whether the text is the dimensions of `count` inputs (64 at most), in JSON without blanks. Then
   it may be written as it is: "[[[2,10],[3,10]],[],[4]]". An input has its own dimensions, or is a
   list of tensors with theirs. lists_out: a bit for each input that is a list. */
bool prof_i_dims_check(const char *text, uint64_t bytes, uint32_t count, uint64_t *lists_out);

/* Where a function is defined, among the arguments of its calls: ,"file":"a.py","line":7   The
   compiler or the interpreter has named the function, and others have that name too. A function of
   C that Python has called has `frame` instead. prof import reads these (tools/import/args.c), so
   rows and frames of stacks are the same. For a site with a name of the user's nothing is written,
   because it would make the text of each scope a third longer. Such a site is written once, at the
   JSON's end (chrome_meta.c). False: there is no room for it. */
bool prof_i_chrome_location_text(const prof_i_site_info *site, prof_i_text name, char *to,
                                 size_t room, size_t *bytes_out);

/* The text of "Call stack", in quotes. With folders, each of which ends in a separator, it is
   written as torch.profiler writes it. */
void prof_i_chrome_put_stack(prof_i_chrome *w, prof_i_text stack);

/* chrome_device.c: streams are written behind all threads. */
void prof_i_chrome_name_devices(prof_i_chrome *w);
/* A value of a graph, which stands on its device's process, or on the thread's that is written: up
   to where its name begins; and from there to its time. */
void prof_i_chrome_begin_value(prof_i_chrome *w, prof_device device, prof_i_text category);
void prof_i_chrome_put_value_time(prof_i_chrome *w, prof_device device, uint64_t ns);
void prof_i_chrome_name_stream(prof_i_chrome *w, const prof_trace_thread *thread, uint32_t index,
                               uint32_t lane);
int prof_i_chrome_find_launches(prof_i_chrome *w);    /* PROF_OK or PROF_E_NO_MEMORY */
void prof_i_chrome_select_launches(prof_i_chrome *w); /* of the thread that is written next */
/* A host's scope or call with those numbers: did it launch anything that is in the trace? Inner
   scopes come first. */
bool prof_i_chrome_correlate(prof_i_chrome *w, const prof_i_span *span, uint64_t id,
                             uint64_t external_id, bool is_on_stream);
/* what launched this thing on a device; NULL: it is not written */
const prof_i_correlation *prof_i_chrome_correlation_of(prof_i_chrome *w, const prof_i_span *span);

/* chrome_meta.c */
void prof_i_chrome_put_head(prof_i_chrome *w);
void prof_i_chrome_name_lane(prof_i_chrome *w, uint32_t lane);
void prof_i_chrome_put_tail(prof_i_chrome *w);

/* ---- chrome_plain.c: the order of texts ---- */

/* The text that comes next belongs to the run. */
void prof_i_reversal_add_text(prof_i_reversal *reversal, prof_i_sink *sink);
/* Puts the run's texts in order. It is over then. */
void prof_i_reversal_flush(prof_i_reversal *reversal, prof_i_sink *sink);

/* Before each text of a thread's. */
static inline void prof_i_reversal_next_text(prof_i_reversal *reversal, prof_i_sink *sink,
                                             uint64_t start_ns, uint64_t duration_ns) {
  if (__builtin_expect(reversal->start_ns == start_ns && reversal->duration_ns == duration_ns, 0)) {
    prof_i_reversal_add_text(reversal, sink);
    return;
  }
  if (__builtin_expect(reversal->count > 0, 0)) prof_i_reversal_flush(reversal, sink);
  reversal->start_ns = start_ns;
  reversal->duration_ns = duration_ns;
  sink->held = sink->next;
}

/* Behind the last text of a thread's. */
static inline void prof_i_reversal_end_thread(prof_i_reversal *reversal, prof_i_sink *sink) {
  prof_i_reversal_flush(reversal, sink);
  reversal->start_ns = PROF_I_REVERSAL_NONE;
  sink->held = NULL;
}

/* Before each span of a thread that is written. */
static inline void prof_i_chrome_next_span(prof_i_chrome *w, const prof_i_span *span) {
  if (span->start_ns < w->first_ns) w->first_ns = span->start_ns;
  if (span->lane >= w->lanes_named) { /* its name stands before what is reversed */
    prof_i_reversal_end_thread(&w->reversal, w->sink);
    prof_i_chrome_name_lane(w, span->lane);
  }
  prof_i_reversal_next_text(&w->reversal, w->sink, span->start_ns, span->duration_ns);
  if (span->kind != PROF_EVENT_SCOPE && span->kind != PROF_EVENT_OPEN &&
      span->kind != PROF_EVENT_STEP)
    return;
  prof_i_self_check_scope(&w->check, span);
  if (w->flows.pending != PROF_I_NO_FLOW && span->lane == 0)
    prof_i_flows_bind(&w->flows, span->depth, span->start_ns, span->start_ns + span->duration_ns);
}

#endif
