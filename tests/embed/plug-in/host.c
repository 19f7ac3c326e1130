/* Opens the plug-in, calls it and closes it, ROUNDS times, while prof records.

   Usage: host PLUGIN ROUNDS FILE. If compiled with HOST_LINKS_PROF, the host has a scope of its own
   and calls prof directly. Else it does not link prof, and looks up prof's functions in the plug-in
   by name. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef HOST_LINKS_PROF
#include <prof/profiler.h>
#define FUNCTION(library, type, name) ((void)(library), name)
#else
#define FUNCTION(library, type, name) ((type)dlsym(library, #name))
#endif

typedef int start_function(int);
typedef int stop_function(void);
typedef int dump_function(const char *);

static int call_work(void *library) { return ((int (*)(int))dlsym(library, "plugin_work"))(41); }

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  const int rounds = atoi(argv[2]);
#ifdef HOST_LINKS_PROF
  if (prof_start(1) != 0) return 1;
  WITH_BASE_PROFILER(PROF_HOST, "host work", "op", PROF_NO_ARGS, { (void)0; });
#endif
  for (int round = 1; round <= rounds; round++) {
    void *const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "dlopen: %s\n", dlerror());
      return 1;
    }
    if (FUNCTION(library, start_function *, prof_start)(1) != 0) return 1;
    if (call_work(library) != 42) return 1;
    if (round == rounds) {
      if (FUNCTION(library, stop_function *, prof_stop)() != 0) return 1;
      if (FUNCTION(library, dump_function *, prof_dump)(argv[3]) != 0) return 1;
    }
    dlclose(library);
  }
  return 0;
}
