/* What the vendors' folders share: opening a library, a fork, copies of sized structs. It knows no
   vendor. */
#define _GNU_SOURCE
#include "vendor.h"

#include <prof/backend.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

/* The texts are on the heap, found by a key. Static thread-local storage is scarce: all
   libraries that a program opens share it. */

typedef struct error_text {
  const char *last;
  char text[240];
} error_text;

static struct {
  pthread_once_t once;
  pthread_key_t key;
  bool has_key;
} error_key = {.once = PTHREAD_ONCE_INIT};

static void make_error_key(void) {
  error_key.has_key = pthread_key_create(&error_key.key, free) == 0;
}

/* This thread's; NULL: there is no memory, and what it would say is lost. */
static error_text *get_error_text(void) {
  pthread_once(&error_key.once, make_error_key);
  error_text *w = error_key.has_key ? pthread_getspecific(error_key.key) : NULL;
  if (w || !error_key.has_key) return w;
  w = calloc(1, sizeof *w);
  if (w && pthread_setspecific(error_key.key, w) == 0) return w;
  free(w);
  return NULL;
}

int prof_i_backend_fail_text(int result, const char *text) {
  error_text *const w = get_error_text();
  if (w) w->last = text;
  return result;
}

int prof_i_backend_fail(int result, const char *format, ...) {
  error_text *const w = get_error_text();
  if (!w) return result;
  va_list values;
  va_start(values, format);
  /* clang-tidy 14 does not see the va_start() before it. */
  /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
  vsnprintf(w->text, sizeof w->text, format, values);
  va_end(values);
  w->last = w->text;
  return result;
}

int prof_i_backend_fail_library(const char *before, const prof_i_library_error *why) {
  return prof_i_backend_fail(why->is_broken ? PROF_BACKEND_VERSION : PROF_BACKEND_ABSENT, "%s%s",
                             before, why->text);
}

const char *prof_i_backend_last_error(void) {
  const error_text *const w = get_error_text();
  return w && w->last ? w->last : "";
}

/* ---- libraries ---- */

void *prof_i_vendor_library_find_loaded(const prof_i_vendor_library *library,
                                        const char **name_out) {
  const char *unused;
  void *handle = NULL;
  for (const char *const *name = library->names; *name && !handle; name++)
    handle = prof_i_library_open(*name_out = *name, 1, &unused);
  return handle;
}

int prof_i_vendor_library_is_loaded(const prof_i_vendor_library *library) {
  const char *unused;
  return prof_i_library_can_open() && prof_i_vendor_library_find_loaded(library, &unused) != NULL;
}

void *prof_i_vendor_library_find_installed(const prof_i_vendor_library *library,
                                           const char **name_out, prof_i_library_error *why) {
  void *handle = NULL;
  for (const char *const *name = library->names; *name && !handle; name++)
    handle = prof_i_library_try(*name_out = *name, why);
  return handle;
}

const char *prof_i_vendor_library_resolve(const prof_i_vendor_library *library, void *handle) {
  const char *missing = NULL;
  for (size_t i = 0; i < library->symbol_count; i++) {
    const prof_i_vendor_symbol *const symbol = &library->symbols[i];
    void *const address = prof_i_library_find(handle, symbol->name);
    memcpy((char *)library->functions + symbol->offset, (const void *)&address, sizeof address);
    if (symbol->is_needed && !address && !missing) missing = symbol->name;
  }
  return missing;
}

int prof_i_vendor_library_use(const prof_i_vendor_library *library, void *handle,
                              const char *name) {
  const char *const missing = prof_i_vendor_library_resolve(library, handle);
  return missing ? prof_i_backend_fail(PROF_BACKEND_VERSION, "%s has no %s()%s", name, missing,
                                       library->oldest_text)
                 : PROF_BACKEND_OK;
}

/* UNSUPPORTED in the static library, else OK. */
static int vendor_check_can_open(void) {
  return prof_i_library_can_open()
             ? PROF_BACKEND_OK
             : prof_i_backend_fail_text(PROF_BACKEND_UNSUPPORTED,
                                        "libprof.a opens no libraries; link libprof.so");
}

int prof_i_vendor_library_open(const prof_i_vendor_library *library, int (*may_search)(void)) {
  prof_i_library_error why = {0};
  const char *name = NULL;
  int result = vendor_check_can_open();
  if (result != PROF_BACKEND_OK) return result;
  void *handle = prof_i_vendor_library_find_loaded(library, &name);
  if (!handle && may_search && (result = may_search()) != PROF_BACKEND_OK) return result;
  if (!handle) handle = prof_i_vendor_library_find_installed(library, &name, &why);
  if (handle) return prof_i_vendor_library_use(library, handle, name);
  return why.is_broken || !library->absent_text
             ? prof_i_backend_fail_library("", &why)
             : prof_i_backend_fail_text(PROF_BACKEND_ABSENT, library->absent_text);
}

/* ---- fork ---- */

void prof_i_vendor_fork_child(prof_backend_self *self) {
  __atomic_store_n(&self->is_forked, 1, __ATOMIC_RELAXED);
}

/* A thread calls one back end at a time, so its last error serves all of them. */
const char *prof_i_vendor_last_error(prof_backend_self *self) {
  (void)self;
  return prof_i_backend_last_error();
}

/* ---- sized structs ---- */

int prof_i_vendor_no_device(uint32_t index) {
  return prof_i_backend_fail(PROF_BACKEND_NO_DEVICE, "there is no device %u", index);
}

int prof_i_vendor_copy_device(prof_backend_device *to, const prof_backend_device *from) {
  memcpy(to, from, to->size < sizeof *from ? to->size : sizeof *from);
  return PROF_BACKEND_OK;
}

int prof_i_vendor_copy_metric(prof_backend_metric *to, const prof_backend_metric *from) {
  memcpy(to, from, to->size < sizeof *from ? to->size : sizeof *from);
  return PROF_BACKEND_OK;
}
