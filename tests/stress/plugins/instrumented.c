/* A library that somebody instrumented, with a profiler of its own: it links the shared one, the
   program that loads it has a static one. */
#include <prof/profiler.h>

PROF_API int instrumented_start(const char *path);
PROF_API int instrumented_start_on_budget(const char *path, uint64_t events);
PROF_API int instrumented_mute(const char *name, int is_muted);
PROF_API uint64_t instrumented_muted(void);
PROF_API void instrumented_run(int times);
PROF_API void instrumented_run_named(int times);
PROF_API uint64_t instrumented_recorded(void);
PROF_API int instrumented_stop_and_dump(void);

int instrumented_start(const char *path) {
  const prof_options options = {.size = sizeof options, .path = path};
  return prof_start_with(&options);
}

int instrumented_start_on_budget(const char *path, uint64_t events) {
  const prof_options options = {.size = sizeof options,
                                .path = path,
                                .level = 2,
                                .budget_events = events,
                                .budget_action = PROF_BUDGET_MUTE};
  return prof_start_with(&options);
}

int instrumented_mute(const char *name, int is_muted) { return prof_mute(name, NULL, is_muted); }

uint64_t instrumented_muted(void) {
  prof_health health = {.size = sizeof health};
  return prof_health(&health) == PROF_OK ? health.lost_count[PROF_LOSS_MUTED] : UINT64_MAX;
}

/* The names and keys are this library's memory, and go with it. */
void instrumented_run(int times) {
  for (int i = 0; i < times; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "from a library that goes", "library",
                       PROF_ARGS("number", i, "text", "of the library"), {});
    WITH_BASE_PROFILER(PROF_HOST, "plain, of the library", "library", PROF_NO_ARGS, {});
  }
}

/* Its keys are compared with those that the site had before. */
void instrumented_run_named(int times) {
  static const char *volatile name = "named by the library";
  for (int i = 0; i < times; i++)
    WITH_BASE_PROFILER(PROF_HOST, name, "library", PROF_ARGS("of its own", i), {});
}

uint64_t instrumented_recorded(void) {
  prof_health health = {.size = sizeof health};
  return prof_health(&health) == PROF_OK ? health.recorded_count : UINT64_MAX;
}

int instrumented_stop_and_dump(void) {
  prof_stop();
  return prof_dump(NULL);
}
