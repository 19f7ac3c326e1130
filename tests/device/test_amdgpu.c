/* AMD's meters on a folder made as the kernel's driver shows its devices; no device is behind it.
   Units, boards of two dies, what a device does not report, numbers as HIP has them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "hang_guard.h"
#include "sampled.h"
#include "told.h"

enum { INTERVAL_NS = 2000000 };

static char root[] = "/tmp/prof-amdgpu-XXXXXX";

/* ---- the folder ---- */

static void put(const char *path, const char *text) {
  char whole[512];
  snprintf(whole, sizeof whole, "%s/sys/class/drm/%s", root, path);
  for (char *slash = strchr(whole + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(whole, 0777) != 0 && errno != EEXIST) fail_msg("%s", whole);
    *slash = '/';
  }
  FILE *const file = fopen(whole, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

/* card1 comes first on the bus; card2 is its second die, which tells no power; card3 is another
   vendor's; card0-DP-1 is no card. */
static void begin(void) {
  assert_non_null(mkdtemp(root));
  setenv("PROF_SYSFS_ROOT", root, 1);
  put("card0/device/vendor", "0x1002\n");
  put("card0/device/uevent", "DRIVER=amdgpu\nPCI_ID=1002:74A1\nPCI_SLOT_NAME=0000:0d:00.0\n");
  put("card0/device/mem_info_vram_used", "21474836480\n");
  put("card0/device/mem_info_vram_total", "206158430208\n");
  put("card0/device/gpu_busy_percent", "40\n");
  put("card0/device/mem_busy_percent", "7\n");
  put("card0/device/hwmon/hwmon5/power1_input", "310000000\n");
  put("card0/device/hwmon/hwmon5/freq1_input", "2100000000\n");
  put("card0/device/hwmon/hwmon5/freq2_input", "1300000000\n");
  put("card0/device/hwmon/hwmon5/temp1_input", "51000\n");
  put("card0-DP-1/device/vendor", "0x1002\n");
  put("card1/device/vendor", "0x1002\n");
  put("card1/device/uevent", "PCI_SLOT_NAME=0000:0c:00.0\n");
  put("card1/device/mem_info_vram_used", "1024\n");
  put("card1/device/product_name", "Made for a test\n");
  put("card1/device/hwmon/hwmon3/power1_average", "95500000\n");
  put("card2/device/vendor", "0x1002\n");
  put("card2/device/uevent", "PCI_SLOT_NAME=0000:0c:00.1\n");
  put("card2/device/mem_info_vram_used", "2048\n");
  put("card2/device/hwmon/hwmon4/power1_average", "0\n");
  put("card3/device/vendor", "0x10de\n");
  put("card3/device/mem_info_vram_used", "4096\n");
}

static void drop_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  assert_int_equal(system(command), 0);
}

/* ---- what came of it ---- */

static void sample(void) {
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = INTERVAL_NS};
  prof_sampler_state now = {.size = sizeof now};
  if (prof_sampler_start(&options) != PROF_OK) fail_msg("%s", prof_last_error());
  for (unsigned naps = 0; now.sample_count < 20 && hang_nap(&naps);)
    assert_int_equal(prof_sampler_get(&now), PROF_OK);
  stop_sampler();
}

/* A counter's last value; its device's index is that of its row. -1: there is none. */
static double value_of(const char *name, int32_t index) {
  static prof_event event;
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  double value = -1;
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (event.kind != PROF_EVENT_COUNTER || event.name_bytes != strlen(name) ||
        memcmp(event.name, name, event.name_bytes) != 0)
      continue;
    assert_int_equal(event.device.type, PROF_DEVICE_ROCM);
    assert_int_equal(event.device.index, index);
    value = event.value;
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  return value;
}

/* ---- the tests ---- */

