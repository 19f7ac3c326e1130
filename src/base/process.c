/* See process.h. */
#define _GNU_SOURCE
#include "process.h"

#include <sys/mman.h>
#include <unistd.h>

#include "port.h"
#include "this_thread.h"

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
