/* prof doctor: what can be recorded on this machine, and what to do where something cannot. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <getopt.h>
#include <glob.h>
#include <limits.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

enum { TITLE_WIDTH = 12 };

/* On a terminal, a long line is broken between words. */
static void print_line(const char *title, const char *text) {
  const unsigned columns = terminal_columns(STDOUT_FILENO);
  char *line = NULL;
  size_t bytes = 0;
  if (!*text) return;
  FILE *const memory = columns ? open_memstream(&line, &bytes) : NULL;
  FILE *const to = memory ? memory : stdout;
  fprintf(to, "  %-*s ", TITLE_WIDTH, title);
  print_text(to, text, strlen(text));
  putc('\n', to);
  if (memory && fclose(memory) == 0) print_folded(line, columns, TITLE_WIDTH + 3);
  free(line);
}

static const char *device_word(int32_t type) {
  switch (type) {
    case PROF_DEVICE_CUDA:
      return "cuda";
    case PROF_DEVICE_OPENCL:
      return "opencl";
    case PROF_DEVICE_VULKAN:
      return "vulkan";
    case PROF_DEVICE_METAL:
      return "metal";
    case PROF_DEVICE_ROCM:
      return "hip";
    case PROF_DEVICE_EXT_DEV:
      return "ext_dev";
    case PROF_DEVICE_ONEAPI:
      return "oneapi";
    default:
      return NULL;
  }
}

static void print_device(const prof_backend_state *state) {
  const char *const word = device_word(state->device_type);
  if (word)
    printf("  %-*s %s (type %d)\n", TITLE_WIDTH, "devices", word, state->device_type);
  else if (state->device_type)
    printf("  %-*s of type %d\n", TITLE_WIDTH, "devices", state->device_type);
}

static void print_abilities(uint32_t abilities) {
  static const struct {
    uint32_t ability;
    const char *words;
  } all[] = {{PROF_CAN_SCOPES, "scopes on streams by the device's own times"},
             {PROF_CAN_CLOCKS, "reads its clock"},
             {PROF_CAN_RECORD_CLOCKS,
              "reads the clock of its records, not of its scopes, whose times are found by bounds"},
             {PROF_CAN_RECORDS,
              "kernels and copies by themselves (PROF_DEVICES=records beside PROF_LEVEL, or "
              "options.devices)"},
             {PROF_CAN_METRICS, "its meters can be sampled"}};
  const char *between = "";
  printf("  %-*s ", TITLE_WIDTH, "can");
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (!(abilities & all[i].ability)) continue;
    printf("%s%s", between, all[i].words);
    between = "; ";
  }
  putchar('\n');
}

/* What has the vendor's own library load it stands beside the library that this program has. */
static void print_loaded(const char *variable, const char *name) {
  char path[PATH_MAX];
  const char *const folder = library_folder();
  if (!folder) return;
  const int bytes = snprintf(path, sizeof path, "%s/%s", folder, name);
  if (bytes <= 0 || bytes >= (int)sizeof path || access(path, R_OK) != 0) return;
  printf("  %-*s by themselves, of a program as it is: %s=", TITLE_WIDTH, "kernels", variable);
  print_text(stdout, path, strlen(path));
  puts(" PROF_LEVEL=1 PROF_OUTPUT=trace.json PROGRAM");
}

/* This program's own beginning with CUDA, which the back end does not know of. */
static struct {
  int error; /* CUresult */
  char why[256];
} cuda_library;

static const char *advice_for_cuda(void) {
  switch (cuda_library.error) {
    case 34:
      return "LD_LIBRARY_PATH has the toolkit's folder of stubs (lib64/stubs): take it out";
    case 100:
      return "see what nvidia-smi -L lists; CUDA_VISIBLE_DEVICES may hide devices; in a container "
             "they must be passed in (--gpus)";
    case 802:
      return "start nvidia-fabricmanager, of the driver's own release";
    case 803:
      return "the kernel's module is of another release than libcuda.so.1. Restart the machine "
             "after the driver was installed. Or take another libcuda.so.1 out of LD_LIBRARY_PATH "
             "(in a container: the image's own)";
    case 804:
      return "cuda-compat serves data centres' devices alone: take its folder out of "
             "LD_LIBRARY_PATH, or install a newer driver";
    case 999:
      return "nvidia-modprobe -u -c 0 as root, or restart the machine: /dev/nvidia-uvm is missing "
             "mostly";
    default:
      return "see what nvidia-smi says";
  }
}