static void each_meter_has_its_unit(void **state) {
  (void)state;
  assert_int_equal(prof_start(1), PROF_OK);
  sample();
  assert_int_equal(prof_stop(), PROF_OK);
  assert_true(value_of("amdgpu:0 power (W)", 0) == 95.5);
  assert_true(value_of("amdgpu:0 memory used (B)", 0) == 1024);
  assert_true(value_of("amdgpu:0 utilisation (%)", 0) == -1); /* it does not tell that */
  /* a second die: the first tells both's */
  assert_true(value_of("amdgpu:1 power (W)", 1) == -1);
  assert_true(value_of("amdgpu:1 memory used (B)", 1) == 2048);
  assert_true(value_of("amdgpu:2 power (W)", 2) == 310);
  assert_true(value_of("amdgpu:2 memory used (B)", 2) == 20.0 * (1 << 30));
  assert_true(value_of("amdgpu:2 utilisation (%)", 2) == 40);
  assert_true(value_of("amdgpu:2 memory utilisation (%)", 2) == 7);
  assert_true(value_of("amdgpu:2 clock (Hz)", 2) == 2.1e9);
  assert_true(value_of("amdgpu:2 memory clock (Hz)", 2) == 1.3e9);
  assert_true(value_of("amdgpu:2 temperature (degC)", 2) == 51);
  assert_true(value_of("amdgpu:3 memory used (B)", 3) == -1);
  assert_string_equal(
      state_of_back_end("amdgpu").reason,
      "works, but device 1 tells no power: a second die, whose board's first tells both's");
  drop_folder();
}

/* What the kernel's files do not tell, ROCm SMI does. The devices are the same by their places on
   the bus. */
static void energy_is_rocm_smis(void **state) {
  (void)state;
  char path[512];
  snprintf(path, sizeof path, "%s/vendors/librocm_smi64.so.7", getenv("PROF_TEST_PLUGIN_DIR"));
  setenv("PROF_BACKEND_ROCM_SMI", path, 1);
  void *const library = dlopen(path, RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
  assert_int_equal(prof_start(1), PROF_OK);
  sample();
  assert_int_equal(prof_stop(), PROF_OK);
  assert_true(value_of("amdgpu:0 average power (W)", 0) > 0);
  assert_true(value_of("amdgpu:1 average power (W)", 1) == -1); /* a second die */
  assert_true(value_of("amdgpu:2 average power (W)", 2) > 0);
  assert_int_equal(*(uint32_t *)dlsym(library, "emulated_rsmi_inits"), 1);
  drop_folder();
}

/* One that does not begin leaves the files' meters; and where a folder stands for the kernel's,
   none is looked for. */
static void without_rocm_smi_there_is_no_energy(void **state) {
  (void)state;
  char path[512];
  snprintf(path, sizeof path, "%s/vendors/librocm_smi64.so.7", getenv("PROF_TEST_PLUGIN_DIR"));
  void *const library = dlopen(path, RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
  setenv("PROF_BACKEND_ROCM_SMI", path, 1);
  *(uint32_t *)dlsym(library, "emulated_rsmi_init_error") = 8;
  assert_int_equal(prof_start(1), PROF_OK);
  sample();
  assert_int_equal(prof_stop(), PROF_OK);
  assert_true(value_of("amdgpu:0 average power (W)", 0) == -1);
  assert_string_equal(state_of_back_end("amdgpu").reason,
                      "works, but device 1 tells no power: a second die, whose board's first tells "
                      "both's; it tells no energy: rsmi_init: error 8");
  assert_true(value_of("amdgpu:0 power (W)", 0) == 95.5);
  drop_folder();
}

static void a_machine_without_them_says_so(void **state) {
  (void)state;
  drop_folder();
  const prof_backend_state about = state_of_back_end("amdgpu");
  assert_int_equal(about.result, PROF_BACKEND_NO_DEVICE);
  assert_non_null(strstr(about.reason, "lists no device of AMD's"));
}

/* A file that goes, or says nonsense, while it is sampled: the others go on. */
static void a_device_may_go(void **state) {
  (void)state;
  char path[256];
  assert_int_equal(prof_start(1), PROF_OK);
  sample();
  snprintf(path, sizeof path, "%s/sys/class/drm/card0/device/gpu_busy_percent", root);
  assert_int_equal(unlink(path), 0);
  put("card0/device/mem_busy_percent", "soon\n");
  put("card0/device/mem_info_vram_used", "4096\n");
  sample();
  assert_int_equal(prof_stop(), PROF_OK);
  assert_true(value_of("amdgpu:2 memory used (B)", 2) == 4096);
  assert_true(value_of("amdgpu:2 utilisation (%)", 2) == 40); /* the last that it told */
  drop_folder();
}

#define TESTS(X)                         \
  X(each_meter_has_its_unit)             \
  X(energy_is_rocm_smis)                 \
  X(without_rocm_smi_there_is_no_energy) \
  X(a_machine_without_them_says_so)      \
  X(a_device_may_go)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
