/* A plug-in with a scope of its own; the host opens it at run time. */
#include <prof/profiler.h>

__attribute__((visibility("default"))) int plugin_work(int value);

int plugin_work(int value) {
  WITH_BASE_PROFILER(PROF_HOST, "plugin work", "op", PROF_NO_ARGS, { value += 1; });
  return value;
}
