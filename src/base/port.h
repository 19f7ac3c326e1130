/* What prof needs of the processor and of Linux, one small function each. */
#ifndef PROF_BASE_PORT_H
#define PROF_BASE_PORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROF_I_COLD __attribute__((cold, noinline))
/* For what is written while the library is loaded. The loader has written to the pages of .data
   already, so that this costs no page fault. */
#define PROF_I_WRITTEN_AT_LOAD __attribute__((section(".data")))
/* For what is large, has values, and is not written while the library is loaded. It stands behind
   .data, so that all that the loader writes to there is on one page. */
#define PROF_I_BEHIND_DATA __attribute__((section(".data1")))
/* Called by a cold one alone, and as fast as may be. */
#define PROF_I_WARM __attribute__((hot, noinline))
#define PROF_I_LIKELY(x) __builtin_expect(!!(x), 1)
#define PROF_I_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Orders this thread's stores as a handler on it, a debugger or the kernel sees them. */
#define PROF_I_SIGNAL_FENCE() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* What this thread stored before is seen before what it stores after, by whoever loads the other
   way round. No instruction on x86-64. */
#define PROF_I_STORE_FENCE() __atomic_thread_fence(__ATOMIC_RELEASE)

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PROF_I_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define PROF_I_TSAN 1
#endif

/* Reads what others are writing, and keeps only what it finds whole. ThreadSanitizer is not told of
   such a function. */
#if defined(PROF_I_TSAN)
#define PROF_I_RACES_BY_DESIGN __attribute__((noinline, no_sanitize("thread")))
#define PROF_I_RACES_BY_DESIGN_INLINE PROF_I_RACES_BY_DESIGN
#else
#define PROF_I_RACES_BY_DESIGN
/* Inlined, so that constants of each caller are folded. */
#define PROF_I_RACES_BY_DESIGN_INLINE inline __attribute__((always_inline))
#endif

/* A build with PROF_FAKE_CLOCK asks these, which tests/clock defines, instead of the processor and
   the kernel. */
#ifdef PROF_FAKE_CLOCK
uint64_t prof_i_fake_counter(void);
uint64_t prof_i_fake_clock_ns(int clock);  /* CLOCK_... */
bool prof_i_fake_is_forbidden(void);       /* by prctl(PR_SET_TSC) */
bool prof_i_fake_is_invariant(void);       /* as CPUID says */
const char *prof_i_fake_clocksource(void); /* the kernel's, or "" */
#endif

/* x86-64's counter has nearly always moved on when a thread reads it again. On AMD it moves in
   steps of 10 ns. About 1 of 100 nested scopes begins at the tick of the outer one. aarch64's often
   runs at 25 to 100 MHz, so that many scopes would begin at one tick. Its ticks are divided into 16
   parts, and a thread's scopes that read the same tick get different parts (open_stack.h). Above
   500 MHz they are not divided, or 60 bits would not last a year. */
#if defined(__aarch64__)
#define PROF_I_COARSE_COUNTER 1
/* 0 or 4; set before the first scope, and the same ever after */
extern uint32_t prof_i_counter_shift __attribute__((visibility("hidden")));
#endif

/* The counter that scopes read: rdtsc, or cntvct_el0. */
static inline uint64_t prof_i_counter(void) {
#if defined(PROF_FAKE_CLOCK)
  return prof_i_fake_counter();
#elif defined(__x86_64__)
  uint32_t low, high;
  __asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high)::"memory");
  return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks)::"memory");
  return ticks << prof_i_counter_shift & ((1ull << 60) - 1); /* records have 60 bits for them */
#else
#error "prof needs x86-64 or aarch64"
#endif
}

/* The counter << 4, as entries and records of scopes have it. On x86-64 rdtsc clears the upper
   halves of both registers, so that each half is shifted once. */
static inline uint64_t prof_i_counter_shifted(void) {
#if defined(__x86_64__) && !defined(PROF_FAKE_CLOCK)
  uint64_t low, high;
  __asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high)::"memory");
  return high << 36 | low << 4;
#else
  return prof_i_counter() << 4;
#endif
}

/* Adds to a cursor or count of this thread by one instruction, and returns the old value. So a
   handler of this thread claims behind, never on top. Not locked: other threads do not write it. */
static inline uint64_t prof_i_claim(uint64_t *cursor, uint64_t bytes) {
#if defined(__x86_64__) && !defined(PROF_I_TSAN)
  __asm__ __volatile__("xaddq %0, %1" : "+r"(bytes), "+m"(*cursor)::"memory", "cc");
  return bytes;
#else
  return __atomic_fetch_add(cursor, bytes, __ATOMIC_RELAXED);
#endif
}

/* The same without the old value: where a handler puts back what it takes, the count is ours right
   after. */
static inline void prof_i_count_up(uint64_t *count) {
#if defined(__x86_64__) && !defined(PROF_I_TSAN)
  __asm__ __volatile__("incq %0" : "+m"(*count)::"cc");
#else
  __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
#endif
}

