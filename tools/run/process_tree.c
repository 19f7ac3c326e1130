/* See process_tree.h. A thread walks /proc/PID/task/TID/children from our process. It waits 99
   times as long as it looked, so that it takes at most 1 % of a processor. If memory ends in the
   thread, it leaves processes out: only the main thread may end the run. */
#define _GNU_SOURCE
#include "process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1 /* the element is not added */
#define uthash_nonfatal_oom(element) ((element)->is_refused = true)
#include <uthash.h>

enum {
  WAIT_LEAST_NS = 5000000,
  WAIT_MOST_NS = 1000000000,
  IDLE_SHARE = 99,
  MEMBERS_MAX = 100000,
  TASKS_MAX = 64, /* of one process, whose children are listed */
};

typedef struct tree_entry {
  run_process member;
  pid_t key;
  bool is_refused; /* there was no memory for it in the table */
  UT_hash_handle hh;
} tree_entry;

struct run_process_tree {
  pthread_t thread;
  pthread_mutex_t lock; /* of is_ending */
  pthread_cond_t changed;
  bool is_ending, is_full;
  const char *variable, *folder;
  pid_t self;
  uint64_t own_program;
  tree_entry **items; /* in the order of appearance */
  size_t count, room;
  tree_entry *by_pid; /* the last one with each pid */
  run_process **retained;
  size_t retained_count;
  bool has_prof_run;
};

static uint64_t now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- reading /proc ---- */

static ssize_t read_small(const char *path, char *to, size_t room) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t bytes = 0;
  for (ssize_t got; (size_t)bytes + 1 < room; bytes += got) {
    got = read(fd, to + bytes, room - 1 - (size_t)bytes);
    if (got < 0 && errno == EINTR)
      got = 0;
    else if (got <= 0)
      break;
  }
  close(fd);
  to[bytes] = '\0';
  return bytes;
}

typedef struct process_status {
  char name[RUN_COMM_BYTES];
  char state;
  uint64_t start;
  long threads;
} process_status;

/* /proc/PID/stat: "PID (NAME) STATE" and from there numbers; NAME may hold anything. */
static bool read_process_status(pid_t pid, process_status *to) {
  enum { THREADS = 20, START = 22 };
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (read_small(path, text, sizeof text) <= 0) return false;
  const char *const name = strchr(text, '('), *const end = strrchr(text, ')');
  if (!name || !end || end < name || !end[1]) return false;
  snprintf(to->name, sizeof to->name, "%.*s", (int)(end - name - 1), name + 1);
  to->state = end[2];
  const char *at = end + 2;
  for (int field = 3; at && field < THREADS; field++) at = strchr(at + 1, ' ');
  to->threads = at ? strtol(at, NULL, 10) : 1;
  for (int field = THREADS; at && field < START; field++) at = strchr(at + 1, ' ');
  to->start = at ? strtoull(at, NULL, 10) : 0;
  return true;
}

/* The executed file's identity. 0: it cannot be read. */
static uint64_t process_program(pid_t pid) {
  char path[64];
  struct stat is;
  snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
  if (stat(path, &is) != 0) return 0;
  return (uint64_t)is.st_ino * 0x9e3779b97f4a7c15ull ^ (uint64_t)is.st_dev;
}

/* ---- members ---- */

static bool tree_has_room(run_process_tree *process_tree) {
  if (process_tree->count < process_tree->room) return true;
  const size_t room = process_tree->room ? 2 * process_tree->room : 64;
  tree_entry **const items = realloc(process_tree->items, room * sizeof *items);
  if (!items) return false;
  process_tree->items = items;
  process_tree->room = room;
  return true;
}

static tree_entry *make_entry(run_process_tree *process_tree, pid_t pid, const process_status *s) {
  tree_entry *const e = tree_has_room(process_tree) ? calloc(1, sizeof *e) : NULL, *old = NULL;
  if (!e) return NULL;
  e->member = (run_process){.pid = pid, .start = s->start};
  e->key = pid;
  HASH_REPLACE(hh, process_tree->by_pid, key, sizeof e->key, e, old);
  (void)old; /* it stays in items */
  if (!e->is_refused) return e;
  free(e);
  return NULL;
}

static tree_entry *add_entry(run_process_tree *process_tree, pid_t pid, const process_status *s) {
  tree_entry *const e = process_tree->count < MEMBERS_MAX ? make_entry(process_tree, pid, s) : NULL;
  if (e)
    process_tree->items[process_tree->count++] = e;
  else
    process_tree->is_full = true;
  return e;
}

static bool number_is_power_of_2(unsigned number) { return (number & (number - 1)) == 0; }

