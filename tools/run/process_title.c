/* See internal.h. */
#include "internal.h"

#include <stddef.h>

#include "python.h"

const char *run_process_title(const run_process_tree *process_tree, const run_process *member,
                              const char *workload) {
  enum { DEEPEST = 8 };
  const run_process *m = member;
  for (int i = 0; i < DEEPEST && m && m->words; i++) {
    if (!run_python_is_worker(m->words, m->words_bytes)) {
      const char *const title = run_python_title(m->words, m->words_bytes);
      return title ? title : workload;
    }
    m = run_process_tree_find(process_tree, m->parent_pid);
  }
  return NULL;
}
