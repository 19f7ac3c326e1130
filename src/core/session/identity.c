/* Who this process is: name, rank, world size, tracks. Kept here, and copied into every capture.
   See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <prof/profiler.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../base/error.h"
#include "../../base/options.h"
#include "../../base/port.h"
#include "../buffer/arena.h"
#include "../buffer/clock.h"
#include "../buffer/meta.h"

enum { TRACK_COUNT_MAX = 256, NAME_WORDS = 1 + PROF_I_NAME_BYTES / 8 };

/* Guarded by the control lock. */
static struct {
  bool has_rank;
  int rank, world_size;
  char process_name[PROF_I_NAME_BYTES];
  struct {
    uint64_t words[2 + NAME_WORDS];
    size_t count;
  } tracks[TRACK_COUNT_MAX];
  int track_count;
} identity;

/* What launchers set; the first pair with a rank counts. */
static const struct {
  const char *rank, *size;
} launchers[] = {{"RANK", "WORLD_SIZE"},
                 {"SLURM_PROCID", "SLURM_NTASKS"},
                 {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                 {"PMI_RANK", "PMI_SIZE"}};

static bool read_env_number(const char *name, int *to) {
  const char *const text = getenv(name);
  char *end = NULL;
  if (!text || !*text) return false;
  const long value = strtol(text, &end, 10);
  if (*end || value < 0 || value > INT32_MAX) return false;
  *to = (int)value;
  return true;
}

static void find_rank(void) {
  if (identity.has_rank) return;
  identity.has_rank = true;
  identity.rank = -1;
  identity.world_size = 1;
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
    if (!read_env_number(launchers[i].rank, &identity.rank)) continue;
    const bool has_size = read_env_number(launchers[i].size, &identity.world_size);
    if (!has_size || identity.world_size <= identity.rank) identity.world_size = -1;
    return;
  }
}

static void copy_name(char *to, const char *name) {
  memset(to, 0, PROF_I_NAME_BYTES);
  memcpy(to, name, strnlen(name, PROF_I_NAME_BYTES - 1));
}

int prof_i_identity_rank(void) {
  find_rank();
  return identity.rank;
}

void prof_i_identity_begin(void) {
  prof_i_header *const header = prof_i_arena_header();
  find_rank();
  header->pid = (uint32_t)getpid();
  header->process_start = prof_i_port_process_start();
  header->namespace_pid = prof_i_port_pid_namespace();
  const prof_i_limits limits = prof_i_options_limits();
  header->memory_limit_bytes = limits.memory_bytes;
  header->cpu_limit_milli = limits.cpu_milli;
  header->rank = identity.rank < 0 ? 0 : identity.rank;
  header->world_size = identity.world_size;
  gethostname(header->host, sizeof header->host - 1);
  prof_i_port_boot_id(header->boot_id, sizeof header->boot_id);
  if (identity.process_name[0])
    memcpy(header->process_name, identity.process_name, sizeof header->process_name);
  else
    prof_i_port_process_name(header->process_name, sizeof header->process_name);
  for (int i = 0; i < identity.track_count; i++)
    prof_i_meta_write(PROF_I_KIND_TRACK, 0, 0, identity.tracks[i].words, identity.tracks[i].count);
}

void prof_i_identity_set_rank(int rank, int world_size) {
  identity.has_rank = true;
  identity.rank = rank;
  identity.world_size = world_size;
  if (!prof_i_the_arena.base) return;
  prof_i_arena_header()->rank = rank;
  prof_i_arena_header()->world_size = world_size;
}

void prof_i_identity_set_process_name(const char *name) {
  copy_name(identity.process_name, name);
  if (prof_i_the_arena.base) copy_name(prof_i_arena_header()->process_name, name);
}

int prof_i_identity_set_track_name(prof_device device, uint64_t stream, const char *name) {
  const uint64_t which[2] = {(uint32_t)device.type | (uint64_t)(uint32_t)device.index << 32,
                             stream};
  int i = 0;
  while (i < identity.track_count && memcmp(identity.tracks[i].words, which, sizeof which) != 0)
    i++;
  if (i == TRACK_COUNT_MAX)
    return prof_i_fail(PROF_E_TOO_LARGE, "prof_track_set_name: %d tracks have names already",
                       TRACK_COUNT_MAX);
  if (i == identity.track_count) identity.track_count++;
  memcpy(identity.tracks[i].words, which, sizeof which);
  identity.tracks[i].count =
      2 + prof_i_put_text(identity.tracks[i].words + 2, name, strnlen(name, PROF_I_NAME_BYTES - 1));
  if (prof_i_the_arena.base)
    prof_i_meta_write(PROF_I_KIND_TRACK, prof_i_clock_ticks(), 0, identity.tracks[i].words,
                      identity.tracks[i].count);
  return PROF_OK;
}
