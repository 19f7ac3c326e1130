/* What a traced child announces, in a page shared with its parent, and the judgement of a capture
   against it. Each scope says when it is about to begin, has begun, is about to end and has ended;
   at any instruction between, the capture must fit:

     About to begin .. begun        Nothing, or open.
     Begun .. about to end          Open, exactly once, and no record.
     About to end .. ended          Open, or its record, or both. Neither, from its begin on, only
                                    if the arena was full by then.
     Ended                          Its record, once; or one more in the counts of what was lost.

   Every record carries the name, the values and the times of its scope. Parent and child read one
   counter. */
#ifndef PROF_TESTS_PLAN_H
#define PROF_TESTS_PLAN_H

#include <sys/mman.h>
#include <time.h>

#include "arena_check.h"

/* name, category: the category tells what a record is. Names of NAMED ones are made at run time. */
#define PLAN_KINDS(X)          \
  X(PLAIN, "a plain scope")    \
  X(NAMED, "named")            \
  X(VALUES, "values")          \
  X(WORDS, "words")            \
  X(BARE_NAME, "a name")       \
  X(NEW_NAME, "a new name")    \
  X(TEXT, "a text")            \
  X(OUTER, "outer")            \
  X(INNER, "inner")            \
  X(FILL, "fill")              \
  X(WIDE, "wide fill")         \
  X(INSTANT, "instant")        \
  X(COUNTER, "counter")        \
  X(DEEP, "deep")              \
  X(DEEP_NAMED, "deep, named") \
  X(H_PLAIN, "handler, plain") \
  X(H_NAMED, "handler, named")

typedef enum plan_kind {
#define PLAN_ENUM(name, category) PLAN_##name,
  PLAN_KINDS(PLAN_ENUM)
#undef PLAN_ENUM
      PLAN_KIND_COUNT
} plan_kind;

static const char *const plan_categories[] = {
#define PLAN_TEXT(name, category) category,
    PLAN_KINDS(PLAN_TEXT)
#undef PLAN_TEXT
};

/* All in ticks; 0: not yet. The child writes, in this order. */
typedef struct plan_log {
  uint32_t kind, number;
  uint64_t is_off; /* the level was: nothing may come of it */
  uint64_t before_begin, begun, before_end, ended;
} plan_log;

enum { PLAN_LOGS = 1 << 16, PLAN_NAMES = 4, PLAN_WIDE_BYTES = 8000 };

typedef struct plan_page {
  uint32_t phase; /* 1 the walk begins, 2 it is over, 3 a handler is done */
  uint32_t log_count;
  uint32_t skip;         /* the child cannot do this here; reason says why */
  uint32_t is_monotonic; /* ticks are CLOCK_MONOTONIC_RAW's nanoseconds, not the counter's */
  uint32_t handler_runs;
  /* the child waits until another clock pair is due, and takes that way */
  uint32_t is_patient;
  uint64_t stop_begun, clear_begun, clear_done; /* ticks */
  uint64_t depth, deep, text_used;              /* of the child's slot when the walk was over */
  /* claims in a chunk that is another thread's by then */
  uint64_t trespassed;
  uint64_t forgotten; /* chunks that are owned, and no thread's */
  char reason[256];
  plan_log logs[PLAN_LOGS];
} plan_page;

static struct { volatile plan_page *page; } plan;

static inline uint64_t plan_ticks(void) {
  if (plan.page->is_monotonic) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  }
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

/* ---- the child's side ---- */

static inline const char *plan_name(uint32_t number) {
  static const char *const names[PLAN_NAMES] = {
      "run-time name", "n", "another name, of more than one word", "run-time name, \xff\xfe"};
  return names[number % PLAN_NAMES];
}
static inline const char *plan_text(uint32_t number) {
  return number % 2 ? "" : "text of an argument";
}

