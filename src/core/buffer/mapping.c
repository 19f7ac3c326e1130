/* See mapping.h. */
#define _GNU_SOURCE
#include "mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/port.h"
#include "../../base/process.h"
#include "observer.h"

enum { STATE_RANGE_COUNT = 64, UNUSED_BYTES = 4096 };

struct prof_i_unmap_list {
  struct prof_i_unmap_list *next;
  uint64_t count;
  int fd; /* to be closed, too; -1: none */
  uint64_t device, inode;
  prof_i_memory_range pieces[];
};
enum {
  UNUSED_ROOM = (UNUSED_BYTES - sizeof(struct prof_i_unmap_list)) / sizeof(prof_i_memory_range)
};

/* Control lock. */
static struct {
  prof_i_memory_range
      states[STATE_RANGE_COUNT]; /* pages of pools' states of arenas that are gone */
  uint64_t state_next;
  struct prof_i_unmap_list *unused; /* waits to be unmapped */
} mapping_state;

/* ---- what threads may point to ---- */

typedef struct kept_range { /* what stays mapped */
  char *at;
  uint64_t bytes;
  bool is_state;
} kept_range;

static void kept_insert_sorted(kept_range *all, size_t *count, kept_range one) {
  size_t i = (*count)++;
  for (; i > 0 && all[i - 1].at > one.at; i--) all[i] = all[i - 1];
  all[i] = one;
}

void prof_i_mapping_each_chunk(const char *base, uint64_t bytes, void (*take)(prof_i_head *chunk)) {
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    const uint64_t words[] = {__atomic_load_n(&t->detached_chunk, __ATOMIC_ACQUIRE),
                              __atomic_load_n(&t->previous_chunk, __ATOMIC_ACQUIRE)};
    for (int i = 0; i < 2; i++) {
      prof_i_head *const chunk = prof_i_chunk_word_address(words[i]);
      if ((char *)chunk >= base && (char *)chunk < base + bytes) take(chunk);
    }
  }
}

typedef struct kept_list {
  kept_range *all;
  size_t *count, room;
} kept_list;

static void insert_observed(void *to, void *at, uint64_t bytes) {
  const kept_list *const list = to;
  if (*list->count + 1 < list->room)
    kept_insert_sorted(list->all, list->count, (kept_range){at, bytes, true});
}

static size_t collect_kept_ranges(kept_range *all, size_t room, const char *base, uint64_t bytes) {
  const char *const end = base + bytes;
  size_t count = 0;
  for (const prof_i_thread *t = prof_i_thread_first(); t && count + 3 < room; t = t->next) {
    const uint64_t words[] = {__atomic_load_n(&t->detached_chunk, __ATOMIC_ACQUIRE),
                              __atomic_load_n(&t->previous_chunk, __ATOMIC_ACQUIRE)};
    if ((char *)t->slot >= base && (char *)t->slot < end)
      kept_insert_sorted(all, &count, (kept_range){(char *)t->slot, PROF_I_SLOT_BYTES, false});
    for (int i = 0; i < 2; i++) {
      char *const chunk = (char *)prof_i_chunk_word_address(words[i]);
      if (chunk >= base && chunk < end)
        kept_insert_sorted(all, &count,
                           (kept_range){chunk, prof_i_chunk_word_bytes(words[i]), false});
    }
  }
  kept_list list = {all, &count, room};
  PROF_I_ANNOUNCE(each_kept, base, bytes, insert_observed, &list);
  return count;
}

/* No thread owns the pages of a pool's state. They are unmapped some captures later, when no thread
   can still be between its look at the pool and its update of the sum. Pages of a slot or a chunk
   belong to their thread, which unmaps them when it ends: see its retired_mappings. */
static void retire_state_pages(void *at, uint64_t bytes) {
  prof_i_memory_range *const p =
      &mapping_state.states[mapping_state.state_next++ % STATE_RANGE_COUNT];
  if (p->at) munmap(p->at, p->bytes);
  *p = (prof_i_memory_range){at, bytes};
}

size_t prof_i_mapping_ranges_max(void) {
  size_t room = 64; /* threads may come meanwhile */
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next) room += 3;
  for (const prof_i_observer *const *o = prof_i_observers; *o; o++)
    if ((*o)->kept_count) room += (*o)->kept_count();
  return room;
}

