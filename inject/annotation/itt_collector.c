/* libprof_itt.so: named by INTEL_LIBITTNOTIFY64, which a program's part of ITT reads once, when it
   is first used. It opens this library and calls __itt_api_init(). Each task is a scope of
   libprof.so's, on the thread that begins it. A task of PyTorch's domain is an operator: level 1,
   category cpu_op. A task of any other domain has level 2, and the domain is its category. Nothing
   is recorded unless a recording is on. Budget: 0.15 us an operator beside ITT's own share of 0.2
   (bench/python/torch_cost.py; measured: up to 0.05). No lock: entries are never freed, and are put
   into their list by one compare and exchange. */
#define _GNU_SOURCE
#include "itt.h"

#include <errno.h>
#include <prof/profiler.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/text.h"

#define EXPORT __attribute__((visibility("default")))

enum {
  LISTS_BITS = 12, /* of strings by their text */
  /* of the texts that the program hands over: PyTorch asks anew for each operator, by the same
     address */
  ADDRESSES_BITS = 11,
  STRINGS_MAX = 65536, /* a name that is made at run time must not become more and more memory */
  SITES_MAX = 4096,    /* names beyond are copied each time */
  OPEN_AT_FIRST = 64   /* tasks of a thread */
};

/* A call site of a string's tasks, one for each domain that they come from. The string's extra2 is
   the list. Filled before it is in the list (release; pairs with the acquire in place_of()). */
typedef struct task_site {
  struct task_site *next;
  const prof_i_itt_domain *domain;
  const char *category;
  prof_site site;
} task_site;

typedef struct open_task {
  uint64_t start; /* 0: not recorded */
  const prof_i_itt_domain *domain;
} open_task;

static struct {
  prof_i_itt_domain *domains;
  prof_i_itt_string *lists[1 << LISTS_BITS];
  prof_i_itt_string *by_address[1 << ADDRESSES_BITS]; /* any of them: its text is compared */
  /* relaxed: bounds, which threads at once may pass by one each */
  uint32_t string_count, site_count;
  int is_seen;                        /* relaxed: prof_i_itt_seen_1() */
  const char *(*recorded_name)(void); /* prof_i_itt_ask_1(); NULL: not available */
  bool has_key;
  pthread_key_t key; /* its value: the thread's open tasks, freed when it ends */
} itt;

static __thread struct {
  open_task *open;
  uint32_t count, room, unrecorded; /* untold: begun where there was no memory */
} open_tasks __attribute__((tls_model("initial-exec")));

/* prof itself begins a task of that name as a probe; it is not recorded */
static const char probe_name[] = "prof.torch.observe()";
static const char pytorch_domain[] = "PyTorch", itt_operator_category[] = "cpu_op";

/* ---- strings and domains ---- */

static prof_i_itt_string overflow_string = {.text = "(names past the 65536th)"};

static uint32_t string_list_of(const char *text) {
  const uint64_t hash = prof_i_hash64(PROF_I_HASH64_SEED, text, strlen(text));
  return (uint32_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - LISTS_BITS));
}

static prof_i_itt_string *find_string(const char *text, prof_i_itt_string *const *list) {
  /* pairs with the release in intern_string() */
  prof_i_itt_string *s = __atomic_load_n(list, __ATOMIC_ACQUIRE);
  while (s && strcmp(s->text, text) != 0) s = s->next;
  return s;
}

static prof_i_itt_string *make_string(const char *text) {
  const size_t bytes = strlen(text) + 1;
  if (__atomic_fetch_add(&itt.string_count, 1, __ATOMIC_RELAXED) >= STRINGS_MAX) {
    __atomic_fetch_sub(&itt.string_count, 1, __ATOMIC_RELAXED);
    return NULL;
  }
  prof_i_itt_string *const s = malloc(sizeof *s + bytes);
  if (!s) return NULL;
  *s = (prof_i_itt_string){.text = (char *)(s + 1)};
  memcpy(s + 1, text, bytes);
  return s;
}

static prof_i_itt_string *intern_string(const char *text) {
  prof_i_itt_string **const list = &itt.lists[string_list_of(text)];
  prof_i_itt_string *found = find_string(text, list), *const made =
                                                          found ? NULL : make_string(text);
  if (found || !made) return found ? found : &overflow_string;
  do {
    found = find_string(text, list);
    made->next = __atomic_load_n(list, __ATOMIC_RELAXED);
  } while (!found && !__atomic_compare_exchange_n(list, &made->next, made, false, __ATOMIC_RELEASE,
                                                  __ATOMIC_RELAXED));
  if (!found) return made;
  free(made); /* another thread was faster */
  return found;
}

