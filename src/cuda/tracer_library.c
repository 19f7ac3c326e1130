/* CUPTI's library, which records what CUDA's devices do, and its errors. Opened when records are
   wanted. Two copies in one process disturb each other, so a copy that is loaded comes first, no
   matter who loaded it. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../base/library.h"
#include "../device/vendor.h"

prof_i_cupti_functions prof_i_cupti;

static struct {
  int32_t driver_version; /* CUDA's version that the driver reports: 12040 */
} cupti_state;

/* What CUDA's majors call it, newest first; 11 has a name for each minor. */
static const struct {
  int32_t major;
  const char *name;
} cupti_names[] = {{13, "libcupti.so.13"},   {12, "libcupti.so.12"},   {11, "libcupti.so.11.8"},
                   {11, "libcupti.so.11.7"}, {11, "libcupti.so.11.6"}, {11, "libcupti.so.11.5"},
                   {11, "libcupti.so.11.4"}, {11, "libcupti.so.11.3"}, {11, "libcupti.so.11.2"}};
enum {
  PATH_BYTES = 4096,
  CUPTI_NAMES = sizeof cupti_names / sizeof *cupti_names,
  PATIENCE_MS = 300
};
static const char *const cupti_folders[] = {"/usr/local/cuda/extras/CUPTI/lib64",
                                            "/usr/local/cuda/lib64"};

/* A copy that was loaded by its path, as wheels do, is not found by its name. */
static bool find_cupti_path(char *path_out) {
  const struct timespec ms = {0, 1000000};
  int is_there = -1;
  for (int i = 0; i < PATIENCE_MS &&
                  (is_there = prof_i_library_find_loaded("libcupti.so", path_out, PATH_BYTES)) < 0;
       i++)
    nanosleep(&ms, NULL);
  return is_there > 0;
}

static void *find_loaded_cupti(void) {
  char path[PATH_BYTES] = "";
  const char *why;
  for (int i = 0; i < CUPTI_NAMES; i++) {
    void *const library = prof_i_library_open(cupti_names[i].name, 1, &why);
    if (library) return library;
  }
  return find_cupti_path(path) ? prof_i_library_open(path, 1, &why) : NULL;
}

static void *try_cupti_in(const char *folder, const char *name, prof_i_library_error *why) {
  char path[PATH_BYTES];
  return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path
             ? prof_i_library_try(path, why)
             : NULL;
}

/* A CUPTI of a later major than the driver's would refuse to work. */
static void *find_installed_cupti(int32_t driver_version, prof_i_library_error *why) {
  for (int i = 0; i < CUPTI_NAMES; i++) {
    if (cupti_names[i].major > driver_version / 1000) continue;
    void *library = prof_i_library_try(cupti_names[i].name, why);
    for (size_t k = 0; k < sizeof cupti_folders / sizeof *cupti_folders && !library; k++)
      library = try_cupti_in(cupti_folders[k], cupti_names[i].name, why);
    if (library) return library;
  }
  return NULL;
}

static const prof_i_vendor_symbol cupti_symbols[] = {
#define SYMBOL(need, name, arguments) \
  {#name, offsetof(prof_i_cupti_functions, name), PROF_I_VENDOR_##need},
    PROF_I_CUPTI_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

static const prof_i_vendor_library cupti_library = {
    .symbols = cupti_symbols,
    .symbol_count = sizeof cupti_symbols / sizeof *cupti_symbols,
    .functions = &prof_i_cupti,
    .oldest_text = ": CUDA 11.2 is the oldest that serves"};

int prof_i_cupti_library_open(const prof_backend_host *host, int32_t driver_version) {
  const char *const wanted = host->option("CUPTI");
  prof_i_library_error why = {0};
  void *library = find_loaded_cupti();
  cupti_state.driver_version = driver_version;
  if (!library && wanted && *wanted) {
    library = prof_i_library_try(wanted, &why);
    if (!library) return prof_i_backend_fail_library("PROF_BACKEND_CUPTI: ", &why);
  }
  if (!library) library = find_installed_cupti(driver_version, &why);
  if (!library && why.is_broken) return prof_i_backend_fail_library("", &why);
  if (!library)
    return prof_i_backend_fail(
        PROF_BACKEND_ABSENT,
        "CUPTI is not there (libcupti.so.%d); install it (CUDA's toolkit, or "
        "the package nvidia-cuda-cupti), and name its folder in "
        "LD_LIBRARY_PATH or the file in PROF_BACKEND_CUPTI",
        driver_version / 1000);
  return prof_i_vendor_library_use(&cupti_library, library, "libcupti");
}

static int result_of_cupti(int32_t error) {
  switch (error) {
    case PROF_I_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case PROF_I_CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED:
      return PROF_BACKEND_BUSY;
    case PROF_I_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case PROF_I_CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
    case PROF_I_CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
      return PROF_BACKEND_PERMISSION;
    case PROF_I_CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED:
    case PROF_I_CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
    case PROF_I_CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED:
    case PROF_I_CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
      return PROF_BACKEND_UNSUPPORTED;
    case PROF_I_CUPTI_ERROR_NOT_COMPATIBLE:
      return PROF_BACKEND_VERSION;
    default:
      return PROF_BACKEND_VENDOR;
  }
}

/* What the user can do. */
static const char *advice_of_cupti(int32_t error) {
  switch (error) {
    case PROF_I_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return ": for root or CAP_SYS_ADMIN alone, until the nvidia module has "
             "NVreg_RestrictProfilingToAdminUsers=0";
    case PROF_I_CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return ": the virtual GPU's host must permit it (vGPU plugin: enable_profiling)";
    case PROF_I_CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
      return ": confidential computing permits it in devtools mode alone";
    case PROF_I_CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
      return ": a MIG instance must have its GPU instance alone";
    default:
      return "";
  }
}

/* Numbers before CUDA 13 are of the interface, not of the release. */
static int32_t cupti_major_of(uint32_t version) {
  return version >= 100000 ? (int32_t)(version / 10000) : version >= 19 ? 12 : 11;
}

/* A CUPTI that is newer than the driver is the usual cause. */
static void format_cupti_versions(char *to, size_t room) {
  uint32_t version = 0;
  if (prof_i_cupti.cuptiGetVersion(&version) != 0 ||
      cupti_major_of(version) <= cupti_state.driver_version / 1000)
    return;
  snprintf(to, room,
           ": CUPTI is CUDA %d's, the driver serves up to %d.%d: PROF_BACKEND_CUPTI names another",
           cupti_major_of(version), cupti_state.driver_version / 1000,
           cupti_state.driver_version % 1000 / 10);
}

int prof_i_cupti_fail_call(const char *function, int32_t error) {
  const char *text = NULL;
  char versions[128] = "";
  prof_i_cupti.cuptiGetResultString(error, &text);
  format_cupti_versions(versions, sizeof versions);
  return prof_i_backend_fail(result_of_cupti(error),
                             "%s: %s (%d)%s%s; scopes on streams are recorded", function,
                             text ? text : "an error", error, advice_of_cupti(error), versions);
}
