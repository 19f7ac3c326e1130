/* See sampler_autostart.h. */
#define _GNU_SOURCE
#include "sampler_autostart.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "../sampler/internal.h"

/* "0.1": seconds, with a point whatever the locale has; ns. False: it is none, or more than a
   day. */
static bool read_seconds(const char *text, uint64_t *ns_out) {
  const uint64_t second_ns = 1000000000, longest_ns = 86400 * second_ns;
  uint64_t ns = 0, digit_ns = second_ns;
  bool is_behind = false;
  if (!isdigit((unsigned char)*text)) return false;
  for (; *text; text++) {
    if (*text == '.' && !is_behind) {
      is_behind = true;
      continue;
    }
    if (!isdigit((unsigned char)*text) || ns > longest_ns) return false;
    const uint64_t digit = (uint64_t)(*text - '0');
    if (is_behind)
      ns += digit * (digit_ns /= 10);
    else
      ns = ns * 10 + digit * second_ns;
  }
  *ns_out = ns;
  return ns > 0 && ns <= longest_ns;
}

static bool read_mode(const char *text, uint32_t *mode_out) {
  static const char *const modes[] = {"all", "power", "vram", "utilisation", "clock"};
  for (uint32_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(text, modes[i]) != 0) continue;
    *mode_out = i;
    return true;
  }
  return false;
}

static const char *read_variable(const char *name) {
  const char *const text = secure_getenv(name);
  return text && *text ? text : NULL;
}

void prof_i_sampler_start_as_set(void) {
  prof_sampler_options options = {.size = sizeof options,
                                  .devices = read_variable("PROF_SAMPLE_DEVICES"),
                                  .csv_path = read_variable("PROF_SAMPLE_CSV")};
  const char *const seconds = read_variable("PROF_SAMPLE"), *const mode =
                                                                read_variable("PROF_SAMPLE_MODE");
  if (!seconds) return;
  if (!read_seconds(seconds, &options.interval_ns)) {
    prof_i_log("PROF_SAMPLE='%s' is no number of seconds up to a day (0.1); not sampling", seconds);
  } else if (mode && !read_mode(mode, &options.mode)) {
    prof_i_log(
        "PROF_SAMPLE_MODE='%s' is none of its words (all, power, vram, utilisation, clock); not "
        "sampling",
        mode);
  } else if (prof_i_sampler_begin(&options) != PROF_OK) {
    prof_i_log("PROF_SAMPLE: %s; not sampling", prof_last_error());
  }
}
