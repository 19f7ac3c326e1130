/* An exporter writes one format of prof_dump(). It is a table of functions. The driver (driver.c)
   walks a trace and calls them. dump.c finds the table by the format's number or by the ending of
   the path. Exporters write into a sink and know no file. A whole one of 40 lines is in
   docs/how-to/write-an-exporter.md. */
#ifndef PROF_EXPORT_EXPORTER_H
#define PROF_EXPORT_EXPORTER_H

#include <prof/profiler.h>
#include <prof/trace.h>
#include <stdbool.h>

#include "../analysis/filter.h"
#include "../reader/walker.h"
#include "../sink/sink.h"
#include "names.h"
#include "selection.h"
#include "self_check.h"

/* The part of a capture that is written: what ends after from_ns and begins before to_ns. Both are
   from the capture's start. 0: no bound. */
typedef struct prof_i_window {
  uint64_t from_ns;
  uint64_t to_ns;
} prof_i_window;

static inline bool prof_i_window_contains(const prof_i_window *window, uint64_t start_ns,
                                          uint64_t end_ns) {
  return (window->from_ns == 0 || end_ns > window->from_ns) &&
         (window->to_ns == 0 || start_ns < window->to_ns);
}

/* A window without events, for a capture of a merged file that begins after the cut: merge.c. */
static inline bool prof_i_window_is_empty(const prof_i_window *window) {
  return window->from_ns == UINT64_MAX;
}

/* Where marks of the whole capture are. */
static inline uint64_t prof_i_window_begin_ns(const prof_i_window *window) {
  return prof_i_window_is_empty(window) ? 0 : window->from_ns;
}

/* Whether an arrow leads from its launch, in the window, to this work of a device. Work that began
   before its launch has none, because viewers refuse an end before its begin. */
static inline bool prof_i_window_has_launch(const prof_i_window *window, const prof_event *event,
                                            uint32_t thread_count) {
  return (event->kind == PROF_EVENT_SCOPE || event->kind == PROF_EVENT_OPEN) &&
         event->flags & PROF_EVENT_ON_DEVICE && event->launch.thread < thread_count &&
         event->start_ns >= event->launch.start_ns &&
         prof_i_window_contains(window, event->launch.start_ns, event->launch.start_ns);
}

typedef struct prof_i_stack_folders {
  const char *const *folders;
  uint32_t count;
} prof_i_stack_folders;

/* What the user has at the top of Chrome JSON: keys, and values that are JSON already. They are
   checked before the first byte is written, so that a wrong one costs no file. */
typedef struct prof_i_metadata {
  const prof_metadata *items;
  uint32_t count;
} prof_i_metadata;

/* A capture's place in a file of several captures: merge.h. */
typedef struct prof_i_export_place {
  uint32_t number; /* of the capture, from 0 */
  bool is_last;
  uint32_t first_sequence; /* as many sequences of packets came before */
  /* In place of the capture's own: its start as Unix time, and by CLOCK_MONOTONIC of the first
     capture's host. */
  uint64_t start_unix_ns, start_ns;
  uint64_t offset_ns;   /* of the capture's start, from the start of the time line */
  uint64_t duration_ns; /* of the time line */
  uint64_t pid_offset;  /* to add, where another capture has the same number */
  const char *label;    /* of its devices: "rank 3" */
  bool is_process_labelled;
  void *shared; /* of exporter->shared_bytes, zero at first: what all captures of the file share */
} prof_i_export_place;

/* What is left out because the format cannot hold it, as the driver counts it. */
typedef struct prof_i_export_lacks {
  uint64_t argument_scopes; /* scopes whose arguments are left out */
  uint64_t arrows, memory;  /* memory: events */
  uint64_t values;          /* counter values and instants */
  uint64_t steps;
} prof_i_export_lacks;

/* What a capture has beside its events. */
typedef struct prof_i_export_facts {
  uint64_t scopes; /* ended and open ones, and work of devices */
  uint64_t device_clocks, notes, level_changes;
  uint64_t functions, function_places; /* traced functions, and those with a file */
} prof_i_export_facts;

