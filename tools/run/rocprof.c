/* See internal.h: AMD's rocprof and rocprofv3. */
#define _GNU_SOURCE
#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "output.h"

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

/* ---- the histogram of instructions ---- */

/* The first class that matches a counter's name counts. */
static const struct {
  const char *part, *class_name;
} instruction_classes[] = {
    {"sq_insts_valu", "VALU"},     {"sq_active_inst_valu", "VALU"}, {"sq_insts_salu", "SALU"},
    {"sq_insts_vmem", "VMEM"},     {"sq_insts_smem", "SMEM"},       {"sq_wait_inst", "WAITCNT"},
    {"sq_insts_branch", "BRANCH"},
};

enum { CLASSES = sizeof instruction_classes / sizeof *instruction_classes };

typedef struct histogram {
  int64_t counts[CLASSES];
  bool is_there[CLASSES];
} histogram;

/* CLASSES: the name is not a counter of instructions. VALU has two names, and one row. */
static size_t counter_class(const char *name) {
  for (size_t i = 0; i < CLASSES; i++)
    if (strcasestr(name, instruction_classes[i].part)) return i == 1 ? 0 : i;
  return CLASSES;
}

/* Integers are exact; fractions are truncated; what is too large or too small is the limit. */
static int64_t parse_count(const char *text) {
  char *end;
  errno = 0;
  const long long whole = strtoll(text, &end, 10);
  if (errno == 0 && (*end == '\0' || isspace((unsigned char)*end))) return whole;
  const double value = strtod(text, NULL);
  if (value >= 9e18) return INT64_MAX;
  if (value <= -9e18) return INT64_MIN;
  return isnan(value) ? 0 : (int64_t)value;
}

static void histogram_add(histogram *h, const char *name, const char *value) {
  const size_t at = counter_class(name);
  if (at == CLASSES || *value == '\0') return;
  const int64_t more = parse_count(value);
  if (__builtin_add_overflow(h->counts[at], more, &h->counts[at]))
    h->counts[at] = more > 0 ? INT64_MAX : INT64_MIN;
  h->is_there[at] = true;
}

/* ---- CSV ---- */

/* The cells of the record at *at. Moves *at behind the record, and removes quotes in place. */
static run_words next_csv_record(char **at) {
  run_words cells = {0};
  for (char *from = *at;; from++) {
    char *to = from, *const cell = from;
    bool is_quoted = false;
    for (; *from && (is_quoted || !strchr(",\r\n", *from)); from++) {
      if (*from != '"')
        *to++ = *from;
      else if (is_quoted && from[1] == '"')
        *to++ = *from++;
      else
        is_quoted = !is_quoted;
    }
    const char end = *from;
    *to = '\0';
    run_words_add(&cells, cell);
    if (end == ',') continue;
    *at = end ? from + 1 : from;
    if (end == '\r' && **at == '\n') ++*at;
    return cells;
  }
}

static ptrdiff_t find_column(const run_words *heading, const char *name) {
  for (size_t i = 0; i < heading->count; i++)
    if (strcasecmp(heading->items[i], name) == 0) return (ptrdiff_t)i;
  return -1;
}

static void histogram_add_record(histogram *h, const run_words *heading, const run_words *cells) {
  const ptrdiff_t name = find_column(heading, "Counter_Name"),
                  value = find_column(heading, "Counter_Value");
  if (name >= 0 && value >= 0) {
    if ((size_t)name < cells->count && (size_t)value < cells->count)
      histogram_add(h, cells->items[name], cells->items[value]);
    return;
  }
  for (size_t i = 0; i < cells->count && i < heading->count; i++)
    histogram_add(h, heading->items[i], cells->items[i]);
}

enum { TABLE_BYTES_MAX = 1 << 30 };

static void histogram_add_table(histogram *h, const char *path) {
  size_t bytes;
  char *const text = run_file_read(path, TABLE_BYTES_MAX, &bytes);
  if (!text) {
    if (errno != ENOENT) say("prof run: cannot read '%s': %s", path, strerror(errno));
    return;
  }
  char *at = text;
  const run_words heading = next_csv_record(&at);
  while (*at) {
    const run_words cells = next_csv_record(&at);
    histogram_add_record(h, &heading, &cells);
    free(cells.items);
  }
  free(text);
}

static void write_json(const histogram *h, const char *path) {
  const char *separator = "";
  FILE *const to = run_output_begin(path);
  if (to) fputs("{", to);
  for (size_t i = 0; to && i < CLASSES; i++) {
    if (!h->is_there[i]) continue;
    fprintf(to, "%s\n\"%s\": %" PRId64, separator, instruction_classes[i].class_name, h->counts[i]);
    separator = ",";
  }
  if (to) fputs("\n}", to);
  if (!run_output_end(to, path)) say("prof run: cannot write '%s': %s", path, strerror(errno));
}

void run_histogram_write(const char *folder) {
  static const char *const tables[] = {"counter_collection", "domain_stats"};
  histogram h = {0};
  bool is_any = false;
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    histogram_add_table(&h, run_text("%s/rocprofv3_output_%s.csv", folder, tables[i]));
  for (size_t i = 0; i < CLASSES; i++) is_any |= h.is_there[i];
  if (is_any) write_json(&h, run_text("%s/instruction_histogram.json", folder));
}
