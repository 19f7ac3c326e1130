/* Stands in front of the C library (LD_PRELOAD) and fails the nth call of one function, among the
   calls of threads that are armed: see inject.h. The host arms itself only around what it asks of
   prof, so that what fails is prof's and never its own. glibc only. */
#define _GNU_SOURCE
#include "../inject.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifdef __GLIBC__

/* glibc's own names, for a call may come before the others have been looked up. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

inject_begin_function inject_begin;
inject_arm_function inject_arm;
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *module);

static struct { inject_plan *plan; } own;
static __thread int is_armed __attribute__((tls_model("initial-exec")));

void inject_begin(inject_plan *plan) { own.plan = plan; }
void inject_arm(int armed) { is_armed = armed; }

/* Is this the call that fails? Then with errno set, but for a short count. */
static bool fails(inject_function function) {
  inject_plan *const plan = own.plan;
  if (!is_armed || !plan) return false;
  const uint64_t number = __atomic_add_fetch(&plan->counts[function], 1, __ATOMIC_RELAXED);
  if (plan->nth == 0 || plan->function != function ||
      (plan->is_lasting ? number < plan->nth : number != plan->nth))
    return false;
  __atomic_add_fetch(&plan->failed_count, 1, __ATOMIC_RELAXED);
  if (plan->error != INJECT_SHORT) errno = plan->error;
  return true;
}

static bool is_short(void) { return own.plan->error == INJECT_SHORT; }

/* The function behind this one, looked up once a call site; a race looks it up twice. */
#define REAL(name)                                                                           \
  __extension__({                                                                            \
    static void *found;                                                                      \
    void *real_ = __atomic_load_n(&found, __ATOMIC_RELAXED);                                 \
    if (!real_) __atomic_store_n(&found, real_ = dlsym(RTLD_NEXT, #name), __ATOMIC_RELAXED); \
    (__typeof__(&name))real_;                                                                \
  })

/* ---- memory ---- */

void *malloc(size_t bytes) { return fails(INJECT_malloc) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) {
  return fails(INJECT_calloc) ? NULL : __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  return fails(INJECT_realloc) ? NULL : __libc_realloc(memory, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  return fails(INJECT_aligned_alloc) ? NULL : __libc_memalign(alignment, bytes);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return fails(INJECT_mmap) ? MAP_FAILED : REAL(mmap)(at, bytes, protection, flags, fd, offset);
}

void *mremap(void *at, size_t bytes, size_t new_bytes, int flags, ...) {
  va_list more;
  va_start(more, flags);
  void *const to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
  va_end(more);
  return fails(INJECT_mremap) ? MAP_FAILED : REAL(mremap)(at, bytes, new_bytes, flags, to);
}

int mprotect(void *at, size_t bytes, int protection) {
  return fails(INJECT_mprotect) ? -1 : REAL(mprotect)(at, bytes, protection);
}
int madvise(void *at, size_t bytes, int advice) {
  return fails(INJECT_madvise) ? -1 : REAL(madvise)(at, bytes, advice);
}
int mincore(void *at, size_t bytes, unsigned char *to) {
  return fails(INJECT_mincore) ? -1 : REAL(mincore)(at, bytes, to);
}

/* ---- files by name ---- */

static mode_t mode_of(int flags, va_list more) {
  return flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? (mode_t)va_arg(more, int) : 0;
}

int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return fails(INJECT_open) ? -1 : REAL(open)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return fails(INJECT_openat) ? -1 : REAL(openat)(folder, path, flags, mode);
}

DIR *opendir(const char *path) { return fails(INJECT_opendir) ? NULL : REAL(opendir)(path); }
int access(const char *path, int mode) {
  return fails(INJECT_access) ? -1 : REAL(access)(path, mode);
}
int stat(const char *path, struct stat *to) {
  return fails(INJECT_stat) ? -1 : REAL(stat)(path, to);
}
int lstat(const char *path, struct stat *to) {
  return fails(INJECT_lstat) ? -1 : REAL(lstat)(path, to);
}
int fstatat(int folder, const char *path, struct stat *to, int flags) {
  return fails(INJECT_fstatat) ? -1 : REAL(fstatat)(folder, path, to, flags);
}
int statfs(const char *path, struct statfs *to) {
  return fails(INJECT_statfs) ? -1 : REAL(statfs)(path, to);
}
int linkat(int from, const char *old, int to, const char *fresh, int flags) {
  return fails(INJECT_linkat) ? -1 : REAL(linkat)(from, old, to, fresh, flags);
}
int renameat(int from, const char *old, int to, const char *fresh) {
  return fails(INJECT_renameat) ? -1 : REAL(renameat)(from, old, to, fresh);
}

int rename(const char *old, const char *fresh) {
  return fails(INJECT_rename) ? -1 : REAL(rename)(old, fresh);
}

/* ---- streams ---- */

FILE *fopen(const char *path, const char *how) {
  return fails(INJECT_fopen) ? NULL : REAL(fopen)(path, how);
}
FILE *open_memstream(char **text, size_t *bytes) {
  return fails(INJECT_open_memstream) ? NULL : REAL(open_memstream)(text, bytes);
}
int fputs(const char *text, FILE *to) { return fails(INJECT_fputs) ? EOF : REAL(fputs)(text, to); }

/* As close(): it is closed, and what had been written is said to be lost. */
int fclose(FILE *stream) {
  const int result = REAL(fclose)(stream);
  return fails(INJECT_fclose) ? EOF : result;
}

/* ---- open files ---- */

int fstat(int fd, struct stat *to) { return fails(INJECT_fstat) ? -1 : REAL(fstat)(fd, to); }
int fstatfs(int fd, struct statfs *to) {
  return fails(INJECT_fstatfs) ? -1 : REAL(fstatfs)(fd, to);
}
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  return fails(INJECT_fallocate) ? -1 : REAL(fallocate)(fd, mode, offset, bytes);
}
int ftruncate(int fd, off_t bytes) {
  return fails(INJECT_ftruncate) ? -1 : REAL(ftruncate)(fd, bytes);
}
int flock(int fd, int operation) { return fails(INJECT_flock) ? -1 : REAL(flock)(fd, operation); }
off_t lseek(int fd, off_t offset, int whence) {
  return fails(INJECT_lseek) ? -1 : REAL(lseek)(fd, offset, whence);
}

int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void *const argument = va_arg(more, void *);
  va_end(more);
  return fails(INJECT_fcntl) ? -1 : REAL(fcntl)(fd, command, argument);
}

