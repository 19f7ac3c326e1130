/* See process.h: the page that tells a child from its parent, this copy of the library, the refusal
   of calls in a signal handler, and prof_free(). */
#define _GNU_SOURCE
#include "process.h"

#include <dlfcn.h>
#include <link.h>
#include <prof/profiler.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "error.h"
#include "port.h"

/* ---- this process ---- */

enum { PAGE_BYTES = 4096 };
enum { PAGE_CHILD = 0, PAGE_OWN = 1, PAGE_BECOMING = 2 }; /* what the page holds */

static struct {
  uint32_t *page; /* NULL: this kernel empties no pages. Release, acquire */
  pid_t id;
  void (*become_child)(void);
} process;

static uint32_t *make_page(void) {
  void *const page =
      mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return NULL;
  if (!prof_i_port_wipe_on_fork(page, PAGE_BYTES)) {
    munmap(page, PAGE_BYTES);
    return NULL;
  }
  *(uint32_t *)page = PAGE_OWN;
  return page;
}

void prof_i_process_watch(void (*become_child)(void)) {
  process.become_child = become_child;
  process.id = getpid();
  __atomic_store_n(&process.page, make_page(), __ATOMIC_RELEASE);
}

bool prof_i_process_is_own(void) {
  uint32_t *const page = __atomic_load_n(&process.page, __ATOMIC_ACQUIRE);
  if (!page || __atomic_load_n(page, __ATOMIC_ACQUIRE) == PAGE_OWN) return true;
  PROF_I_INSIDE;
  uint32_t found = PAGE_CHILD;
  if (!__atomic_compare_exchange_n(page, &found, PAGE_BECOMING, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE))
    return found == PAGE_OWN;
  process.become_child();
  __atomic_store_n(page, PAGE_OWN, __ATOMIC_RELEASE);
  return true;
}

/* A scope of an earlier handler may have done it already. qemu-user 7 accepts MADV_WIPEONFORK and
   empties nothing. */
void prof_i_process_after_fork(void) {
  if (process.page) prof_i_process_is_own();
  if (!process.page || process.id != getpid()) process.become_child();
}

pid_t prof_i_process_id(void) { return process.id; }
void prof_i_process_set_id(pid_t id) { process.id = id; }

/* ---- this copy among others ---- */

/* Weak: a program linked with -static has no dynamic linker. */
/* NOLINTNEXTLINE(readability-redundant-declaration): it adds the attribute */
extern __typeof__(dladdr) dladdr __attribute__((weak));
/* NOLINTNEXTLINE(readability-redundant-declaration): the same */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((weak, visibility("hidden")));

/* One object with two names. The dynamic linker binds the first one, perhaps to another copy. The
   second one is always in this copy. It must not be a variable that call sites use: the linker
   copies those into programs that are not position-independent. */
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
                     "another copy of prof, in '%s', receives the scopes of this one: start that "
                     "one, or link this one with -Wl,--exclude-libs,ALL",
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

/* ---- public calls in a signal handler ---- */

bool prof_i_reentry_is_refused(const char *call) {
  if (PROF_I_LIKELY(!prof_i_thread_is_interrupted())) return false;
  /* The thread may have forked with the control lock held. The child then has a new lock. */
  prof_i_process_is_own();
  if (!prof_i_thread_is_interrupted()) return false;
  prof_i_fail(PROF_E_BUSY,
              "%s: called in a signal handler that interrupted another call of prof on this "
              "thread; call it when the handler has returned, or on another thread",
              call);
  return true;
}

/* Gives back what prof has handed out. */
void prof_free(void *memory) {
  PROF_I_REFUSE_INTERRUPTED();
  PROF_I_INSIDE;
  free(memory);
}
