/* The self-check of an export: what is written is looked at once more, against causality and
   nesting, by rules that know nothing of how the reader came to its answer. Findings are counted;
   they stand in the trace, and a fault among them in the returned status. Constant time and memory
   per span: it runs inside the writers' loops. */
#ifndef PROF_EXPORT_SELF_CHECK_H
#define PROF_EXPORT_SELF_CHECK_H

#include <prof/trace.h>
#include <stdbool.h>
#include <string.h>

#include "../reader/internal.h"

/* name, word in the trace, 1: a fault, 0: worth knowing, text */
#define PROF_I_FINDING_LIST(X)                                                                     \
  X(REVERSED, "reversed", 1, "ends before it begins")                                              \
  X(OUTSIDE, "outside_capture", 1, "ends after the last moment of the capture")                    \
  X(OVERLAPPING, "overlapping", 1, "overlaps another scope of its track without nesting")          \
  X(UNREADABLE, "unreadable", 1, "records or chunks of the capture could not be read")             \
  X(EARLY, "before_launch", 1, "ran on a device before it was launched")                           \
  X(EARLY_THERE, "before_launch_in_source", 0,                                                     \
    "ran on a device before it was launched, by the trace it was imported from")                   \
  X(UNNAMED, "unnamed", 0, "had an empty name")                                                    \
  X(TOO_DEEP, "deeper_than_512", 0,                                                                \
    "stands deeper than 512 scopes, where Perfetto draws it over the others")                      \
  X(CROWDED, "overlapping_past_1023", 0,                                                           \
    "overlapped more than 1023 others of its thread at once, left out")                            \
  X(NOT_FINITE, "counters_not_finite", 0, "counter values that were no number, left out")          \
  X(FLOW_ALONE, "flows_without_partner", 0, "ends of arrows whose other end is missing, left out") \
  X(FLOW_OUTSIDE, "flows_outside_scopes", 0, "ends of arrows in no scope, at marks")               \
  X(FLOW_TOO_MANY, "flows_past_bound", 0, "ends of arrows past the bound of memory, left out")

typedef enum prof_i_finding {
#define PROF_I_FINDING(name, word, is_fault, text) PROF_I_FINDING_##name,
  PROF_I_FINDING_LIST(PROF_I_FINDING)
#undef PROF_I_FINDING
      PROF_I_FINDING_COUNT
} prof_i_finding;

typedef struct prof_i_findings {
  uint64_t counts[PROF_I_FINDING_COUNT];
} prof_i_findings;

const char *prof_i_finding_word(int finding);
uint64_t prof_i_findings_faults(const prof_i_findings *findings);
/* "3 scopes: overlaps ...; ..." of the faults, cut at room; NUL-terminated. */
void prof_i_findings_text(const prof_i_findings *findings, char *to, size_t room);

enum { PROF_I_SELF_CHECK_DEPTH = 512 };

/* One depth of a thread's own line. Spans of a depth come in falling order of time, but parents may
   come before or after what they hold. */
typedef struct prof_i_self_check_depth {
  uint64_t start_ns, end_ns; /* of the last span of this depth */
  uint64_t pending_start_ns; /* bounds of the spans of this depth whose parent has not come: */
  uint64_t pending_end_ns;   /* one past the last end; 0: none waits */
} prof_i_self_check_depth;

typedef struct prof_i_self_check {
  prof_i_findings findings;
  uint64_t last_ns; /* nothing ends after it */
  unsigned used;    /* depths touched on this thread */
  prof_i_self_check_depth depths[PROF_I_SELF_CHECK_DEPTH];
  uint64_t lane_begin_ns
      [PROF_I_LANES_MAX]; /* of each lane: where the last of its outermost spans begins */
} prof_i_self_check;

void prof_i_self_check_init(prof_i_self_check *check, uint64_t last_ns);
/* Before the first span of each thread, and after the last one of all. */
void prof_i_self_check_next_thread(prof_i_self_check *check);

/* A scope of depth > 0 against its parent. */
static inline bool prof_i_self_check_is_inside(prof_i_self_check *check, unsigned depth,
                                               uint64_t start_ns, uint64_t end_ns) {
  const prof_i_self_check_depth *const parent = &check->depths[depth - 1];
  if (start_ns >= parent->start_ns && end_ns <= parent->end_ns) return true;
  /* crosses the last parent; an earlier one must end before it begins */
  if (end_ns > parent->start_ns) return false;
  prof_i_self_check_depth *const own = &check->depths[depth];
  if (own->pending_end_ns == 0 || start_ns < own->pending_start_ns)
    own->pending_start_ns = start_ns;
  if (end_ns + 1 > own->pending_end_ns) own->pending_end_ns = end_ns + 1;
  return true;
}

/* Does it nest with what came before on the thread's own line? */
static inline bool prof_i_self_check_is_nested(prof_i_self_check *check, unsigned depth,
                                               uint64_t start_ns, uint64_t end_ns) {
  prof_i_self_check_depth *const own = &check->depths[depth];
  bool is_nested = end_ns <= own->start_ns; /* the one that came before it stands later in time */
  if (depth > 0) is_nested &= prof_i_self_check_is_inside(check, depth, start_ns, end_ns);
  own->start_ns = start_ns;
  own->end_ns = end_ns;
  if (depth + 1 < PROF_I_SELF_CHECK_DEPTH && own[1].pending_end_ns != 0) {
    is_nested &= start_ns <= own[1].pending_start_ns && own[1].pending_end_ns <= end_ns + 1;
    own[1].pending_end_ns = 0;
  }
  if (depth >= check->used) check->used = depth + 1;
  return is_nested;
}

/* Looks at one scope. */
static inline void prof_i_self_check_scope(prof_i_self_check *check, const prof_i_span *span) {
  uint64_t *const counts = check->findings.counts;
  const uint64_t start_ns = span->start_ns, end_ns = start_ns + span->duration_ns;
  counts[PROF_I_FINDING_REVERSED] += end_ns < start_ns;
  counts[PROF_I_FINDING_OUTSIDE] += end_ns > check->last_ns;
  if (__builtin_expect(span->depth >= PROF_I_SELF_CHECK_DEPTH, 0)) {
    counts[PROF_I_FINDING_TOO_DEEP]++;
  } else if (__builtin_expect(span->lane > 0, 0)) {
    if (span->depth > 0) return;
    counts[PROF_I_FINDING_OVERLAPPING] += end_ns > check->lane_begin_ns[span->lane];
    check->lane_begin_ns[span->lane] = start_ns;
  } else {
    counts[PROF_I_FINDING_OVERLAPPING] +=
        !prof_i_self_check_is_nested(check, span->depth, start_ns, end_ns);
  }
}

#endif
