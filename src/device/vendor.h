/* What the vendors' folders share: opening a library, a fork, copies of sized structs (vendor.c);
   launches of records (launches.c). It knows no vendor. */
#ifndef PROF_DEVICE_VENDOR_H
#define PROF_DEVICE_VENDOR_H

#include <prof/backend.h>
#include <stdbool.h>
#include <stddef.h>

#include "../base/library.h"

/* ---- errors ---- */

/* One text for each thread, of its last call. */

/* Keeps the text for prof_i_backend_last_error() and returns result. Any thread. */
int prof_i_backend_fail(int result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of a static text, at the cost of keeping a pointer: for what may fail at every scope. */
int prof_i_backend_fail_text(int result, const char *text);

/* The same of a library that could not be opened, behind a text before its own, and the result that
   fits. */
int prof_i_backend_fail_library(const char *before, const prof_i_library_error *why);

/* "": nothing failed yet. Valid until the thread's next. */
const char *prof_i_backend_last_error(void);

/* ---- libraries: found where the program has loaded them, else opened; never linked, never closed.
   One thread at a time, except where noted ---- */

enum { PROF_I_VENDOR_OPTIONAL, PROF_I_VENDOR_NEEDED };

/* The name is no pointer, because the loader would have to relocate it. It has at most 55 bytes. */
typedef struct prof_i_vendor_symbol {
  char name[56];
  uint32_t offset; /* of its pointer in the library's struct of functions */
  bool is_needed;
} prof_i_vendor_symbol;

typedef struct prof_i_vendor_library {
  const char *const *names; /* files, in the order in which they are tried; NULL ends them */
  const char *absent_text;  /* NULL: the loader's own text */
  const prof_i_vendor_symbol *symbols;
  size_t symbol_count;
  void *functions;         /* struct of pointers, written by prof_i_vendor_library_resolve() */
  const char *oldest_text; /* behind "FILE has no FUNCTION()" */
} prof_i_vendor_library;

/* A copy that the process has, or NULL. *name_out: the name that was tried last. Any thread. */
void *prof_i_vendor_library_find_loaded(const prof_i_vendor_library *library,
                                        const char **name_out);

/* The same as a yes or no; no in the static library. Any thread. */
int prof_i_vendor_library_is_loaded(const prof_i_vendor_library *library);

/* Opens what the system finds, or returns NULL with a reason. */
void *prof_i_vendor_library_find_installed(const prof_i_vendor_library *library,
                                           const char **name_out, prof_i_library_error *why);

/* Fills the functions. Returns the first one that is needed and missing, or NULL. */
const char *prof_i_vendor_library_resolve(const prof_i_vendor_library *library, void *handle);

/* The same with a result: OK, or VERSION with a text that names the file. */
int prof_i_vendor_library_use(const prof_i_vendor_library *library, void *handle, const char *name);

/* Opens a loaded copy, then an installed one, and fills the functions. may_search: NULL, or called
   before anything is opened. If it returns an error, that is the result. */
int prof_i_vendor_library_open(const prof_i_vendor_library *library, int (*may_search)(void));

/* ---- fork: a child has the parent's handles, and none of the threads behind them ---- */

/* There is one for each vendor: a process has one copy of its library. */
struct prof_backend_self {
  const prof_backend_host *host;
  uint32_t is_forked; /* relaxed; the child's only thread writes it, in the fork handler */
};

static inline bool prof_i_vendor_is_forked(const prof_backend_self *self) {
  return __atomic_load_n(&self->is_forked, __ATOMIC_RELAXED);
}

/* prof_backend's. */
void prof_i_vendor_fork_child(prof_backend_self *self);
const char *prof_i_vendor_last_error(prof_backend_self *self);

/* ---- what is handed out has the size of the caller's header ---- */

int prof_i_vendor_no_device(uint32_t index);
int prof_i_vendor_copy_device(prof_backend_device *to, const prof_backend_device *from);
int prof_i_vendor_copy_metric(prof_backend_metric *to, const prof_backend_metric *from);

/* ---- launches.c ---- */

/* Finds the call that launched a kernel or a copy. The vendor reports the call by another record
   with the same number, before or after it. For such back ends; the collector alone. Uses nothing
   of prof but the host's services. */

enum { PROF_I_LAUNCH_CALLS = 1 << 16, PROF_I_LAUNCH_THREADS = 256 };

typedef struct prof_i_launch_call {
  uint64_t number;     /* 0: none */
  uint64_t thread;     /* the kernel's number */
  uint64_t start, end; /* by the back end's clock */
} prof_i_launch_call;

/* Any record that is launched. */
typedef union prof_i_launched_record {
  prof_backend_record record;
  prof_backend_kernel kernel;
  prof_backend_copy copy;
} prof_i_launched_record;

/* A back end's; zeroed at first. Calls are remembered by their number in a ring of 65536. */
typedef struct prof_i_launch_matcher {
  const prof_backend_host *host;
  prof_i_launch_call calls[PROF_I_LAUNCH_CALLS];
  struct {
    uint64_t number, prof;
  } threads[PROF_I_LAUNCH_THREADS]; /* of this drain */
  prof_i_launched_record *waiting;
  uint32_t count, room, waited_count; /* waited: so many of them did at the last settling */
  bool is_last;
  uint64_t unfinished_count;
} prof_i_launch_matcher;

/* A drain begins. is_last: what has no end by now is not done, and lost. */
void prof_i_launch_matcher_begin(prof_i_launch_matcher *all, const prof_backend_host *host,
                                 bool is_last);

/* prof's number of a thread, by the kernel's; 0: not known. */
uint64_t prof_i_launch_matcher_thread_serial(prof_i_launch_matcher *all, uint64_t kernels_number);

/* Of several of one number the one that began first is what the program called. */
void prof_i_launch_matcher_add_call(prof_i_launch_matcher *all, const prof_i_launch_call *call);

/* Emits it, of the size that its record says, with its launch; or it waits for the call with its
   number. */
void prof_i_launch_matcher_emit(prof_i_launch_matcher *all, prof_i_launched_record *it);

/* Hands over what waits: what waited last time already, or (are_all) everything. */
void prof_i_launch_matcher_flush(prof_i_launch_matcher *all, bool are_all);

/* How many were not done, since the last time. */
uint64_t prof_i_launch_matcher_unfinished(prof_i_launch_matcher *all);

#endif
