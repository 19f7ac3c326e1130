/* Chrome JSON: arrows, which are written after all scopes. They are the program's own, those from
   launches to work of devices, and those from PyTorch's forward calls to their backward calls.
   Called by chrome.c. */
#include "../base/text.h"
#include "chrome.h"

/* ---- arrows of the program ---- */

/* Arrows from forward to backward, which a trace of Kineto's has, and readers know by their
   category. */
static bool is_forward(prof_i_text name) {
  static const char forward[] = "fwdbwd";
  return name.bytes == sizeof forward - 1 && memcmp(name.data, forward, sizeof forward - 1) == 0;
}

/* From pid to ts, of what stands on the end's row. */
static void put_flow_location(prof_i_chrome *w, const prof_i_flow *flow) {
  char *to = prof_i_sink_reserve(w->sink, 6 * PROF_I_NUMBER_ROOM);
  to = prof_i_chrome_append(to, ",\"pid\":");
  to = prof_i_put_u64(to, flow->pid);
  to = prof_i_chrome_append(to, ",\"tid\":");
  to = prof_i_put_u64(to, flow->tid);
  to = prof_i_chrome_append(to, ",\"ts\":");
  prof_i_sink_advance(w->sink, prof_i_put_us(to, w->epoch_ns + flow->start_ns));
}

/* Viewers draw an arrow between slices alone, and an instant is one: for an end in no scope. prof
   import knows it by its category and argument. */
static void put_flow_mark(prof_i_chrome *w, const prof_i_flow *flow, prof_i_text name) {
  prof_i_sink_text(w->sink, "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"flow\",\"name\":\"");
  prof_i_sink_string_part(w->sink, name.data, name.bytes);
  prof_i_sink_bytes(w->sink, "\"", 1);
  put_flow_location(w, flow);
  prof_i_sink_text(w->sink, ",\"args\":{\"arrow mark\":true}},\n");
  w->written.mark_count++;
}

static void put_flow(prof_i_chrome *w, const prof_i_flow *flow, uint64_t number, prof_i_text name) {
  if (!flow->is_held) put_flow_mark(w, flow, name);
  prof_i_sink_text(w->sink, flow->is_end ? "{\"ph\":\"f\",\"bp\":\"e\"" : "{\"ph\":\"s\"");
  prof_i_sink_text(w->sink, is_forward(name) ? ",\"cat\":\"fwdbwd\"" : ",\"cat\":\"flow\"");
  prof_i_sink_text(w->sink, ",\"name\":\"");
  prof_i_sink_string_part(w->sink, name.data, name.bytes);
  prof_i_sink_text(w->sink, "\",\"id\":");
  prof_i_sink_u64(w->sink, number);
  put_flow_location(w, flow);
  if (!flow->is_end) { /* catapult warns of an argument that both ends have */
    prof_i_sink_text(w->sink, ",\"args\":{\"flow id\":");
    prof_i_chrome_put_id(w, flow->id);
    prof_i_sink_text(w->sink, flow->name_bytes ? "}" : ",\"unnamed\":true}");
  }
  prof_i_sink_text(w->sink, "},\n");
}

/* ---- from launches to work of devices ---- */

