/* See sampler_devices.h. */
#define _GNU_SOURCE
#include "sampler_devices.h"

#include <prof/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADING_BYTES_MAX = 1 << 16 };

static const char *sampling_modes_text(const run_sampling *sampling) {
  return strcmp(sampling->mode, "vram") == 0 ? "memory" : "power";
}

/* The back ends with meters, one after another. False: there are no more. */
static bool next_with_meters(uint32_t *number, prof_backend_state *state) {
  *state = (prof_backend_state){.size = sizeof *state};
  while (prof_backend_status((*number)++, state) == PROF_OK)
    if (state->abilities & PROF_CAN_METRICS) return true;
  return false;
}

/* "nvml: WHY (WHAT TO DO)" for each back end that fails in part or whole. */
static const char *backend_reasons(void) {
  prof_backend_state state;
  const char *text = "";
  for (uint32_t i = 0; next_with_meters(&i, &state);) {
    if (!state.reason[0]) continue;
    text = run_text("%s; %s: %s%s%s%s", text, state.name, state.reason, state.advice[0] ? " (" : "",
                    state.advice, state.advice[0] ? ")" : "");
  }
  return text;
}

/* The largest number of devices of one vendor. */
static uint32_t count_devices(void) {
  prof_backend_state state;
  uint32_t most = 0;
  for (uint32_t i = 0; next_with_meters(&i, &state);)
    if (state.device_count > most) most = state.device_count;
  return most;
}

static bool heading_has_device(const char *heading, unsigned long device) {
  const char *const title = run_text(" GPU%lu", device);
  const size_t bytes = strlen(title);
  for (const char *at = heading; (at = strstr(at, title)) != NULL; at++)
    if (strchr(",\n", at[bytes])) return true;
  return false;
}

static const char *no_device_reason(const run_sampling *sampling, unsigned long device,
                                    uint32_t count) {
  const char *const numbers = count == 1 ? "0" : run_text("0 to %u", count - 1);
  return run_text("DEVICE is '%s', and there is no device %lu: there %s %u (%s)", sampling->devices,
                  device, count == 1 ? "is" : "are", count, numbers);
}

const char *run_devices_refusal(const run_sampling *sampling) {
  const uint32_t count = count_devices();
  for (const char *at = sampling->devices; count > 0 && *at >= '0' && *at <= '9';) {
    char *end;
    const unsigned long device = strtoul(at, &end, 10);
    if (device >= count) return no_device_reason(sampling, device, count);
    at = end + (*end == ',');
  }
  return run_text("there is no device whose %s can be read%s; prof doctor says more",
                  sampling_modes_text(sampling), backend_reasons());
}

static const char *no_column_reason(const run_sampling *sampling, unsigned long device) {
  const uint32_t count = count_devices();
  if (device >= count) return no_device_reason(sampling, device, count);
  if (strcmp(sampling->mode, "power") != 0)
    return run_text("DEVICE is '%s', and device %lu does not tell its memory%s", sampling->devices,
                    device, backend_reasons());
  return run_text(
      "DEVICE is '%s', and device %lu tells no power; on a board with two dies the "
      "first tells the power of both, and \"all\" leaves the second out%s",
      sampling->devices, device, backend_reasons());
}

const char *run_devices_check(const run_sampling *sampling, const char *csv_path) {
  size_t bytes;
  const char *const heading = run_file_read(csv_path, HEADING_BYTES_MAX, &bytes);
  if (!heading || !strstr(heading, " GPU")) return run_devices_refusal(sampling);
  for (const char *at = sampling->devices; *at >= '0' && *at <= '9';) {
    char *end;
    const unsigned long device = strtoul(at, &end, 10);
    if (!heading_has_device(heading, device)) return no_column_reason(sampling, device);
    at = end + (*end == ',');
  }
  if (sampling->is_dual && count_devices() < 2)
    return run_text("DUAL-GCD is 'true', which needs two devices, and there is %u",
                    count_devices());
  return NULL;
}
