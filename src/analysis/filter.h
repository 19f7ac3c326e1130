/* A filter of scopes, as the commands that read captures offer it. It is parsed once, and resolved
   once for each trace: to one byte for each call site and thread. So a plain scope costs one look.

   A filter decides which scopes are shown and counted. It does not change their numbers: the self
   time of a scope is without all its children, whether these are shown or not. Called by
   src/analysis and the command. */
#ifndef PROF_ANALYSIS_FILTER_H
#define PROF_ANALYSIS_FILTER_H

#include <prof/trace.h>
#include <regex.h>
#include <stdbool.h>

#include "../format/parse.h"
#include "../reader/capture.h"

/* The options as their user wrote them. NULL: not given. All that are given must hold. */
typedef struct prof_i_filter_words {
  const char *name;        /* a POSIX extended regular expression, found anywhere in the name */
  const char *category;    /* the whole category */
  const char *thread;      /* the whole name, or the kernel's number */
  const char *process;     /* the whole name, or the number */
  const char *rank;        /* "3": of the process */
  const char *device;      /* "cuda:0", or "cuda" for all of them */
  const char *level;       /* "1" or "2" */
  const char *min;         /* the least duration, "10us" */
  const char *from;        /* scopes that begin then or later, from the capture's start: "1.5s" */
  const char *to;          /* scopes that begin earlier */
  const char *step;        /* scopes that begin in these steps: "3", "3..5", "3..", "..5" */
  const char *const *args; /* "key=value" each */
  size_t arg_count;
} prof_i_filter_words;

/* Enumerates the options that have one word: returns the place of the word, and the option's name.
   NULL: no such index. --arg is not included, because it may have several. */
const char **prof_i_filter_word(prof_i_filter_words *words, size_t index, const char **name_out);

/* Reads "name=REGEX", "arg=KEY=VALUE" and so on. The texts must stay valid. args has room for
   `count` texts. PROF_E_INVALID: a text is not of an option. */
int prof_i_filter_words_read(prof_i_filter_words *words, const char *const *texts, size_t count,
                             const char **args);

typedef struct prof_i_filter prof_i_filter;

/* Reads the words, which must stay valid. PROF_E_INVALID: prof_last_error() has the option, its
   value and the reason. PROF_E_NO_MEMORY. */
int prof_i_filter_create(const prof_i_filter_words *words, prof_i_filter **filter_out);
void prof_i_filter_destroy(prof_i_filter *filter);

/* Whether --process and --rank take a process of this capture. filter NULL: true. */
bool prof_i_filter_takes_trace(const prof_i_filter *filter, const prof_trace *trace);

/* Whether --thread, --process and --rank take a thread of this capture. filter NULL: true. */
bool prof_i_filter_takes_thread(const prof_i_filter *filter, const prof_trace *trace,
                                uint32_t index);

/* "10us", "1.5s", "0": a number with ns, us, ms or s. False: it is not one, or past 64 bits. */
bool prof_i_filter_read_time(const char *text, uint64_t *ns_out);

/* ---- filter_words.c: a parsed filter ---- */

enum { PROF_I_FILTER_ARGS_MAX = 16 };

typedef struct prof_i_filter_arg {
  const char *key, *value;
  size_t key_bytes;
} prof_i_filter_arg;

struct prof_i_filter {
  prof_i_filter_words words;
  regex_t name;
  bool has_name;
  uint32_t level; /* 0: both */
  int32_t rank;   /* with words.rank */
  uint64_t min_ns, from_ns;
  uint64_t to_ns; /* UINT64_MAX: to the end */
  bool has_steps;
  uint64_t first_step, last_step;
  prof_i_filter_arg args[PROF_I_FILTER_ARGS_MAX];
  uint32_t arg_count;
};

/* "cuda:0" is of "cuda:0" and of "cuda". */
bool prof_i_filter_takes_device(const char *word, prof_device device);

/* ---- filter.c: a filter resolved for one trace ---- */

