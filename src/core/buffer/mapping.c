/* See mapping.h. */
#define _GNU_SOURCE
#include "mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/port.h"
#include "observer.h"

enum { STATE_PIN_COUNT = 64, UNUSED_BYTES = 4096 };

struct prof_i_unused {
  struct prof_i_unused *next;
  uint64_t count;
  int fd; /* to be closed, too; -1: none */
  uint64_t device, inode;
  prof_i_pin pieces[];
};
enum { UNUSED_ROOM = (UNUSED_BYTES - sizeof(struct prof_i_unused)) / sizeof(prof_i_pin) };

/* Control lock. */
static struct {
  prof_i_pin states[STATE_PIN_COUNT]; /* pages of pools' states of arenas that are gone */
  uint64_t state_next;
  struct prof_i_unused *unused; /* waits to be unmapped */
} own;

/* ---- what threads may point to ---- */

typedef struct kept { /* what stays mapped */
  char *at;
  uint64_t bytes;
  bool is_state;
} kept;

static void insert_sorted(kept *all, size_t *count, kept one) {
  size_t i = (*count)++;
  for (; i > 0 && all[i - 1].at > one.at; i--) all[i] = all[i - 1];
  all[i] = one;
}

void prof_i_mapping_each_chunk(const char *base, uint64_t bytes, void (*take)(prof_i_head *chunk)) {
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    const uint64_t words[] = {__atomic_load_n(&t->parked, __ATOMIC_ACQUIRE),
                              __atomic_load_n(&t->before, __ATOMIC_ACQUIRE)};
    for (int i = 0; i < 2; i++) {
      prof_i_head *const chunk = prof_i_parked_at(words[i]);
      if ((char *)chunk >= base && (char *)chunk < base + bytes) take(chunk);
    }
  }
}

typedef struct kept_list {
  kept *all;
  size_t *count, room;
} kept_list;

static void insert_observed(void *to, void *at, uint64_t bytes) {
  const kept_list *const list = to;
  if (*list->count + 1 < list->room) insert_sorted(list->all, list->count, (kept){at, bytes, true});
}

static size_t collect_kept(kept *all, size_t room, const char *base, uint64_t bytes) {
  const char *const end = base + bytes;
  size_t count = 0;
  for (const prof_i_thread *t = prof_i_thread_first(); t && count + 3 < room; t = t->next) {
    const uint64_t words[] = {__atomic_load_n(&t->parked, __ATOMIC_ACQUIRE),
                              __atomic_load_n(&t->before, __ATOMIC_ACQUIRE)};
    if ((char *)t->slot >= base && (char *)t->slot < end)
      insert_sorted(all, &count, (kept){(char *)t->slot, PROF_I_SLOT_BYTES, false});
    for (int i = 0; i < 2; i++) {
      char *const chunk = (char *)prof_i_parked_at(words[i]);
      if (chunk >= base && chunk < end)
        insert_sorted(all, &count, (kept){chunk, prof_i_parked_bytes(words[i]), false});
    }
  }
  kept_list list = {all, &count, room};
  PROF_I_ANNOUNCE(each_kept, base, bytes, insert_observed, &list);
  return count;
}

/* No thread owns the pages of a pool's state. They are unmapped some captures later, when no thread
   can still be between its look at the pool and its update of the sum. Pages of a slot or a chunk
   belong to their thread, which unmaps them when it ends: see its pins. */
static void unmap_later(void *at, uint64_t bytes) {
  prof_i_pin *const p = &own.states[own.state_next++ % STATE_PIN_COUNT];
  if (p->at) munmap(p->at, p->bytes);
  *p = (prof_i_pin){at, bytes};
}

size_t prof_i_mapping_pieces(void) {
  size_t room = 64; /* threads may come meanwhile */
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next) room += 3;
  for (const prof_i_observer *const *o = __start_prof_observers; o < __stop_prof_observers; o++)
    if ((*o)->kept_count) room += (*o)->kept_count();
  return room;
}

bool prof_i_mapping_split(char *base, uint64_t bytes, prof_i_mapping_sink *sink, void *to) {
  const size_t room = prof_i_mapping_pieces();
  kept *const all =
      mmap(NULL, room * sizeof *all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return false;
  const size_t count = collect_kept(all, room, base, bytes);
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

static void cover_piece(void *unused, char *at, uint64_t bytes, prof_i_mapping_use use) {
  (void)unused;
  if (use != PROF_I_MAPPING_UNUSED) prof_i_port_cover(at, bytes);
}

void prof_i_mapping_cover(char *base, uint64_t bytes) {
  if (!prof_i_mapping_split(base, bytes, cover_piece, NULL)) prof_i_port_cover(base, bytes);
}

/* ---- what is unmapped after the lock is released ---- */

/* A list with room at the head of all. NULL: no memory. */
static struct prof_i_unused *add_list(void) {
  struct prof_i_unused *const fresh =
      mmap(NULL, UNUSED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return NULL;
  fresh->next = own.unused;
  fresh->fd = -1;
  own.unused = fresh;
  return fresh;
}

static void unmap_soon(char *at, uint64_t bytes) {
  struct prof_i_unused *last = own.unused;
  if (!last || last->count == UNUSED_ROOM) last = add_list();
  if (!last) {
    prof_i_port_unmap(at, bytes);
    return;
  }
  madvise(at, bytes, MADV_DONTFORK); /* a forked child would never unmap it */
  last->pieces[last->count++] = (prof_i_pin){at, bytes};
}

static void close_if_same(int fd, uint64_t device, uint64_t inode) {
  struct stat about;
  if (fd >= 0 && fstat(fd, &about) == 0 && about.st_dev == device && about.st_ino == inode)
    close(fd);
}

void prof_i_mapping_close_later(int fd, uint64_t device, uint64_t inode) {
  struct prof_i_unused *const list = add_list();
  if (!list) {
    close_if_same(fd, device, inode);
    return;
  }
  list->fd = fd;
  list->device = device;
  list->inode = inode;
}

struct prof_i_unused *prof_i_mapping_take_unused(void) {
  struct prof_i_unused *const all = own.unused;
  own.unused = NULL;
  return all;
}

void prof_i_mapping_unmap_unused(struct prof_i_unused *all) {
  for (struct prof_i_unused *next; all; all = next) {
    next = all->next;
    for (uint64_t i = 0; i < all->count; i++)
      prof_i_port_unmap(all->pieces[i].at, all->pieces[i].bytes);
    close_if_same(all->fd, all->device, all->inode);
    munmap(all, UNUSED_BYTES);
  }
}

static void release_piece(void *unused, char *at, uint64_t bytes, prof_i_mapping_use use) {
  (void)unused;
  if (use == PROF_I_MAPPING_UNUSED) unmap_soon(at, bytes);
  if (use == PROF_I_MAPPING_POOLS) unmap_later(at, bytes);
}

/* Without memory for that, address space is lost. */
void prof_i_mapping_release(char *base, uint64_t bytes) {
  (void)prof_i_mapping_split(base, bytes, release_piece, NULL);
}

/* The child does not inherit the ranges. If a thread of the parent was closing the file, the child
   keeps a descriptor until it runs another program. */
void prof_i_mapping_forget(void) {
  for (const struct prof_i_unused *each = own.unused; each; each = each->next)
    close_if_same(each->fd, each->device, each->inode);
  own.unused = NULL;
}
