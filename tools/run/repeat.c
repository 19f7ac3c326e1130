/* --repeat: see run.h. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "../prof/commands.h"
#include "output.h"
#include "run.h"
#include "signals.h"

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* A run that was asked to end is the last. */
int run_repeat(const run_request *request, unsigned count) {
  double *const seconds = run_make(count, sizeof *seconds);
  unsigned done = 0;
  int status = 0;
  run_signals_hold();
  while (done < count && !run_signals_interrupt()) {
    run_request one = *request;
    one.stack.tools = run_make(one.stack.count, sizeof *one.stack.tools);
    memcpy(one.stack.tools, request->stack.tools, one.stack.count * sizeof *one.stack.tools);
    run_output_make_folder(request->folder);
    if (request->has_folder)
      one.folder = run_output_new_folder(request->folder, run_text("run-%u", done + 1));
    const int ended = run_go(&one, &seconds[done++]);
    if (status == 0) status = ended;
  }
  if (done < count) {
    say("prof run: %u of %u runs: signal %d (%s) came", done, count, run_signals_interrupt(),
        strsignal(run_signals_interrupt()));
    if (status == 0) status = 128 + run_signals_interrupt();
  }
  qsort(seconds, done, sizeof *seconds, by_value);
  if (!request->is_quiet && done > 0)
    say("prof run: %u runs: %.3f s in the median, %.3f at least, %.3f at most", done,
        seconds[done / 2], seconds[0], seconds[done - 1]);
  run_signals_release();
  run_signals_end_as(status);
  return status;
}
