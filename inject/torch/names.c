/* Call sites by operators' names. No lock: entries are never freed, and are put into their list by
   one compare and exchange. */
#include "../../src/base/text.h"
#include "../../src/format/layout.h"
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
  LISTS_BITS = 12, /* by their text */
  /* of the texts themselves: torch has an operator's name where it had it before */
  ADDRESSES_BITS = 11,
  NAMES_MAX = 4096 /* a range of the program's may have a name of its own each time */
};

static struct {
  prof_i_torch_name *lists[1 << LISTS_BITS];
  prof_i_torch_name *by_address[1 << ADDRESSES_BITS]; /* any of them: its text is compared */
  /* relaxed: a bound, which threads at once may pass by one each */
  uint32_t count;
} torch_name_table;

static uint32_t name_list_of(const char *text) {
  const uint64_t hash = prof_i_hash64(PROF_I_HASH64_SEED, text, strlen(text));
  return (uint32_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - LISTS_BITS));
}

static bool is_same_name(const prof_i_torch_name *name, const char *text, uint32_t kind) {
  return name->kind == kind && strcmp(name->text, text) == 0;
}

static prof_i_torch_name *find_torch_name(const char *text, uint32_t kind,
                                          prof_i_torch_name *const *list) {
  /* pairs with the release in find_or_make_torch_name() */
  prof_i_torch_name *n = __atomic_load_n(list, __ATOMIC_ACQUIRE);
  while (n && !is_same_name(n, text, kind)) n = n->next;
  return n;
}

static prof_i_torch_name *make_torch_name(const char *text, uint32_t kind) {
  const size_t bytes = strlen(text) + 1;
  prof_i_torch_name *const n =
      __atomic_load_n(&torch_name_table.count, __ATOMIC_RELAXED) < NAMES_MAX
          ? malloc(sizeof *n + bytes)
          : NULL;
  if (!n) return NULL;
  const uint32_t scope = kind & ((1u << PROF_I_TORCH_KIND_SCOPE_BITS) - 1);
  const uint32_t whom = kind >> PROF_I_TORCH_KIND_SCOPE_BITS;
  const uint32_t for_whom = whom & ((1u << PROF_I_TORCH_KIND_FOR_BITS) - 1);
  n->site = (prof_site){
      .file = "", .function = "", .line = prof_i_observed_line(scope, for_whom), .level = 1};
  n->next = NULL;
  n->kind = kind;
  memcpy(n->text, text, bytes);
  return n;
}

static prof_i_torch_name *find_or_make_torch_name(const char *text, uint32_t kind) {
  prof_i_torch_name **const list = &torch_name_table.lists[name_list_of(text)];
  prof_i_torch_name *found = find_torch_name(text, kind, list), *const made = found
                                                                                  ? NULL
                                                                                  : make_torch_name(
                                                                                        text, kind);
  if (!made) return found;
  do {
    found = find_torch_name(text, kind, list);
    made->next = __atomic_load_n(list, __ATOMIC_RELAXED);
  } while (!found && !__atomic_compare_exchange_n(list, &made->next, made, false, __ATOMIC_RELEASE,
                                                  __ATOMIC_RELAXED));
  if (found) { /* another thread was faster */
    free(made);
    return found;
  }
  __atomic_fetch_add(&torch_name_table.count, 1, __ATOMIC_RELAXED);
  return made;
}

prof_i_torch_name *prof_i_torch_name_of(const char *text, uint32_t kind) {
  prof_i_torch_name **const here =
      &torch_name_table
           .by_address[((uintptr_t)text ^ (uint64_t)kind << 32) * UINT64_C(0x9e3779b97f4a7c15) >>
                       (64 - ADDRESSES_BITS)];
  prof_i_torch_name *n = __atomic_load_n(here, __ATOMIC_ACQUIRE); /* pairs with the release below */
  if (n && is_same_name(n, text, kind)) return n;
  const int before = errno;
  n = find_or_make_torch_name(text, kind);
  if (n) __atomic_store_n(here, n, __ATOMIC_RELEASE);
  errno = before;
  return n;
}
