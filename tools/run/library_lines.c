/* See library.h: the forms of the lines. A matching form gives the bytes of the call. */
#define _GNU_SOURCE
#include "library_lines.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *find(run_line line, const char *text) {
  return memmem(line.at, line.bytes, text, strlen(text));
}

static run_line from(run_line line, const char *at) {
  return (run_line){at, line.bytes - (size_t)(at - line.at)};
}

static bool begins(run_line line, const char *text) {
  return line.bytes >= strlen(text) && memcmp(line.at, text, strlen(text)) == 0;
}

/* "./rocblas-bench -f gemm ..." */
static bool take_rocblas(run_line line, run_call *to) {
  const char *const at = find(line, "/rocblas-bench ");
  if (!at || at == line.at) return false;
  *to = (run_call){.library = RUN_LIBRARY_ROCBLAS, .config = from(line, at - 1), .calls = 1};
  return true;
}

/* - { rocblas_function: "rocblas_gemm_ex", ..., call_count: 136 } */
static bool take_rocblas_function(run_line line, run_call *to) {
  static const char count[] = "call_count: ";
  if (!find(line, "rocblas_function: ")) return false;
  const char *const at = find(line, count);
  char digits[24] = "";
  if (at) {
    const run_line behind = from(line, at + strlen(count));
    for (size_t i = 0; i < behind.bytes && i < sizeof digits - 1; i++) {
      if (!isdigit((unsigned char)behind.at[i])) break;
      digits[i] = behind.at[i];
    }
  }
  const uint64_t calls = *digits ? strtoull(digits, NULL, 10) : 1;
  *to = (run_call){.library = RUN_LIBRARY_ROCBLAS_FUNCTION, .config = line, .calls = calls};
  return true;
}

/* hipblaslt-bench --api_method c -m 1024 ... */
static bool take_hipblaslt(run_line line, run_call *to) {
  const char *const at = find(line, "hipblaslt-bench ");
  if (!at) return false;
  *to = (run_call){.library = RUN_LIBRARY_HIPBLASLT, .config = from(line, at), .calls = 1};
  return true;
}

/* "Running kernel: Cijk_...": other programs print these words, too, so the name is checked. */
static bool take_tensile(run_line line, run_call *to) {
  static const char words[] = "Running kernel: ";
  const char *const at = find(line, words);
  if (!at) return false;
  const run_line name = from(line, at + strlen(words));
  if (!begins(name, "Cijk_") && !begins(name, "Custom_")) return false;
  *to = (run_call){.library = RUN_LIBRARY_TENSILE, .config = name, .calls = 1};
  return true;
}

/* MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv ...
   Newer releases print no (HIP). */
static bool take_miopen(run_line line, run_call *to) {
  static const char words[] = ": Command [LogCmd";
  const char *const library = find(line, "MIOpen");
  if (!library) return false;
  const char *const at = find(from(line, library), words);
  if (!at) return false;
  const run_line kind = from(line, at + strlen(words));
  const char *const end = find(kind, "] ");
  if (!end || !find(from(line, end), "MIOpenDriver")) return false;
  const bool is_find = begins(kind, "Find");
  *to = (run_call){.library = is_find ? RUN_LIBRARY_MIOPEN_FIND : RUN_LIBRARY_MIOPEN,
                   .config = from(line, end + 2),
                   .calls = 1};
  return true;
}

/* ---- collectives ---- */

/* The word behind NAME and a blank; 0 bytes: it is not there. */
static run_line field(run_line line, const char *name) {
  const char *const at = find(line, name);
  if (!at) return (run_line){line.at, 0};
  run_line value = from(line, at + strlen(name));
  size_t bytes = 0;
  while (bytes < value.bytes && !isspace((unsigned char)value.at[bytes]) && value.at[bytes] != ']')
    bytes++;
  value.bytes = bytes;
  return value;
}

static uint64_t number(run_line text) {
  char digits[24] = "";
  memcpy(digits, text.at, text.bytes < sizeof digits - 1 ? text.bytes : sizeof digits - 1);
  return strtoull(digits, NULL, 10);
}

/* ncclDataType_t. */
static const struct {
  const char *name;
  unsigned bytes;
} data_types[] = {{"int8", 1},    {"uint8", 1},  {"int32", 4},   {"uint32", 4},
                  {"int64", 8},   {"uint64", 8}, {"float16", 2}, {"float32", 4},
                  {"float64", 8}, {"bfloat16", 2}, {"float8e4m3", 1}, {"float8e5m2", 1}};

