/* See options.h. The rule for sizes is libbpf's. */
#define _GNU_SOURCE
#include "options.h"

#include <stdbool.h>
#include <string.h>

#include "../format/layout.h"
#include "error.h"
#include "port.h"

static const uint64_t mib_bytes = 1ull << 20;
enum { CAP_MIN_MIB = 1, CAP_MEMORY_MIB = 256, CAP_FILE_MIB = 4096 };
static const uint64_t cap_max_bytes = 1ull << 40; /* a mapping of more would be refused anyway */

int prof_i_sized_copy(void *to, size_t to_bytes, const void *from, const char *what) {
  size_t bytes;
  memcpy(&bytes, from, sizeof bytes);
  if (bytes < sizeof bytes)
    return prof_i_fail(PROF_E_INVALID, "%s.size is %zu; set it to sizeof(%s)", what, bytes, what);
  if (bytes > 4096)
    return prof_i_fail(PROF_E_INVALID, "%s.size is %zu, which no version has", what, bytes);
  for (size_t i = to_bytes; i < bytes; i++)
    if (((const char *)from)[i])
      return prof_i_fail(PROF_E_INVALID,
                         "%s has a field at byte %zu that this version (%s) does not know", what, i,
                         PROF_VERSION_STRING);
  memset(to, 0, to_bytes);
  memcpy(to, from, bytes < to_bytes ? bytes : to_bytes);
  memcpy(to, &to_bytes, sizeof to_bytes);
  return PROF_OK;
}

int prof_i_sized_copy_out(void *to, const void *from, size_t from_bytes, const char *what) {
  size_t bytes;
  const size_t head = sizeof bytes;
  memcpy(&bytes, to, head);
  if (bytes < head)
    return prof_i_fail(PROF_E_INVALID, "%s.size is %zu; set it to sizeof(%s)", what, bytes, what);
  const size_t both = bytes < from_bytes ? bytes : from_bytes;
  memcpy((char *)to + head, (const char *)from + head, both - head);
  if (bytes > from_bytes) memset((char *)to + from_bytes, 0, bytes - from_bytes);
  return PROF_OK;
}

static struct {
  uint64_t memory_bytes, cpu_milli; /* any thread, atomic; 0 and 0: nobody has looked yet */
} start_limits;

static prof_i_limits read_start_limits(void) {
  const prof_i_limits limits = prof_i_port_limits();
  __atomic_store_n(&start_limits.cpu_milli, limits.cpu_milli, __ATOMIC_RELAXED);
  __atomic_store_n(&start_limits.memory_bytes, limits.memory_bytes, __ATOMIC_RELEASE);
  return limits;
}

prof_i_limits prof_i_options_limits(void) {
  const uint64_t memory_bytes = __atomic_load_n(&start_limits.memory_bytes, __ATOMIC_ACQUIRE);
  if (!memory_bytes) return read_start_limits();
  return (prof_i_limits){memory_bytes, __atomic_load_n(&start_limits.cpu_milli, __ATOMIC_RELAXED)};
}

uint64_t prof_i_options_memory_cap(void) {
  const uint64_t most = CAP_MEMORY_MIB * mib_bytes, least = CAP_MIN_MIB * mib_bytes;
  const uint64_t eighth = prof_i_options_limits().memory_bytes / 8;
  const uint64_t cap = eighth < least ? least : eighth < most ? eighth : most;
  return cap & ~(uint64_t)(PROF_I_UNIT_BYTES - 1);
}

int prof_i_options_complete(prof_options *options) {
  if (options->level == 0) options->level = 1;
  if (options->level > 2)
    return prof_i_fail(
        PROF_E_LEVEL,
        "level is %u; 1 records kernels and operators, 2 also the runtime around them",
        options->level);
  if (options->policy > PROF_POLICY_STREAM)
    return prof_i_fail(PROF_E_INVALID, "options.policy is %u; 0 to 3 are known", options->policy);
  if (options->clock > PROF_CLOCK_MONOTONIC)
    return prof_i_fail(PROF_E_INVALID, "options.clock is %u; 0 to 2 are known", options->clock);
  if (options->helper_thread > 1)
    return prof_i_fail(PROF_E_INVALID, "options.helper_thread is %u, not 0 or 1",
                       options->helper_thread);
  if (options->keep_capture > 1)
    return prof_i_fail(PROF_E_INVALID, "options.keep_capture is %u, not 0 or 1",
                       options->keep_capture);
  if (options->budget_permille > 1000)
    return prof_i_fail(PROF_E_INVALID, "options.budget_permille is %u; 1 to 1000, or 0 for none",
                       options->budget_permille);
  if (options->budget_action > PROF_BUDGET_MUTE)
    return prof_i_fail(PROF_E_INVALID, "options.budget_action is %u; 0 to 2 are known",
                       options->budget_action);
  if (options->devices > PROF_DEVICES_MEMORY)
    return prof_i_fail(PROF_E_INVALID, "options.devices is %u; 0 to 3 are known", options->devices);
  const bool in_file = options->path != NULL && options->path[0];
  if (options->path && !in_file)
    return prof_i_fail(PROF_E_INVALID, "options.path is empty; NULL records in memory");
  if (options->policy == PROF_POLICY_STREAM && !in_file)
    return prof_i_fail(PROF_E_INVALID,
                       "options.policy is stream, but options.path is NULL: a stream needs a file");
  if (options->policy == PROF_POLICY_DEFAULT)
    options->policy = in_file ? PROF_POLICY_STREAM : PROF_POLICY_KEEP;
  if (options->ring_ns && options->policy != PROF_POLICY_RING)
    return prof_i_fail(PROF_E_INVALID, "options.ring_ns is set, but options.policy is not ring");
  read_start_limits();
  if (!options->cap_bytes)
    options->cap_bytes = in_file ? CAP_FILE_MIB * mib_bytes : prof_i_options_memory_cap();
  if (options->cap_bytes < CAP_MIN_MIB * mib_bytes || options->cap_bytes > cap_max_bytes)
    return prof_i_fail(PROF_E_INVALID, "options.cap_bytes is %llu; from 1 MiB to 1 TiB is possible",
                       (unsigned long long)options->cap_bytes);
  options->cap_bytes &= ~(uint64_t)(PROF_I_UNIT_BYTES - 1);
  return PROF_OK;
}