static void print_backend(const prof_backend_state *state) {
  static const char limit[] = "works, but ";
  const char *const name = state->name[0] ? state->name : state->path;
  print_text(stdout, name, strlen(name));
  if (state->version[0]) putchar(' ');
  print_text(stdout, state->version, strlen(state->version));
  printf(": %s%s\n", state->result == PROF_BACKEND_OK ? "works" : "does not work",
         state->is_emulated ? " (emulated: no device is behind it)" : "");
  print_device(state);
  if (state->name[0]) print_line("file", state->path);
  if (state->result == PROF_BACKEND_OK) {
    print_abilities(state->abilities);
    const bool is_limited = strncmp(state->reason, limit, sizeof limit - 1) == 0,
               has_records = state->abilities & PROF_CAN_RECORDS &&
                             !(is_limited && strstr(state->reason, "records no kernels by itself"));
    if (is_limited) print_line("but", state->reason + sizeof limit - 1);
    if (state->device_type == PROF_DEVICE_OPENCL && !(state->abilities & PROF_CAN_RECORDS))
      print_loaded("OPENCL_LAYERS", "libprof_opencl.so");
    if (state->device_type == PROF_DEVICE_CUDA && has_records)
      print_loaded("CUDA_INJECTION64_PATH", "libprof_cuda.so");
    if (state->device_type == PROF_DEVICE_ROCM && has_records)
      print_loaded("ROCP_TOOL_LIBRARIES", "libprof_hip.so");
    return;
  }
  if (cuda_library.error && state->result == PROF_BACKEND_NOT_READY &&
      state->device_type == PROF_DEVICE_CUDA) {
    print_line("why", cuda_library.why);
    print_line("what to do", advice_for_cuda());
    return;
  }
  print_line("why", state->reason);
  print_line(
      "what to do",
      state->name[0] || !state->path[0]
          ? state->advice
          : "PROF_BACKENDS and prof_backend_load() take whole paths: of a shared library that "
            "exports prof_backend_entry(), or of a folder with such *.so");
}

/* The host's own, which a sampler reads. */
static void print_host(void) {
  prof_sampler_state state = {.size = sizeof state};
  if (prof_sampler_get(&state) != PROF_OK) return;
  printf("the host's meters: %s\n",
         state.host_meters[0] ? "can be sampled (PROF_SAMPLE=0.1)" : "none that can be read");
  print_line("has", state.host_meters);
  print_line("why", state.why_not);
  if (strstr(state.why_not, "cannot be read"))
    print_line(
        "what to do",
        "as root: chmod o+r /sys/class/powercap/intel-rapl:*/energy_uj, which lasts until the "
        "machine starts again");
  else if (state.why_not[0])
    print_line(
        "what to do",
        "nothing: a virtual machine and many boards have none; devices' meters can be sampled "
        "all the same");
}

/* prof never begins to use CUDA in a program; this one is a program that does. */
static void begin_cuda(void) {
  int (*begin)(unsigned flags);
  int (*words[2])(int error, const char **words_out);
  const char *name = NULL, *text = NULL;
  void *const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return;
  *(void **)&begin = dlsym(library, "cuInit");
  *(void **)&words[0] = dlsym(library, "cuGetErrorName");
  *(void **)&words[1] = dlsym(library, "cuGetErrorString");
  if (!begin || !words[0] || !words[1] || (cuda_library.error = begin(0)) == 0) return;
  words[0](cuda_library.error, &name);
  words[1](cuda_library.error, &text);
  snprintf(cuda_library.why, sizeof cuda_library.why, "cuInit: %s (%d)%s%s",
           name ? name : "an error", cuda_library.error, text ? ", " : "", text ? text : "");
}