ssize_t read(int fd, void *to, size_t bytes) {
  if (!fails(INJECT_read)) return REAL(read)(fd, to, bytes);
  return is_short() ? REAL(read)(fd, to, (bytes + 1) / 2) : -1;
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset) {
  if (!fails(INJECT_pread)) return REAL(pread)(fd, to, bytes, offset);
  return is_short() ? REAL(pread)(fd, to, (bytes + 1) / 2, offset) : -1;
}

ssize_t write(int fd, const void *from, size_t bytes) {
  if (!fails(INJECT_write)) return REAL(write)(fd, from, bytes);
  return is_short() ? REAL(write)(fd, from, (bytes + 1) / 2) : -1;
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset) {
  if (!fails(INJECT_pwrite)) return REAL(pwrite)(fd, from, bytes, offset);
  return is_short() ? REAL(pwrite)(fd, from, (bytes + 1) / 2, offset) : -1;
}

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t offset) {
  if (!fails(INJECT_pwritev)) return REAL(pwritev)(fd, pieces, count, offset);
  if (!is_short()) return -1;
  const struct iovec half = {pieces[0].iov_base, (pieces[0].iov_len + 1) / 2};
  return REAL(pwritev)(fd, &half, 1, offset);
}

int sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags) {
  return fails(INJECT_sync_file_range) ? -1 : REAL(sync_file_range)(fd, offset, bytes, flags);
}

/* The descriptor is closed even where the kernel says that what had been written is lost. */
int close(int fd) {
  const int result = REAL(close)(fd);
  return fails(INJECT_close) ? -1 : result;
}

/* ---- the rest; pthread functions return their error ---- */

typedef struct thread_start {
  void *(*work)(void *);
  void *context;
} thread_start;

static void *work_armed(void *start) {
  const thread_start what = *(thread_start *)start;
  free(start);
  is_armed = 1;
  return what.work(what.context);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
                   void *context) {
  if (!is_armed) return REAL(pthread_create)(thread, attributes, work, context);
  if (fails(INJECT_pthread_create)) return own.plan->error;
  thread_start *const start = __libc_malloc(sizeof *start);
  *start = (thread_start){work, context};
  /* the C library's own mmap for the stack is behind us; its memory for the thread's variables is
     not */
  is_armed = 0;
  const int error = REAL(pthread_create)(thread, attributes, work_armed, start);
  is_armed = 1;
  if (error) free(start);
  return error;
}

int pthread_key_create(pthread_key_t *key, void (*destroy)(void *)) {
  return fails(INJECT_pthread_key_create) ? own.plan->error
                                          : REAL(pthread_key_create)(key, destroy);
}

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *module) {
  return fails(INJECT_register_atfork) ? own.plan->error
                                       : REAL(__register_atfork)(prepare, parent, child, module);
}

/* Without a file there is also no library: dlerror() then has nothing to say, as after a call that
   failed twice. */
void *dlopen(const char *name, int flags) {
  if (!fails(INJECT_dlopen)) return REAL(dlopen)(name, flags);
  return REAL(dlopen)("/nonexistent/library.so", flags);
}

int sysinfo(struct sysinfo *to) { return fails(INJECT_sysinfo) ? -1 : REAL(sysinfo)(to); }

int getrlimit(__rlimit_resource_t which, struct rlimit *to) {
  return fails(INJECT_getrlimit) ? -1 : REAL(getrlimit)(which, to);
}

long syscall(long number, ...) {
  long a[6];
  va_list more;
  va_start(more, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(more, long);
  va_end(more);
  if (number == SYS_memfd_create && fails(INJECT_memfd_create)) return -1;
  if (number == SYS_mmap && fails(INJECT_mmap)) return -1;
  return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif
