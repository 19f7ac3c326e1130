/* A list to which any thread pushes, and which one thread takes whole. Lock-free. A node belongs to
   the list until it is taken, and has a member `next` of its own type.

   Macros, because the types of nodes differ. `newest` is the address of the list: the newest node,
   or NULL. Each argument is evaluated several times. */
#ifndef PROF_BASE_PUSH_LIST_H
#define PROF_BASE_PUSH_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* Any thread. The release makes the node's content visible to the thread that takes or follows the
   list with acquire. */
#define PROF_I_PUSH(newest, node)                                                                 \
  do {                                                                                            \
    (node)->next = __atomic_load_n((newest), __ATOMIC_RELAXED);                                   \
  } while (!__atomic_compare_exchange_n((newest), &(node)->next, (node), false, __ATOMIC_RELEASE, \
                                        __ATOMIC_RELAXED))

/* Sets `oldest` to all nodes, the oldest first, or to NULL. Later pushes begin a new list. */
#define PROF_I_TAKE_PUSHED(newest, oldest)                                                   \
  do {                                                                                       \
    __typeof__(oldest) node_ = __atomic_exchange_n((newest), NULL, __ATOMIC_ACQUIRE), next_; \
    for ((oldest) = NULL; node_; node_ = next_) {                                            \
      next_ = node_->next;                                                                   \
      node_->next = (oldest);                                                                \
      (oldest) = node_;                                                                      \
    }                                                                                        \
  } while (0)

#endif
