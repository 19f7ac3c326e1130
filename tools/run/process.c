/* See process_tree.h: what /proc tells of one process. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"
#include "library.h"
#include "process_tree.h"

/* Programs that start others out of reach. */
static const struct {
  const char *name;
  run_reason reason;
} starters[] = {
    {"sudo", RUN_REASON_SUDO},
    {"su", RUN_REASON_SUDO},
    {"doas", RUN_REASON_SUDO},
    {"pkexec", RUN_REASON_SUDO},
    {"runuser", RUN_REASON_SUDO},
    {"docker", RUN_REASON_CONTAINER},
    {"podman", RUN_REASON_CONTAINER},
    {"nerdctl", RUN_REASON_CONTAINER},
    {"kubectl", RUN_REASON_CONTAINER},
    {"apptainer", RUN_REASON_CONTAINER},
    {"singularity", RUN_REASON_CONTAINER},
    {"ssh", RUN_REASON_HOST},
    {"rsh", RUN_REASON_HOST},
    {"pdsh", RUN_REASON_HOST},
    {"srun", RUN_REASON_HOST},
};

/* In the names of loaded files. */
static const struct {
  const char *file;
  run_library library;
} inherited_files[] = {
    {"/librocblas.so", RUN_LIBRARY_ROCBLAS},   {"/libhipblaslt.so", RUN_LIBRARY_HIPBLASLT},
    {"/libMIOpen.so", RUN_LIBRARY_MIOPEN},     {"/librccl.so", RUN_LIBRARY_RCCL},
    {"/libnccl.so", RUN_LIBRARY_NCCL},         {"/libcublas.so", RUN_LIBRARY_CUBLAS},
    {"/libcublasLt.so", RUN_LIBRARY_CUBLASLT}, {"/libcudnn", RUN_LIBRARY_CUDNN},
    {"/librocblas.so", RUN_LIBRARY_TENSILE},
};

typedef struct proc_path {
  char text[64];
} proc_path;

/* /proc/PID/NAME. */
static proc_path process_path(pid_t pid, const char *name) {
  proc_path path;
  snprintf(path.text, sizeof path.text, "/proc/%d/%s", (int)pid, name);
  return path;
}

/* ---- the executed file ---- */

/* True: no loader runs before it, so that nothing can be preloaded. */
static bool program_has_no_loader(int fd) {
  union {
    Elf64_Ehdr wide;
    Elf32_Ehdr narrow;
  } head;
  if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head) return false;
  if (memcmp(head.wide.e_ident, ELFMAG, SELFMAG) != 0) return false;
  const bool is_wide = head.wide.e_ident[EI_CLASS] == ELFCLASS64;
  const uint64_t at = is_wide ? head.wide.e_phoff : head.narrow.e_phoff;
  const size_t count = is_wide ? head.wide.e_phnum : head.narrow.e_phnum;
  const size_t bytes = is_wide ? head.wide.e_phentsize : head.narrow.e_phentsize;
  for (size_t i = 0; i < count; i++) {
    uint32_t type;
    if (pread(fd, &type, sizeof type, (off_t)(at + i * bytes)) != (ssize_t)sizeof type)
      return false;
    if (type == PT_INTERP) return false;
  }
  return true;
}

static bool process_is_setuid(pid_t pid) {
  struct stat is;
  if (stat(process_path(pid, "exe").text, &is) != 0) return false;
  return is.st_mode & (S_ISUID | S_ISGID) && is.st_uid != getuid();
}

/* valgrind's own program is static, and loads the libraries of the one that it runs. */
static bool process_is_valgrind(pid_t pid) {
  char program[PATH_MAX];
  const ssize_t bytes = readlink(process_path(pid, "exe").text, program, sizeof program - 1);
  program[bytes < 0 ? 0 : bytes] = '\0';
  return strstr(program, "/valgrind/") != NULL;
}

static bool process_is_static(pid_t pid) {
  if (process_is_valgrind(pid)) return false;
  const int fd = open(process_path(pid, "exe").text, O_RDONLY | O_CLOEXEC);
  const bool is = fd >= 0 && program_has_no_loader(fd);
  if (fd >= 0) close(fd);
  return is;
}

enum { WORDS_BYTES = 4 << 20, WORDS_KEPT_BYTES = 4096 };

