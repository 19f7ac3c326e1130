/* See library.h. With an #ifdef of its own, since only glibc says where its loader
   looks. */
#define _GNU_SOURCE
#include "library.h"

#include <stdio.h>

#if defined(PROF_OPEN_LIBRARIES) && defined(__GLIBC__)

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool file_is_unreadable(const char *path) {
  return faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) == 0 &&
         faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0 && errno == EACCES;
}

/* To free(); NULL: it does not tell, or there is no memory. */
static Dl_serinfo *loader_search_path(void) {
  Dl_serinfo about, *all = NULL;
  void *const program = dlopen(NULL, RTLD_NOW);
  if (program && dlinfo(program, RTLD_DI_SERINFOSIZE, &about) == 0 &&
      (all = malloc(about.dls_size))) {
    *all = about;
    if (dlinfo(program, RTLD_DI_SERINFO, all) == 0) return all;
  }
  dlerror(); /* no other thread has it */
  free(all);
  return NULL;
}

bool prof_i_library_is_unreadable(const char *name, char *path_out, size_t room) {
  bool is_it = false;
  if (strchr(name, '/')) {
    snprintf(path_out, room, "%s", name);
    return file_is_unreadable(name);
  }
  Dl_serinfo *const all = loader_search_path();
  for (unsigned i = 0; all && i < all->dls_cnt && !is_it; i++) {
    const int bytes = snprintf(path_out, room, "%s/%s", all->dls_serpath[i].dls_name, name);
    is_it = bytes > 0 && (size_t)bytes < room && file_is_unreadable(path_out);
  }
  free(all);
  return is_it;
}

#else

bool prof_i_library_is_unreadable(const char *name, char *path_out, size_t room) {
  (void)name;
  (void)path_out;
  (void)room;
  return false;
}

#endif
