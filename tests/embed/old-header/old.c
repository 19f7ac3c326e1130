/* Compiled with the headers as they were in version 1 of the call sites (include-1). */
#include <prof/profiler.h>
#include <stdio.h>

void old_work(int i);

void old_work(int i) {
  static prof_site site = {0, __FILE__, "old_work", __LINE__, 1, 0};
  char name[32];
  snprintf(name, sizeof name, "old name %d", i % 2);
  WITH_BASE_PROFILER(PROF_HOST, "old", "op", PROF_NO_ARGS, {
    WITH_BASE_PROFILER(PROF_HOST, "old values", "op", PROF_ARGS("i", i, "half", i / 2.0), {});
    WITH_BASE_PROFILER(PROF_HOST, "old text", "op", PROF_ARGS("text", name), {});
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "old level 2", "vm", PROF_NO_ARGS, {});
  });
  WITH_BASE_PROFILER(PROF_HOST, name, "op", PROF_NO_ARGS, {});
  WITH_BASE_PROFILER(PROF_HOST, "old format", "op", PROF_FMT("%d of %s", i, "many"), {});
  prof_scope_end(prof_scope_begin_at(&site, "old at", "op"));
}