/* Each ends with a NUL. NULL: they cannot be read. */
static char *read_command_line(pid_t pid, size_t *bytes_out) {
  return run_file_read(process_path(pid, "cmdline").text, WORDS_BYTES, bytes_out);
}

static bool path_is_own_program(const char *path) {
  struct stat is, own;
  return stat(path, &is) == 0 && stat("/proc/self/exe", &own) == 0 && is.st_ino == own.st_ino &&
         is.st_dev == own.st_dev;
}

/* As compose.c starts it: sh -c TEXT. */
static bool process_is_stack_shell(run_process *member) {
  static const char outlives[] = RUN_SHELL_OUTLIVES;
  size_t bytes = 0;
  member->has_no_words = false;
  if (strcmp(member->name, "sh") != 0) return false;
  char *const words = read_command_line(member->pid, &bytes);
  const bool is = words && memmem(words, bytes, outlives, sizeof outlives - 1) != NULL;
  member->has_no_words = bytes == 0;
  free(words);
  return is;
}

/* prof run WORDS, and not we ourselves. A child of ours has our words until it executes a
   program. */
static bool words_are_prof_run(const char *words, size_t bytes) {
  size_t own_bytes = 0;
  const size_t first = strnlen(words, bytes) + 1;
  if (first + sizeof "run" > bytes || memcmp(words + first, "run", sizeof "run") != 0) return false;
  char *const own = run_file_read("/proc/self/cmdline", WORDS_BYTES, &own_bytes);
  const bool is = own && (own_bytes != bytes || memcmp(own, words, bytes) != 0);
  free(own);
  return is;
}

/* valgrind [--OPTION...] PROGRAM [WORD...] */
static void take_name_in_valgrind(run_process *member) {
  size_t bytes = 0;
  char *const words = read_command_line(member->pid, &bytes);
  if (!words) return;
  const char *at = words + strlen(words) + 1, *const end = words + bytes;
  while (at < end && *at == '-') at += strlen(at) + 1;
  if (at < end) {
    snprintf(member->name, sizeof member->name, "%.15s", run_base_name(at));
    const char *const next = at + strlen(at) + 1;
    member->is_of_stack = next < end && strncmp(next, "run-", 4) == 0 && path_is_own_program(at);
  }
  free(words);
}

/* ---- the process ---- */

/* The numbers of a line of /proc/PID/status, such as "Uid:". Returns how many there are. */
static size_t read_numbers(pid_t pid, const char *title, unsigned long *to, size_t room) {
  char *line = NULL;
  size_t line_room = 0, count = 0;
  const size_t title_bytes = strlen(title);
  FILE *const file = fopen(process_path(pid, "status").text, "re");
  while (file && getline(&line, &line_room, file) > 0) {
    if (strncmp(line, title, title_bytes) != 0) continue;
    for (char *at = line + title_bytes, *end; count < room; at = end) {
      to[count] = strtoul(at, &end, 10);
      if (end == at) break;
      count++;
    }
    break;
  }
  if (file) fclose(file);
  free(line);
  return count;
}

/* A process's /proc folder belongs to its user. */
static bool process_is_other_user(pid_t pid) {
  unsigned long users[2]; /* the real one, the effective one */
  return read_numbers(pid, "Uid:", users, 2) == 2 && users[1] != geteuid();
}

static pid_t pid_in_namespace(pid_t pid) {
  unsigned long pids[33]; /* from our namespace to its own; they nest no deeper */
  const size_t count = read_numbers(pid, "NSpid:", pids, sizeof pids / sizeof *pids);
  return count > 0 ? (pid_t)pids[count - 1] : pid;
}

/* A process without memory is ending: /proc shows neither its folder nor its variables. */
static bool process_has_program(pid_t pid) {
  char program[1];
  return readlink(process_path(pid, "exe").text, program, sizeof program) > 0;
}

/* True: the process sees another folder, or none, at this path. */
static bool process_cannot_see_folder(pid_t pid, const char *folder) {
  struct stat its, ours;
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, folder) >= (int)sizeof path)
    return false;
  const int error = stat(path, &its) == 0 ? 0 : errno;
  if (error == 0 && stat(folder, &ours) == 0)
    return its.st_ino != ours.st_ino || its.st_dev != ours.st_dev;
  return error == ENOENT && access(folder, F_OK) == 0 && process_has_program(pid);
}

/* False, too, if the environment cannot be read. An empty one may not be complete: the process may
   be executing its program just now. */
