/* `prof run --pack`: packs the captures that are kept. See internal.h. */
#define _GNU_SOURCE
#include <prof/trace.h>
#include <unistd.h>

#include "../../src/base/library.h"
#include "../prof/commands.h"
#include "internal.h"
#include "output.h"

const char *run_pack_refusal(void) {
  prof_i_zstd *zstd = NULL;
  const int status = prof_i_zstd_create("--pack compresses captures", &zstd);
  prof_i_zstd_destroy(zstd);
  return status == PROF_OK ? NULL : run_text("%s", prof_last_error());
}

bool run_pack(const char *from, const char *to) {
  static const prof_dump_options options = {.size = sizeof options, .format = PROF_FORMAT_PACKED};
  prof_trace *trace = NULL;
  int status = prof_trace_open(from, &trace);
  if (status == PROF_OK) status = prof_trace_dump(trace, run_output_escaped(to), &options);
  if (status != PROF_OK)
    say("prof run: '%s' is not packed: %s: %s", from, prof_status_text(status), prof_last_error());
  prof_trace_destroy(trace);
  return status == PROF_OK;
}

void run_pack_all(const run_captures *captures) {
  output_clean_up_if_killed();
  for (size_t i = 0; i < captures->count; i++) {
    const run_capture *const capture = &captures->items[i];
    const bool has_ended = capture->was_clean || !capture->is_live;
    if (!capture->error && !capture->is_empty && has_ended) run_pack(capture->path, capture->path);
  }
}