/* Its library is in the process then, where there is one. */
static bool may_hip_work(void) {
  prof_backend_state state = {.size = sizeof state};
  for (uint32_t i = 0; prof_backend_status(i, &state) == PROF_OK; i++)
    if (state.device_type == PROF_DEVICE_ROCM &&
        (state.result == PROF_BACKEND_OK || state.result == PROF_BACKEND_NOT_READY))
      return true;
  return false;
}

/* Nor does prof begin to use HIP. HIP must begin after prof has requested records. */
static void begin_hip(void) {
  static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
  int (*count)(int *out) = NULL;
  void *library = NULL;
  int devices;
  for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
  if (library) *(void **)&count = dlsym(library, "hipGetDeviceCount");
  if (count) count(&devices);
}

/* Why prof cannot record at all, host scopes included. Empty: it can. */
static char why_not_recorded[512];
static bool is_memory_refused; /* that is why */

static void set_why_not_recorded(const char *why) {
  snprintf(why_not_recorded, sizeof why_not_recorded, "%s", why);
}

/* Records a scope, and reads it. */
static int record_scope(void) {
  prof_trace *trace;
  prof_trace_info info = {.size = sizeof info};
  WITH_BASE_PROFILER(PROF_HOST, "prof doctor", "doctor", PROF_NO_ARGS, {});
  const int status = prof_get(&trace);
  if (status != PROF_OK) {
    set_why_not_recorded(prof_last_error());
    return status;
  }
  prof_trace_info_get(trace, &info);
  if (info.scope_count == 0) set_why_not_recorded("a scope was recorded, and none can be read");
  prof_trace_destroy(trace);
  return status;
}

/* HIP's back end is opened by a scope alone. The read waits until prof's thread has requested
   records and has the answer. */
static void record_hip_scope(void) {
  prof_trace *trace;
  WITH_GPU_PROFILER(((prof_device){PROF_DEVICE_ROCM, 0}), 0, "prof doctor", "doctor", PROF_NO_ARGS,
                    {});
  if (prof_get(&trace) == PROF_OK) prof_trace_destroy(trace);
}

/* Before vendors' libraries are loaded, because these may take the room that a limit leaves. */
static void try_recording(void) {
  const prof_options options = {.size = sizeof options, .level = 1};
  int status = prof_start_with(&options);
  if (status == PROF_OK) {
    status = record_scope();
    prof_stop();
  } else {
    set_why_not_recorded(prof_last_error());
  }
  is_memory_refused = status == PROF_E_NO_MEMORY;
}

/* Back ends are opened, and asked to record: their states say how that went. */
static void try_devices(void) {
  const prof_options options = {
      .size = sizeof options, .level = 1, .devices = PROF_DEVICES_RECORDS};
  set_lost_page_message(
      "prof doctor: a library of a device's vendor, or one that it needs, is cut off: its file is "
      "shorter than its headers say, which ends whoever opens it (SIGBUS); "
      "install the vendor's driver again; LD_DEBUG=files prof doctor names the file last\n");
  begin_cuda();
  const bool has_hip = may_hip_work();
  if (prof_start_with(&options) == PROF_OK) {
    if (has_hip) begin_hip();
    record_hip_scope();
    prof_stop();
  }
  if (prof_sampler_start(NULL) == PROF_OK) prof_sampler_stop();
}

static void print_recording(void) {
  const bool works = !why_not_recorded[0];
  printf("recording: %s\n", works ? "works" : "does not work");
  print_line("why", why_not_recorded);
  if (is_memory_refused)
    print_line("what to do",
               "raise this limit of the process (see ulimit -a), or that of its container");
}

/* ---- another program ---- */

/* PyPI has another program of the name prof, with a command and a Python package. */

enum { SCRIPT_BYTES = 4096 };