/* Another one for each number, of many lengths. */
static inline const char *plan_new_text(uint32_t number) {
  enum { DIGITS = 5, MOST = 40 };
  static char text[MOST + 1];
  const uint32_t bytes = DIGITS + number % (MOST - DIGITS);
  memset(text, '-', MOST);
  text[bytes] = '\0';
  for (int i = 0; i < DIGITS; i++, number /= 10) text[i] = (char)('0' + number % 10);
  return text;
}

/* PLAN_WIDE_BYTES times the same letter. */
static inline const char *plan_wide(void) {
  static char text[PLAN_WIDE_BYTES + 1];
  if (!text[0]) memset(text, 'w', PLAN_WIDE_BYTES);
  return text;
}

static inline volatile plan_log *plan_announce(plan_kind kind) {
  const uint32_t number = __atomic_fetch_add(&plan.page->log_count, 1, __ATOMIC_RELAXED);
  if (number >= PLAN_LOGS) _exit(3);
  volatile plan_log *const log = &plan.page->logs[number];
  log->kind = (uint32_t)kind;
  log->number = number;
  log->is_off = prof_level() == 0;
  log->before_begin = plan_ticks();
  return log;
}

/* One scope of that kind; the code runs inside. */
#define PLAN_SCOPE(kind, name, category, args, ...)          \
  do {                                                       \
    volatile plan_log *const plan_now = plan_announce(kind); \
    WITH_BASE_PROFILER(PROF_HOST, name, category, args, {    \
      plan_now->begun = plan_ticks();                        \
      __VA_ARGS__;                                           \
      plan_now->before_end = plan_ticks();                   \
    });                                                      \
    plan_now->ended = plan_ticks();                          \
  } while (0)

static inline void plan_plain(void) {
  PLAN_SCOPE(PLAN_PLAIN, "plain", "a plain scope", PROF_NO_ARGS, (void)0);
}
static inline void plan_named(void) {
  PLAN_SCOPE(PLAN_NAMED, plan_name(plan_now->number), "named",
             PROF_ARGS("number", plan_now->number, "text", plan_text(plan_now->number)), (void)0);
}
static inline void plan_values(void) {
  PLAN_SCOPE(PLAN_VALUES, "values", "values",
             PROF_ARGS("number", plan_now->number, "text", plan_text(plan_now->number)), (void)0);
}
static inline void plan_words(void) {
  PLAN_SCOPE(PLAN_WORDS, "words", "words",
             PROF_ARGS("number", plan_now->number, "again", plan_now->number), (void)0);
}
static inline void plan_bare_name(void) {
  PLAN_SCOPE(PLAN_BARE_NAME, plan_name(plan_now->number), "a name", PROF_NO_ARGS, (void)0);
}
static inline void plan_new_name(void) {
  PLAN_SCOPE(PLAN_NEW_NAME, plan_new_text(plan_now->number), "a new name", PROF_NO_ARGS, (void)0);
}
static inline void plan_text_scope(void) {
  PLAN_SCOPE(PLAN_TEXT, "text", "a text", PROF_ARGS("text", plan_new_text(plan_now->number)),
             (void)0);
}
static inline void plan_inner(void) {
  PLAN_SCOPE(PLAN_INNER, "inner", "inner", PROF_NO_ARGS, (void)0);
}
static inline void plan_nested(void) {
  PLAN_SCOPE(PLAN_OUTER, "outer", "outer", PROF_NO_ARGS, plan_inner());
}
static inline void plan_deep_named(void) {
  PLAN_SCOPE(PLAN_DEEP_NAMED, plan_name(plan_now->number), "deep, named",
             PROF_ARGS("number", plan_now->number, "text", plan_text(plan_now->number)), (void)0);
}
static inline void plan_fill(void) { PLAN_SCOPE(PLAN_FILL, "fill", "fill", PROF_NO_ARGS, (void)0); }
/* A record of that many bytes: a multiple of 16, from 48 to PLAN_WIDE_BYTES. */
static inline void plan_wide_fill(uint64_t bytes) {
  const char *const text = plan_wide() + PLAN_WIDE_BYTES - (bytes / 16 * 2 - 5) * 8;
  PLAN_SCOPE(PLAN_WIDE, "wide", "wide fill", PROF_ARGS("number", plan_now->number, "text", text),
             (void)0);
}