bool prof_i_mapping_split(char *base, uint64_t bytes, prof_i_mapping_sink *sink, void *to) {
  const size_t room = prof_i_mapping_ranges_max();
  kept_range *const all =
      mmap(NULL, room * sizeof *all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return false;
  const size_t count = collect_kept_ranges(all, room, base, bytes);
  char *from = base;
  for (size_t i = 0; i < count; i++) {
    char *const end = all[i].at + all[i].bytes;
    if (all[i].at > from) sink(to, from, (uint64_t)(all[i].at - from), PROF_I_MAPPING_UNUSED);
    if (all[i].at > from) from = all[i].at;
    if (end <= from) continue; /* the pages of the pool before it */
    sink(to, from, (uint64_t)(end - from),
         all[i].is_state ? PROF_I_MAPPING_POOLS : PROF_I_MAPPING_THREADS);
    from = end;
  }
  if (from < base + bytes) sink(to, from, (uint64_t)(base + bytes - from), PROF_I_MAPPING_UNUSED);
  munmap(all, room * sizeof *all);
  return true;
}

static void cover_range(void *unused, char *at, uint64_t bytes, prof_i_mapping_use use) {
  (void)unused;
  if (use != PROF_I_MAPPING_UNUSED) prof_i_port_map_zeros_over(at, bytes);
}

void prof_i_mapping_cover(char *base, uint64_t bytes) {
  if (!prof_i_mapping_split(base, bytes, cover_range, NULL))
    prof_i_port_map_zeros_over(base, bytes);
}

/* ---- what is unmapped after the lock is released ---- */

/* A list with room at the head of all. NULL: no memory. */
static struct prof_i_unmap_list *unmap_list_add(void) {
  struct prof_i_unmap_list *const fresh =
      mmap(NULL, UNUSED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return NULL;
  fresh->next = mapping_state.unused;
  fresh->fd = -1;
  mapping_state.unused = fresh;
  return fresh;
}

static void queue_unmap(char *at, uint64_t bytes) {
  struct prof_i_unmap_list *last = mapping_state.unused;
  if (!last || last->count == UNUSED_ROOM) last = unmap_list_add();
  if (!last) {
    prof_i_port_unmap(at, bytes);
    return;
  }
  madvise(at, bytes, MADV_DONTFORK); /* a forked child would never unmap it */
  last->pieces[last->count++] = (prof_i_memory_range){at, bytes};
}

static void close_if_same_file(int fd, uint64_t device, uint64_t inode) {
  struct stat about;
  if (fd >= 0 && fstat(fd, &about) == 0 && about.st_dev == device && about.st_ino == inode)
    close(fd);
}

void prof_i_mapping_close_later(int fd, uint64_t device, uint64_t inode) {
  struct prof_i_unmap_list *const list = unmap_list_add();
  if (!list) {
    close_if_same_file(fd, device, inode);
    return;
  }
  list->fd = fd;
  list->device = device;
  list->inode = inode;
}

struct prof_i_unmap_list *prof_i_mapping_take_unmap_list(void) {
  struct prof_i_unmap_list *const all = mapping_state.unused;
  mapping_state.unused = NULL;
  return all;
}

/* A child that a handler forks meanwhile does not have these ranges, and may have others there. */
static bool unmap_range(const prof_i_memory_range *range, uint64_t process) {
  enum { STEP_BYTES = 16 << 20 };
  for (uint64_t from = 0; from < range->bytes; from += STEP_BYTES) {
    const uint64_t left = range->bytes - from;
    PROF_I_HOLD_SIGNALS;
    if (!prof_i_process_is_own() || prof_i_threads.process != process) return false;
    prof_i_port_unmap((char *)range->at + from, left < STEP_BYTES ? left : STEP_BYTES);
  }
  return true;
}

void prof_i_mapping_unmap_list(struct prof_i_unmap_list *all) {
  const uint64_t process = prof_i_threads.process;
  for (struct prof_i_unmap_list *next; all; all = next) {
    next = all->next;
    for (uint64_t i = 0; i < all->count; i++)
      if (!unmap_range(&all->pieces[i], process)) return;
    close_if_same_file(all->fd, all->device, all->inode);
    munmap(all, UNUSED_BYTES);
  }
}

static void release_range(void *unused, char *at, uint64_t bytes, prof_i_mapping_use use) {
  (void)unused;
  if (use == PROF_I_MAPPING_UNUSED) queue_unmap(at, bytes);
  if (use == PROF_I_MAPPING_POOLS) retire_state_pages(at, bytes);
}

/* Without memory for that, address space is lost. */
void prof_i_mapping_release(char *base, uint64_t bytes) {
  (void)prof_i_mapping_split(base, bytes, release_range, NULL);
}

/* The child does not inherit the ranges. If a thread of the parent was closing the file, the child
   keeps a descriptor until it runs another program. */
void prof_i_mapping_forget(void) {
  for (const struct prof_i_unmap_list *each = mapping_state.unused; each; each = each->next)
    close_if_same_file(each->fd, each->device, each->inode);
  mapping_state.unused = NULL;
}