typedef struct prof_i_time_window {
  uint64_t from_ns, to_ns; /* to_ns is not part of it */
} prof_i_time_window;

/* One thread at a time uses it. */
typedef struct prof_i_trace_filter {
  const prof_i_filter *filter;
  const prof_trace *trace;
  uint8_t *takes_site;    /* by site: its plain scopes pass, and records that say no more */
  uint8_t *takes_thread;  /* by index */
  uint8_t *takes_process; /* by thread: whether its process passes */
  uint64_t min_ns;
  prof_i_time_window window;   /* around all windows */
  prof_i_time_window *windows; /* of steps, by time; they do not touch */
  uint32_t window_count;
  uint32_t record_flags; /* PROF_I_FLAG_*: parts of records that the filter looks at */
  bool has_args;
  prof_event event; /* scratch */
} prof_i_trace_filter;

/* filter NULL: takes everything. 0 or PROF_E_NO_MEMORY. */
int prof_i_trace_filter_init(prof_i_trace_filter *of, const prof_trace *trace,
                             const prof_i_filter *filter);

/* The same of a trace that starts at `offset_ns` of the time line that --from and --to are of. */
int prof_i_trace_filter_init_at(prof_i_trace_filter *of, const prof_trace *trace,
                                const prof_i_filter *filter, uint64_t offset_ns);
void prof_i_trace_filter_fini(prof_i_trace_filter *of);

/* Whether an expanded event passes, apart from its thread, duration and time. */
bool prof_i_trace_filter_takes_event(const prof_i_trace_filter *of, const prof_event *event);

/* The same for a span that has a record. */
bool prof_i_trace_filter_takes_record(prof_i_trace_filter *of, uint32_t thread,
                                      const prof_i_span *span);

/* Whether a name passes. */
bool prof_i_filter_takes_name(const prof_i_filter *filter, const char *name, uint64_t bytes);

bool prof_i_trace_filter_is_in_windows(const prof_i_trace_filter *of, uint64_t start_ns);

/* Whether the filter has words that apply to scopes only: --name, --category, --level, --min,
   --arg. */
bool prof_i_filter_has_scope_words(const prof_i_filter *filter);

/* Whether an event that is no scope passes by its time, its thread's process, and its device. */
bool prof_i_trace_filter_takes_place(const prof_i_trace_filter *of, uint32_t thread,
                                     uint64_t start_ns, prof_device device);

static inline bool prof_i_trace_filter_takes_time(const prof_i_trace_filter *of, uint64_t start_ns,
                                                  uint64_t duration_ns) {
  return duration_ns >= of->min_ns && start_ns >= of->window.from_ns &&
         start_ns < of->window.to_ns &&
         (of->window_count < 2 || prof_i_trace_filter_is_in_windows(of, start_ns));
}

/* Whether a scope's record may pass where its site does not, or the other way round. */
static inline bool prof_i_trace_filter_reads_record(const prof_i_trace_filter *of,
                                                    const uint64_t *record) {
  return (prof_i_word_flags(record[2]) & of->record_flags) ||
         (of->has_args && prof_i_word_schema(record[2]) != 0);
}

/* Whether a span passes, apart from its thread. */
static inline bool prof_i_trace_filter_takes_span(prof_i_trace_filter *of, uint32_t thread,
                                                  const prof_i_span *span) {
  if (!prof_i_trace_filter_takes_time(of, span->start_ns, span->duration_ns)) return false;
  if (span->record &&
      (span->kind > PROF_EVENT_OPEN || prof_i_trace_filter_reads_record(of, span->record)))
    return prof_i_trace_filter_takes_record(of, thread, span);
  return of->takes_site[span->site];
}

/* Whether a span of a thread passes. */
static inline bool prof_i_trace_filter_takes(prof_i_trace_filter *of, uint32_t thread,
                                             const prof_i_span *span) {
  return of->takes_thread[thread] && prof_i_trace_filter_takes_span(of, thread, span);
}

#endif
