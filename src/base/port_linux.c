/* Linux behind port.h: clocks, processes, files and their pages. Raw calls only: nothing here
   allocates or locks, so that a signal handler that records may come through. */
#define _GNU_SOURCE
#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "fault.h"

enum { INTERRUPTIONS_MAX = 1000, PIECE_BYTES_MIN = 4096 };

/* Atomic, relaxed: set at a start, while nothing records. */
static struct { uint32_t is_counter_forbidden; } counter_state;

#ifdef PROF_FAKE_CLOCK
static uint64_t clock_ns(clockid_t clock) { return prof_i_fake_clock_ns(clock); }
#else
static uint64_t clock_ns(clockid_t clock) {
  struct timespec now = {0, 0};
  if (PROF_I_UNLIKELY(__atomic_load_n(&counter_state.is_counter_forbidden, __ATOMIC_RELAXED)))
    syscall(SYS_clock_gettime, clock, &now); /* the vDSO's would be SIGSEGV */
  else
    clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
#endif

uint64_t prof_i_port_monotonic_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
uint64_t prof_i_port_raw_ns(void) { return clock_ns(CLOCK_MONOTONIC_RAW); }
uint64_t prof_i_port_realtime_ns(void) { return clock_ns(CLOCK_REALTIME); }
uint64_t prof_i_port_processor_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
uint64_t prof_i_port_tid(void) { return (uint64_t)syscall(SYS_gettid); }

/* The clock of a thread's processor time has the complement of its number above 3 other bits. */
uint64_t prof_i_port_tid_of_self(void) {
  clockid_t clock;
  if (pthread_getcpuclockid(pthread_self(), &clock) != 0) return prof_i_port_tid();
  return ~(uint64_t)(clock >> 3);
}

/* No signal is sent. The kernel has taken the thread off its lists when it says ESRCH, so its last
   store is done. */
bool prof_i_port_has_thread_ended(uint64_t pid, uint64_t tid) {
  const int saved = errno;
  const bool has_ended = syscall(SYS_tgkill, (long)pid, (long)tid, 0L) != 0 && errno == ESRCH;
  errno = saved;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return has_ended;
}

/* Reads at most room-1 bytes of a small file; returns how many, 0 when it cannot. Keeps errno. */
size_t prof_i_port_read_small(const char *path, char *to, size_t room) {
  const int saved = errno;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t count = 0;
  if (fd >= 0) {
    do count = read(fd, to, room - 1);
    while (count < 0 && errno == EINTR);
    close(fd);
  }
  errno = saved;
  to[count > 0 ? count : 0] = '\0';
  return count > 0 ? (size_t)count : 0;
}

/* strtoull() looks at the locale. */
static uint64_t number_of_digits(const char *digits) {
  uint64_t number = 0;
  for (; *digits >= '0' && *digits <= '9'; digits++)
    number = number * 10 + (uint64_t)(*digits - '0');
  return number;
}

static uint64_t parse_start_time(const char *path) {
  char text[640]; /* the name and the 21 numbers before it, as long as they can be */
  if (!prof_i_port_read_small(path, text, sizeof text)) return 0;
  /* the name may hold anything; the last parenthesis ends it */
  const char *at = strrchr(text, ')');
  for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
  return at ? number_of_digits(at + 1) : 0;
}

uint64_t prof_i_port_process_start(void) { return parse_start_time("/proc/self/stat"); }

uint64_t prof_i_port_process_start_of(long pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  return parse_start_time(path);
}

uint64_t prof_i_port_pid_namespace(void) {
  struct stat about;
  const int saved = errno;
  const int result = stat("/proc/self/ns/pid", &about);
  errno = saved;
  return result == 0 ? (uint64_t)about.st_ino : 0;
}

void prof_i_port_boot_id(char *to, size_t room) {
  prof_i_port_read_small("/proc/sys/kernel/random/boot_id", to, room);
  to[strcspn(to, "\n")] = '\0';
}

void prof_i_port_thread_name(char *to, size_t room) {
  char name[16] = {0};
  prctl(PR_GET_NAME, name, 0, 0, 0);
  memset(to, 0, room);
  memcpy(to, name, room - 1 < sizeof name ? room - 1 : sizeof name - 1);
}

static bool parse_process_name(const char *path, char *to, size_t room) {
  char text[64];
  memset(to, 0, room);
  if (!prof_i_port_read_small(path, text, sizeof text)) return false;
  if (*text) text[strlen(text) - 1] = '\0'; /* the kernel's newline; one before it is the name's */
  memcpy(to, text, strlen(text) < room ? strlen(text) : room - 1);
  return true;
}

bool prof_i_port_name_of_thread(uint64_t tid, char *to, size_t room) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%llu/comm", (unsigned long long)tid);
  return parse_process_name(path, to, room);
}