static void visit_process(run_process_tree *process_tree, pid_t pid, pid_t parent,
                          const process_status *s, uint64_t at_ns) {
  tree_entry *e = NULL;
  HASH_FIND(hh, process_tree->by_pid, &pid, sizeof pid, e);
  if (!e || e->member.start != s->start) e = add_entry(process_tree, pid, s);
  if (!e || s->state == 'Z' || s->state == 'X') return;
  run_process *const m = &e->member;
  m->seen_ns = at_ns;
  if (m->parent_pid == 0) m->parent_pid = parent;
  const uint64_t program = process_program(pid);
  const bool is_new = m->seen_count == 0;
  const bool is_renamed = run_process_is_renamed(m);
  if (is_new || is_renamed || (program && program != m->program) || strcmp(m->comm, s->name) != 0) {
    tree_entry *of = NULL;
    HASH_FIND(hh, process_tree->by_pid, &parent, sizeof parent, of);
    if (program != m->program) {
      free(m->words);
      m->words = NULL;
    }
    m->program = program;
    m->is_as_parent = of && of->member.program == program;
    snprintf(m->parent, sizeof m->parent, "%s", of ? of->member.comm : "");
    memcpy(m->comm, s->name, sizeof m->comm);
    memcpy(m->name, s->name, sizeof m->name);
    m->is_empty = false;
    run_process_inspect(m, process_tree->variable, process_tree->folder);
    m->seen_count = 0;
  } else if (m->is_of_stack || m->has_no_words || (m->is_empty && m->seen_count == 1)) {
    /* a shell of the stack that executes the workload's shell keeps its name */
    run_process_inspect(m, process_tree->variable, process_tree->folder);
  }
  if (!number_is_power_of_2(++m->seen_count)) return;
  run_process_read_maps(m);
  run_process_read_words(m);
}

/* ---- the walk ---- */

typedef struct found_process {
  pid_t pid, parent;
} found_process;

typedef struct process_queue {
  found_process *items;
  size_t count, room;
  bool is_cut; /* there was no memory for more */
} process_queue;

static void queue_add(process_queue *q, pid_t pid, pid_t parent) {
  if (q->count == q->room) {
    const size_t room = q->room ? 2 * q->room : 64;
    found_process *const items = realloc(q->items, room * sizeof *items);
    q->is_cut |= !items;
    if (!items) return;
    q->items = items;
    q->room = room;
  }
  q->items[q->count++] = (found_process){pid, parent};
}

/* "12 345 6789 ", of any length. */
static void add_children_of_task(process_queue *q, pid_t pid, const char *task) {
  char path[96], text[1 << 12];
  snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", (int)pid, task);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  pid_t child = 0;
  for (ssize_t bytes; fd >= 0 && (bytes = read(fd, text, sizeof text)) > 0;)
    for (ssize_t i = 0; i < bytes; i++) {
      if (text[i] >= '0' && text[i] <= '9') {
        child = 10 * child + (text[i] - '0');
        continue;
      }
      if (child > 0) queue_add(q, child, pid);
      child = 0;
    }
  if (fd >= 0) close(fd);
}

static void add_children(process_queue *q, pid_t pid, long threads) {
  char path[64];
  snprintf(path, sizeof path, "%d", (int)pid);
  if (threads <= 1) {
    add_children_of_task(q, pid, path);
    return;
  }
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *const all = opendir(path);
  int tasks = 0;
  for (struct dirent *task; all && tasks < TASKS_MAX && (task = readdir(all)) != NULL;) {
    if (task->d_name[0] == '.') continue;
    add_children_of_task(q, pid, task->d_name);
    tasks++;
  }
  if (all) closedir(all);
}

/* prof's own helper processes are our forks: they have our program, and names of prof. */
static bool process_is_own_helper(const process_status *s, pid_t parent, pid_t self) {
  return parent == self &&
         (strcmp(s->name, RUN_KEEPER_COMM) == 0 || strcmp(s->name, RUN_SAMPLER_COMM) == 0);
}

static void walk_processes(run_process_tree *process_tree) {
  process_queue q = {0};
  add_children(&q, process_tree->self, 2);
  for (size_t i = 0; i < q.count && q.count < MEMBERS_MAX; i++) {
    process_status s;
    const found_process f = q.items[i];
    const uint64_t at_ns = now_ns(CLOCK_MONOTONIC);
    if (!read_process_status(f.pid, &s)) continue;
    if (!process_is_own_helper(&s, f.parent, process_tree->self))
      visit_process(process_tree, f.pid, f.parent, &s, at_ns);
    add_children(&q, f.pid, s.threads);
  }
  process_tree->is_full |= q.is_cut;
  free(q.items);
}

/* ---- the thread ---- */

