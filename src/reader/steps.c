/* The steps of a trace, as the walk emits them. Threads may have many records and few steps, so
   only segments with a step are read, and without their nesting. Called by src/analysis. */
#include "../format/parse.h"
#include "capture.h"
#include "walker.h"

typedef struct step_search {
  const prof_trace *trace;
  const prof_i_time_line *line; /* used last */
  prof_i_step_visit visit;
  void *user;
} step_search;

static int visit_step(step_search *s, const prof_i_segment *segment, const uint64_t *words,
                      const prof_i_long_record *record) {
  const uint64_t end =
      prof_i_event_interval(words, record, segment->start_ticks, segment->clock_offset).end;
  prof_i_step step = {.number = record->own[0]};
  if (end < s->trace->floor) return 0;
  step.duration_ns =
      prof_i_timeline_span(&s->trace->timeline, &s->line,
                           prof_i_step_start(&s->trace->catalog, end), end, &step.start_ns);
  return s->visit(s->user, &step);
}

static int visit_segment(step_search *s, const prof_i_segment *segment) {
  int status = 0;
  for (uint64_t i = 0, slots; i < segment->slot_count && !status; i += slots) {
    const uint64_t *const words = segment->words + i * 2;
    prof_i_long_record record;
    const prof_i_parse_result sight =
        prof_i_parse_record(words, segment->slot_count - i, segment->generation, &slots, &record);
    if (sight == PROF_I_PARSED_EVENT && record.kind == PROF_I_KIND_STEP)
      status = visit_step(s, segment, words, &record);
  }
  return status;
}

int prof_i_trace_steps(const prof_trace *trace, prof_i_step_visit visit, void *user) {
  step_search search = {trace, trace->timeline.lines, visit, user};
  int status = 0;
  for (uint32_t i = 0; i < trace->segment_count && !status; i++)
    if (trace->segments[i].has_steps) status = visit_segment(&search, &trace->segments[i]);
  return status;
}