/* valgrind executes a program of its own, such as memcheck-amd64-linux, and preloads a library. */
static bool name_is_of_valgrind(const char *name) {
  const char *const preloaded = strchr(name, '-') ? secure_getenv("LD_PRELOAD") : NULL;
  return preloaded && strstr(preloaded, "/vgpreload_core");
}

/* The kernel cuts a program's name. `to` has its begin: it becomes the name of the file, cut at a
   character. Unchanged if the process has another name, as one that was set. */
static void complete_name(char *to, size_t room) {
  static const char gone[] = " (deleted)";
  char path[1024]; /* a handler's stack is small */
  const int saved = errno;
  const ssize_t read = readlink("/proc/self/exe", path, sizeof path - 1);
  errno = saved;
  if (read <= 0 || read == (ssize_t)sizeof path - 1) return;
  path[read] = '\0';
  const size_t whole = strlen(path), more = sizeof gone - 1;
  if (whole > more && strcmp(path + whole - more, gone) == 0) path[whole - more] = '\0';
  const char *const slash = strrchr(path, '/'), *const name = slash ? slash + 1 : path;
  if (strncmp(name, to, strlen(to)) != 0) return;
  size_t bytes = strnlen(name, room);
  if (bytes == room)
    for (bytes--; bytes > 0 && ((unsigned char)name[bytes] & 0xc0) == 0x80;) bytes--;
  memset(to, 0, room);
  memcpy(to, name, bytes);
}

void prof_i_port_process_name(char *to, size_t room) {
  enum { COMM_BYTES_MAX = 15 };
  parse_process_name("/proc/self/comm", to, room);
  if (strlen(to) == COMM_BYTES_MAX) complete_name(to, room);
  if (!name_is_of_valgrind(to)) return;
  memset(to, 0, room);
  memcpy(to, program_invocation_short_name, strnlen(program_invocation_short_name, room - 1));
}

#if defined(PROF_FAKE_CLOCK)
static bool is_forbidden(void) { return prof_i_fake_is_forbidden(); }
static bool kernel_uses_counter(void) { return strncmp(prof_i_fake_clocksource(), "tsc", 3) == 0; }
static bool processor_says_invariant(void) { return prof_i_fake_is_invariant(); }
#elif defined(__x86_64__)
static bool is_forbidden(void) {
  int mode = PR_TSC_ENABLE;
  return prctl(PR_GET_TSC, &mode, 0, 0, 0) == 0 && mode != PR_TSC_ENABLE;
}

static bool kernel_uses_counter(void) {
  char text[64];
  return prof_i_port_read_small("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                                text, sizeof text) &&
         strncmp(text, "tsc", 3) == 0;
}

static bool processor_says_invariant(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8));
}
/* cntvct_el0 is the system's counter, constant in rate and open to user code on Linux, as is its
   frequency */
#else
uint32_t prof_i_counter_shift;

static bool is_forbidden(void) {
  uint64_t frequency;
  __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
  prof_i_counter_shift = frequency < 500000000 ? 4 : 0;
  return false;
}
static bool kernel_uses_counter(void) { return true; }
static bool processor_says_invariant(void) { return true; }
#endif

bool prof_i_port_counter_is_safe(const char **why_not_out) {
  const bool forbidden = is_forbidden();
  __atomic_store_n(&counter_state.is_counter_forbidden, forbidden, __ATOMIC_RELAXED);
  if (forbidden) {
    *why_not_out = "prctl(PR_SET_TSC) forbids the time-stamp counter here";
    return false;
  }
  if (kernel_uses_counter() || processor_says_invariant()) return true;
  *why_not_out = "the time-stamp counter is not invariant here";
  return false;
}

