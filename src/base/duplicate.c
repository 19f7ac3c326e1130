/* See duplicate.h. */
#define _GNU_SOURCE
#include "duplicate.h"

#include <dlfcn.h>
#include <link.h>
#include <prof/profiler.h>

#include "log.h"

/* Weak: a program linked with -static has no dynamic linker. */
/* NOLINTNEXTLINE(readability-redundant-declaration): it adds the attribute */
extern __typeof__(dladdr) dladdr __attribute__((weak));
/* NOLINTNEXTLINE(readability-redundant-declaration): the same */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((weak, visibility("hidden")));

/* One object, two names: the first is the dynamic linker's to bind, the second is always this
   copy's. Not a word that call sites use: a program that is not position-independent would have a
   copy of that. */
const char prof_i_copy_1 = 1;
extern const char prof_i_duplicate_own
    __attribute__((alias("prof_i_copy_1"), visibility("hidden")));

bool prof_i_duplicate_is_in_force(void) {
  const char *bound = &prof_i_copy_1;
  __asm__("" : "+r"(bound)); /* else gcc 12 says of its own that two names are two objects */
  return bound == &prof_i_duplicate_own;
}

int prof_i_duplicate_check(void) {
  if (prof_i_duplicate_is_in_force()) return PROF_OK;
  Dl_info info = {0};
  const bool is_known = dladdr && dladdr(&prof_i_copy_1, &info) && info.dli_fname;
  return prof_i_fail(PROF_E_UNSUPPORTED,
                     "another copy of prof, in '%s', has the scopes of this one: start that one, "
                     "or link this one with -Wl,--exclude-libs,ALL",
                     is_known ? info.dli_fname : "?");
}

bool prof_i_duplicate_can_unload(void) {
  if (!_DYNAMIC) return false;
  for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_DEBUG) return false; /* only programs have it */
    if (entry->d_tag == DT_FLAGS_1 && entry->d_un.d_val & (DF_1_NODELETE | DF_1_PIE)) return false;
  }
  return true;
}
