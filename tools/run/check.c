/* See stack.h: checks before anything runs. */
#define _GNU_SOURCE
#include "stack.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "sampler.h"

/* ---- what the kernel needs to execute a file ---- */

enum { NESTED_MAX = 5, LINE_BYTES = 256, PROGRAMS_MAX = 64 }; /* as the kernel has it */

static bool path_is_program(const char *path) {
  struct stat is;
  return stat(path, &is) == 0 && S_ISREG(is.st_mode) && access(path, X_OK) == 0;
}

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

/* The interpreter of a script ("#!"), or the loader of an ELF file, which cannot be executed. NULL:
   it can, or the file needs none. */
static const char *interpreter_missing(const char *path) {
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

/* ---- tools ---- */

char *run_program_find(const char *name) {
  if (strchr(name, '/')) return path_is_program(name) ? run_text("%s", name) : NULL;
  const char *path = getenv("PATH");
  if (!path) path = "/bin:/usr/bin";
  for (;;) {
    const size_t bytes = strcspn(path, ":");
    char *const file = run_text("%.*s/%s", bytes ? (int)bytes : 1, bytes ? path : ".", name);
    if (path_is_program(file)) return file;
    free(file);
    if (!path[bytes]) return NULL;
    path += bytes + 1;
  }
}

bool run_ends_well(char **words) {
  posix_spawn_file_actions_t files;
  pid_t pid;
  int status;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int error = posix_spawnp(&pid, words[0], &files, NULL, words, environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return false;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool run_needs_shell(const char *cmd) {
  const char *const first = cmd + strspn(cmd, " \t\r\n");
  const size_t bytes = strcspn(first, " \t\r\n");
  return cmd[strcspn(cmd, "|&;<>()$`\\\"'*?[]#~!{}\n")] != '\0' || memchr(first, '=', bytes);
}

/* Words that sh knows itself. */
static bool word_is_shell_builtin(const char *word) {
  static const char *const known[] = {".",       ":",        "alias", "break", "case",  "cd",
                                      "command", "continue", "do",    "eval",  "exec",  "exit",
                                      "export",  "for",      "if",    "local", "read",  "readonly",
                                      "return",  "set",      "shift", "time",  "times", "trap",
                                      "ulimit",  "umask",    "unset", "until", "wait",  "while"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i], word) == 0) return true;
  return false;
}

/* The program that a cmd begins with, or NULL: only sh can say. */
static const char *tool_program(const run_tool *tool) {
  run_words words = {0};
  if (tool->program) return tool->program;
  if (tool->has_marks) return NULL;
  run_words_split(&words, tool->cmd);
  if (words.count == 0 || run_needs_shell(words.items[0])) return NULL;
  if (run_needs_shell(tool->cmd) && word_is_shell_builtin(words.items[0])) return NULL;
  return words.items[0];
}

const char *run_tool_program(const run_tool *tool) {
  run_words words = {0};
  run_words_split(&words, tool->cmd);
  if (words.count == 0) return "";
  if (words.count > 1 && strcmp(words.items[1], "run-rocprof") == 0) return "rocprof";
  if (words.count > 2 && strcmp(words.items[1], "run-status") == 0) return words.items[2];
  return run_base_name(words.items[0]);
}

bool run_follows_one_program(const run_tool *tool) {
  return strcmp(run_tool_program(tool), "heaptrack") == 0;
}

/* A text of the user. */
static bool cmd_is_shell_text(const char *cmd) {
  run_words words = {0};
  run_words_add(&words, "/bin/sh");
  run_words_add(&words, "-nc");
  run_words_add(&words, run_text("%s \"$@\"", cmd));
  return access(words.items[0], X_OK) != 0 || run_ends_well(words.items);
}

const char *run_tool_refusal(const run_tool *tool) {
  if (tool->parts & RUN_PART_SAMPLE) return run_sampler_refusal(tool);
  if (tool->sampling) { /* the tool prof */
    const char *const why = run_sampler_refusal(tool);
    if (why) return run_text("--sample: %s", why);
  }
  const char *const program = tool_program(tool);
  if (strstr(tool->cmd, "run-rocprof") && !run_program_find("rocprofv3") &&
      !run_program_find("rocprof"))
    return "neither rocprofv3 nor rocprof is on PATH: install ROCm: https://rocm.docs.amd.com";
  if (!tool->has_marks && !run_is_blank(tool->cmd) && run_needs_shell(tool->cmd) &&
      !cmd_is_shell_text(tool->cmd))
    return run_text(
        "its cmd is no text for sh: '%s'; with the program behind it, sh -n finds an "
        "error",
        tool->cmd);
  if (!program || run_program_find(program)) return NULL;
  return run_text("there is no '%s' on PATH%s%s", program, tool->install ? ": " : "",
                  tool->install ? tool->install : "");
}

/* ---- what two tools cannot share ---- */

/* Each variable has one library. The last setting would silently replace the others. */
static const char *const single_variables[] = {"HSA_TOOLS_LIB", "NVTX_INJECTION64_PATH",
                                               "CUDA_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64"};

/* Tools by the first word of their cmd. */
static const struct {
  const char *program, *needs;
} single_uses[] = {
    {"strace", "ptrace(), which traces a process for one tool alone"},
    {"ltrace", "ptrace(), which traces a process for one tool alone"},
    {"gdb", "ptrace(), which traces a process for one tool alone"},
    {"valgrind", "a processor that it emulates"},
    {"valgrind", "malloc() of the program, which one tool replaces"},
    {"heaptrack", "malloc() of the program, which one tool replaces"},
    {"rocprof", "AMD's tracing, which one tool has at a time"},
    {"rocprofv3", "AMD's tracing, which one tool has at a time"},
    {"rtl", "AMD's tracing, which one tool has at a time"},
    {"nsys", "NVIDIA's tracing, which one tool has at a time"},
    {"ncu", "NVIDIA's tracing, which one tool has at a time"},
};

static const char *variables_clash(const run_tool *a, const run_tool *b) {
  for (size_t i = 0; i < sizeof single_variables / sizeof *single_variables; i++) {
    const char *const name = single_variables[i];
    const char *const x = run_variable_get(&a->variables, name);
    const char *const y = run_variable_get(&b->variables, name);
    if (x && y && strcmp(x, y) != 0)
      return run_text(
          "%s and %s both set %s ('%s' and '%s'), which holds one library; leave one "
          "tool out",
          a->name, b->name, name, x, y);
  }
  return NULL;
}

static bool tool_uses(const run_tool *tool, const char *needs) {
  const char *const program = run_tool_program(tool);
  for (size_t i = 0; i < sizeof single_uses / sizeof *single_uses; i++)
    if (strcmp(program, single_uses[i].program) == 0 && strcmp(needs, single_uses[i].needs) == 0)
      return true;
  return false;
}

/* What both need, or NULL. */
static const char *shared_use(const run_tool *a, const run_tool *b) {
  for (size_t i = 0; i < sizeof single_uses / sizeof *single_uses; i++)
    if (tool_uses(a, single_uses[i].needs) && tool_uses(b, single_uses[i].needs))
      return single_uses[i].needs;
  return NULL;
}

static bool tool_runs_program(const run_tool *tool, const char *program) {
  return strcmp(run_tool_program(tool), program) == 0;
}

/* Of a tool that must be inside of the other one, or beside it. */
static const char *order_clash(const run_tool *inner, const run_tool *outer) {
  const char *const first = inner->name, *const second = outer->name;
  if (run_follows_one_program(outer) && tool_runs_program(inner, "uftrace"))
    return run_text(
        "%s follows one program, which %s would be, and does not end inside of it; "
        "leave one out",
        second, first);
  if (run_follows_one_program(outer) && !run_is_blank(inner->cmd))
    return run_text(
        "%s follows one program, and around %s that is not the workload; name %s "
        "first",
        second, first, second);
  /* uftrace waits for processes that these two have started, and never ends */
  if (tool_runs_program(outer, "uftrace") && run_follows_one_program(inner))
    return run_text("%s around %s would not end, and %s around %s would follow %s; leave one out",
                    second, first, first, second, second);
  if (tool_runs_program(outer, "uftrace") && tool_runs_program(inner, "strace"))
    return run_text("%s around %s would not end; name %s before %s", second, first, second, first);
  return NULL;
}

/* What starts the workload, and is not a tool. */
static const char *start_clash(const run_stack *stack, const run_tool *tool) {
  if (!run_follows_one_program(tool)) return NULL;
  if (stack->encapsulate && !run_is_blank(stack->encapsulate))
    return run_text(
        "%s follows one program, and with encapsulate_script that is not the workload; "
        "leave one out",
        tool->name);
  for (size_t i = 0; i < stack->count; i++)
    if (stack->tools[i].sampling && stack->tools[i].sampling->is_dual)
      return run_text("%s follows one program, and %s with DUAL-GCD runs two; leave one out",
                      tool->name, stack->tools[i].name);
  return NULL;
}

static const char *pair_clash(const run_tool *inner, const run_tool *outer) {
  const char *const use = shared_use(inner, outer);
  if (use)
    return run_text("%s and %s both need %s; leave one tool out", inner->name, outer->name, use);
  const char *const order = order_clash(inner, outer);
  return order ? order : variables_clash(inner, outer);
}

static const char *uses_together(const run_tool *tool, const char *part) {
  for (size_t i = 0; i < sizeof single_uses / sizeof *single_uses; i++)
    if (strstr(single_uses[i].needs, part) && tool_uses(tool, single_uses[i].needs))
      return single_uses[i].needs;
  return NULL;
}

static void check_option(const run_stack *stack, const char *option, const char *part) {
  for (size_t i = 0; i < stack->count; i++) {
    const run_tool *const tool = &stack->tools[i];
    const char *const use = uses_together(tool, part);
    if (use)
      run_fail("%s of prof and %s both need %s; leave one out", option, tool->name,
               run_copy(use, strcspn(use, ",")));
  }
}

void run_check_devices(const run_stack *stack) {
  for (size_t i = 0; i < stack->count; i++)
    if (stack->tools[i].parts & RUN_PART_ROCPROF)
      run_fail("--devices of prof and %s both need AMD's tracing; leave one out",
               stack->tools[i].name);
  check_option(stack, "--devices", "'s tracing");
}

void run_check_memory(const run_stack *stack, const char *program) {
  static const char asan[] = "libasan.so.";
  const char *const path = run_program_find(program);
  check_option(stack, "--memory", "malloc()");
  if (path && run_program_mentions(path, asan, strlen(asan)))
    run_fail(
        "--memory and AddressSanitizer, which '%s' is built with, both replace malloc(); "
        "leave --memory out",
        program);
}

/* ---- the whole ---- */

/* NULL: it can be executed. */
static const char *workload_refusal(const char *name, int *status_out) {
  const char *const found = run_program_find(name);
  const char *const starter = found ? interpreter_missing(found) : NULL;
  if (starter) {
    const bool has_file = access(starter, F_OK) == 0;
    *status_out = has_file ? RUN_CANNOT_EXECUTE : RUN_NOT_FOUND;
    return run_text("the workload '%s' cannot be executed: its interpreter '%s' %s", name, starter,
                    has_file ? "is no program, or its mode forbids it" : "is not there");
  }
  if (found) return NULL;
  const bool is_path = strchr(name, '/') != NULL;
  const bool is_there = is_path && access(name, F_OK) == 0;
  *status_out = is_there ? RUN_CANNOT_EXECUTE : RUN_NOT_FOUND;
  if (is_there)
    return run_text(
        "the workload '%s' cannot be executed: it is no program, or its mode forbids "
        "it",
        name);
  return run_text("the workload '%s' is not %s", name, is_path ? "there" : "on PATH");
}

/* The reasons, in the order in which the stack is checked. Returns the first one's status. */
static int find_problems(const run_stack *stack, const run_words *workload, run_words *to) {
  int status = RUN_FAILED;
  for (size_t i = 0; i < stack->count; i++) {
    const char *const why = run_tool_refusal(&stack->tools[i]);
    if (why) run_words_add(to, run_text("%s cannot work here: %s", stack->tools[i].name, why));
    for (size_t j = 0; j < i; j++) {
      const char *const clash = pair_clash(&stack->tools[j], &stack->tools[i]);
      if (clash) run_words_add(to, clash);
    }
    const char *const clash = start_clash(stack, &stack->tools[i]);
    if (clash) run_words_add(to, clash);
  }
  const bool has_front = stack->encapsulate && !run_is_blank(stack->encapsulate);
  if (has_front && run_needs_shell(stack->encapsulate) && !cmd_is_shell_text(stack->encapsulate))
    run_words_add(to, run_text("encapsulate_script is no text for sh: '%s'; with the program "
                               "behind it, sh -n finds an error",
                               stack->encapsulate));
  /* the user's text in front may be a program that reads the words as a command */
  if (has_front) return to->count ? status : 0;
  int of_workload = 0;
  const char *const why = workload_refusal(workload->items[0], &of_workload);
  if (to->count == 0) status = of_workload;
  if (why) run_words_add(to, why);
  return status;
}

int run_check_all(const run_stack *stack, const run_words *workload) {
  run_words problems = {0};
  const int status = find_problems(stack, workload, &problems);
  for (size_t i = 0; i < problems.count; i++) say("prof run: %s", problems.items[i]);
  return status;
}

void run_check(const run_stack *stack, const run_words *workload) {
  run_words problems = {0};
  const int status = find_problems(stack, workload, &problems);
  if (status == 0) return;
  say("prof run: %s", problems.items[0]);
  exit(status);
}

/* ---- where libraries write their lines ---- */

static const struct {
  const char *tool, *variable;
  const char *effect; /* NULL: the lines are in the file that the variable names */
} log_targets[] = {
    {"rocblas_trace", "ROCBLAS_LOG_PATH", NULL},
    {"rocblas_trace", "ROCBLAS_LOG_BENCH_PATH", NULL},
    {"rocblas_trace", "ROCBLAS_LOG_PROFILE_PATH", NULL},
    {"hipblaslt_trace", "HIPBLASLT_LOG_FILE", NULL},
    {"hipblaslt_trace", "HIPBLASLT_LOG_LEVEL", "newer hipBLASLt ignores HIPBLASLT_LOG_MASK"},
    {"rccl_trace", "NCCL_DEBUG_FILE", NULL},
    {"nccl_trace", "NCCL_DEBUG_FILE", NULL},
    {"cublas_trace", "CUBLAS_LOGDEST_DBG", NULL},
    {"cublaslt_trace", "CUBLASLT_LOG_FILE", NULL},
    {"cudnn_trace", "CUDNN_LOGDEST_DBG", NULL},
};

/* prof reads both streams, and files in the tool's folder. */
static bool target_is_read(const run_tool *tool, const char *value) {
  if (strcmp(value, "stdout") == 0 || strcmp(value, "stderr") == 0) return true;
  char *const folder = tool->folder ? realpath(tool->folder, NULL) : NULL;
  const bool is_in_it = folder && strncmp(value, folder, strlen(folder)) == 0;
  free(folder);
  return is_in_it;
}

static void check_log_target(const run_tool *tool, const char *trace) {
  for (size_t i = 0; i < sizeof log_targets / sizeof *log_targets; i++) {
    const char *const name = log_targets[i].variable, *const effect = log_targets[i].effect;
    if (strcmp(log_targets[i].tool, trace) != 0) continue;
    const char *value = run_variable_get(&tool->variables, name);
    const char *const before = getenv(name);
    if (!value) value = before;
    if (!value) continue;
    if (!effect && target_is_read(tool, value)) {
      if (before && strcmp(before, value) != 0)
        say("prof run: %s: %s was '%s', and is '%s' in this run, where prof reads the library's "
            "lines",
            trace, name, before, value);
      continue;
    }
    if (effect)
      say("prof run: %s: %s is '%s', and then %s; unset it", trace, name, value, effect);
    else
      say("prof run: %s: %s is '%s', so the library's lines are there, and prof does not read "
          "them; "
          "unset it",
          trace, name, value);
  }
}

void run_library_log_target_check(const run_stack *stack) {
  for (size_t i = 0; i < stack->count; i++) {
    check_log_target(&stack->tools[i], stack->tools[i].name);
    for (size_t t = 0; t < stack->tools[i].traces.count; t++)
      check_log_target(&stack->tools[i], stack->tools[i].traces.items[t]);
  }
}
