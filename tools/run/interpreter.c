/* See interpreter.h. */
#define _GNU_SOURCE
#include "interpreter.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

enum { NESTED_MAX = 5, LINE_BYTES = 256, PROGRAMS_MAX = 64 }; /* as the kernel has it */

/* "#! PATH [WORD]", or NULL. */
static const char *script_interpreter(const char *head) {
  if (head[0] != '#' || head[1] != '!') return NULL;
  const char *const at = head + 2 + strspn(head + 2, " \t");
  const size_t bytes = strcspn(at, " \t\r\n");
  /* a \r would be part of the path */
  const size_t whole = at[bytes] == '\r' ? bytes + 1 : bytes;
  return bytes > 0 && at[whole] ? run_copy(at, whole) : NULL;
}

#if defined(__x86_64__)
enum { OWN_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { OWN_MACHINE = EM_AARCH64 };
#else
enum { OWN_MACHINE = EM_NONE };
#endif

/* NULL, too, of another machine: an emulator has folders of its own. */
static const char *elf_interpreter(int fd, const char *head) {
  Elf64_Ehdr elf;
  if (head[EI_CLASS] != ELFCLASS64) return NULL;
  if (pread(fd, &elf, sizeof elf, 0) != (ssize_t)sizeof elf) return NULL;
  if (elf.e_machine != OWN_MACHINE) return NULL;
  for (size_t i = 0; i < elf.e_phnum && i < PROGRAMS_MAX; i++) {
    Elf64_Phdr part;
    char path[PATH_MAX] = "";
    const off_t at = (off_t)(elf.e_phoff + i * elf.e_phentsize);
    if (pread(fd, &part, sizeof part, at) != (ssize_t)sizeof part) return NULL;
    if (part.p_type != PT_INTERP || part.p_filesz >= sizeof path) continue;
    if (pread(fd, path, part.p_filesz, (off_t)part.p_offset) <= 0) return NULL;
    return run_text("%s", path);
  }
  return NULL;
}

static const char *file_interpreter(const char *path) {
  char head[LINE_BYTES + 1] = "";
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  const char *found = NULL;
  if (pread(fd, head, LINE_BYTES, 0) > EI_CLASS)
    found =
        memcmp(head, ELFMAG, SELFMAG) == 0 ? elf_interpreter(fd, head) : script_interpreter(head);
  close(fd);
  return found;
}

static bool path_is_program(const char *path) {
  struct stat is;
  return stat(path, &is) == 0 && S_ISREG(is.st_mode) && access(path, X_OK) == 0;
}

const char *run_interpreter_missing(const char *path) {
  for (int i = 0; i < NESTED_MAX; i++) {
    path = file_interpreter(path);
    if (!path) return NULL;
    if (!path_is_program(path)) return path;
  }
  return NULL;
}

bool run_program_mentions(const char *path, const char *text, size_t text_bytes) {
  struct stat is;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  void *const bytes = fstat(fd, &is) == 0 && S_ISREG(is.st_mode) && is.st_size > 0
                          ? mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                          : MAP_FAILED;
  close(fd);
  if (bytes == MAP_FAILED) return false;
  const bool has = memmem(bytes, (size_t)is.st_size, text, text_bytes) != NULL;
  munmap(bytes, (size_t)is.st_size);
  return has;
}