/* A script of pip or setuptools that starts it. */
static bool is_foreign_command(const char *path) {
  char text[SCRIPT_BYTES + 1];
  FILE *const file = fopen(path, "rb");
  if (!file) return false;
  const size_t bytes = fread(text, 1, SCRIPT_BYTES, file);
  fclose(file);
  text[bytes] = '\0';
  return strncmp(text, "#!", 2) == 0 &&
         (strstr(text, "from prof.main import") || strstr(text, "prof=="));
}

static void print_foreign(const char *path, const char *what) {
  fputs("PyPI's prof: ", stdout);
  print_text(stdout, path, strlen(path));
  printf(" is %s of another program: pip uninstall prof; this one's package is libprof\n", what);
}

static bool print_foreign_commands(void) {
  const char *const path = getenv("PATH");
  char *const folders = path ? strdup(path) : NULL, file[PATH_MAX];
  bool is_any = false;
  for (char *rest = folders, *folder; rest && (folder = strsep(&rest, ":")) != NULL;) {
    const int bytes = snprintf(file, sizeof file, "%s/prof", *folder ? folder : ".");
    if (bytes >= (int)sizeof file || !is_foreign_command(file)) continue;
    print_foreign(file, "the command");
    is_any = true;
  }
  free(folders);
  return is_any;
}

/* Beside the command, as in a virtual environment. This program's package has no such folder. */
static bool print_foreign_packages(void) {
  char own[PATH_MAX], pattern[PATH_MAX + 64];
  glob_t found = {0};
  const ssize_t bytes = readlink("/proc/self/exe", own, sizeof own - 1);
  if (bytes <= 0) return false;
  own[bytes] = '\0';
  char *const slash = strrchr(own, '/');
  if (!slash) return false;
  *slash = '\0';
  snprintf(pattern, sizeof pattern, "%s/../lib*/python3*/*-packages/prof/parsers", own);
  if (glob(pattern, 0, NULL, &found) != 0) return false;
  for (size_t i = 0; i < found.gl_pathc; i++) print_foreign(found.gl_pathv[i], "a part");
  globfree(&found);
  return true;
}

static void print_foreign_prof(void) {
  const bool has_commands = print_foreign_commands(), has_packages = print_foreign_packages();
  if (has_commands || has_packages) putchar('\n');
}

/* ---- the command ---- */

static int execute_doctor(int argc, char **argv) {
  if (command_option_next(&command_doctor, argc, argv) != -1) return EXIT_USAGE;
  if (optind < argc) return refuse_words("doctor", "it takes no words:", argv[optind]);
  prof_backend_state state = {.size = sizeof state};
  uint32_t count = 0, working = 0;
  int status;
  try_recording();
  try_devices();
  printf("prof %s\n", prof_version());
  putchar('\n');
  print_foreign_prof();
  print_recording();
  for (; (status = prof_backend_status(count, &state)) == PROF_OK; count++) {
    print_backend(&state);
    working += state.result == PROF_BACKEND_OK;
  }
  if (status != PROF_E_NOT_FOUND) {
    say("prof doctor: %s", prof_last_error());
    return EXIT_FAILED;
  }
  print_host();
  putchar('\n');
  printf("%u of %u back ends of devices can work here.\n", working, count);
  if (!working && !why_not_recorded[0])
    puts(
        "WITH_GPU_PROFILER() records its host side alone. PROF_BACKENDS=/whole/path names "
        "plug-ins, files or folders.");
  return why_not_recorded[0] ? EXIT_NO : EXIT_OK;
}

static const command_example examples[] = {{"prof doctor", "what can be recorded on this machine"},
                                           {0}};

const prof_command command_doctor = {
    .name = "doctor",
    .summary = "which devices can be recorded here, and what to do for the others",
    .words = "",
    .about =
        "Records a scope, and prints whether that works. Prints which back ends of devices there "
        "are, which of them can work on this machine, and what to do for the others.",
    .statuses =
        "Exit status: 0 prof can record here, even if no back end works, 1 it could not be done, "
        "2 wrong words, 3 prof cannot record here.",
    .examples = examples,
    .execute = execute_doctor};
