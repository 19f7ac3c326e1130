/* See library.h. */
#include "library.h"

#include <prof/backend.h>

#include "../base/library.h"
#include "words.h"

static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
enum { NAMES = sizeof names / sizeof *names };

prof_i_hip_functions prof_i_hip;

static void *find_loaded(const char **name_out) {
  const char *why;
  void *library = NULL;
  for (int i = 0; i < NAMES && !library; i++)
    library = prof_i_library_open(*name_out = names[i], 1, &why);
  return library;
}

static void *find_installed(const char **name_out, prof_i_library_why *why) {
  void *library = NULL;
  for (int i = 0; i < NAMES && !library; i++)
    library = prof_i_library_try(*name_out = names[i], why);
  return library;
}

/* The first function that is needed and not there; NULL: none is. */
static const char *resolve(void *library) {
  enum { OPTIONAL, NEEDED };
  const char *missing = NULL;
#define RESOLVE(need, name, arguments)                              \
  *(void **)&prof_i_hip.name = prof_i_library_find(library, #name); \
  if ((need) == NEEDED && !prof_i_hip.name && !missing) missing = #name;
#define RESOLVE_TEXT(name, arguments) RESOLVE(NEEDED, name, arguments)
  PROF_I_HIP_FUNCTIONS(RESOLVE)
  PROF_I_HIP_TEXTS(RESOLVE_TEXT)
#undef RESOLVE_TEXT
#undef RESOLVE
  return missing;
}

int prof_i_hip_library_is_loaded(void) {
  const char *name;
  return prof_i_library_can_open() && find_loaded(&name) != NULL;
}

int prof_i_hip_library_open(void) {
  prof_i_library_why why = {0};
  const char *name = NULL;
  if (!prof_i_library_can_open())
    return prof_i_words_fail(PROF_BACKEND_UNSUPPORTED,
                             "libprof.a opens no libraries; link libprof.so");
  void *library = find_loaded(&name);
  if (!library) library = find_installed(&name, &why);
  if (!library)
    return why.is_broken ? prof_i_words_no_library("", &why)
                         : prof_i_words_refuse(PROF_BACKEND_ABSENT,
                                               "libamdhip64.so.7, .6 and .5 are not there");
  const char *const missing = resolve(library);
  return missing
             ? prof_i_words_fail(PROF_BACKEND_VERSION,
                                 "%s has no %s(): HIP 5 is the oldest that serves", name, missing)
             : PROF_BACKEND_OK;
}
