/* See titles.h. */
#include "titles.h"

#include <stddef.h>

#include "python.h"

const char *run_title(const run_family *family, const run_member *member, const char *workload) {
  enum { DEEPEST = 8 };
  const run_member *m = member;
  for (int i = 0; i < DEEPEST && m && m->words; i++) {
    if (!run_python_is_worker(m->words, m->words_bytes)) {
      const char *const title = run_python_title(m->words, m->words_bytes);
      return title ? title : workload;
    }
    m = run_family_find(family, m->parent_pid);
  }
  return NULL;
}