int prof_i_port_memfd(uint64_t bytes, int *fd_out) {
  const int fd =
      (int)syscall(SYS_memfd_create, "prof-capture", 3u /* MFD_CLOEXEC | MFD_ALLOW_SEALING */);
  if (fd < 0) return errno;
  if (bytes > prof_i_port_file_size_limit() || ftruncate(fd, (off_t)bytes) != 0) {
    const int error = bytes > prof_i_port_file_size_limit() ? EFBIG : errno;
    close(fd);
    return error;
  }
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  *fd_out = fd;
  return 0;
}

bool prof_i_port_is_forbidden(int error) {
  return error == EPERM || error == ENOSYS || error == EACCES;
}

void *prof_i_port_map_closed(uint64_t bytes, int fd) {
  const int flags = MAP_SHARED | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0);
  return mmap(NULL, bytes, PROT_NONE, flags, fd, 0);
}

/* As prof_i_port_map_unchecked(). */
void *prof_i_port_map_twice(void *at, void *of, size_t bytes) {
  const long mapped = syscall(SYS_mremap, of, 0ul, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
  return mapped == -1 ? MAP_FAILED : (void *)mapped;
}

/* The kernel's mask has a bit for each signal from 1 on. Not held: faults, and the signals from 32
   to SIGRTMIN, by which libc cancels threads and changes their user. */
enum { KERNEL_MASK_BYTES = 8, LIBC_SIGNAL_FIRST = 32 };
static uint64_t mask_bit(int signal) { return UINT64_C(1) << (signal - 1); }
static uint64_t held_mask(void) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
  const int end = SIGRTMIN;
  uint64_t mask = UINT64_MAX;
  for (int signal = LIBC_SIGNAL_FIRST; signal < end; signal++) mask &= ~mask_bit(signal);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) mask &= ~mask_bit(faults[i]);
  return mask;
}

/* No thread can have this mask: the kernel holds neither SIGKILL nor SIGSTOP. */
#define MASK_NOT_CHANGED UINT64_MAX

uint64_t prof_i_port_hold_signals(void) {
  const uint64_t held = held_mask();
  uint64_t was = 0;
  const int saved = errno;
  if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &held, &was, (size_t)KERNEL_MASK_BYTES) != 0)
    was = MASK_NOT_CHANGED; /* a sandbox forbids it */
  errno = saved;
  return was;
}
void prof_i_port_release_signals(const uint64_t *was) {
  const int saved = errno;
  if (*was == MASK_NOT_CHANGED) return;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, was, NULL, (size_t)KERNEL_MASK_BYTES);
  errno = saved;
}

int prof_i_port_disable_cancel(void) {
  int was = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
  return was;
}
void prof_i_port_restore_cancel(const int *was) {
  int now;
  pthread_setcancelstate(*was, &now);
}

/* Not by <fenv.h>, which is in libm, and prof does not need that otherwise. x87's control word
   alone is not enough. A flag that is raised while nothing traps would trap when the host's control
   word is back. */
#if defined(__x86_64__)
prof_i_fp_state prof_i_port_fp_default(void) {
  static const uint32_t sse_default = 0x1f80;
  prof_i_fp_state was = {.error_number = errno};
  __asm__ __volatile__("fnstenv %0\n\tfninit\n\tstmxcsr %1\n\tldmxcsr %2"
                       : "=m"(was.x87), "=m"(was.sse)
                       : "m"(sse_default)
                       : "memory");
  return was;
}
void prof_i_port_fp_restore(const prof_i_fp_state *was) {
  __asm__ __volatile__("fldenv %0\n\tldmxcsr %1" ::"m"(was->x87), "m"(was->sse) : "memory");
  errno = was->error_number;
}
#else
prof_i_fp_state prof_i_port_fp_default(void) {
  prof_i_fp_state was = {.error_number = errno};
  __asm__ __volatile__("mrs %0, fpcr\n\tmrs %1, fpsr\n\tmsr fpcr, xzr"
                       : "=r"(was.control), "=r"(was.status)::"memory");
  return was;
}
void prof_i_port_fp_restore(const prof_i_fp_state *was) {
  __asm__ __volatile__("msr fpcr, %0\n\tmsr fpsr, %1" ::"r"(was->control), "r"(was->status)
                       : "memory");
  errno = was->error_number;
}
#endif

