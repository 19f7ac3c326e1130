/* A vendor's library that is there and broken: no library, another's, one that lacks a function, of
   another machine, or that needs what is not there. Each in a process that finds it so: there is a
   state with a reason, nothing is said, and the program goes on. No device is behind any of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "told.h"

enum { COUNT = 10, BYTES_MAX = 4 << 20 };

/* ---- what is broken ---- */

/* A library under all names that prof looks for it by, as the emulated one is, and which function
   of it is left out. */
static const struct library {
  const char *back_end, *names[4], *file, *needed;
  int32_t result; /* what depends on it: all, or records or one meter alone */
} libraries[] = {
    {"cuda", {"libcuda.so.1"}, "libcuda.so.1", "cuEventElapsedTime", PROF_BACKEND_VERSION},
    {"cupti",
     {"libcupti.so.13", "libcupti.so.12"},
     "libcupti.so.13",
     "cuptiActivityFlushAll",
     PROF_BACKEND_OK},
    {"nvml", {"libnvidia-ml.so.1"}, "libnvidia-ml.so.1", "nvmlDeviceGetUUID", PROF_BACKEND_VERSION},
    {"hip",
     {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
     "libamdhip64.so.6",
     "hipEventQuery",
     PROF_BACKEND_VERSION},
    {"rocprofiler",
     {"librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0"},
     "librocprofiler-sdk.so.1",
     "rocprofiler_flush_buffer",
     PROF_BACKEND_OK},
    {"rocm_smi",
     {"librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.5", "librocm_smi64.so.1"},
     "librocm_smi64.so.7",
     "rsmi_dev_pci_id_get",
     PROF_BACKEND_OK}};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

typedef enum fault {
  TEXT,
  EMPTY,
  ANOTHERS,
  LACKS_ONE,
  NEEDS_ANOTHER,
  NEEDS_NEWER,
  OF_32_BITS,
  OF_ANOTHER_MACHINE,
  FAULTS
} fault;

static unsigned char bytes[BYTES_MAX];

static size_t read_file(const char *path) {
  FILE *const file = fopen(path, "rb");
  if (!file) fail_msg("%s", path);
  const size_t count = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_in_range(count, 1, sizeof bytes - 1);
  return count;
}

/* Each of that text, in the tables of names, gets another last letter; to as long as from. */
static void change(size_t count, const char *from, const char *to, bool is_whole) {
  const size_t length = strlen(from);
  uint32_t changed = 0;
  for (size_t i = 1; i + length < count; i++) {
    if (memcmp(bytes + i, from, length) != 0 || (is_whole && (bytes[i - 1] || bytes[i + length])))
      continue;
    memcpy(bytes + i, to, length);
    changed++;
  }
  if (changed == 0) fail_msg("there is no %s", from);
}

static void path_of(char *to, size_t room, const char *file) {
  snprintf(to, room, "%s/vendors/%s", getenv("PROF_TEST_PLUGIN_DIR"), file);
}

static size_t make(const struct library *library, fault what) {
  static const char text[] = "this is no library\n";
  char path[512], without[64];
  Elf64_Ehdr *const head = (Elf64_Ehdr *)(void *)bytes;
  if (what == TEXT) return memcpy(bytes, text, sizeof text), sizeof text;
  if (what == EMPTY) return 0;
  path_of(path, sizeof path, what == ANOTHERS ? "../nothing.so" : library->file);
  const size_t count = read_file(path);
  snprintf(without, sizeof without, "%.*s_", (int)strlen(library->needed) - 1, library->needed);
  if (what == LACKS_ONE) change(count, library->needed, without, true);
  if (what == NEEDS_ANOTHER) change(count, "libc.so.6", "libc.so.9", true);
  if (what == NEEDS_NEWER) change(count, "GLIBC_2.", "GLIBC_9.", false);
  if (what == OF_32_BITS) head->e_ident[EI_CLASS] = ELFCLASS32;
  if (what == OF_ANOTHER_MACHINE) head->e_machine = EM_68K;
  return count;
}

static void put(const char *folder, const char *name, size_t count, mode_t mode) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *const file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, mode), 0);
}