/* prof_dump_options, checked. */
typedef struct prof_i_export_options {
  prof_i_window window;
  prof_i_metadata metadata;
  bool with_stacks, with_marks, with_memory;
  prof_i_stack_folders stack_folders;
  const prof_i_export_place *place; /* NULL: the capture is alone in the file */
  const prof_i_filter *filter;      /* NULL: no filter. selection.h has its rules */
  prof_i_export_filtered *filtered; /* set if `filter` is set */
  prof_i_export_lacks *lacks;       /* the driver adds to it; NULL: it does not count */
} prof_i_export_options;

/* What an exporter can do. dump.c refuses options that need another ability. */
typedef enum prof_i_export_ability {
  PROF_I_EXPORT_CUT = 1u,  /* gzip, from_ns, to_ns */
  PROF_I_EXPORT_TEXT = 2u, /* prof_trace_json() */
  PROF_I_EXPORT_METADATA = 4u,
  PROF_I_EXPORT_STACKS = 8u,
  PROF_I_EXPORT_MARKS = 16u,
  PROF_I_EXPORT_NO_MEMORY = 32u,
  PROF_I_EXPORT_MERGED = 64u /* several captures in one file */
} prof_i_export_ability;

/* In both orders, a thread's events come together. */
typedef enum prof_i_export_order {
  /* As the reader walks: of a thread the last begin first, and of those that begin together the
     inner one first. Streams of devices come after all threads. Memory is constant. */
  PROF_I_ORDER_WALKED,
  /* By time: each scope comes twice, at its begin and at its end. Memory grows with the scopes that
     are open together. */
  PROF_I_ORDER_TIME
} prof_i_export_order;

typedef enum prof_i_phase { PROF_I_PHASE_WHOLE, PROF_I_PHASE_BEGIN, PROF_I_PHASE_END } prof_i_phase;

/* What a callback gets. It is valid during the call; the bytes of texts are valid as long as the
   trace. */
typedef struct prof_i_export_event {
  prof_i_phase phase;
  bool is_left_out; /* the filter leaves it out; only with takes_left_out... */
  bool has_launch;  /* work of a device, with an arrow from its launch: event->launch */
  /* Of PROF_I_ORDER_WALKED the walker's lane. Else the first lane of its track in which the scope
     nests: 0, or more if it overlaps others. */
  uint32_t lane;
  uint64_t start_ns, end_ns;  /* from the capture's start */
  prof_i_text name, category; /* "(unnamed)" and "scope" if the event has none */
  const prof_event *event;    /* NULL at PROF_I_PHASE_END */
  const prof_i_span *span;    /* of PROF_I_ORDER_WALKED; else NULL */
  /* A begin may set this to memory of malloc(). The end has it then, and the driver frees it. */
  void *kept;
} prof_i_export_event;

/* An open scope of PROF_I_ORDER_TIME: its begin is written, and its end follows. */
typedef struct prof_i_pending_end {
  uint64_t start_ns, end_ns;
  prof_i_text name, category;
  void *kept;
  uint32_t lane;
  bool is_left_out;
} prof_i_pending_end;

typedef struct prof_i_pending_ends {
  prof_i_pending_end *items; /* the one that ends first is the last */
  uint32_t count, room;
} prof_i_pending_ends;

typedef struct prof_i_exporter prof_i_exporter;

enum { PROF_I_EXPORT_SUFFIXES = 3 };

/* One run of an exporter. */
typedef struct prof_i_export {
  const prof_i_exporter *exporter;
  const prof_trace *trace;
  const prof_i_export_options *options;
  prof_i_sink *sink;
  prof_i_findings *findings; /* the exporter adds; the driver adds PROF_I_FINDING_CROWDED */
  /* In a merged file, numbers of processes and the start are those of the file. */
  prof_trace_info info;
  prof_i_tids *tids;          /* rows of each thread, for viewers */
  uint32_t thread;            /* of the event */
  prof_i_walker *walker;      /* of that thread, in PROF_I_ORDER_WALKED; NULL between threads */
  void *state;                /* the exporter's own: zero at first */
  prof_event event;           /* the driver's room for the event */
  prof_i_trace_filter filter; /* this and the next are initialized if the options have a filter */
  prof_i_selection selection;
} prof_i_export;

