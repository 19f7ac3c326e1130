/* Mapping, growing and giving up the arena. See arena.h. */
#define _GNU_SOURCE
#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <prof/profiler.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "blocks.h"
#include "capture_file.h"
#include "mapping.h"

static struct {
  void *level_page; /* made once, mapped over with each arena's header; or &child_header_page */
  /* used bytes at the last look at the disk's free space; any thread, relaxed */
  uint64_t disk_checked;
  uint64_t full; /* room epoch << FULL_BITS, and while full reason + 1; any thread, relaxed */
  int refusal;   /* of the kernel, since room came back: an errno; any thread, relaxed */
} arena_state;

enum {
  PAGE_BYTES = 4096,
  OPEN_FILE_BYTES = 1 << 20,    /* a file's mapping is opened by pieces of that size */
  OPEN_MEMORY_BYTES = 16 << 20, /* memory's */
  DISK_LOOK_BYTES = 16 << 20,   /* free space is looked at every 16 MiB */
  DISK_FREE_MIN_PERCENT = 5,
  FULL_BITS = 8
};
static const uint64_t disk_free_min_bytes = 1ull << 30;

/* ---- the level's page ---- */

/* Of a child that gets no page over its parent's: nothing of the child's may be stored there. No
   arena's header is mapped over it. */
static prof_i_header child_header_page;

/* Scopes that are off read it. at: over the one that is there. */
static void *fresh_level_page(void *at) {
  return prof_i_port_map_unchecked(at, PAGE_BYTES,
                                   MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1);
}

static void use_level_page(void *page) {
  __atomic_store_n(&arena_state.level_page, page, __ATOMIC_RELEASE);
  __atomic_store_n(&prof_i_level_1, &((prof_i_header *)page)->level, __ATOMIC_RELEASE);
}

int prof_i_arena_level_page(void) {
  if (arena_state.level_page && arena_state.level_page != &child_header_page) return 0;
  void *const page = fresh_level_page(NULL);
  if (page == MAP_FAILED) return errno;
  use_level_page(page);
  return 0;
}

void prof_i_arena_set_level(uint32_t level) {
  if (arena_state.level_page)
    __atomic_store_n(&((prof_i_header *)arena_state.level_page)->level, level, __ATOMIC_SEQ_CST);
}