static inline void prof_i_add(uint64_t *count, uint64_t more) {
#if defined(__x86_64__) && !defined(PROF_I_TSAN)
  __asm__ __volatile__("addq %1, %0" : "+m"(*count) : "er"(more) : "cc", "memory");
#else
  __atomic_fetch_add(count, more, __ATOMIC_RELEASE);
#endif
}

/* Between two looks at a word that another thread will change: the processor's other half, if it
   has one, gets on meanwhile. */
static inline void prof_i_pause(void) {
#if defined(__x86_64__)
  __asm__ __volatile__("pause");
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

/* The thread cannot be cancelled until the end of the block: otherwise it might never release a
   lock or a chunk. For code that calls one of POSIX's cancellation points. */
int prof_i_port_disable_cancel(void);
void prof_i_port_restore_cancel(const int *was);
#define PROF_I_DISABLE_CANCEL                                                                \
  const int prof_i_was_cancel __attribute__((cleanup(prof_i_port_restore_cancel), unused)) = \
      prof_i_port_disable_cancel()

/* Signals that others send to the thread wait until the end of the block. So no handler forks or
   jumps out in the middle of it. Faults of the thread itself are delivered. Two system calls:
   only for what takes longer anyway. Signal-safe. */
uint64_t prof_i_port_hold_signals(void);
void prof_i_port_release_signals(const uint64_t *was);
#define PROF_I_HOLD_SIGNALS                                                                      \
  const uint64_t prof_i_was_mask __attribute__((cleanup(prof_i_port_release_signals), unused)) = \
      prof_i_port_hold_signals()

uint64_t prof_i_port_monotonic_ns(void);
/* Some virtual machines' clocks run back a little: never negative. */
static inline uint64_t prof_i_ns_since(uint64_t begun_ns) {
  const uint64_t now_ns = prof_i_port_monotonic_ns();
  return now_ns > begun_ns ? now_ns - begun_ns : 0;
}
uint64_t prof_i_port_raw_ns(void); /* CLOCK_MONOTONIC_RAW */
uint64_t prof_i_port_realtime_ns(void);
uint64_t prof_i_port_processor_ns(void); /* that this thread has had */
uint64_t prof_i_port_tid(void);
/* The same, but in a child of vfork() that of the thread which called it. */
uint64_t prof_i_port_tid_of_self(void);
/* Has that thread of that process ended? False where the kernel does not tell. Keeps errno.
   Signal-safe. */
bool prof_i_port_has_thread_ended(uint64_t pid, uint64_t tid);
/* field 22 of /proc/self/stat; 0 when it cannot be read */
uint64_t prof_i_port_process_start(void);
uint64_t prof_i_port_process_start_of(long pid); /* of another process; 0 when it is gone */
uint64_t prof_i_port_pid_namespace(void);        /* inode of /proc/self/ns/pid; 0 */
void prof_i_port_boot_id(char *to, size_t room);
void prof_i_port_thread_name(char *to, size_t room);
/* of this process; false: no thread has that number */
bool prof_i_port_name_of_thread(uint64_t tid, char *to, size_t room);
void prof_i_port_process_name(char *to, size_t room);
/* a file of the kernel's; NUL-terminated, cut at the room */
size_t prof_i_port_read_small(const char *path, char *to, size_t room);
/* Of the machine and the control group. */
typedef struct prof_i_limits {
  uint64_t memory_bytes;
  uint64_t cpu_milli; /* thousandths of a processor; 0: no limit */
} prof_i_limits;
prof_i_limits prof_i_port_limits(void);
/* RLIMIT_AS, RLIMIT_DATA, or overcommit_memory is 2, where a fork counts private memory again: what
   prof takes of it the host would lack. */
bool prof_i_port_limits_private_memory(void);
/* What RLIMIT_AS and RLIMIT_DATA leave free: the lesser of both. */
typedef struct prof_i_space {
  uint64_t left_bytes, limit_bytes; /* UINT64_MAX: no limit */
  const char *name, *command;       /* of the limit, and of the shell's that sets it */
} prof_i_space;
prof_i_space prof_i_port_space(void);
/* as the kernel has it; else the machine's kind */
void prof_i_port_processor_name(char *to, size_t room);
uint64_t prof_i_port_cache_bytes(void); /* the first processor's largest cache; 0: not known */
/* Looked at at each start: whether the counter may be read, and if prctl() forbids it, no clock is
   read by way of the vDSO, which reads the counter too. */
bool prof_i_port_counter_is_safe(const char **why_not_out);

/* Is that what a sandbox says of a call that it forbids? It may have other causes, too. */
bool prof_i_port_is_forbidden(int error);

/* Memory. All return 0 or an errno. */
/* sized, sealed against a change of size */
int prof_i_port_memfd(uint64_t bytes, int *fd_out);
/* fd -1: of memory without a file, where no memfd is to be had. MAP_FAILED: errno says why. */
void *prof_i_port_map_closed(uint64_t bytes, int fd);
/* The same shared memory once more, over what is at that address. MAP_FAILED: errno says why. */
void *prof_i_port_map_twice(void *at, void *of, size_t bytes);
/* pages present and writable, or an error: never SIGBUS later */
int prof_i_port_populate(void *at, size_t bytes);
/* The same for a file's pages that have just been written at that offset. The kernel visits each
   page that it is to populate. So this requests only a few if the file system took large pieces of
   memory. */
int prof_i_port_populate_file_pages(void *at, uint64_t offset, size_t bytes);
/* in a child they are zeros; false: not by this kernel */
bool prof_i_port_wipe_on_fork(void *at, size_t bytes);
void prof_i_port_keep_on_fork(void *at, size_t bytes);   /* not any more */
void prof_i_port_use_huge_pages(void *at, size_t bytes); /* where the system gives them on demand */
/* replaces the mapping by empty memory; if the kernel refuses, nothing changes */
void prof_i_port_map_zeros_over(void *at, size_t bytes);
/* pages leave this process; the file keeps them */
void prof_i_port_drop_pages(void *at, size_t bytes);
void prof_i_port_zero_pages(void *at, size_t bytes); /* of private memory: reads give zeros */
/* By pieces, none of which holds up another thread's mmap() for long. */
void prof_i_port_unmap(void *at, size_t bytes);
/* pages and what they held are gone: reads give zeros */
void prof_i_port_punch_hole(void *at, size_t bytes);
/* fallocate, RLIMIT_FSIZE looked at first */
int prof_i_port_reserve_file(int fd, uint64_t offset, uint64_t bytes);
/* the same file under a high number, fd closed; fd itself when there is none */
int prof_i_port_move_fd_up(int fd);
/* the file's pages come as large ones: see core/buffer/arena.c */
int prof_i_port_write_zeros(int fd, uint64_t offset, uint64_t bytes);
/* In bytes. UINT64_MAX: no limit. Signal-safe. */
uint64_t prof_i_port_locked_memory_limit(void); /* RLIMIT_MEMLOCK */
/* RLIMIT_FSIZE, UINT64_MAX when none */
uint64_t prof_i_port_file_size_limit(void);
uint64_t prof_i_port_resident_bytes(void *at, size_t bytes);

/* Processors. */
size_t prof_i_port_processor_count(void); /* that this thread may run on; SIZE_MAX: not known */
int prof_i_port_processor(void);          /* that it runs on just now; negative: not known */
/* The calling thread goes to the place-th, from 1, of those that it may run on but the one that is
   taken, and may run on all that it might before. Does nothing where that cannot be. */
void prof_i_port_move_off_processor(int taken, size_t place);

/* A thread of prof's own: 0 or an errno. It blocks all signals and runs where the main thread might
   when prof was loaded, at normal priority, whatever the caller has. stack_bytes: 0 for the
   system's default. Its work begins with prof_i_port_thread_begin(). */
int prof_i_port_thread_create(pthread_t *thread_out, size_t stack_bytes, void *(*work)(void *),
                              void *argument);
/* In the new thread: its name of at most 15 bytes, and the rest of what it would have from its
   creator. */
void prof_i_port_thread_begin(const char *name);

/* The floating point environment: rounding, traps, denormals, flags. What computes or prints
   doubles for the host does so in the default one, where nothing traps, and gives the host its own
   back, with errno as it was. For the length of a block: PROF_I_DEFAULT_FP; */
typedef struct prof_i_fp_state {
  int error_number;
#if defined(__x86_64__)
  uint32_t sse, x87[7];
#else
  uint64_t control, status;
#endif
} prof_i_fp_state;
prof_i_fp_state prof_i_port_fp_default(void); /* returns what was */
void prof_i_port_fp_restore(const prof_i_fp_state *was);
#define PROF_I_DEFAULT_FP                                                                        \
  const prof_i_fp_state prof_i_was_fp __attribute__((cleanup(prof_i_port_fp_restore), unused)) = \
      prof_i_port_fp_default()

/* mmap() of readable and writable memory, hidden from a race detector in the program. The detector
   takes a mapping for a write, and a later read by the program's code for a race with it. */
void *prof_i_port_map_unchecked(void *at, size_t bytes, int flags, int fd);

/* A word to sleep on. Keeps errno. */
void prof_i_port_wait(uint32_t *word, uint32_t value, uint64_t timeout_ns);
void prof_i_port_wake(uint32_t *word);

/* By CLOCK_MONOTONIC: pthread_timedjoin_np() goes by CLOCK_REALTIME, and one that is set back
   meanwhile holds it up by as much. The word has another value, for which it is woken, when the
   thread is about to end. False: it has not ended within so long. */
bool prof_i_port_join(pthread_t thread, uint32_t *word, uint32_t value, uint64_t patience_ns);

#endif
