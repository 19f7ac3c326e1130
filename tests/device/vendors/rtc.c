/* Emulated compilers of kernels: libnvrtc.so, or (EMULATED_HIPRTC) HIP's, which is the same by
   other names. They compile by the system's own C++ compiler ($CXX) what modules.c then runs.
   EMULATED_RTC_FLAGS: more for that; EMULATED_NVRTC_ARCHITECTURES ("70,80"): for which it
   compiles. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "modules.h"

#define RTC __attribute__((visibility("default")))
#ifdef EMULATED_HIPRTC
#define NAME(name) hiprtc##name
#define CODE(what) hiprtcGetCode##what
#else
#define NAME(name) nvrtc##name
#define CODE(what) nvrtcGetPTX##what
#endif

enum { SUCCESS = 0, INVALID_INPUT = 3, INVALID_PROGRAM = 4, INVALID_OPTION = 5, COMPILATION = 6 };
enum { PATH_BYTES = 128, LOG_BYTES = 1 << 16, WORDS = 32, ARCHITECTURES = 16 };

typedef struct program {
  char *text, *code;
  size_t code_bytes;
  char log[LOG_BYTES];
} program;

extern char **environ;

RTC int NAME(CreateProgram)(program **out, const char *text, const char *name, int header_count,
                            const char *const *headers, const char *const *header_names);
RTC int NAME(CreateProgram)(program **out, const char *text, const char *name, int header_count,
                            const char *const *headers, const char *const *header_names) {
  (void)name;
  (void)headers;
  (void)header_names;
  if (!text || header_count) return INVALID_INPUT;
  program *const p = calloc(1, sizeof *p);
  if (!p) abort();
  p->text = strdup(text);
  *out = p;
  return SUCCESS;
}

RTC int NAME(DestroyProgram)(program **p);
RTC int NAME(DestroyProgram)(program **p) {
  free((*p)->text);
  free((*p)->code);
  free(*p);
  *p = NULL;
  return SUCCESS;
}

/* ---- the system's compiler ---- */

static size_t read_file(const char *path, char *to, size_t room) {
  FILE *const file = fopen(path, "rb");
  if (!file) return 0;
  const size_t bytes = fread(to, 1, room, file);
  fclose(file);
  return bytes;
}

/* The text, and for each kernel in it the entry that modules.c finds. */
static void write_source(const program *p, const char *path) {
  static const char before[] = "__global__ void ";
  FILE *const file = fopen(path, "w");
  if (!file) abort();
  fprintf(file, "#include \"%s\"\n#line 1 \"kernels.cu\"\n%s\n", EMULATED_PRELUDE, p->text);
  for (const char *at = p->text; (at = strstr(at, before)) != NULL;) {
    at += sizeof before - 1;
    fprintf(file, "EMULATED_KERNEL(%.*s)\n", (int)strcspn(at, "("), at);
  }
  fclose(file);
}

static int run_compiler(const char *source, const char *library, const char *log) {
  /* Sums may be taken in any order, as the device's threads would not; -ffast-math would set the
     mode of the thread that loads it. */
  static const char plain[] =
      "-std=c++17 -O3 -march=native -fno-math-errno -fno-trapping-math -fno-signed-zeros "
      "-fassociative-math -fPIC -shared -x c++";
  char room[512], *words[WORDS], *rest = NULL;
  const char *const own = getenv("CXX"), *const more = getenv("EMULATED_RTC_FLAGS");
  size_t count = 0;
  posix_spawn_file_actions_t files;
  pid_t child;
  int status = -1;
  snprintf(room, sizeof room, "%s %s %s", own && *own ? own : "c++", more ? more : "", plain);
  for (char *word = strtok_r(room, " ", &rest); word && count < WORDS - 4;
       word = strtok_r(NULL, " ", &rest))
    words[count++] = word;
  words[count++] = (char *)(uintptr_t)source;
  words[count++] = (char *)(uintptr_t) "-o";
  words[count++] = (char *)(uintptr_t)library;
  words[count] = NULL;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 2, log, O_WRONLY | O_CREAT, 0600);
  if (posix_spawnp(&child, words[0], &files, NULL, words, environ) == 0) waitpid(child, &status, 0);
  posix_spawn_file_actions_destroy(&files);
  return status;
}

/* What the option names, which has to be known. */
static int find_architecture(int count, const char *const *options, char *out);

static int compile_in(program *p, const char *folder, const module_head *head) {
  enum { ROOM = 4 << 20 };
  char source[PATH_BYTES], library[PATH_BYTES], log[PATH_BYTES];
  snprintf(source, sizeof source, "%s/kernels.cpp", folder);
  snprintf(library, sizeof library, "%s/kernels.so", folder);
  snprintf(log, sizeof log, "%s/log", folder);
  write_source(p, source);
  const int status = run_compiler(source, library, log);
  read_file(log, p->log, LOG_BYTES - 1);
  if (status == 0) {
    p->code = calloc(1, ROOM);
    if (!p->code) abort();
    module_head *const own = (module_head *)(void *)p->code;
    *own = *head;
    own->bytes = read_file(library, p->code + sizeof *head, ROOM - sizeof *head);
    p->code_bytes = sizeof *head + own->bytes;
  }
  unlink(source);
  unlink(library);
  unlink(log);
  return status == 0 ? SUCCESS : COMPILATION;
}