/* ---- a program that finds it so ---- */

static void *open_emulated(const char *file) {
  char path[512];
  path_of(path, sizeof path, file);
  return dlopen(path, RTLD_NOW);
}

static bool begin_cuda(void) {
  int (*begin)(unsigned flags), (*make_context)(void **out, unsigned flags, int device);
  void *context, *const library = open_emulated("libcuda.so.1");
  if (!library) return false;
  *(void **)&begin = dlsym(library, "cuInit");
  *(void **)&make_context = dlsym(library, "cuCtxCreate_v2");
  return begin(0) == 0 && make_context(&context, 0, 0) == 0;
}

static void put_scopes(int32_t type) {
  for (int i = 0; i < COUNT; i++)
    WITH_GPU_PROFILER(((prof_device){type, 0}), 0, "scope", "test", PROF_NO_ARGS, {});
}

/* What the host's side has of it. */
static uint64_t recorded(void) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  prof_trace_destroy(trace);
  return info.event_count;
}

/* Writes the state: the result, and the reason. */
static int be_program(const char *back_end) {
  const prof_options options = {
      .size = sizeof options, .level = 1, .devices = PROF_DEVICES_RECORDS};
  const bool is_cupti = strcmp(back_end, "cupti") == 0,
             is_rocp = strcmp(back_end, "rocprofiler") == 0,
             is_meters = strcmp(back_end, "nvml") == 0 || strcmp(back_end, "rocm_smi") == 0;
  const int32_t type =
      is_cupti || strcmp(back_end, "cuda") == 0 ? PROF_DEVICE_CUDA : PROF_DEVICE_ROCM;
  const char *const of = is_cupti                            ? "cuda"
                         : is_rocp                           ? "hip"
                         : strcmp(back_end, "rocm_smi") == 0 ? "amdgpu"
                                                             : back_end;
  if ((is_cupti && !begin_cuda()) || (is_rocp && !open_emulated("libamdhip64.so.6"))) return 2;
  if (prof_start_with(&options) != PROF_OK) return 3;
  if (!is_meters) put_scopes(type);
  if (is_meters && prof_sampler_start(NULL) == PROF_OK) prof_sampler_stop();
  if (prof_stop() != PROF_OK || (!is_meters && recorded() < COUNT)) return 4;
  const prof_backend_state state = state_of_back_end(of);
  printf("%d %s", state.result, state.reason);
  return 0;
}

/* ---- the test ---- */

typedef struct told {
  int status, result;
  char reason[512], said[512];
} told;

static void read_text(const char *folder, const char *name, char *to, size_t room) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *const file = fopen(path, "r");
  assert_non_null(file);
  to[fread(to, 1, room - 1, file)] = '\0';
  fclose(file);
}

static void put_into(const char *folder, const char *name, int descriptor) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || dup2(fd, descriptor) < 0) _exit(126);
}

static void name_file(const char *variable, const char *folder, const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  setenv(variable, path, 1);
}

static told run_with(const char *folder, const char *back_end) {
  told t = {-1, 0, "", ""};
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    setenv("LD_LIBRARY_PATH", folder, 1);
    setenv("PROF_SYSFS_ROOT", folder, 1);
    setenv("TSAN_OPTIONS", "atexit_sleep_ms=0", 1); /* a second each, else */
    /* the machine may have another one */
    name_file("PROF_BACKEND_CUPTI", folder, "libcupti.so.13");
    /* of a folder that stands for the kernel's it is not looked for */
    name_file("PROF_BACKEND_ROCM_SMI", folder, "librocm_smi64.so.7");
    put_into(folder, "out", 1);
    put_into(folder, "err", 2);
    execl("/proc/self/exe", "broken", back_end, (char *)NULL);
    _exit(127);
  }
  assert_int_equal(waitpid(child, &t.status, 0), child);
  read_text(folder, "out", t.reason, sizeof t.reason);
  read_text(folder, "err", t.said, sizeof t.said);
  char *end = t.reason;
  t.result = (int)strtol(t.reason, &end, 10);
  memmove(t.reason, end, strlen(end) + 1);
  return t;
}

