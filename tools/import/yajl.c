/* See yajl.h. */
#ifdef PROF_HAVE_YAJL

#include "yajl.h"

#include <dlfcn.h>
#include <stdio.h>

bool import_yajl_load(import_yajl *to, char *error, size_t room) {
  static const char name[] = "libyajl.so.2";
  void *const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    snprintf(error, room,
             "JSON is read with yajl, which cannot be opened: %s. Type: apt-get install libyajl2",
             dlerror());
    return false;
  }
  *(void **)&to->alloc = dlsym(handle, "yajl_alloc");
  *(void **)&to->config = dlsym(handle, "yajl_config");
  *(void **)&to->parse = dlsym(handle, "yajl_parse");
  *(void **)&to->complete = dlsym(handle, "yajl_complete_parse");
  *(void **)&to->error = dlsym(handle, "yajl_get_error");
  *(void **)&to->consumed = dlsym(handle, "yajl_get_bytes_consumed");
  *(void **)&to->free_error = dlsym(handle, "yajl_free_error");
  *(void **)&to->free = dlsym(handle, "yajl_free");
  const bool is_whole = to->alloc && to->config && to->parse && to->complete && to->error &&
                        to->consumed && to->free_error && to->free;
  if (!is_whole) snprintf(error, room, "%s is no yajl 2", name);
  return is_whole;
}

#else

typedef int import_has_no_yajl; /* a file of C is never empty */

#endif
