/* See output.h. */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *run_output_rank_of(const char *(*value_of)(const void *context, const char *name),
                               const void *context) {
  static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *const value = value_of(context, names[i]);
    if (value && *value && value[strspn(value, "0123456789")] == '\0') return value;
  }
  return NULL;
}

static const char *own_mark_value(const void *context, const char *name) {
  (void)context;
  return getenv(name);
}

const char *run_output_rank(void) { return run_output_rank_of(own_mark_value, NULL); }

static void put_mark_value(FILE *to, char mark, const char *pattern) {
  char host[256] = "";
  const char *const rank = run_output_rank();
  switch (mark) {
    case '%':
      fputc('%', to);
      return;
    case 'p':
      fprintf(to, "%d", (int)getpid());
      return;
    case 'r':
      fputs(rank ? rank : "0", to);
      return;
    case 'h':
      gethostname(host, sizeof host - 1);
      fputs(host, to);
      return;
    default:
      run_fail("'%s': after %% comes p (pid), r (rank), h (host) or %%", pattern);
  }
}

char *run_output_name(const char *pattern) {
  char *name = NULL;
  size_t bytes = 0;
  FILE *const to = open_memstream(&name, &bytes);
  if (!to) run_fail("out of memory");
  for (const char *at = pattern; *at; at++) {
    if (*at != '%')
      fputc(*at, to);
    else
      put_mark_value(to, *++at, pattern);
    if (!*at) break;
  }
  fclose(to);
  return name;
}

char *run_output_folder(const char *pattern) {
  char *const name = run_output_name(pattern);
  size_t bytes = strlen(name);
  while (bytes > 1 && name[bytes - 1] == '/') name[--bytes] = '\0';
  return name;
}

char *run_output_escaped(const char *path) {
  char *const text = run_make(2 * strlen(path) + 1, 1);
  for (char *to = text; *path; path++) {
    *to++ = *path;
    if (*path == '%') *to++ = '%';
  }
  return text;
}

char *run_output_of_rank(char *folder, const char *pattern) {
  const char *const rank = run_output_rank();
  return rank && !strstr(pattern, "%r") ? run_text("%s/rank-%s", folder, rank) : folder;
}

const char *run_output_absolute(const char *path) {
  char *const here = path && *path != '/' ? getcwd(NULL, 0) : NULL;
  return here ? run_text("%s/%s", here, strncmp(path, "./", 2) == 0 ? path + 2 : path) : path;
}

const char *run_output_whose(void) {
  const char *const rank = run_output_rank();
  return rank ? run_text("rank %s: ", rank) : "";
}

const char *run_output_refusal(const char *folder) {
  const char *at = folder;
  while (access(at, F_OK) != 0 && errno == ENOENT) { /* it is made in the first that is there */
    const char *const slash = strrchr(at, '/');
    at = !slash ? "." : slash == at ? "/" : run_copy(at, (size_t)(slash - at));
  }
  if (access(at, W_OK | X_OK) == 0) return NULL;
  return run_text("cannot write to the folder '%s': %s", at, strerror(errno));
}

char *run_output_in(const char *folder, const char *name) {
  if (strcmp(folder, ".") == 0) return run_text("%s", name);
  return run_text("%s/%s", folder, name);
}

/* ---- what this process has made, until it keeps it ---- */

static struct {
  run_words folders, files;
  pid_t owner;
} made_files;

/* At exit(): the run did not start, so its empty folders and its first files go. */
static void remove_made(void) {
  if (getpid() != made_files.owner) return;
  while (made_files.files.count > 0) unlink(made_files.files.items[--made_files.files.count]);
  while (made_files.folders.count > 0) rmdir(made_files.folders.items[--made_files.folders.count]);
}

static void note_made(run_words *list, const char *path) {
  if (made_files.owner == 0) atexit(remove_made);
  made_files.owner = getpid();
  run_words_add(list, run_text("%s", path));
}

void run_output_note_folder(const char *path) { note_made(&made_files.folders, path); }

void run_output_keep(void) { made_files.files.count = made_files.folders.count = 0; }

void run_output_make_folder(const char *path) {
  char *const part = run_text("%s", path);
  for (char *slash = part + (*part == '/'); (slash = strchr(slash, '/')) != NULL; slash++) {
    *slash = '\0';
    if (mkdir(part, 0777) == 0) note_made(&made_files.folders, part); /* an error shows below */
    *slash = '/';
  }
  struct stat is;
  if (mkdir(part, 0777) == 0)
    note_made(&made_files.folders, part);
  else if (errno != EEXIST || stat(part, &is) != 0 || !S_ISDIR(is.st_mode))
    run_fail("cannot make the folder '%s': %s", path, strerror(errno));
  free(part);
}

/* ---- new names ---- */

enum { NUMBERS_MAX = 100000 };

static char *numbered_path(const char *folder, const char *name, const char *ending, int number) {
  return run_output_in(folder, number == 1 ? run_text("%s%s", name, ending)
                                           : run_text("%s.%d%s", name, number, ending));
}