/* The kernel's folder of one device of AMD's. */
static void put_device(const char *folder) {
  char command[1024];
  snprintf(
      command, sizeof command,
      "mkdir -p '%s/sys/class/drm/card0/device' && cd '%s/sys/class/drm/card0/device' && echo "
      "0x1002 >vendor && echo 1024 >mem_info_vram_used && echo PCI_SLOT_NAME=0000:0c:00.0 >uevent",
      folder, folder);
  assert_int_equal(system(command), 0);
}

static void try_it(const struct library *library, fault what, const char *wanted) {
  char folder[] = "/tmp/prof-broken-XXXXXX", command[128];
  assert_non_null(mkdtemp(folder));
  put_device(folder);
  const size_t count = make(library, what);
  for (int i = 0; i < 4 && library->names[i]; i++) put(folder, library->names[i], count, 0644);
  assert_int_equal(chmod(folder, 0755), 0);
  const told t = run_with(folder, library->back_end);
  print_message("  %-11s %d: %d%s\n", library->back_end, what, t.result, t.reason);
  if (t.status != 0)
    fail_msg("%s, fault %d: status 0x%x: %s", library->back_end, what, (unsigned)t.status, t.said);
  if (t.said[0]) fail_msg("%s, fault %d: it says %s", library->back_end, what, t.said);
  if (!strstr(t.reason, wanted))
    fail_msg("%s, fault %d: the reason is %s, and not %s", library->back_end, what, t.reason,
             wanted);
  if (*wanted && t.result != library->result)
    fail_msg("%s, fault %d: the result is %d, and not %d", library->back_end, what, t.result,
             library->result);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  assert_int_equal(system(command), 0);
}

static void try_all(fault what, const char *wanted) {
  for (int i = 0; i < LIBRARIES; i++)
    try_it(&libraries[i], what, wanted ? wanted : libraries[i].needed);
}

static void one_that_is_a_text(void **state) {
  (void)state;
  try_all(TEXT, "cannot be loaded: ");
}
static void one_that_is_an_empty_file(void **state) {
  (void)state;
  try_all(EMPTY, "cannot be loaded: ");
}
static void one_that_has_none_of_the_functions(void **state) {
  (void)state;
  try_all(ANOTHERS, " has no ");
}
static void one_that_lacks_a_function(void **state) {
  (void)state;
  try_all(LACKS_ONE, NULL);
}
static void one_that_needs_another_library(void **state) {
  (void)state;
  try_all(NEEDS_ANOTHER, "libc.so.9");
}
static void one_that_needs_a_newer_library(void **state) {
  (void)state;
  try_all(NEEDS_NEWER, "cannot be loaded: ");
}

/* The loader goes on looking, and may find another library, of the system. The report has a reason
   for that one as well. */
static void one_of_another_machine(void **state) {
  (void)state;
  for (int i = 0; i < LIBRARIES; i++) {
    try_it(&libraries[i], OF_32_BITS, "");
    try_it(&libraries[i], OF_ANOTHER_MACHINE, "");
  }
}

int main(int argc, char **argv) {
  if (argc == 2) return be_program(argv[1]);
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_that_is_a_text),
                                     cmocka_unit_test(one_that_is_an_empty_file),
                                     cmocka_unit_test(one_that_has_none_of_the_functions),
                                     cmocka_unit_test(one_that_lacks_a_function),
                                     cmocka_unit_test(one_that_needs_another_library),
                                     cmocka_unit_test(one_that_needs_a_newer_library),
                                     cmocka_unit_test(one_of_another_machine)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