/* No scope, but one moment: begun stays 0. */
static inline void plan_instant(void) {
  volatile plan_log *const now = plan_announce(PLAN_INSTANT);
  PROF_INSTANT(plan_name(now->number), "instant",
               PROF_ARGS("number", now->number, "text", plan_text(now->number)));
  now->ended = plan_ticks();
}
static inline void plan_counter(void) {
  volatile plan_log *const now = plan_announce(PLAN_COUNTER);
  PROF_COUNTER("a counter", now->number);
  now->ended = plan_ticks();
}
static inline void plan_handler_plain(void) {
  PLAN_SCOPE(PLAN_H_PLAIN, "in a handler", "handler, plain", PROF_NO_ARGS, (void)0);
}
static inline void plan_handler_named(void) {
  PLAN_SCOPE(PLAN_H_NAMED, plan_name(plan_now->number), "handler, named",
             PROF_ARGS("number", plan_now->number, "text", plan_text(plan_now->number)), (void)0);
}

/* ---- the judgement ---- */

/* ticks: the counter's reads are ordered, but not against everything around them */
enum { PLAN_SLACK = 256 };

typedef struct plan_judge {
  char fault[512];
  uint64_t now;
  uint64_t recorded, missing, lost; /* missing: ended, and without a record. lost: counted */
  uint64_t unfinished, opens;
  uint8_t records[PLAN_LOGS], open[PLAN_LOGS];
  uint32_t of_kind[PLAN_KIND_COUNT][PLAN_LOGS], count_of[PLAN_KIND_COUNT];
  uint32_t hint[PLAN_KIND_COUNT];
  arena_view view;
  arena_seen seen;
} plan_judge;

