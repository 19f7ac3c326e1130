/* See rocprof.h: the command. */
#define _GNU_SOURCE
#include "rocprof.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "check.h"
#include "child.h"

/* ---- the command ---- */

static bool line_has(const char *line, size_t bytes, const char *text) {
  return memmem(line, bytes, text, strlen(text)) != NULL;
}

/* Lines that each run prints in great number, or as an advertisement. */
static bool is_noise_line(void *context, const char *line, size_t bytes) {
  const bool is_v3 = *(const bool *)context;
  if (is_v3) return line_has(line, bytes, "sql text value for value is empty. Using NULL instead");
  return line_has(line, bytes, "WARNING: We are phasing out") ||
         line_has(line, bytes, "roctracer/rocprofiler") ||
         line_has(line, bytes, "rocprofv2 in favor");
}

int run_rocprof(int argc, char **argv) {
  const bool is_v3 = run_program_find("rocprofv3") != NULL;
  if (!is_v3 && !run_program_find("rocprof")) {
    say("prof run: neither rocprofv3 nor rocprof is on PATH: install ROCm: "
        "https://rocm.docs.amd.com");
    return RUN_NOT_FOUND;
  }
  int at = 1;
  while (at < argc && strcmp(argv[at], "--") != 0) at++;
  if (at + 1 >= argc)
    return refuse_words("run-rocprof", "needs -- and a program behind its options", NULL);
  run_command command = {0};
  run_words_add(&command.words, is_v3 ? "rocprofv3" : "rocprof");
  for (int i = 1; i < argc; i++) run_words_add(&command.words, argv[i]);
  const run_stream_watch watch = {.log = -1,
                                  .extra = -1,
                                  .is_noise_line = is_noise_line,
                                  .context = (void *)&is_v3,
                                  .is_stderr_alone = true,
                                  .is_last = true};
  const int status = run_child(&command, &watch).status;
  run_signals_end_as(status);
  return status;
}

/* ---- counters ---- */

static const struct {
  const char *kind, *names;
} counter_sets[] = {
    {"compute",
     "SQ_WAVES SQ_WAVE_CYCLES SQ_INSTS_VALU SQ_ACTIVE_INST_VALU SQ_INSTS_VALU_ADD_F32 "
     "SQ_INSTS_VALU_MUL_F32 SQ_INSTS_VALU_FMA_F32 SQ_INSTS_VALU_TRANS_F32 SQ_INSTS_SALU "
     "SQ_INSTS_VMEM_RD SQ_INSTS_VMEM_WR SQ_WAIT_INST_ANY"},
    {"memory",
     "L2CacheHit L2CacheMiss L2CacheHitRate TCP_TCC_READ_REQ_sum TCP_TCC_WRITE_REQ_sum "
     "TCP_TCC_ATOMIC_REQ_sum TCC_HIT_sum TCC_MISS_sum TCC_EA_RDREQ_32B_sum TCC_EA_WRREQ_64B_sum "
     "TCC_EA_RDREQ_LEVEL_sum TCC_EA_WRREQ_LEVEL_sum SQ_INSTS_SMEM SQ_LDS_BANK_CONFLICT"},
    {"communication",
     "TCC_EA_WRREQ_64B_sum TCC_EA_RDREQ_32B_sum TCC_ATOMIC_sum TCP_TCC_ATOMIC_REQ_sum "
     "SQ_WAIT_INST_ANY SQ_WAVES TCP_TCC_READ_REQ_sum TCP_TCC_WRITE_REQ_sum"},
    {"full",
     "SQ_WAVES SQ_WAVE_CYCLES SQ_INSTS_VALU SQ_INSTS_SALU SQ_ACTIVE_INST_VALU L2CacheHit "
     "TCC_HIT_sum TCC_MISS_sum TCP_TCC_READ_REQ_sum TCP_TCC_WRITE_REQ_sum TCC_EA_RDREQ_32B_sum "
     "TCC_EA_WRREQ_64B_sum SQ_WAIT_INST_ANY SQ_WAIT_INST_VALU SQ_LDS_BANK_CONFLICT"},
    {"instructions",
     "SQ_INSTS_VALU SQ_INSTS_SALU SQ_INSTS_VMEM_RD SQ_INSTS_VMEM_WR SQ_WAIT_INST_ANY"},
};

/* One counter a line. */
static void write_counters(const char *path, const char *names) {
  run_words words = {0};
  run_words_split(&words, names);
  FILE *const to = fopen(path, "we");
  bool is_bad = !to;
  for (size_t i = 0; to && i < words.count; i++) fprintf(to, "pmc: %s\n", words.items[i]);
  if (to) is_bad |= ferror(to) != 0;
  if (to) is_bad |= fclose(to) != 0;
  if (is_bad) run_fail("cannot write '%s': %s", path, strerror(errno));
}

const char *run_rocprof_counters(const char *kind, const char *folder, bool is_written) {
  const char *const path = run_text("%s/%s.txt", folder, kind);
  for (size_t i = 0; i < sizeof counter_sets / sizeof *counter_sets; i++) {
    if (strcmp(counter_sets[i].kind, kind) != 0) continue;
    if (is_written) write_counters(path, counter_sets[i].names);
    return path;
  }
  run_fail("there are no counters '%s'", kind);
}
