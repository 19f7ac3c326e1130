/* The pages of a file, behind port.h: written, and mapped before they are stored to. Raw calls
   only, as in port_linux.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "port.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { INTERRUPTIONS_MAX = 1000, PAGE_BYTES = 4096 };

/* ---- zeros ---- */

/* One page of zeros, again and again, stays in the nearest cache: a fifth faster than 64 KiB. */
enum { ZEROS = PAGE_BYTES, PIECES = 256, PIECES_FEW = 16 };
static char zeros[ZEROS] __attribute__((aligned(ZEROS))); /* never written to: costs no memory */

static void list_zeros(struct iovec *pieces, int count) {
  for (int i = 0; i < count; i++) pieces[i] = (struct iovec){zeros, ZEROS};
}

/* PIECES of them, too many for a stack: made by the first caller. NULL: another thread is just
   making them. */
static const struct iovec *all_zeros(void) {
  enum { NONE, AT_IT, MADE };
  static struct iovec pieces[PIECES];
  static uint32_t state;
  uint32_t now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
  if (now == MADE) return pieces;
  if (now != NONE ||
      !__atomic_compare_exchange_n(&state, &now, AT_IT, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return NULL;
  list_zeros(pieces, PIECES);
  __atomic_store_n(&state, MADE, __ATOMIC_RELEASE);
  return pieces;
}

int prof_i_port_write_zeros(int fd, uint64_t offset, uint64_t bytes) {
  struct iovec few[PIECES_FEW];
  const struct iovec *const all = all_zeros(), *const pieces = all ? all : few;
  const uint64_t most = (uint64_t)ZEROS * (all ? PIECES : PIECES_FEW);
  if (!all) list_zeros(few, PIECES_FEW);
  while (bytes > 0) {
    const uint64_t now = bytes < most ? bytes : most;
    const ssize_t done = now < ZEROS ? pwrite(fd, zeros, now, (off_t)offset)
                                     : pwritev(fd, pieces, (int)(now / ZEROS), (off_t)offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : ENOSPC;
    offset += (uint64_t)done;
    bytes -= (uint64_t)done;
  }
  return 0;
}

/* ---- present and writable ---- */

int prof_i_port_populate(void *at, size_t bytes) {
  int result;
  int tries = 0; /* pages stay once they are there, so it gets further each time */
  do result = madvise(at, bytes, MADV_POPULATE_WRITE);
  while (result != 0 && errno == EINTR && ++tries < INTERRUPTIONS_MAX);
  /* Before Linux 5.14, and in some sandboxes: the pages come one by one at first touch. A file's
     room is reserved already. */
  return result == 0 || errno == EINVAL || prof_i_port_is_forbidden(errno) ? 0 : errno;
}

/* The largest piece of memory that a file system takes for a write at that offset. Its size is a
   power of two, and it lies at a multiple of its size. */
static uint64_t zeros_piece_at(uint64_t offset, uint64_t bytes) {
  const uint64_t fits = 1ull << (63 - __builtin_clzll(bytes));
  const uint64_t aligned = offset & (0 - offset);
  return offset && aligned < fits ? aligned : fits;
}

/* Of this thread so far. False: not known. */
static bool count_faults(long *count_out) {
  struct rusage usage;
  if (syscall(SYS_getrusage, RUSAGE_THREAD, &usage) != 0) return false;
  *count_out = usage.ru_minflt;
  return true;
}

/* A piece's first page and its last one. One fault maps all pages of a piece that is there. */
static int populate_ends(char *at, size_t bytes) {
  const int error = prof_i_port_populate(at, PAGE_BYTES);
  if (error || bytes <= PAGE_BYTES) return error;
  return prof_i_port_populate(at + bytes - PAGE_BYTES, PAGE_BYTES);
}

int prof_i_port_populate_file_pages(void *at, uint64_t offset, size_t bytes) {
  long before = 0, after = 0, pieces = 0;
  bool is_known = count_faults(&before);
  for (size_t done = 0, piece; is_known && done < bytes; done += piece) {
    piece = zeros_piece_at(offset + done, bytes - done);
    const int error = populate_ends((char *)at + done, piece);
    if (error) return error;
    pieces++;
  }
  is_known = is_known && count_faults(&after);
  return is_known && after - before <= pieces ? 0 : prof_i_port_populate(at, bytes);
}