/* AllReduce count 1001 datatype float32 op 0 root 0 nranks 2 bytes 4004 */
static void write_collective(run_line name, run_line rest, run_call *to) {
  const uint64_t count = number(field(rest, " count ")), type = number(field(rest, " datatype "));
  const run_line op = field(rest, " op "), root = field(rest, " root "),
                 ranks = field(rest, "[nranks=");
  const bool is_known = type < sizeof data_types / sizeof *data_types;
  char about_type[64];
  if (is_known) snprintf(about_type, sizeof about_type, "%s", data_types[type].name);
  else snprintf(about_type, sizeof about_type, "%llu", (unsigned long long)type);
  int bytes = snprintf(to->text, sizeof to->text, "%.*s count %llu datatype %s op %.*s root %.*s",
                       (int)name.bytes, name.at, (unsigned long long)count, about_type,
                       (int)op.bytes, op.at, (int)root.bytes, root.at);
  if (ranks.bytes > 0 && bytes < (int)sizeof to->text)
    bytes += snprintf(to->text + bytes, sizeof to->text - (size_t)bytes, " nranks %.*s",
                      (int)ranks.bytes, ranks.at);
  const uint64_t all_bytes = is_known ? count * data_types[type].bytes : 0;
  if (is_known && bytes < (int)sizeof to->text)
    bytes += snprintf(to->text + bytes, sizeof to->text - (size_t)bytes, " bytes %llu",
                      (unsigned long long)all_bytes);
  const size_t room = sizeof to->text - 1;
  to->config = (run_line){to->text, (size_t)bytes < room ? (size_t)bytes : room};
}

/* HOST:PID:TID [DEV] NCCL INFO AllReduce: opCount 3 ... count N datatype D op O root R ... */
static bool take_collective(run_line line, run_call *to) {
  static const char words[] = "NCCL INFO ";
  const char *const at = find(line, words);
  if (!at) return false;
  const run_line name_on = from(line, at + strlen(words));
  const char *const end = find(name_on, ": opCount ");
  if (!end) return false;
  const run_line name = {name_on.at, (size_t)(end - name_on.at)}, rest = from(line, end);
  if (name.bytes == 0 || name.bytes > 40 || !find(rest, " count ")) return false;
  *to = (run_call){.library = RUN_LIBRARY_RCCL, .calls = 1};
  write_collective(name, rest, to);
  return true;
}

/* ---- cuBLASLt ---- */

/* Appends the line without addresses, which differ from call to call. */
static void put_without_addresses(run_call *to, run_line rest) {
  size_t bytes = strlen(to->text);
  for (size_t i = 0; i < rest.bytes && bytes < sizeof to->text - 1;) {
    size_t word = i;
    int depth = 0;
    while (word < rest.bytes && (depth > 0 || rest.at[word] != ' ')) {
      depth += (rest.at[word] == '[') - (rest.at[word] == ']');
      word++;
    }
    const run_line one = {rest.at + i, word - i};
    i = word + 1;
    if (one.bytes == 0 || find(one, "=0X") || find(one, "=0x")) continue;
    bytes += (size_t)snprintf(to->text + bytes, sizeof to->text - bytes, " %.*s", (int)one.bytes,
                              one.at);
  }
  if (bytes > sizeof to->text - 1) bytes = sizeof to->text - 1;
  to->config = (run_line){to->text, bytes};
}

/* [cublasLt][PID][Trace][cublasLtSSSMatmul] A=0X... Adesc=[type=R_32F ...] ...; a query of a
   heuristic, [Api], is no call. */
static bool take_cublaslt(run_line line, run_call *to) {
  static const char word[] = "[Trace][";
  const char *const library = find(line, "[cublasLt][");
  if (!library) return false;
  const char *const at = find(from(line, library), word);
  if (!at) return false;
  const run_line name_on = from(line, at + strlen(word));
  const char *const end = memchr(name_on.at, ']', name_on.bytes);
  if (!end) return false;
  const run_line name = {name_on.at, (size_t)(end - name_on.at)};
  if (!find(name, "Matmul") || find(name, "Heuristic") || find(name, "Algo")) return false;
  *to = (run_call){.library = RUN_LIBRARY_CUBLASLT, .calls = 1};
  snprintf(to->text, sizeof to->text, "%.*s", (int)name.bytes, name.at);
  put_without_addresses(to, from(line, end + 1));
  return true;
}

bool run_line_is_call(run_line line, run_call *to) {
  return take_rocblas(line, to) || take_rocblas_function(line, to) || take_hipblaslt(line, to) ||
         take_tensile(line, to) || take_miopen(line, to) || take_collective(line, to) ||
         take_cublaslt(line, to);
}
