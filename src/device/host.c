/* See host.h. */
#define _GNU_SOURCE
#include "host.h"

#include <stdio.h>
#include <stdlib.h>

#include "../core/log.h"
#include "../core/port.h"

static uint64_t now_ns(void) { return prof_i_port_monotonic_ns(); }

/* Only where somebody has asked to see it: nothing is written to the program's stderr otherwise. */
static void say(const char *text) {
  const char *const wanted = secure_getenv("PROF_LOG");
  if (wanted && *wanted && text) prof_i_say("%s", text);
}

static const char *option(const char *key) {
  char name[128];
  const int bytes = key ? snprintf(name, sizeof name, "PROF_BACKEND_%s", key) : 0;
  return bytes > 0 && bytes < (int)sizeof name ? secure_getenv(name) : NULL;
}

const prof_backend_host prof_i_device_host = {.size = sizeof(prof_backend_host), .major = PROF_BACKEND_MAJOR, .minor = PROF_BACKEND_MINOR, .now_ns = now_ns, .log = say, .option = option};
