/* Perfetto's protobuf: what comes after all threads. Arrows between scopes, changes of what was
   recorded, and the account of what is missing. Packets have whole times, not differences. */
#include <stdio.h>

#include "pftrace.h"

typedef struct open_instant {
  size_t packet, event;
} open_instant;

static open_instant begin_instant(prof_i_export *run, uint64_t track, uint64_t ns, prof_i_text name,
                                  const char *category) {
  prof_i_pftrace *const p = run->state;
  open_instant open;
  prof_i_pf_begin_packet(p, PF_SEQUENCE_GLOBAL, &open.packet);
  prof_i_protobuf_number(&p->pb, PF_PACKET_TIMESTAMP, run->info.start_unix_ns + ns);
  open.event = prof_i_protobuf_begin(&p->pb, PF_PACKET_TRACK_EVENT);
  prof_i_protobuf_number(&p->pb, PF_EVENT_TYPE, PF_TYPE_INSTANT);
  prof_i_protobuf_number(&p->pb, PF_EVENT_TRACK, track);
  prof_i_protobuf_text(&p->pb, PF_EVENT_NAME, name.data, (size_t)name.bytes);
  prof_i_protobuf_text(&p->pb, PF_EVENT_CATEGORIES, category, strlen(category));
  return open;
}

static void end_instant(prof_i_export *run, open_instant open) {
  prof_i_pftrace *const p = run->state;
  prof_i_protobuf_end(&p->pb, open.event);
  prof_i_pf_end_packet(run, open.packet);
}

/* An end of an arrow is an instant: it has the moment, and Perfetto draws it inside its scope. */
static void put_flows(prof_i_export *run) {
  prof_i_pftrace *const p = run->state;
  size_t outside, alone;
  prof_i_flows_match(&p->flows, &outside, &alone);
  run->findings->counts[PROF_I_FINDING_FLOW_ALONE] = alone;
  for (size_t i = 0; i < p->flows.count && run->sink->status == PROF_OK; i++) {
    const prof_i_flow *const flow = &p->flows.items[i], *const begin =
                                                            &p->flows.items[i & ~(size_t)1];
    const prof_i_text name = prof_i_text_or((prof_i_text){begin->name, begin->name_bytes}, "flow");
    const open_instant open =
        begin_instant(run, prof_i_pf_lane_uuid(p, flow->tid, 0), flow->start_ns, name, "flow");
    if (!flow->is_end) prof_i_pf_put_number_arg(p, "flow id", flow->id);
    prof_i_protobuf_fixed64(&p->pb, flow->is_end ? PF_EVENT_LAST_FLOWS : PF_EVENT_FLOWS,
                            p->launch_count + 1 + i / 2);
    end_instant(run, open);
  }
}

static prof_i_text text_of(const char *text) { return (prof_i_text){text, strlen(text)}; }

static void put_changes(prof_i_export *run) {
  prof_i_pftrace *const p = run->state;
  for (uint32_t i = 0; i < run->info.change_count && run->sink->status == PROF_OK; i++) {
    prof_trace_change change = {.size = sizeof change};
    char *text = NULL;
    if (prof_trace_change_get(run->trace, i, &change) != PROF_OK ||
        !prof_i_window_contains(&run->options->window, change.at_ns, change.at_ns))
      continue;
    const char *const name = change.kind == PROF_CHANGE_LEVEL   ? "prof: level changed"
                             : change.kind == PROF_CHANGE_MUTED ? "prof: site muted"
                                                                : "prof: site heard again";
    const open_instant open =
        begin_instant(run, prof_i_pf_process_uuid(p), change.at_ns, text_of(name), "prof");
    if (prof_trace_change_text(run->trace, i, &text) == PROF_OK && text)
      prof_i_pf_put_text_arg(p, "change", text, strlen(text));
    prof_free(text);
    end_instant(run, open);
  }
}

/* One instant where the time line begins. Its name says whether anything is missing. */
static void put_summary(prof_i_export *run) {
  prof_i_pftrace *const p = run->state;
  const prof_trace_info *const info = &run->info;
  uint64_t lost = 0;
  char name[64];
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (i != PROF_LOSS_CLEARED) lost += info->lost_count[i];
  if (lost || info->bad_count)
    snprintf(name, sizeof name, "prof: lost %llu, damaged %llu", (unsigned long long)lost,
             (unsigned long long)info->bad_count);
  else
    snprintf(name, sizeof name,
             info->open_count || info->open_below_count ? "prof: no loss, some unfinished"
                                                        : "prof: no loss");
  const open_instant open = begin_instant(run, prof_i_pf_process_uuid(p),
                                          run->options->window.from_ns, text_of(name), "prof");
  prof_i_pf_put_text_arg(p, "version", prof_version(), strlen(prof_version()));
  prof_i_pf_put_number_arg(p, "recorded", info->event_count - info->open_count);
  prof_i_pf_put_number_arg(p, "unfinished", info->open_count);
  prof_i_pf_put_number_arg(p, "unfinished below 64 others", info->open_below_count);
  prof_i_pf_put_number_arg(p, "skipped by jumps", info->skipped_count);
  prof_i_pf_put_number_arg(p, "ends that found no scope", info->stray_count);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    char key[64];
    if (info->lost_count[i] == 0) continue;
    snprintf(key, sizeof key, "lost: %s", prof_loss_name(i));
    prof_i_pf_put_number_arg(p, key, info->lost_count[i]);
  }
  for (uint32_t i = 0; i < info->note_count && i < 1000; i++) {
    char *text = NULL;
    char key[32];
    snprintf(key, sizeof key, "note %u", i + 1);
    if (prof_trace_note_text(run->trace, i, &text) == PROF_OK && text)
      prof_i_pf_put_text_arg(p, key, text, strlen(text));
    prof_free(text);
  }
  end_instant(run, open);
}

void prof_i_pf_put_tail(prof_i_export *run) {
  put_flows(run);
  put_changes(run);
  put_summary(run);
}