/* One thread calls the functions, one after the other. Each may be NULL. A status but PROF_OK ends
   the run, and its text is set by prof_i_fail(). A failed sink ends the run as well, so the
   functions need not check it. */
struct prof_i_exporter {
  const char *name;
  prof_format format; /* PROF_FORMAT_DEFAULT: no format of prof_dump() */
  /* Endings of the paths that select it if no format is given: ".prof". The longest ending of all
     exporters selects. NULL behind the last. */
  const char *suffixes[PROF_I_EXPORT_SUFFIXES + 1];
  uint32_t abilities; /* prof_i_export_ability */
  bool is_private;    /* its files are readable by their owner alone */
  prof_i_export_order order;
  bool has_category_tracks; /* lanes are by thread and category; false: by thread */
  uint32_t event_kinds;     /* PROF_I_KIND() of each kind that goes to `event` */
  /* `event` is also called for scopes that the filter leaves out, because other rows depend on
     them. */
  bool takes_left_out;
  /* The same for events of memory, because graphs are of whole pools. */
  bool takes_left_out_memory;
  bool lacks_arguments, lacks_launches; /* launches: arrows from calls to work of devices */
  /* The format has self times. So scopes that ended before the window are also walked: their time
     is not part of the outer scope's self time. */
  bool has_self_times;
  size_t state_bytes;
  size_t shared_bytes; /* prof_i_export_place.shared */

  int (*begin)(prof_i_export *run); /* before the first thread */
  /* Before a thread's events, also if it has none. */
  int (*thread)(prof_i_export *run, const prof_trace_thread *thread);
  int (*event)(prof_i_export *run, prof_i_export_event *event);
  int (*counter)(prof_i_export *run, prof_i_export_event *event);
  int (*flow)(prof_i_export *run, prof_i_export_event *event);
  int (*end)(prof_i_export *run); /* after the last thread, unless something failed */
  /* Frees what the state has, also after a failure. */
  void (*destroy)(prof_i_export *run);
  /* Frees what the captures of a merged file share, also after a failure. */
  void (*destroy_shared)(void *shared);

  /* A fast path of PROF_I_ORDER_WALKED. It writes spans from the first on, skips those outside of
     the window, and returns how many it has done with. The driver sends the next span through the
     functions above, and calls it again. */
  size_t (*plain)(prof_i_export *run, const prof_i_span *spans, size_t count);
  /* The same of PROF_I_ORDER_TIME. It takes spans of the current thread from the last one on, and
     the ends of open scopes between them. It adds to `open` while there is room. The lane of a
     scope that it adds is 0, and texts of these need not be set if `event` does not read them. */
  size_t (*plain_by_time)(prof_i_export *run, prof_i_pending_ends *open, const prof_i_span *spans,
                          size_t count);
  /* Writes everything, for a format that is not made of events. Nothing else is called. */
  int (*copy)(const prof_trace *trace, prof_i_sink *sink);
};

#define PROF_I_KIND(kind) (1u << PROF_EVENT_##kind)

/* The formats of prof_dump(). */
extern const prof_i_exporter prof_i_chrome_exporter, prof_i_raf_exporter, prof_i_capture_exporter,
    prof_i_pftrace_exporter, prof_i_csv_exporter, prof_i_folded_exporter,
    prof_i_speedscope_exporter, prof_i_pprof_exporter, prof_i_packed_exporter,
    prof_i_sqlite_exporter, prof_i_rpd_exporter;

static inline prof_i_text prof_i_text_from(const char *text) {
  return (prof_i_text){text, strlen(text)};
}

static inline prof_i_text prof_i_text_or(prof_i_text text, const char *otherwise) {
  return text.bytes > 0 ? text : prof_i_text_from(otherwise);
}