static void put_launch_arrow_end(prof_i_chrome *w, const char *begin, uint64_t number,
                                 uint32_t thread, uint32_t lane, uint64_t ns) {
  const prof_i_tids *const ids = &w->tids[thread];
  prof_i_sink_text(w->sink, begin);
  prof_i_sink_text(w->sink, ",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":");
  prof_i_sink_u64(w->sink, number);
  prof_i_sink_text(w->sink, ",\"pid\":");
  prof_i_sink_u64(w->sink, ids->pid);
  prof_i_sink_text(w->sink, ",\"tid\":");
  prof_i_sink_u64(w->sink, prof_i_tids_row(ids, lane));
  prof_i_sink_text(w->sink, ",\"ts\":");
  prof_i_chrome_put_time(w, ns);
  prof_i_sink_text(w->sink, "},\n");
}

/* From launches to what ran. Work that began before its launch has no arrow, because viewers refuse
   an end before its begin. Its number tells the launch, and prof_i_chrome_correlation_of() has
   counted it. Returns how many arrows. */
static uint64_t put_launch_arrows(prof_i_chrome *w, uint64_t first_number) {
  uint64_t number = first_number;
  for (uint32_t i = 0; i < w->launches.count && w->sink->status == PROF_OK; i++) {
    const prof_i_launch *const launch = &w->launches.items[i];
    if (!w->correlations[i].id || !w->correlations[i].has_arrow || launch->start_ns < launch->at_ns)
      continue;
    put_launch_arrow_end(w, "{\"ph\":\"s\"", number, launch->thread, w->correlations[i].lane,
                         launch->at_ns);
    put_launch_arrow_end(w, "{\"ph\":\"f\",\"bp\":\"e\"", number, launch->stream, launch->lane,
                         launch->start_ns);
    number++;
  }
  return number - first_number;
}

/* ---- from forward to backward calls ---- */

/* As Kineto writes them. Returns how many arrows. */
static uint64_t put_forwards(prof_i_chrome *w, uint64_t first_number) {
  prof_i_forwards_match(&w->forwards);
  w->check.findings.counts[PROF_I_FINDING_FLOW_TOO_MANY] += w->forwards.left_out_count;
  uint64_t number = first_number;
  for (size_t i = 0; i < w->forwards.count && w->sink->status == PROF_OK; i++) {
    const prof_i_forward *const end = &w->forwards.items[i];
    if (!prof_i_forwards_are_taken(end - i % 2)) continue;
    prof_i_sink_text(w->sink, i % 2 ? "{\"ph\":\"f\",\"bp\":\"e\"" : "{\"ph\":\"s\"");
    char *to = prof_i_chrome_append(prof_i_sink_reserve(w->sink, 128 + 4 * PROF_I_NUMBER_ROOM),
                                    ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":");
    to = prof_i_put_u64(to, number);
    number += i % 2;
    to = prof_i_chrome_append(to, ",\"pid\":");
    to = prof_i_put_u64(to, end->pid);
    to = prof_i_chrome_append(to, ",\"tid\":");
    to = prof_i_put_u64(to, end->tid);
    to = prof_i_chrome_append(to, ",\"ts\":");
    to = prof_i_put_us(to, w->epoch_ns + end->start_ns);
    prof_i_sink_advance(w->sink, prof_i_chrome_append(to, "},\n"));
  }
  return number - first_number;
}

/* ---- all ---- */

/* After all scopes, so that each end stands behind the scope that it is inside of. An arrow's
   number is new, for Perfetto refuses an id that comes again; both ends get the name that the
   beginning had, for it goes by that as well. */
void prof_i_chrome_put_flows(prof_i_chrome *w) {
  const uint64_t first = w->shared ? w->shared->arrow_count + 1 : 1;
  size_t outside, alone;
  prof_i_flows_match(&w->flows, &outside, &alone);
  w->check.findings.counts[PROF_I_FINDING_FLOW_OUTSIDE] = outside;
  w->check.findings.counts[PROF_I_FINDING_FLOW_ALONE] = alone;
  for (size_t i = 0; i < w->flows.count && w->sink->status == PROF_OK; i++) {
    const prof_i_flow *const begin = &w->flows.items[i & ~(size_t)1];
    put_flow(w, &w->flows.items[i], first + i / 2,
             prof_i_text_or((prof_i_text){begin->name, begin->name_bytes}, "flow"));
  }
  uint64_t arrows = w->flows.count / 2;
  arrows += put_launch_arrows(w, first + arrows);
  arrows += put_forwards(w, first + arrows);
  w->written.flow_count = 2 * arrows;
  if (w->shared) w->shared->arrow_count += arrows;
}
