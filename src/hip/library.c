/* See library.h. */
#include "library.h"

#include <prof/backend.h>

#include "../base/library.h"
#include "error.h"

static const char *const hip_names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
enum { HIP_NAMES = sizeof hip_names / sizeof *hip_names };

prof_i_hip_functions prof_i_hip;

static void *find_loaded_hip(const char **name_out) {
  const char *why;
  void *library = NULL;
  for (int i = 0; i < HIP_NAMES && !library; i++)
    library = prof_i_library_open(*name_out = hip_names[i], 1, &why);
  return library;
}

static void *find_installed_hip(const char **name_out, prof_i_library_error *why) {
  void *library = NULL;
  for (int i = 0; i < HIP_NAMES && !library; i++)
    library = prof_i_library_try(*name_out = hip_names[i], why);
  return library;
}

/* The first function that is needed and not there; NULL: none is. */
static const char *resolve_hip(void *library) {
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
  return prof_i_library_can_open() && find_loaded_hip(&name) != NULL;
}

int prof_i_hip_library_open(void) {
  prof_i_library_error why = {0};
  const char *name = NULL;
  if (!prof_i_library_can_open())
    return prof_i_backend_fail(PROF_BACKEND_UNSUPPORTED,
                               "libprof.a opens no libraries; link libprof.so");
  void *library = find_loaded_hip(&name);
  if (!library) library = find_installed_hip(&name, &why);
  if (!library)
    return why.is_broken ? prof_i_backend_fail_library("", &why)
                         : prof_i_backend_fail_text(PROF_BACKEND_ABSENT,
                                                    "libamdhip64.so.7, .6 and .5 are not there");
  const char *const missing = resolve_hip(library);
  return missing
             ? prof_i_backend_fail(PROF_BACKEND_VERSION,
                                   "%s has no %s(): HIP 5 is the oldest that serves", name, missing)
             : PROF_BACKEND_OK;
}