static inline void plan_fault(plan_judge *judge, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void plan_fault(plan_judge *judge, const char *format, ...) {
  va_list values;
  if (judge->fault[0]) return;
  va_start(values, format);
  vsnprintf(judge->fault, sizeof judge->fault, format, values);
  va_end(values);
}

static inline bool plan_is(const char *text, const char *data, uint64_t bytes) {
  return strlen(text) == bytes && memcmp(text, data, bytes) == 0;
}

/* A category of its own counts before its site's. */
static inline int plan_kind_of(const plan_judge *judge, uint32_t site, arena_text category) {
  if (!category.data && site < ARENA_SITES_MAX) category = judge->view.categories[site];
  for (int kind = 0; category.data && kind < PLAN_KIND_COUNT; kind++)
    if (plan_is(plan_categories[kind], category.data, category.bytes)) return kind;
  return -1;
}

/* The scope of that kind that began last before these ticks; -1: none did. */
static inline int plan_find(plan_judge *judge, int kind, uint64_t start) {
  const uint32_t *const of = judge->of_kind[kind];
  uint32_t *const hint = &judge->hint[kind], count = judge->count_of[kind];
  if (*hint >= count || plan.page->logs[of[*hint]].before_begin > start) *hint = 0;
  if (count == 0 || plan.page->logs[of[*hint]].before_begin > start) return -1;
  while (*hint + 1 < count && plan.page->logs[of[*hint + 1]].before_begin <= start) ++*hint;
  return (int)of[*hint];
}

/* A name that came before is its site's. */
static inline void plan_check_name(plan_judge *judge, const volatile plan_log *log,
                                   const arena_record *record) {
  const arena_text name = arena_name(&judge->view, record);
  if (!name.data || !plan_is(plan_name(log->number), name.data, name.bytes))
    plan_fault(judge, "record at %llu: name '%.*s' instead of '%s'",
               (unsigned long long)record->offset, name.data ? (int)name.bytes : 4,
               name.data ? name.data : "none", plan_name(log->number));
}

/* The values of NAMED, WIDE and INSTANT: "number", then "text". */
static inline void plan_check_values(plan_judge *judge, int kind, const volatile plan_log *log,
                                     const arena_record *record) {
  const char *data = NULL;
  uint64_t bytes = 0;
  const uint64_t *const values = record->values;
  const uint64_t wide_bytes =
      record->value_words > 1 && values[1] <= PLAN_WIDE_BYTES ? values[1] : 0;
  const char *const text =
      kind == PLAN_WIDE ? plan_wide() + PLAN_WIDE_BYTES - wide_bytes : plan_text(log->number);
  if (!record->schema || record->schema > judge->view.schemas)
    plan_fault(judge, "record at %llu: schema %u of %llu", (unsigned long long)record->offset,
               record->schema, (unsigned long long)judge->view.schemas);
  else if (record->flags & (PROF_I_FLAG_CUT | PROF_I_FLAG_NO_DETAILS))
    plan_fault(judge, "record at %llu: flags %x", (unsigned long long)record->offset,
               record->flags);
  else if (record->value_words < 2 || values[0] != log->number)
    plan_fault(judge, "record at %llu: number %llu instead of %u",
               (unsigned long long)record->offset,
               record->value_words ? (unsigned long long)values[0] : 0ull, log->number);
  else if (!arena_take_text(values, 1, record->value_words, &data, &bytes) ||
           !plan_is(text, data, bytes))
    plan_fault(judge, "record at %llu: text of %llu bytes '%.40s' instead of '%.40s'",
               (unsigned long long)record->offset, (unsigned long long)bytes, data ? data : "",
               text);
  if (kind == PLAN_WIDE || kind == PLAN_VALUES) return;
  plan_check_name(judge, log, record);
}

/* A text may be its record's only value, or, where the site was not learnt yet, one of its
   values. */
static inline void plan_check_new_text(plan_judge *judge, int kind, const volatile plan_log *log,
                                       const arena_record *record) {
  const char *data = kind == PLAN_TEXT ? record->text : record->name;
  uint64_t bytes = kind == PLAN_TEXT ? record->text_bytes : record->name_bytes;
  if (kind == PLAN_TEXT && !data)
    arena_take_text(record->values, 0, record->value_words, &data, &bytes);
  if (!data || !plan_is(plan_new_text(log->number), data, bytes) ||
      (record->flags & (PROF_I_FLAG_CUT | PROF_I_FLAG_NO_DETAILS)))
    plan_fault(judge, "record at %llu: flags %x, '%.*s' instead of '%s'",
               (unsigned long long)record->offset, record->flags, data ? (int)bytes : 4,
               data ? data : "none", plan_new_text(log->number));
}

static inline void plan_check_details(plan_judge *judge, int kind, const volatile plan_log *log,
                                      const arena_record *record) {
  switch ((plan_kind)kind) {
    case PLAN_NAMED:
    case PLAN_DEEP_NAMED:
    case PLAN_WIDE:
    case PLAN_VALUES:
    case PLAN_H_NAMED:
    case PLAN_INSTANT:
      plan_check_values(judge, kind, log, record);
      return;
    case PLAN_BARE_NAME:
      plan_check_name(judge, log, record);
      return;
    case PLAN_NEW_NAME:
    case PLAN_TEXT:
      plan_check_new_text(judge, kind, log, record);
      return;
    case PLAN_WORDS:
      if (record->value_words < 2 || record->values[0] != log->number ||
          record->values[1] != log->number || record->name)
        plan_fault(judge, "record at %llu: not number %u, twice, and nothing else",
                   (unsigned long long)record->offset, log->number);
      return;
    case PLAN_COUNTER: {
      double value = -1;
      if (record->value_words) memcpy(&value, record->values, sizeof value);
      if (value != log->number)
        plan_fault(judge, "record at %llu: counter %g instead of %u",
                   (unsigned long long)record->offset, value, log->number);
      return;
    }
    case PLAN_PLAIN:
    case PLAN_OUTER:
    case PLAN_INNER:
    case PLAN_FILL:
    case PLAN_DEEP:
    case PLAN_H_PLAIN:
    case PLAN_KIND_COUNT:
      break;
  }
  if (record->flags || record->name || record->value_words)
    plan_fault(judge, "record at %llu: a plain scope with flags %x, %llu words of values",
               (unsigned long long)record->offset, record->flags,
               (unsigned long long)record->value_words);
}

static inline void plan_see_record(void *context, const arena_record *record) {
  plan_judge *const judge = context;
  const int kind =
      plan_kind_of(judge, record->site, (arena_text){record->category, record->category_bytes});
  const unsigned long long offset = (unsigned long long)record->offset;
  const int found = kind < 0 ? -1 : plan_find(judge, kind, record->start);
  if (found < 0) {
    plan_fault(judge, "record at %llu: site %u, start %llu is no scope that was announced", offset,
               record->site, (unsigned long long)record->start);
    return;
  }
  const volatile plan_log *const log = &plan.page->logs[found];
  const uint64_t end = record->start + record->duration;
  const bool is_scope = kind != PLAN_INSTANT && kind != PLAN_COUNTER;
  judge->recorded++;
  if (judge->records[found]++)
    plan_fault(judge, "record at %llu: '%s' %d stands a second time", offset, plan_categories[kind],
               found);
  else if (is_scope && (!log->before_end || record->start > log->begun + PLAN_SLACK))
    plan_fault(
        judge,
        "record at %llu: '%s' %d started at %llu; it began between %llu and %llu, its end at %llu",
        offset, plan_categories[kind], found, (unsigned long long)record->start,
        (unsigned long long)log->before_begin, (unsigned long long)log->begun,
        (unsigned long long)log->before_end);
  else if (end + PLAN_SLACK < log->before_end ||
           end > (log->ended ? log->ended : judge->now) + PLAN_SLACK)
    plan_fault(judge, "record at %llu: '%s' %d ended at %llu; it did between %llu and %llu", offset,
               plan_categories[kind], found, (unsigned long long)end,
               (unsigned long long)log->before_end,
               (unsigned long long)(log->ended ? log->ended : judge->now));
  else
    plan_check_details(judge, kind, log, record);
  const volatile plan_page *const page = plan.page;
  if (page->clear_done && log->ended && log->ended < page->clear_begun)
    plan_fault(judge, "record at %llu: '%s' %d had ended before the clear", offset,
               plan_categories[kind], found);
}

static inline void plan_see_open(void *context, const arena_open *open) {
  plan_judge *const judge = context;
  const int kind = plan_kind_of(judge, open->site, (arena_text){NULL, 0});
  const int found = kind < 0 ? -1 : plan_find(judge, kind, open->start);
  const volatile plan_log *const log = found < 0 ? NULL : &plan.page->logs[found];
  if (!log || log->ended || (log->begun && open->start > log->begun + PLAN_SLACK))
    plan_fault(judge, "open entry %llu: site %u, start %llu is no scope that is open",
               (unsigned long long)open->index, open->site, (unsigned long long)open->start);
  else if (judge->open[found]++)
    plan_fault(judge, "open entry %llu: '%s' %d stands open twice", (unsigned long long)open->index,
               plan_categories[kind], found);
}

static inline void plan_check_log(plan_judge *judge, uint32_t i) {
  const volatile plan_log *const log = &plan.page->logs[i];
  const bool is_moment = log->kind == PLAN_INSTANT || log->kind == PLAN_COUNTER;
  const bool is_deep = log->kind == PLAN_DEEP || log->kind == PLAN_DEEP_NAMED;
  const bool is_late =
      plan.page->stop_begun != 0 && log->before_begin < plan.page->stop_begun && !log->ended;
  const char *const what = plan_categories[log->kind];
  if (log->is_off) {
    if (judge->records[i] || judge->open[i])
      plan_fault(judge, "'%s' %u is recorded, but the level was off", what, i);
    return;
  }
  const uint64_t full = arena_is_made(&judge->view) ? arena_header(&judge->view)->full_ticks : 0;
  /* at its begin: the arena was full */
  const bool is_left_out = full && log->before_begin >= full && log->begun && !judge->open[i];
  if (log->ended || is_left_out) judge->missing += !judge->records[i];
  if (is_moment || is_deep || log->ended || !log->begun || is_late || is_left_out) return;
  if (!log->before_end && (judge->open[i] != 1 || judge->records[i]))
    plan_fault(judge, "'%s' %u is open: %u entries, %u records", what, i, judge->open[i],
               judge->records[i]);
  if (log->before_end && !judge->open[i] && !judge->records[i])
    plan_fault(judge, "'%s' %u is ending: neither open nor recorded", what, i);
}

static inline void plan_index(plan_judge *judge) {
  const uint32_t count = plan.page->log_count;
  memset(judge->count_of, 0, sizeof judge->count_of);
  memset(judge->hint, 0, sizeof judge->hint);
  memset(judge->records, 0, count);
  memset(judge->open, 0, count);
  for (uint32_t i = 0; i < count; i++) {
    const volatile plan_log *const log = &plan.page->logs[i];
    if (log->before_begin) judge->of_kind[log->kind][judge->count_of[log->kind]++] = i;
  }
}

/* Judges the captures at this moment, the child standing still; the fault is "" when all fits. With
   `is_rest` nobody is inside the profiler: then what is missing equals what was counted, and
   nothing is unfinished. */
static inline bool plan_judge_now(plan_judge *judge, const char *const *bytes,
                                  const uint64_t *counts, size_t capture_count, bool is_rest) {
  const uint32_t logs = plan.page->log_count;
  judge->fault[0] = '\0';
  judge->recorded = judge->missing = judge->lost = judge->unfinished = judge->opens = 0;
  judge->now = plan_ticks();
  plan_index(judge);
  for (size_t i = 0; i < capture_count; i++) {
    judge->view.bytes = bytes[i];
    judge->view.count = counts[i];
    judge->view.record = plan_see_record;
    judge->view.open = i + 1 == capture_count ? plan_see_open : NULL; /* of the arena in force */
    judge->view.context = judge;
    if (!arena_walk(&judge->view, &judge->seen)) plan_fault(judge, "%s", judge->seen.fault);
    judge->lost += arena_lost(&judge->seen) + judge->seen.cleared;
    judge->unfinished += judge->seen.unfinished;
    judge->opens += judge->seen.opens;
  }
  for (uint32_t i = 0; i < logs; i++) plan_check_log(judge, i);
  if (judge->missing > judge->lost)
    plan_fault(judge, "%llu scopes that had ended have no record, %llu were counted as lost",
               (unsigned long long)judge->missing, (unsigned long long)judge->lost);
  if (is_rest && (judge->missing != judge->lost || judge->unfinished))
    plan_fault(judge,
               "at rest: %llu have no record, %llu were counted as lost, %llu places unfinished",
               (unsigned long long)judge->missing, (unsigned long long)judge->lost,
               (unsigned long long)judge->unfinished);
  return !judge->fault[0];
}

static inline plan_judge *plan_make(void) {
  plan.page =
      mmap(NULL, sizeof *plan.page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (plan.page == MAP_FAILED) return NULL;
  plan_judge *const judge = calloc(1, sizeof *judge);
  return judge;
}

/* Before each child. */
static inline void plan_reset(void) {
  const uint32_t logs = plan.page->log_count;
  memset((void *)(uintptr_t)plan.page, 0, offsetof(plan_page, logs) + logs * sizeof(plan_log));
}

#endif