bool prof_i_port_wipe_on_fork(void *at, size_t bytes) {
  return !PROF_I_FAULT(NO_WIPE) && madvise(at, bytes, MADV_WIPEONFORK) == 0;
}
void prof_i_port_keep_on_fork(void *at, size_t bytes) { madvise(at, bytes, MADV_KEEPONFORK); }
void prof_i_port_use_huge_pages(void *at, size_t bytes) { madvise(at, bytes, MADV_HUGEPAGE); }
/* RLIMIT_DATA counts private memory alone. Where the kernel refuses both, nothing changes. */
void prof_i_port_map_zeros_over(void *at, size_t bytes) {
  const int flags = MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  /* Threads may be at it: that is its use. */
  if (prof_i_port_map_unchecked(at, bytes, MAP_PRIVATE | flags, -1) == MAP_FAILED)
    (void)prof_i_port_map_unchecked(at, bytes, MAP_SHARED | flags, -1);
}
void prof_i_port_drop_pages(void *at, size_t bytes) { madvise(at, bytes, MADV_DONTNEED); }
/* Locked pages stay. */
void prof_i_port_zero_pages(void *at, size_t bytes) {
  if (madvise(at, bytes, MADV_DONTNEED) != 0) memset(at, 0, bytes);
}

void prof_i_port_unmap(void *at, size_t bytes) {
  enum { PIECE_BYTES = 32 << 20 };
  for (size_t done = 0, piece; done < bytes; done += piece) {
    piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
    munmap((char *)at + done, piece);
  }
}

void prof_i_port_punch_hole(void *at, size_t bytes) {
  if (madvise(at, bytes, MADV_REMOVE) != 0) memset(at, 0, bytes);
}

#define LIMIT(which)                                                                       \
  struct rlimit limit;                                                                     \
  if (getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX; \
  return limit.rlim_cur
uint64_t prof_i_port_file_size_limit(void) { LIMIT(RLIMIT_FSIZE); }
uint64_t prof_i_port_locked_memory_limit(void) { LIMIT(RLIMIT_MEMLOCK); }
#undef LIMIT

int prof_i_port_reserve_file(int fd, uint64_t offset, uint64_t bytes) {
  /* past it the kernel would send SIGXFSZ */
  if (offset + bytes > prof_i_port_file_size_limit()) return EFBIG;
  int tries = 0;
  for (uint64_t piece = bytes; bytes > 0;) {
    if (piece > bytes) piece = bytes;
    if (fallocate(fd, 0, (off_t)offset, (off_t)piece) == 0) {
      offset += piece;
      bytes -= piece;
    } else if (errno != EINTR || ++tries == INTERRUPTIONS_MAX) {
      return errno;
    } else if (piece > PIECE_BYTES_MIN) {
      /* tmpfs takes back all that it had: the host's timer may tick faster than that takes */
      piece /= 2;
    }
  }
  return 0;
}

int prof_i_port_move_fd_up(int fd) {
  enum { HIGH = 900, SPARE = 64 };
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < 2 * SPARE) return fd;
  const int high = limit.rlim_cur - SPARE < HIGH ? (int)limit.rlim_cur - SPARE : HIGH;
  const int aside = fcntl(fd, F_DUPFD_CLOEXEC, high);
  if (aside < 0) return fd;
  close(fd);
  return aside;
}

uint64_t prof_i_port_resident_bytes(void *at, size_t bytes) {
  enum { PAGE = 4096, STEP = 1024 }; /* little stack */
  static const size_t step_bytes = (size_t)PAGE * STEP;
  unsigned char present[STEP];
  uint64_t pages = 0;
  for (size_t done = 0; done < bytes; done += step_bytes) {
    const size_t now = bytes - done < step_bytes ? bytes - done : step_bytes;
    if (mincore((char *)at + done, now, present) != 0) return pages * PAGE;
    for (size_t i = 0; i < (now + PAGE - 1) / PAGE; i++) pages += present[i] & 1u;
  }
  return pages * PAGE;
}