RTC int NAME(CompileProgram)(program *p, int count, const char *const *options);
RTC int NAME(CompileProgram)(program *p, int count, const char *const *options) {
  char folder[] = "/tmp/emulated-rtc-XXXXXX";
  module_head head = {.magic = MODULE_MAGIC};
  if (!p) return INVALID_PROGRAM;
  if (find_architecture(count, options, head.architecture) != SUCCESS) {
    snprintf(p->log, sizeof p->log, "nvrtc: error: invalid value for --gpu-architecture (-arch)\n");
    return INVALID_OPTION;
  }
  if (!mkdtemp(folder)) abort();
  const int error = compile_in(p, folder, &head);
  rmdir(folder);
  return error;
}

/* ---- what comes of it ---- */

RTC int NAME(GetProgramLogSize)(const program *p, size_t *bytes);
RTC int NAME(GetProgramLogSize)(const program *p, size_t *bytes) {
  *bytes = strlen(p->log) + 1;
  return SUCCESS;
}

RTC int NAME(GetProgramLog)(const program *p, char *log);
RTC int NAME(GetProgramLog)(const program *p, char *log) {
  memcpy(log, p->log, strlen(p->log) + 1);
  return SUCCESS;
}

RTC int CODE(Size)(const program *p, size_t *bytes);
RTC int CODE(Size)(const program *p, size_t *bytes) {
  *bytes = p->code_bytes;
  return p->code ? SUCCESS : INVALID_PROGRAM;
}

/* PTX is virtual, also that of an architecture that is not. */
static void become_virtual(module_head *head) {
  const char *const number = strchr(head->architecture, '_');
  if (number)
    snprintf(head->architecture, sizeof head->architecture, "compute_%ld",
             strtol(number + 1, NULL, 10));
}

RTC int CODE()(const program *p, char *code);
RTC int CODE()(const program *p, char *code) {
  if (!p->code) return INVALID_PROGRAM;
  memcpy(code, p->code, p->code_bytes);
  become_virtual((module_head *)(void *)code);
  return SUCCESS;
}

#ifdef EMULATED_HIPRTC

/* Without an option the current device's. */
static int find_architecture(int count, const char *const *options, char *out) {
  (void)options;
  (void)out;
  return count ? INVALID_OPTION : SUCCESS;
}

#else

static int read_architectures(int *out) {
  const char *own = getenv("EMULATED_NVRTC_ARCHITECTURES");
  int count = 0;
  for (char *end = NULL; count < ARCHITECTURES; own = end + 1) {
    if (count == 0 && !own) own = "75,80,90,100";
    out[count++] = (int)strtol(own, &end, 10);
    if (*end != ',') break;
  }
  return count;
}

static int find_architecture(int count, const char *const *options, char *out) {
  static const char option[] = "--gpu-architecture=";
  int known[ARCHITECTURES];
  const int known_count = read_architectures(known);
  if (count != 1 || strncmp(options[0], option, sizeof option - 1) != 0) return INVALID_OPTION;
  const char *const name = options[0] + sizeof option - 1, *const number = strchr(name, '_');
  for (int i = 0; number && i < known_count; i++) {
    if (strtol(number + 1, NULL, 10) != known[i]) continue;
    snprintf(out, sizeof(((module_head *)0)->architecture), "%s", name);
    return SUCCESS;
  }
  return INVALID_OPTION;
}

RTC int nvrtcGetNumSupportedArchs(int *count);
RTC int nvrtcGetNumSupportedArchs(int *count) {
  int known[ARCHITECTURES];
  *count = read_architectures(known);
  return SUCCESS;
}

RTC int nvrtcGetSupportedArchs(int *out);
RTC int nvrtcGetSupportedArchs(int *out) {
  read_architectures(out);
  return SUCCESS;
}

/* There is none where the architecture is a virtual one. */
RTC int nvrtcGetCUBINSize(const program *p, size_t *bytes);
RTC int nvrtcGetCUBINSize(const program *p, size_t *bytes) {
  const module_head *const head = (const module_head *)(const void *)p->code;
  *bytes = head && strncmp(head->architecture, "sm_", 3) == 0 ? p->code_bytes : 0;
  return p->code ? SUCCESS : INVALID_PROGRAM;
}

RTC int nvrtcGetCUBIN(const program *p, char *code);
RTC int nvrtcGetCUBIN(const program *p, char *code) {
  const module_head *const head = (const module_head *)(const void *)p->code;
  if (!head || strncmp(head->architecture, "sm_", 3) != 0) return INVALID_PROGRAM;
  memcpy(code, p->code, p->code_bytes);
  return SUCCESS;
}

#endif