/* A folder that another run has made is never taken, even if it is still empty. */
char *run_output_new_folder(const char *folder, const char *name) {
  for (int number = 1; number < NUMBERS_MAX; number++) {
    char *const path = numbered_path(folder, name, "", number);
    if (mkdir(path, 0777) == 0) {
      note_made(&made_files.folders, path);
      return path;
    }
    if (errno != EEXIST) run_fail("cannot make the folder '%s': %s", path, strerror(errno));
    free(path);
  }
  run_fail("'%s' has %d folders %s already", folder, NUMBERS_MAX, name);
}

char *run_output_next_folder(const char *folder, const char *name) {
  static run_words planned;
  struct stat is;
  for (int number = 1; number < NUMBERS_MAX; number++) {
    char *const path = numbered_path(folder, name, "", number);
    if (lstat(path, &is) != 0 && run_words_find(&planned, path) < 0) {
      run_words_add(&planned, path);
      return path;
    }
    free(path);
  }
  run_fail("'%s' has %d folders %s already", folder, NUMBERS_MAX, name);
}

char *run_output_new_file(const char *folder, const char *name, const char *ending) {
  for (int number = 1; number < NUMBERS_MAX; number++) {
    char *const path = numbered_path(folder, name, ending, number);
    const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd >= 0) {
      close(fd);
      note_made(&made_files.files, path);
      return path;
    }
    if (errno != EEXIST) run_fail("cannot make the file '%s': %s", path, strerror(errno));
    free(path);
  }
  run_fail("'%s' has %d files %s%s already", folder, NUMBERS_MAX, name, ending);
}

/* ---- whole files ---- */

/* Where the kernel or the file system cannot do it in one step, the name is taken by an empty file
   first. */
bool run_output_rename_new(const char *from, const char *to) {
#ifdef SYS_renameat2
  enum { NO_REPLACE = 1 };
  if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, NO_REPLACE) == 0) return true;
  if (errno == EEXIST) return false;
#endif
  if (link(from, to) == 0) return unlink(from) == 0;
  if (errno == EEXIST) return false;
  const int fd = open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  close(fd);
  if (rename(from, to) == 0) return true;
  const int error = errno;
  unlink(to);
  errno = error;
  return false;
}

FILE *run_output_begin(const char *path) { return fopen(run_text("%s.part", path), "we"); }

/* False: not all was written; errno says why. */
static bool close_written(FILE *file) {
  if (!file) return false;
  bool is_whole = fflush(file) == 0 && !ferror(file);
  const int failed = errno;
  is_whole &= fclose(file) == 0;
  if (!is_whole && failed) errno = failed;
  return is_whole;
}

bool run_output_end(FILE *file, const char *path) {
  char *const part = run_text("%s.part", path);
  const bool is_done = close_written(file) && rename(part, path) == 0;
  const int error = errno;
  if (!is_done) unlink(part);
  free(part);
  errno = error;
  return is_done;
}

/* Removes PATH.part. Keeps errno. */
static void output_drop(FILE *file, const char *path) {
  const int error = errno;
  char *const part = run_text("%s.part", path);
  fclose(file);
  unlink(part);
  free(part);
  errno = error;
}

bool run_output_copy(const char *from, const char *to) {
  char buffer[1 << 16];
  FILE *const in = fopen(from, "re");
  if (!in) return false;
  FILE *const out = run_output_begin(to);
  bool is_good = out != NULL;
  for (size_t bytes; is_good && (bytes = fread(buffer, 1, sizeof buffer, in)) > 0;)
    is_good = fwrite(buffer, 1, bytes, out) == bytes;
  is_good &= !ferror(in);
  if (is_good)
    is_good = run_output_end(out, to);
  else if (out)
    output_drop(out, to);
  const int error = errno;
  fclose(in);
  errno = error;
  return is_good;
}

bool run_output_move(const char *from, const char *to) {
  struct stat is;
  if (rename(from, to) == 0) return true;
  if (errno != EXDEV) return false;
  if (lstat(from, &is) != 0 || !S_ISREG(is.st_mode)) {
    errno = EXDEV;
    return false;
  }
  if (!run_output_copy(from, to)) return false;
  unlink(from);
  return true;
}

static char *claim_name(const char *part, const char *folder, const char *name,
                        const char *ending) {
  for (int number = 1; number < NUMBERS_MAX; number++) {
    char *const path = numbered_path(folder, name, ending, number);
    if (run_output_rename_new(part, path)) return path;
    free(path);
    if (errno != EEXIST) break;
  }
  return NULL;
}

char *run_output_write_new(const char *folder, const char *name, const char *ending,
                           void (*put)(FILE *to, const void *context), const void *context) {
  char *const part = run_text("%s/%s%s.%d.part", folder, name, ending, (int)getpid());
  FILE *const to = fopen(part, "we");
  if (to) put(to, context);
  char *const path = close_written(to) ? claim_name(part, folder, name, ending) : NULL;
  const int error = errno;
  if (!path) unlink(part);
  free(part);
  if (!path) run_fail("cannot write '%s/%s%s': %s", folder, name, ending, strerror(error));
  note_made(&made_files.files, path);
  return path;
}