void *prof_i_port_map_unchecked(void *at, size_t bytes, int flags, int fd) {
  const long mapped = syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, flags, fd, 0L);
  return mapped == -1 ? MAP_FAILED : (void *)mapped; /* errno says why */
}

void prof_i_port_wait(uint32_t *word, uint32_t value, uint64_t timeout_ns) {
  const struct timespec timeout = {(time_t)(timeout_ns / 1000000000u),
                                   (long)(timeout_ns % 1000000000u)};
  const int saved = errno;
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &timeout, NULL, 0);
  errno = saved;
}

void prof_i_port_wake(uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* A thread that ends needs some 20 us. The kernel extends a nap by 50 us, so a join that naps at
   once takes longer than the end. */
static void wait_a_moment(uint64_t waited_ns) {
  enum { YIELD_NS = 100000, NAP_NS = 20000 };
  if (waited_ns < YIELD_NS)
    sched_yield();
  else
    nanosleep(&(struct timespec){0, NAP_NS}, NULL);
}

bool prof_i_port_join(pthread_t thread, uint32_t *word, uint32_t value, uint64_t patience_ns) {
  const uint64_t begun = prof_i_port_monotonic_ns();
  for (uint64_t passed; __atomic_load_n(word, __ATOMIC_ACQUIRE) == value;
       prof_i_port_wait(word, value, patience_ns - passed)) {
    passed = prof_i_ns_since(begun);
    if (passed >= patience_ns) return false;
  }
  const uint64_t ending = prof_i_port_monotonic_ns();
  for (; pthread_tryjoin_np(thread, NULL) != 0; wait_a_moment(prof_i_ns_since(ending)))
    if (prof_i_ns_since(begun) >= patience_ns) return false;
  return true;
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { PAGE_BYTES = 4096 };

/* ---- pages of a file: zeros ---- */

/* Writing one page of zeros repeatedly keeps it in the L1 cache. This is a fifth faster than a
   buffer of 64 KiB. */
enum { ZEROS = PAGE_BYTES, PIECES = 256, PIECES_FEW = 16 };
static char zeros[ZEROS] __attribute__((aligned(ZEROS))); /* never written to: costs no memory */

static void list_zeros(struct iovec *pieces, int count) {
  for (int i = 0; i < count; i++) pieces[i] = (struct iovec){zeros, ZEROS};
}

/* PIECES entries, too many for a stack. The first caller makes them. NULL: another thread is just
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

/* ---- pages of a file: present and writable ---- */

int prof_i_port_populate(void *at, size_t bytes) {
  int result;
  int tries = 0; /* pages stay once they are there, so it gets further each time */
  do result = madvise(at, bytes, MADV_POPULATE_WRITE);
  while (result != 0 && errno == EINTR && ++tries < INTERRUPTIONS_MAX);
  /* Linux before 5.14 and some sandboxes lack the call. There each page faults at first touch. The
     file's blocks are reserved already. */
  return result == 0 || errno == EINVAL || prof_i_port_is_forbidden(errno) ? 0 : errno;
}

/* The largest folio that a file system allocates for a write at that offset. Its size is a power of
   two, and its offset is a multiple of its size. */
static uint64_t zeros_piece_at(uint64_t offset, uint64_t bytes) {
  const uint64_t fits = 1ull << (63 - __builtin_clzll(bytes));
  const uint64_t aligned = offset & (0 - offset);
  return offset && aligned < fits ? aligned : fits;
}

/* Minor page faults of this thread so far. False: not known. */
static bool count_faults(long *count_out) {
  struct rusage usage;
  if (syscall(SYS_getrusage, RUSAGE_THREAD, &usage) != 0) return false;
  *count_out = usage.ru_minflt;
  return true;
}

/* Touches the first and the last page of a folio. One fault maps all its pages. */
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