static bool process_lost_variable(run_process *member, const char *variable) {
  enum { ENVIRONMENT_BYTES = 4 << 20 };
  size_t bytes = 0, at = 0;
  char *const text =
      run_file_read(process_path(member->pid, "environ").text, ENVIRONMENT_BYTES, &bytes);
  if (!text) return false;
  bool has = bytes > 0 && !memchr(text, '=', bytes); /* the program has erased them */
  const size_t length = strlen(variable);
  while (at < bytes && !has) {
    has = strncmp(text + at, variable, length) == 0 && text[at + length] == '=';
    at += strlen(text + at) + 1;
  }
  free(text);
  const bool was_empty = member->is_empty;
  member->is_empty = bytes == 0;
  return bytes == 0 ? was_empty && process_has_program(member->pid) : !has;
}

bool run_process_passes_signals(pid_t pid) {
  static const char *const names[] = {"sudo\n", "doas\n", "su\n", "runuser\n"};
  size_t bytes = 0;
  char *const comm = run_file_read(process_path(pid, "comm").text, RUN_COMM_BYTES + 1, &bytes);
  bool is = false;
  for (size_t i = 0; comm && i < sizeof names / sizeof *names; i++)
    is |= bytes == strlen(names[i]) && memcmp(comm, names[i], bytes) == 0;
  free(comm);
  return is;
}

/* Its name, and whether it is of the stack. */
static void process_set_words(run_process *member) {
  if (member->is_in_valgrind) take_name_in_valgrind(member);
  member->is_of_stack |= process_is_stack_shell(member);
}

bool run_process_is_renamed(run_process *member) {
  char was[sizeof member->name];
  if (!member->is_in_valgrind) return false;
  memcpy(was, member->name, sizeof was);
  process_set_words(member);
  return strcmp(was, member->name) != 0;
}

void run_process_inspect(run_process *member, const char *variable, const char *folder) {
  const pid_t pid = member->pid;
  const bool was_of_stack = member->is_of_stack;
  member->is_of_stack = false;
  member->is_in_valgrind = process_is_valgrind(pid);
  process_set_words(member);
  member->is_of_stack |= was_of_stack && member->has_no_words; /* it is ending, too */
  member->inner_pid = pid_in_namespace(pid);
  for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
    if (strcmp(member->name, starters[i].name) != 0) continue;
    member->reason = starters[i].reason;
    return;
  }
  member->reason = process_is_static(pid)                                ? RUN_REASON_STATIC
                   : process_is_setuid(pid)                              ? RUN_REASON_SETUID
                   : variable && process_lost_variable(member, variable) ? RUN_REASON_VARIABLES
                   : folder && process_cannot_see_folder(pid, folder)    ? RUN_REASON_NAMESPACE
                                                                         : RUN_REASON_NO_PROF;
}

void run_process_read_maps(run_process *member) {
  char *line = NULL;
  size_t room = 0;
  bool has_prof = false;
  FILE *const maps = fopen(process_path(member->pid, "maps").text, "re");
  while (maps && getline(&line, &room, maps) > 0) {
    if (!strchr(line, '/')) continue;
    has_prof |= strstr(line, "/libprof.so") || strstr(line, "/libprof_");
    for (size_t i = 0; i < sizeof inherited_files / sizeof *inherited_files; i++)
      if (strstr(line, inherited_files[i].file))
        member->libraries |= 1u << inherited_files[i].library;
  }
  if (maps) fclose(maps);
  free(line);
  if (has_prof && member->reason == RUN_REASON_NO_PROF)
    member->reason = process_is_other_user(member->pid) ? RUN_REASON_USER : RUN_REASON_LOST;
}

void run_process_read_words(run_process *member) {
  size_t bytes = 0;
  char *const words = read_command_line(member->pid, &bytes);
  if (!words) return;
  member->is_prof_run = words_are_prof_run(words, bytes) &&
                        path_is_own_program(process_path(member->pid, "exe").text);
  if (bytes == 0 || !run_python_is_interpreter(words)) {
    free(words);
    return;
  }
  if (bytes > WORDS_KEPT_BYTES) bytes = WORDS_KEPT_BYTES;
  char *const retained = malloc(bytes);
  if (retained) memcpy(retained, words, bytes);
  free(words);
  free(member->words);
  member->words = retained;
  member->words_bytes = retained ? bytes : 0;
}