/* What PyTorch calls before each operator. */
static prof_i_itt_string *string_handle_create(const char *text) {
  if (!text) return NULL;
  prof_i_itt_string **const here =
      &itt.by_address[(uintptr_t)text * UINT64_C(0x9e3779b97f4a7c15) >> (64 - ADDRESSES_BITS)];
  prof_i_itt_string *s = __atomic_load_n(here, __ATOMIC_ACQUIRE); /* pairs with the release below */
  if (s && strcmp(s->text, text) == 0) return s;
  const int before = errno;
  s = intern_string(text);
  __atomic_store_n(here, s, __ATOMIC_RELEASE);
  errno = before;
  return s;
}

static prof_i_itt_domain *domain_create(const char *name) {
  if (!name) return NULL;
  const int before = errno;
  const size_t bytes = strlen(name) + 1;
  prof_i_itt_domain *found, *const made = malloc(sizeof *made + bytes);
  if (made) {
    *made = (prof_i_itt_domain){.flags = 1, .name = (char *)(made + 1)};
    memcpy(made + 1, name, bytes);
  }
  do {
    /* pairs with the release here */
    prof_i_itt_domain *const first = found = __atomic_load_n(&itt.domains, __ATOMIC_ACQUIRE);
    while (found && strcmp(found->name, name) != 0) found = found->next;
    if (made) made->next = first;
  } while (made && !found &&
           !__atomic_compare_exchange_n(&itt.domains, &made->next, made, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
  if (found) free(made);
  errno = before;
  return found ? found : made; /* NULL: no memory, so this domain's tasks are not recorded */
}

/* ---- tasks ---- */

static const char *category_of_domain(const prof_i_itt_domain *domain) {
  if (!domain->name) return "itt";
  return strcmp(domain->name, pytorch_domain) == 0 ? itt_operator_category : domain->name;
}

static uint32_t level_of_category(const char *category) {
  return category == itt_operator_category ? 1 : 2;
}

/* NULL: not to be had, or not wanted. */
static task_site *make_task_site(const prof_i_itt_domain *domain, prof_i_itt_string *string) {
  if (__atomic_load_n(&itt.site_count, __ATOMIC_RELAXED) >= SITES_MAX) return NULL;
  task_site *const p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->domain = domain;
  p->category = category_of_domain(domain);
  p->site = (prof_site){.file = "", .function = "", .level = level_of_category(p->category)};
  void *before = __atomic_load_n(&string->extra2, __ATOMIC_RELAXED);
  do p->next = before;
  /* twice, where two threads do: the same site by its content */
  while (!__atomic_compare_exchange_n(&string->extra2, &before, p, false, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED));
  __atomic_fetch_add(&itt.site_count, 1, __ATOMIC_RELAXED);
  return p;
}

static uint64_t begin_new_site(const prof_i_itt_domain *domain, prof_i_itt_string *string) {
  if (strcmp(string->text, probe_name) == 0) {
    __atomic_store_n(&itt.is_seen, 1, __ATOMIC_RELAXED);
    return 0;
  }
  const int before = errno;
  task_site *const p = make_task_site(domain, string);
  errno = before;
  if (p) return prof_scope_begin_at(&p->site, string->text, p->category);
  const char *const category = category_of_domain(domain);
  return prof_scope_begin((int)level_of_category(category), string->text, category, NULL);
}

static uint64_t begin_task(const prof_i_itt_domain *domain, prof_i_itt_string *string) {
  /* pairs with the release in make_task_site() */
  task_site *p = __atomic_load_n(&string->extra2, __ATOMIC_ACQUIRE);
  while (p && p->domain != domain) p = p->next;
  return p ? prof_scope_begin_at(&p->site, string->text, p->category)
           : begin_new_site(domain, string);
}

/* Is it an operator that the dispatcher's callbacks have just recorded? Behind the name torch
   writes shapes. */
static bool is_recorded_by_torch(const char *text) {
  const char *(*const ask)(void) = __atomic_load_n(&itt.recorded_name, __ATOMIC_ACQUIRE);
  const char *const name = ask ? ask() : NULL;
  if (!name) return false;
  const size_t bytes = strlen(name);
  return strncmp(text, name, bytes) == 0 && (!text[bytes] || text[bytes] == ',');
}

/* False: no memory. */
static bool reserve_open_task(void) {
  const int before = errno;
  const uint32_t room = open_tasks.room ? 2 * open_tasks.room : OPEN_AT_FIRST;
  open_task *const open = itt.has_key ? realloc(open_tasks.open, room * sizeof *open) : NULL;
  if (open) {
    open_tasks.open = open;
    open_tasks.room = room;
    /* it fails without memory alone: then the room of a thread that has ended is lost */
    pthread_setspecific(itt.key, open);
  }
  errno = before;
  return open != NULL;
}

static void task_begin(const prof_i_itt_domain *domain, prof_i_itt_id id, prof_i_itt_id parent,
                       prof_i_itt_string *string) {
  (void)id;
  (void)parent;
  if (!domain || !string || !string->text) return;
  if (open_tasks.count == open_tasks.room && (open_tasks.unrecorded || !reserve_open_task())) {
    open_tasks.unrecorded++;
    return;
  }
  open_tasks.open[open_tasks.count++] =
      (open_task){is_recorded_by_torch(string->text) ? 0 : begin_task(domain, string), domain};
}

/* The innermost of the domain: libraries that know nothing of each other need not nest. */
static void task_end(const prof_i_itt_domain *domain) {
  if (open_tasks.unrecorded) {
    open_tasks.unrecorded--;
    return;
  }
  uint32_t at = open_tasks.count;
  while (at && open_tasks.open[at - 1].domain != domain) at--;
  if (!at) return; /* begun before the collector was there */
  const uint64_t start = open_tasks.open[at - 1].start;
  if (at != open_tasks.count)
    memmove(open_tasks.open + at - 1, open_tasks.open + at,
            (open_tasks.count - at) * sizeof *open_tasks.open);
  open_tasks.count--;
  prof_scope_end(start);
}

static void free_open_tasks(void *open) {
  open_tasks.open = NULL; /* a destructor that runs after this one may begin more */
  open_tasks.count = open_tasks.room = 0;
  free(open);
}

static void make_open_tasks_key(void) {
  itt.has_key = pthread_key_create(&itt.key, free_open_tasks) == 0;
}

static void thread_set_name(const char *name) {
  if (name) prof_thread_set_name(name);
}

/* ---- what the program's part calls ---- */

/* NOLINTNEXTLINE(bugprone-reserved-identifier): the interface's name */
EXPORT void __itt_api_init(prof_i_itt_part *part, int groups);
EXPORT int prof_i_itt_seen_1(void);
EXPORT void prof_i_itt_ask_1(const char *(*recorded_name)(void));

/* Once a part: PyTorch has one, and each library with ITT of its own. The part's lock is held. Of
   another version's part nothing is known: it stays as without a collector. */
void __itt_api_init(prof_i_itt_part *part, int groups) { /* NOLINT(bugprone-reserved-identifier) */
  static const uint8_t magic[] = PROF_I_ITT_MAGIC;
  static const struct {
    const char *name;
    void *function;
  } table[] = {
      {"__itt_domain_create", (void *)domain_create},
      {"__itt_string_handle_create", (void *)string_handle_create},
      {"__itt_task_begin", (void *)task_begin},
      {"__itt_task_end", (void *)task_end},
      {"__itt_thread_set_name", (void *)thread_set_name},
  };
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)groups;
  if (!part || memcmp(part->magic, magic, sizeof magic) != 0 || part->major != PROF_I_ITT_MAJOR)
    return;
  pthread_once(&once, make_open_tasks_key);
  for (prof_i_itt_function *f = part->functions; f->name; f++) {
    void *function = f->null_func;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
      if (strcmp(f->name, table[i].name) == 0) function = table[i].function;
    __atomic_store_n(f->address, function, __ATOMIC_RELEASE);
  }
}

/* 1: prof's own task has arrived, so the part that began it uses this collector. */
int prof_i_itt_seen_1(void) { return __atomic_load_n(&itt.is_seen, __ATOMIC_RELAXED); }

/* recorded_name: what the dispatcher's callbacks have recorded last on this thread, and has not
   ended; NULL: nothing. Such a call is not recorded again. Pairs with the acquire in
   is_recorded_by_torch(). */
void prof_i_itt_ask_1(const char *(*recorded_name)(void)) {
  __atomic_store_n(&itt.recorded_name, recorded_name, __ATOMIC_RELEASE);
}