bool prof_i_arena_lower_level(uint32_t from, uint32_t to) {
  return arena_state.level_page &&
         __atomic_compare_exchange_n(&((prof_i_header *)arena_state.level_page)->level, &from, to,
                                     false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

void prof_i_arena_count_loss(int loss, uint64_t count) {
  __atomic_fetch_add(&((prof_i_header *)arena_state.level_page)->unattributed[loss], count,
                     __ATOMIC_RELAXED);
}

void prof_i_arena_count_deep_ended(void) {
  prof_i_header *const header = arena_state.level_page;
  __atomic_fetch_add(&header->deep_over, 1, __ATOMIC_RELAXED);
}

uint64_t prof_i_arena_session(void) {
  _Static_assert(offsetof(prof_i_header, session) + sizeof(uint64_t) <= PAGE_BYTES,
                 "it is in the level's page");
  const prof_i_header *const header = __atomic_load_n(&arena_state.level_page, __ATOMIC_ACQUIRE);
  return header ? __atomic_load_n(&header->session, __ATOMIC_RELAXED) : 0;
}

/* Without the lock the page may just be becoming another arena's, which has level 0 as well: see
   prof_i_arena_install(). */
PROF_I_RACES_BY_DESIGN uint32_t prof_i_arena_level(void) {
  const prof_i_header *const header = __atomic_load_n(&arena_state.level_page, __ATOMIC_ACQUIRE);
  return header ? __atomic_load_n(&header->level, __ATOMIC_RELAXED) : 0;
}

/* ---- create, retire, forget ---- */

/* A file's mapping has the size of its cap, perhaps gigabytes for kilobytes of records. The part
   that the file does not have yet is closed. Otherwise a program that reads all memory of the
   process would get SIGBUS there: valgrind, mlockall(), a garbage collector. Before the file grows:
   its size says what may be read. Memory's is opened by pieces too: under mlockall(MCL_FUTURE) the
   kernel makes and locks all pages of what is open. */
static int open_more(prof_i_arena *arena, uint64_t end) {
  if (arena->has_blocks) return 0; /* opened when they are taken */
  uint64_t before = __atomic_load_n(&arena->open_bytes, __ATOMIC_ACQUIRE);
  if (end <= before) return 0;
  const uint64_t step = arena->is_file ? OPEN_FILE_BYTES : OPEN_MEMORY_BYTES,
                 steps = (end + step - 1) / step * step,
                 after = steps < arena->cap_bytes ? steps : arena->cap_bytes;
  if (mprotect(arena->base + before, after - before, PROT_READ | PROT_WRITE) != 0) return errno;
  while (before < after && !__atomic_compare_exchange_n(&arena->open_bytes, &before, after, true,
                                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
  return 0;
}

/* NULL: errno says why. */
static char *map_fresh(prof_i_arena *fresh, int fd, uint64_t cap_bytes) {
  const bool may_have_blocks = !fresh->is_file && prof_i_blocks_fit(cap_bytes);
  fresh->mirror = NULL;
  char *const in_blocks = may_have_blocks ? prof_i_blocks_map(fd, cap_bytes, &fresh->mirror) : NULL;
  fresh->has_blocks = in_blocks != NULL;
  if (in_blocks) return in_blocks;
  char *const base = PROF_I_FAULT(PRIVATE_MAP)
                         ? mmap(NULL, cap_bytes, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE, fd, 0)
                         : prof_i_port_map_closed(cap_bytes, fd);
  return base == MAP_FAILED ? NULL : base;
}

static void unmap_fresh(const prof_i_arena *fresh) {
  munmap(fresh->base, fresh->cap_bytes);
  if (fresh->mirror) munmap(fresh->mirror, fresh->cap_bytes);
}

static int open_first(prof_i_arena *fresh) {
  if (fresh->has_blocks) return prof_i_blocks_open_first(fresh);
  const int error = open_more(fresh, PROF_I_FIRST_UNIT_OFFSET);
  return error ? error : prof_i_port_populate(fresh->base, PROF_I_HEADER_BYTES);
}

/* Where a sandbox forbids a memfd, memory without a file serves as well. */
static int open_memory(uint64_t cap_bytes, int *fd_out) {
  const int error = prof_i_port_memfd(cap_bytes, fd_out);
  if (error) *fd_out = -1;
  return prof_i_port_is_forbidden(error) ? 0 : error;
}

int prof_i_arena_map(prof_i_arena *fresh, int fd, uint64_t cap_bytes, uint32_t policy) {
  const bool is_file = fd >= 0;
  if (PROF_I_FAULT(OVER_CAP)) cap_bytes += PROF_I_CHUNK_BYTES_MAX;
  int error = is_file ? prof_i_port_reserve_file(fd, 0, PROF_I_FIRST_UNIT_OFFSET)
                      : open_memory(cap_bytes, &fd);
  if (error) return error;
  struct stat about = {0};
  fresh->cap_bytes = cap_bytes;
  fresh->open_bytes = 0;
  fresh->is_file = is_file;
  char *const base = fd < 0 || fstat(fd, &about) == 0 ? map_fresh(fresh, fd, cap_bytes) : NULL;
  fresh->base = base;
  if (!base)
    error = errno;
  else if ((error = open_first(fresh)) != 0)
    unmap_fresh(fresh);
  if (error) {
    if (!is_file && fd >= 0) close(fd);
    return error;
  }
  fresh->policy = policy;
  fresh->fd = is_file ? prof_i_port_move_fd_up(fd) : fd;
  fresh->device = about.st_dev;
  fresh->inode = about.st_ino;
  prof_i_header *const header = (prof_i_header *)base;
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without a base, error is errno, not 0 */
  header->used_bytes = fresh->has_blocks ? PROF_I_BLOCK_BYTES : PROF_I_FIRST_UNIT_OFFSET;
  header->made_bytes = PROF_I_FIRST_UNIT_OFFSET;
  header->cap_bytes = cap_bytes;
  header->unit_bytes = PROF_I_UNIT_BYTES;
  header->policy = policy;
  return 0;
}

/* Another thread may be opening the file anew. */
static int file_descriptor(void) { return __atomic_load_n(&prof_i_the_arena.fd, __ATOMIC_ACQUIRE); }

static bool file_descriptor_is_ours(void) {
  struct stat about;
  const int fd = file_descriptor();
  if (PROF_I_FAULT(NO_FSTAT)) return fd >= 0;
  return fd >= 0 && fstat(fd, &about) == 0 && about.st_dev == prof_i_the_arena.device &&
         about.st_ino == prof_i_the_arena.inode;
}

/* Its memory and its file's mapping. Where a thread may still come, addresses stay valid and read
   as zeros. All else is unmapped when the lock is released: mapping.h. */
static void cover_current_arena(void) {
  prof_i_arena *const arena = &prof_i_the_arena;
  if (!arena->base) return;
  const prof_i_arena old = *arena;
  __atomic_store_n(&prof_i_arena_header()->is_left, 1, __ATOMIC_RELAXED);
  /* Over it, not away: see the file comment. Address space without memory behind it. */
  if (old.has_blocks)
    prof_i_blocks_cover();
  else
    prof_i_mapping_cover(old.base, old.cap_bytes);
  if (file_descriptor_is_ours())
    prof_i_mapping_close_later(arena->fd, (uint64_t)arena->device, (uint64_t)arena->inode);
  arena->fd = -1;
  arena->is_file = arena->has_blocks = false;
  arena->path[0] = '\0';
  /* Before it is unmapped: others may then have its addresses, also in a child that is forked just
     now, and forgets the arena. */
  __atomic_store_n(&arena->base, NULL, __ATOMIC_SEQ_CST);
  if (old.has_blocks)
    prof_i_blocks_retire(&old);
  else
    prof_i_mapping_release(old.base, old.cap_bytes);
}

void prof_i_arena_discard(prof_i_arena *fresh) {
  unmap_fresh(fresh);
  if (fresh->fd >= 0) close(fresh->fd);
  if (fresh->is_file) unlink(fresh->path);
}

static void begin_room_epoch(void) {
  const uint64_t room_epoch = __atomic_load_n(&arena_state.full, __ATOMIC_RELAXED) >> FULL_BITS;
  __atomic_store_n(&arena_state.full, (room_epoch + 1) << FULL_BITS, __ATOMIC_SEQ_CST);
  __atomic_store_n(&arena_state.refusal, 0, __ATOMIC_RELAXED);
}

void prof_i_arena_note_refusal(int error) {
  __atomic_store_n(&arena_state.refusal, error, __ATOMIC_RELAXED);
}
int prof_i_arena_refusal(void) { return __atomic_load_n(&arena_state.refusal, __ATOMIC_RELAXED); }

/* Level 0 in either, so it does not matter which of them the page shows until the old one is
   gone. */
static bool map_level_page_of(const prof_i_arena *fresh) {
  const int flags = MAP_SHARED | MAP_FIXED;
  const void *const at =
      fresh->fd < 0
          ? prof_i_port_map_twice(arena_state.level_page, fresh->base, PAGE_BYTES)
          : prof_i_port_map_unchecked(arena_state.level_page, PAGE_BYTES, flags, fresh->fd);
  return at != MAP_FAILED;
}

int prof_i_arena_install(prof_i_arena *fresh) {
  if (!map_level_page_of(fresh)) return errno;
  cover_current_arena();
  if (!fresh->is_file) { /* sized once: the mapping is all that is needed */
    if (fresh->fd >= 0) close(fresh->fd);
    fresh->fd = -1;
  }
  char *const base = fresh->base;
  fresh->number = prof_i_the_arena.number + 1;
  fresh->base = NULL;
  prof_i_head_map_begin(fresh->number, fresh->cap_bytes);
  prof_i_the_arena = *fresh;
  if (fresh->has_blocks) prof_i_blocks_begin();
  __atomic_store_n(&arena_state.disk_checked, 0, __ATOMIC_RELAXED);
  begin_room_epoch();
  __atomic_store_n(&prof_i_the_arena.base, base, __ATOMIC_RELEASE);
  return 0;
}

void prof_i_arena_forget(uint32_t level) {
  prof_i_arena *const arena = &prof_i_the_arena;
  if (!arena_state.level_page) return;
  /* Also while another thread replaced the arena. */
  if (arena_state.level_page != &child_header_page &&
      fresh_level_page(arena_state.level_page) == MAP_FAILED)
    use_level_page(&child_header_page);
  if (arena->base && arena->has_blocks)
    prof_i_blocks_forget();
  else if (arena->base)
    prof_i_port_map_zeros_over(arena->base, arena->cap_bytes);
  if (file_descriptor_is_ours()) close(arena->fd);
  arena->fd = -1;
  arena->is_file = arena->has_blocks = false;
  arena->path[0] = '\0';
  arena->base = NULL;
  begin_room_epoch();
  prof_i_arena_set_level(level); /* the child goes on; its own capture is made at its first scope */
}

/* ---- extents ---- */

static bool disk_has_room(uint64_t used) {
  const uint64_t checked = __atomic_load_n(&arena_state.disk_checked, __ATOMIC_RELAXED);
  if (checked && used - checked < DISK_LOOK_BYTES) return true;
  struct statfs about; /* fstatvfs() of an old glibc reads /proc/mounts, and allocates */
  if (fstatfs(file_descriptor(), &about) != 0) return true; /* fallocate will tell */
  const uint64_t free_bytes = (uint64_t)about.f_bavail * (uint64_t)about.f_frsize;
  const uint64_t all_bytes = (uint64_t)about.f_blocks * (uint64_t)about.f_frsize;
  const uint64_t floor_bytes = all_bytes / 100 * DISK_FREE_MIN_PERCENT < disk_free_min_bytes
                                   ? all_bytes / 100 * DISK_FREE_MIN_PERCENT
                                   : disk_free_min_bytes;
  __atomic_store_n(&arena_state.disk_checked, used, __ATOMIC_RELAXED);
  return free_bytes > floor_bytes;
}

/* The host may have closed our descriptor, and its own file may have the number now. */
static int reserve_file_range(uint64_t offset, uint64_t bytes) {
  if (!prof_i_the_arena.is_file) return 0;
  if (!file_descriptor_is_ours()) {
    int fd = open(prof_i_the_arena.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return errno;
    fd = prof_i_port_move_fd_up(fd);
    prof_i_capture_file_lock(fd);
    const int stale = __atomic_exchange_n(&prof_i_the_arena.fd, fd, __ATOMIC_ACQ_REL);
    (void)stale; /* not ours to close */
    if (!file_descriptor_is_ours()) {
      __atomic_store_n(&prof_i_the_arena.fd, -1, __ATOMIC_RELEASE);
      close(fd);
      return EBADF;
    }
  }
  if (!disk_has_room(offset + bytes)) return ENOSPC;
  return prof_i_port_reserve_file(file_descriptor(), offset, bytes);
}

/* A reader takes a capture that ends before it for truncated. One may end before used_bytes,
   because a thread that took room may be killed, or get no memory, before the room is made. */
static void record_made_bytes(uint64_t end) {
  uint64_t *const made = &prof_i_arena_header()->made_bytes;
  uint64_t before = __atomic_load_n(made, __ATOMIC_RELAXED);
  while (before < end && !__atomic_compare_exchange_n(made, &before, end, true, __ATOMIC_RELEASE,
                                                      __ATOMIC_RELAXED)) {
  }
}

void prof_i_arena_make_head(prof_i_head *head, prof_i_extent_kind kind, uint64_t bytes) {
  const uint64_t offset = prof_i_arena_offset(head);
  head->cursor = PROF_I_HEAD_BYTES;
  head->limit = bytes - 15;
  head->generation = 1;
  /* Where a chunk was, somebody may just walk over it. */
  __atomic_store_n(&head->kind, (uint16_t)kind, __ATOMIC_RELAXED);
  __atomic_store_n(&head->bytes, bytes, __ATOMIC_RELAXED);
  __atomic_store_n(&head->check, prof_i_head_check_of(offset, bytes, kind), __ATOMIC_RELAXED);
  __atomic_store_n(&head->state, PROF_I_CHUNK_OWNED, __ATOMIC_RELAXED);
  __atomic_store_n(&head->magic, PROF_I_EXTENT_MAGIC, __ATOMIC_RELEASE);
}

/* A reader in between takes the size from the check: see prof_i_head_bytes_of(). */
void prof_i_arena_shrink_chunk(prof_i_head *chunk, uint64_t bytes) {
  const uint64_t check = prof_i_head_check_of(prof_i_arena_offset(chunk), bytes, chunk->kind);
  __atomic_store_n(&chunk->check, check, __ATOMIC_RELEASE);
  __atomic_store_n(&chunk->bytes, bytes, __ATOMIC_RELEASE);
  __atomic_store_n(&chunk->limit, bytes - 15, __ATOMIC_RELAXED);
}

/* Makes a file's pages by writing zeros. reserve_file_range() has just checked that the descriptor
   is prof's. Its number is high, so no open() of the host gets it by chance after a wrong close().
   The file system then takes large pieces of memory, if nobody has read from there before. Mapping
   them takes a fifth of the time of a fault for each page (ext4, Linux 6.18: 0.19 ms a MiB instead
   of 0.85). A helper thread takes faults, though: where the host of a virtual machine must first
   find a large piece, it would fall behind. */
static int make_pages(uint64_t offset, uint64_t bytes) {
  void *const at = prof_i_the_arena.base + offset;
  const int error = prof_i_port_write_zeros(file_descriptor(), offset, bytes);
  if (!error) return prof_i_port_populate_file_pages(at, offset, bytes);
  /* a sandbox forbids the call: faults do it */
  return prof_i_port_is_forbidden(error) ? prof_i_port_populate(at, bytes) : error;
}

/* What is kept has its pages. */
static int make_present(prof_i_head *head, uint64_t bytes, uint64_t populate_bytes, uint64_t kept) {
  const bool is_made = prof_i_the_arena.is_file && populate_bytes == bytes;
  if (!is_made || prof_i_this_flags.takes_faults) return prof_i_port_populate(head, populate_bytes);
  const int error = kept ? prof_i_port_populate(head, kept) : 0;
  return error ? error : make_pages(prof_i_arena_offset(head) + kept, bytes - kept);
}

/* The first `kept` bytes stay as they are. */
static prof_i_head *extent_take_at(uint64_t offset, prof_i_extent_kind kind, uint64_t bytes,
                                   uint64_t populate_bytes, uint64_t kept, int *loss_out) {
  PROF_I_DISABLE_CANCEL;
  prof_i_head *const head = (prof_i_head *)(prof_i_the_arena.base + offset);
  int error = open_more(&prof_i_the_arena, offset + bytes);
  if (!error) error = reserve_file_range(offset, bytes);
  if (!error) record_made_bytes(offset + bytes);
  if (!error) error = make_present(head, bytes, populate_bytes, kept);
  if (error) {
    *loss_out = PROF_LOSS_DISK; /* the hole stays, and no reader reads it */
    if (kind != PROF_I_EXTENT_META) prof_i_arena_note_refusal(error);
    return NULL;
  }
  prof_i_head_map_add(offset);
  prof_i_arena_make_head(head, kind, bytes);
  return head;
}

prof_i_head *prof_i_arena_retake_extent(uint64_t offset, prof_i_extent_kind kind, uint64_t bytes,
                                        uint64_t populate_bytes, int *loss_out) {
  return extent_take_at(offset, kind, bytes, populate_bytes, PAGE_BYTES, loss_out);
}

static prof_i_head *extent_take_in_blocks(prof_i_extent_kind kind, uint64_t bytes,
                                          uint64_t populate_bytes, int *loss_out) {
  uint64_t offset;
  return prof_i_blocks_claim(kind, bytes, &offset, loss_out)
             ? extent_take_at(offset, kind, bytes, populate_bytes, 0, loss_out)
             : NULL;
}

/* Room that the kernel refused, unless it was partly made or others took what is behind: a smaller
   extent may still have room there. */
static void return_room(uint64_t offset, uint64_t bytes) {
  prof_i_header *const header = prof_i_arena_header();
  uint64_t end = offset + bytes;
  if (__atomic_load_n(&header->made_bytes, __ATOMIC_ACQUIRE) <= offset)
    __atomic_compare_exchange_n(&header->used_bytes, &end, offset, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
}

prof_i_head *prof_i_arena_take_extent(prof_i_extent_kind kind, uint64_t bytes,
                                      uint64_t populate_bytes, int *loss_out) {
  if (!prof_i_the_arena.base) { /* a child, in a call that its parent began */
    *loss_out = PROF_LOSS_LATE;
    return NULL;
  }
  if (prof_i_the_arena.has_blocks)
    return extent_take_in_blocks(kind, bytes, populate_bytes, loss_out);
  prof_i_header *const header = prof_i_arena_header();
  uint64_t used = __atomic_load_n(&header->used_bytes, __ATOMIC_RELAXED);
  do {
    if (used + bytes > prof_i_the_arena.cap_bytes) {
      *loss_out = PROF_LOSS_FULL;
      return NULL;
    }
  } while (!__atomic_compare_exchange_n(&header->used_bytes, &used, used + bytes, true,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  prof_i_head *const head = extent_take_at(used, kind, bytes, populate_bytes, 0, loss_out);
  if (!head) return_room(used, bytes);
  return head;
}

uint64_t prof_i_arena_aligned_bytes(uint64_t bytes) {
  const uint64_t used = __atomic_load_n(&prof_i_arena_header()->used_bytes, __ATOMIC_RELAXED);
  if (!prof_i_the_arena.is_file) return bytes;
  while (used % bytes != 0 && bytes > PROF_I_UNIT_BYTES) bytes /= 4;
  return bytes;
}

uint64_t prof_i_arena_taken_bytes(void) {
  const uint64_t cap = prof_i_the_arena.cap_bytes;
  /* Before what is used, which only grows. What is moved meanwhile may count twice. */
  const uint64_t left = prof_i_the_arena.has_blocks ? prof_i_blocks_free_bytes() : 0;
  const uint64_t used = __atomic_load_n(&prof_i_arena_header()->used_bytes, __ATOMIC_ACQUIRE);
  const uint64_t opened = used < cap ? used : cap;
  return left < opened ? opened - left : 0;
}

uint64_t prof_i_arena_readable_bytes(void) {
  const uint64_t used = __atomic_load_n(&prof_i_arena_header()->used_bytes, __ATOMIC_ACQUIRE);
  const uint64_t made = __atomic_load_n(&prof_i_arena_header()->made_bytes, __ATOMIC_ACQUIRE);
  if (!prof_i_the_arena.is_file) return made < used ? made : used;
  struct stat about;
  const bool known = file_descriptor_is_ours() ? fstat(file_descriptor(), &about) == 0
                                               : stat(prof_i_the_arena.path, &about) == 0 &&
                                                     about.st_ino == prof_i_the_arena.inode;
  /* The host may have closed the descriptor, and the file be gone: what has been reserved stays
     mapped. */
  const uint64_t there = known ? (uint64_t)about.st_size : made;
  return there < used ? there : used;
}

/* The open part and the rest are two mappings of the kernel's, each of which must be named
   alone. */
static bool map_pieces(char *to, uint64_t open_bytes, uint64_t room) {
  char *base = prof_i_the_arena.base;
  if (prof_i_the_arena.has_blocks) {
    open_bytes = room;
    base = prof_i_the_arena.mirror;
  }
  if (mremap(base, 0, open_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != (void *)to) return false;
  if (room > open_bytes &&
      mremap(base + open_bytes, 0, room - open_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
             to + open_bytes) != (void *)(to + open_bytes))
    return false;
  return mprotect(to, room, PROT_READ) == 0;
}

const void *prof_i_arena_map_readonly(uint64_t more_bytes, uint64_t *room_out) {
  const prof_i_arena *const arena = &prof_i_the_arena;
  const uint64_t open_bytes = __atomic_load_n(&arena->open_bytes, __ATOMIC_ACQUIRE);
  const uint64_t wanted =
      __atomic_load_n(&prof_i_arena_header()->used_bytes, __ATOMIC_RELAXED) + more_bytes;
  const uint64_t units = wanted / PROF_I_UNIT_BYTES * PROF_I_UNIT_BYTES, most = arena->cap_bytes;
  const uint64_t room = units < most ? units : most;
  const uint64_t open_part = open_bytes < room ? open_bytes : room;
  void *const to = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (to == MAP_FAILED) return NULL;
  *room_out = room;
  if (map_pieces(to, open_part, room)) return to;
  munmap(to, room);
  return NULL;
}

/* Where an extent is taken and its head not yet made, a unit of it may begin with anything, which
   somebody may be writing. */
static PROF_I_RACES_BY_DESIGN bool extent_may_have_head(const prof_i_head *head) {
  return __atomic_load_n(&head->magic, __ATOMIC_RELAXED) == PROF_I_EXTENT_MAGIC;
}

static bool extent_head_is_valid(const prof_i_head *head, uint64_t offset, uint64_t *bytes_out) {
  if (!extent_may_have_head(head) ||
      __atomic_load_n(&head->magic, __ATOMIC_ACQUIRE) != PROF_I_EXTENT_MAGIC)
    return false;
  const uint64_t bytes = __atomic_load_n(&head->bytes, __ATOMIC_ACQUIRE);
  const uint64_t kind = __atomic_load_n(&head->kind, __ATOMIC_RELAXED);
  const uint64_t check = __atomic_load_n(&head->check, __ATOMIC_RELAXED);
  *bytes_out = prof_i_head_bytes_of(offset, bytes, kind, check);
  return *bytes_out != 0;
}

const prof_i_head *prof_i_arena_next_of(const void *base, const void *in_place, uint64_t arena,
                                        uint64_t *offset, uint64_t end) {
  if (*offset < PROF_I_FIRST_UNIT_OFFSET) *offset = PROF_I_FIRST_UNIT_OFFSET;
  while (*offset + PROF_I_HEAD_BYTES <= end) {
    const prof_i_head *const head = prof_i_block_find(base, in_place, *offset);
    uint64_t bytes;
    if (prof_i_head_map_may_read(arena, *offset) && extent_head_is_valid(head, *offset, &bytes)) {
      *offset += bytes;
      return head;
    }
    *offset += PROF_I_UNIT_BYTES;
  }
  return NULL;
}

prof_i_head *prof_i_arena_next(uint64_t *offset, uint64_t end) {
  return (prof_i_head *)(uintptr_t)prof_i_arena_next_of(prof_i_the_arena.base, NULL,
                                                        prof_i_the_arena.number, offset, end);
}

/* ---- full ---- */

uint64_t prof_i_arena_room_epoch(void) {
  return __atomic_load_n(&arena_state.full, __ATOMIC_ACQUIRE) >> FULL_BITS;
}

/* A thread that found no room in an earlier room epoch changes nothing: there may be room again. */
bool prof_i_arena_set_full(int loss, uint64_t room_epoch) {
  uint64_t none = room_epoch << FULL_BITS;
  return __atomic_compare_exchange_n(&arena_state.full, &none, none | (uint64_t)(loss + 1), false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

void prof_i_arena_set_full_ticks(int loss, uint64_t room_epoch, uint64_t ticks) {
  const uint64_t full = room_epoch << FULL_BITS | (uint64_t)(loss + 1);
  uint64_t *const full_ticks = &prof_i_arena_header()->full_ticks;
  __atomic_store_n(full_ticks, ticks, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&arena_state.full, __ATOMIC_SEQ_CST) != full)
    __atomic_compare_exchange_n(full_ticks, &ticks, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

int prof_i_arena_full_loss(void) {
  return (int)(__atomic_load_n(&arena_state.full, __ATOMIC_RELAXED) & ((1u << FULL_BITS) - 1)) - 1;
}

void prof_i_arena_clear_full(void) {
  begin_room_epoch();
  __atomic_store_n(&prof_i_arena_header()->full_ticks, 0, __ATOMIC_SEQ_CST);
}