/* Whether they are the same bytes in memory, as an event's name is its site's. */
static inline bool prof_i_text_is_same(prof_i_text text, const char *data, uint64_t bytes) {
  return text.data == data && text.bytes == bytes;
}

static inline bool prof_i_device_is_host(prof_device device) {
  return device.type == PROF_DEVICE_CPU || device.type == 0;
}

/* driver.c: writes the trace. PROF_OK, or the failure of the exporter, the sink or the reader.
   *findings_out is set in both cases. */
int prof_i_export_run(const prof_i_exporter *exporter, const prof_trace *trace,
                      const prof_i_export_options *options, prof_i_sink *sink,
                      prof_i_findings *findings_out);

/* dump.c: the longest suffix of `path` that selects a format, inside of `path`. NULL: no format has
   it. format_out may be NULL. */
const char *prof_i_export_suffix_of(const char *path, uint32_t *format_out);

/* Whether the run writes the begin of the file, and its end. */
static inline bool prof_i_export_is_first(const prof_i_export *run) {
  return !run->options->place || run->options->place->number == 0;
}
static inline bool prof_i_export_is_last(const prof_i_export *run) {
  return !run->options->place || run->options->place->is_last;
}

/* A moment of the capture, from the start of the file's time line. */
static inline uint64_t prof_i_export_ns(const prof_i_export *run, uint64_t ns) {
  return run->options->place ? run->options->place->offset_ns + ns : ns;
}

/* The number of a device's process. In a merged file, each capture has devices of its own. */
static inline uint64_t prof_i_export_device_pid(const prof_i_export *run, prof_device device) {
  return run->options->place ? prof_i_tids_merged_pid(run->options->place->number, device)
                             : prof_i_tids_device_pid(device);
}

/* dump.c: the exporter of a known format. */
const prof_i_exporter *prof_i_exporter_of(uint32_t format);

/* dump.c: the suffixes of a known format. NULL follows the last one. */
const char *const *prof_i_export_suffixes(uint32_t format);

/* dump.c: as prof_trace_dump(), for the events that pass the filter (NULL: all). If no event
   passes, it writes no file and returns PROF_OK. lacks_out: NULL, or what the format cannot
   hold. */
int prof_i_dump_filtered(const prof_trace *trace, const char *path,
                         const prof_dump_options *options, const prof_i_filter *filter,
                         prof_i_export_filtered *filtered_out, prof_i_export_lacks *lacks_out);

/* dump.c: adds what the trace has. Takes no walk. */
void prof_i_export_facts_add(prof_i_export_facts *facts, const prof_trace *trace);

static inline void prof_i_export_facts_sum(prof_i_export_facts *facts,
                                           const prof_i_export_facts *more) {
  facts->scopes += more->scopes;
  facts->device_clocks += more->device_clocks;
  facts->notes += more->notes;
  facts->level_changes += more->level_changes;
  facts->functions += more->functions;
  facts->function_places += more->function_places;
}

/* dump.c: expands `path` and writes the trace to it. If `path` is NULL, writes to own_path without
   expansion. *is_kept_out: the output is a file and holds the whole trace. Returns a status with
   its text. */
int prof_i_dump(const prof_trace *trace, const char *path, const char *own_path,
                const prof_dump_options *options, bool *is_kept_out);

/* ---- metadata.c ---- */

/* PROF_OK, or PROF_E_INVALID with the key and what is wrong. */
int prof_i_metadata_check(const prof_i_metadata *metadata);

bool prof_i_metadata_has_key(const prof_i_metadata *metadata, const char *key);

/* "key": value, a line each. Of a key that comes twice the last counts. */
void prof_i_metadata_put(const prof_i_metadata *metadata, prof_i_sink *sink);

/* Is it one JSON value (RFC 8259), strict, in UTF-8, at most 64 deep? at_out: the byte where it is
   not. */
bool prof_i_json_is_value(const char *text, size_t *at_out);

/* Such a value, on one line, and nothing in it that could open or end a <script>. */
void prof_i_json_put(prof_i_sink *sink, const char *json);

#endif