/* True: it is time to end. */
static bool wait_ns(run_process_tree *process_tree, uint64_t ns) {
  const uint64_t until_ns = now_ns(CLOCK_MONOTONIC) + ns;
  const struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
  pthread_mutex_lock(&process_tree->lock);
  while (!process_tree->is_ending &&
         pthread_cond_timedwait(&process_tree->changed, &process_tree->lock, &until) != ETIMEDOUT)
    continue;
  const bool is_ending = process_tree->is_ending;
  pthread_mutex_unlock(&process_tree->lock);
  return is_ending;
}

static void *watch_processes(void *context) {
  run_process_tree *const process_tree = context;
  pthread_setname_np(pthread_self(), "prof-run-watch");
  for (bool is_ending = false; !is_ending;) {
    const uint64_t begun = now_ns(CLOCK_THREAD_CPUTIME_ID);
    walk_processes(process_tree);
    uint64_t wait = (now_ns(CLOCK_THREAD_CPUTIME_ID) - begun) * IDLE_SHARE;
    if (wait < WAIT_LEAST_NS) wait = WAIT_LEAST_NS;
    if (wait > WAIT_MOST_NS) wait = WAIT_MOST_NS;
    is_ending = wait_ns(process_tree, wait);
  }
  walk_processes(process_tree);
  return NULL;
}

/* Kernels without CONFIG_PROC_CHILDREN do not have the file. */
static bool kernel_has_children_file(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  return access(path, R_OK) == 0;
}

run_process_tree *run_process_tree_start(const char *variable, const char *folder) {
  if (!kernel_has_children_file()) return NULL;
  run_process_tree *const process_tree = run_make(1, sizeof *process_tree);
  pthread_condattr_t attributes;
  process_tree->variable = variable;
  process_tree->folder = folder;
  process_tree->self = getpid();
  process_tree->own_program = process_program(process_tree->self);
  pthread_mutex_init(&process_tree->lock, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&process_tree->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  const int failed = pthread_create(&process_tree->thread, NULL, watch_processes, process_tree);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed == 0) return process_tree;
  free(process_tree);
  return NULL;
}

void run_process_tree_stop(run_process_tree *process_tree) {
  if (process_tree->retained) return;
  pthread_mutex_lock(&process_tree->lock);
  process_tree->is_ending = true;
  pthread_cond_signal(&process_tree->changed);
  pthread_mutex_unlock(&process_tree->lock);
  pthread_join(process_tree->thread, NULL);
  process_tree->retained = run_make(process_tree->count, sizeof *process_tree->retained);
  process_status own = {0};
  read_process_status(process_tree->self, &own);
  for (size_t i = 0; i < process_tree->count; i++) {
    run_process *const m = &process_tree->items[i]->member;
    if (m->seen_count == 0 || (m->seen_count == 1 && m->is_as_parent)) continue;
    process_tree->has_prof_run |= m->is_prof_run;
    if (m->program == process_tree->own_program) continue; /* before exec(), or a helper of ours */
    if (m->program == 0 && strcmp(m->comm, own.name) == 0) continue; /* the same, at its end */
    process_tree->retained[process_tree->retained_count++] = m;
  }
}

bool run_process_tree_has_prof_run(const run_process_tree *process_tree) {
  return process_tree->has_prof_run;
}

void run_process_tree_destroy(run_process_tree *process_tree) {
  HASH_CLEAR(hh, process_tree->by_pid);
  for (size_t i = 0; i < process_tree->count; i++) {
    free(process_tree->items[i]->member.words);
    free(process_tree->items[i]);
  }
  free(process_tree->items);
  free(process_tree->retained);
  pthread_cond_destroy(&process_tree->changed);
  pthread_mutex_destroy(&process_tree->lock);
  free(process_tree);
}

size_t run_process_tree_count(const run_process_tree *process_tree) {
  return process_tree->retained_count;
}

const run_process *run_process_tree_at(const run_process_tree *process_tree, size_t index) {
  return process_tree->retained[index];
}

const run_process *run_process_tree_find(const run_process_tree *process_tree, pid_t pid) {
  const tree_entry *e = NULL;
  HASH_FIND(hh, process_tree->by_pid, &pid, sizeof pid, e);
  return e && (e->member.seen_count > 1 || !e->member.is_as_parent) ? &e->member : NULL;
}

bool run_process_tree_has(const run_process_tree *process_tree, pid_t pid) {
  const tree_entry *e = NULL;
  HASH_FIND(hh, process_tree->by_pid, &pid, sizeof pid, e);
  return e != NULL;
}

bool run_process_tree_is_full(const run_process_tree *process_tree) {
  return process_tree->is_full;
}
