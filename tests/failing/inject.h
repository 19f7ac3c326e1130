/* What plugins/inject.c, which stands in front of the C library, and the test that drives it
   share. */
#ifndef PROF_TEST_FAILING_INJECT_H
#define PROF_TEST_FAILING_INJECT_H

#include <stdint.h>

/* Functions that prof calls, or makes the C library and zlib call, and that can fail. memfd_create
   is a raw system call. So is mmap where a race detector must not see it. */
#define INJECT_LIST(X)  \
  X(malloc)             \
  X(calloc)             \
  X(realloc)            \
  X(aligned_alloc)      \
  X(mmap)               \
  X(mremap)             \
  X(mprotect)           \
  X(madvise)            \
  X(mincore)            \
  X(open)               \
  X(openat)             \
  X(opendir)            \
  X(access)             \
  X(stat)               \
  X(lstat)              \
  X(fstat)              \
  X(fstatat)            \
  X(fstatfs)            \
  X(statfs)             \
  X(fallocate)          \
  X(ftruncate)          \
  X(fcntl)              \
  X(flock)              \
  X(lseek)              \
  X(read)               \
  X(pread)              \
  X(write)              \
  X(pwrite)             \
  X(pwritev)            \
  X(sync_file_range)    \
  X(close)              \
  X(linkat)             \
  X(renameat)           \
  X(pthread_create)     \
  X(pthread_key_create) \
  X(dlopen)             \
  X(getrlimit)          \
  X(sysinfo)            \
  X(register_atfork)    \
  X(memfd_create)       \
  X(fopen)              \
  X(fclose)             \
  X(fputs)              \
  X(rename)             \
  X(open_memstream)

typedef enum inject_function {
#define INJECT_ENUM(name) INJECT_##name,
  INJECT_LIST(INJECT_ENUM)
#undef INJECT_ENUM
      INJECT_COUNT
} inject_function;

enum { INJECT_SHORT = 0 }; /* as the error: half of what was asked is read or written */

/* Counts the calls of armed threads; the nth of one function, and with is_lasting all after it,
   fails with that errno. */
typedef struct inject_plan {
  inject_function function;
  int error;
  uint64_t nth; /* from 1; 0: none fails */
  int is_lasting;
  uint64_t counts[INJECT_COUNT]; /* any thread */
  uint64_t failed_count;         /* any thread */
} inject_plan;

/* Found by dlsym: LD_PRELOAD brings the plugin. A thread that an armed one creates is armed. */
typedef void inject_begin_function(inject_plan *plan);
typedef void inject_arm_function(int is_armed);

#endif
