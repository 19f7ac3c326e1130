/* backend-demo PLUGIN: copies on the engine, each in a scope on its queue, with the back end out of
   that file. Then prints prof's table, whose last lines say what is known of the device. The same
   works with PROF_BACKENDS=PLUGIN, and no argument. */
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <stdio.h>
#include <string.h>

#include "engine.h"

enum { ENGINE_DEVICE = 12, LAYERS = 4, WEIGHTS_BYTES = 8 << 20, INPUT_BYTES = 1 << 20 };

static int fail(const char *what) {
  fprintf(stderr, "backend-demo: %s: %s\n", what, prof_last_error());
  return 1;
}

static void run(engine_queue *queue, unsigned char *to, const unsigned char *from) {
  const prof_device device = {ENGINE_DEVICE, 0};
  for (int i = 0; i < LAYERS; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, {
      WITH_GPU_PROFILER(device, queue, "copy weights", "copy", PROF_ARGS("bytes", WEIGHTS_BYTES),
                        { engine_copy(queue, to, from, WEIGHTS_BYTES); });
      WITH_GPU_PROFILER(device, queue, "copy input", "copy", PROF_ARGS("bytes", INPUT_BYTES),
                        { engine_copy(queue, to, from, INPUT_BYTES); });
    });
  }
  WITH_BASE_PROFILER(PROF_HOST, "wait", "model", PROF_NO_ARGS, { engine_finish(queue); });
}

int main(int argc, char **argv) {
  if (argc > 1 && prof_backend_load(argv[1]) != PROF_OK) return fail(argv[1]);
  static unsigned char from[WEIGHTS_BYTES], to[WEIGHTS_BYTES];
  engine_queue *const queue = engine_queue_create();
  if (!queue) return 1;
  memset(from, 7, sizeof from);
  if (prof_start(1) != PROF_OK) return fail("prof_start");
  run(queue, to, from);
  if (prof_stop() != PROF_OK) return fail("prof_stop");
  prof_trace *trace = NULL;
  char *text = NULL;
  if (prof_get(&trace) != PROF_OK || prof_trace_table(trace, NULL, &text) != PROF_OK)
    return fail("the table");
  fputs(text, stdout);
  prof_free(text);
  prof_trace_destroy(trace);
  engine_queue_destroy(queue);
  return memcmp(to, from, sizeof from) == 0 ? 0 : 1;
}
