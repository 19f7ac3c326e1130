/* See library_lines.h: the forms of the lines. A matching form gives the bytes of the call. */
#define _GNU_SOURCE
#include "library_lines.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/text.h"
#include "hash.h"

static const char *line_find(run_line line, const char *text) {
  return memmem(line.at, line.bytes, text, strlen(text));
}

static run_line line_from(run_line line, const char *at) {
  return (run_line){at, line.bytes - (size_t)(at - line.at)};
}

/* Begins a call, which is at `at` in the line. */
static void set_call(run_call *to, run_library library, run_line line, const char *at) {
  to->library = library;
  to->config = line_from(line, at);
  to->calls = 1;
  to->prefix_bytes = (size_t)(at - line.at);
  to->origin = RUN_ORIGIN_UNKNOWN;
}

/* Appends to the config, which is in the text. */
static void call_put_bytes(run_call *to, const char *at, size_t bytes) {
  const size_t room = sizeof to->text - to->config.bytes;
  if (bytes > room) bytes = room;
  memcpy(to->text + to->config.bytes, at, bytes);
  to->config.bytes += bytes;
}

static bool line_begins_with(run_line line, const char *text) {
  return line.bytes >= strlen(text) && memcmp(line.at, text, strlen(text)) == 0;
}

/* "./rocblas-bench -f gemm ..." */
static bool parse_rocblas(run_line line, run_call *to) {
  const char *const at = line_find(line, "/rocblas-bench ");
  if (!at || at == line.at) return false;
  set_call(to, RUN_LIBRARY_ROCBLAS, line, at - 1);
  return true;
}

/* The config without ", call_count: 136". Returns the number, or 1: there is none. */
static uint64_t parse_call_count(run_call *to) {
  static const char name[] = "call_count: ";
  const run_line config = to->config;
  const char *at = line_find(config, name);
  if (!at) return 1;
  const char *end = at + strlen(name);
  const char *const last = config.at + config.bytes;
  char digits[24] = "";
  size_t count = 0;
  for (; end < last && isdigit((unsigned char)*end); end++)
    if (count < sizeof digits - 1) digits[count++] = *end;
  if (count == 0) return 1;
  const bool has_more = end < last && *end == ',';
  while (at > config.at && at[-1] == ' ') at--;
  if (at > config.at && at[-1] == ',')
    at--;
  else if (has_more)
    end++;
  to->config = (run_line){to->text, 0};
  call_put_bytes(to, config.at, (size_t)(at - config.at));
  call_put_bytes(to, end, (size_t)(last - end));
  return strtoull(digits, NULL, 10);
}

/* - { rocblas_function: "rocblas_gemm_ex", ..., call_count: 136 } */
static bool parse_rocblas_function(run_line line, run_call *to) {
  static const char begin[] = "- {";
  const char *const name = line_find(line, "rocblas_function: ");
  if (!name) return false;
  const char *const brace = memrchr(line.at, '{', (size_t)(name - line.at));
  const bool has_dash = brace && brace - line.at >= (ptrdiff_t)strlen(begin) - 1 &&
                        memcmp(brace - 2, begin, strlen(begin)) == 0;
  set_call(to, RUN_LIBRARY_ROCBLAS_FUNCTION, line, has_dash ? brace - 2 : brace ? brace : name);
  to->calls = parse_call_count(to);
  return true;
}

/* hipblaslt-bench --api_method c -m 1024 ... */
static bool parse_hipblaslt(run_line line, run_call *to) {
  const char *const at = line_find(line, "hipblaslt-bench ");
  if (!at) return false;
  set_call(to, RUN_LIBRARY_HIPBLASLT, line, at);
  return true;
}

/* "Running kernel: Cijk_...": other programs print these words, too, so the name is checked. */
static bool parse_tensile(run_line line, run_call *to) {
  static const char words[] = "Running kernel: ";
  const char *const at = line_find(line, words);
  if (!at) return false;
  run_line name = line_from(line, at + strlen(words));
  if (!line_begins_with(name, "Cijk_") && !line_begins_with(name, "Custom_")) return false;
  size_t bytes = 0;
  while (bytes < name.bytes && (isalnum((unsigned char)name.at[bytes]) || name.at[bytes] == '_'))
    bytes++;
  name.bytes = bytes; /* behind it may be the begin of another writer's line */
  set_call(to, RUN_LIBRARY_TENSILE, line, at);
  to->config = name;
  return true;
}

/* MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv ...
   Newer releases print no (HIP). */
static bool parse_miopen(run_line line, run_call *to) {
  static const char words[] = ": Command [LogCmd";
  const char *const library = line_find(line, "MIOpen");
  if (!library) return false;
  const char *const at = line_find(line_from(line, library), words);
  if (!at) return false;
  const run_line kind = line_from(line, at + strlen(words));
  const char *const end = line_find(kind, "] ");
  if (!end || !line_find(line_from(line, end), "MIOpenDriver")) return false;
  const bool is_find = line_begins_with(kind, "Find");
  set_call(to, is_find ? RUN_LIBRARY_MIOPEN_FIND : RUN_LIBRARY_MIOPEN, line, library);
  to->config = line_from(line, end + 2);
  return true;
}

/* ---- collectives ---- */

enum { FIELD_COUNT, FIELD_DATATYPE, FIELD_OP, FIELD_ROOT, FIELD_GLOBALRANK, FIELD_NRANKS, FIELDS };

static bool word_equals(run_line word, const char *text, size_t bytes) {
  return word.bytes == bytes && memcmp(word.at, text, bytes) == 0;
}

/* "count 1000 datatype 7 op 0 root 0 comm 0xaef8a00 [nranks=8] stream 0x1": 0 bytes if a field is
   not there. */
static void read_fields(run_line line, run_line fields[FIELDS]) {
  static const struct {
    const char *name;
    size_t bytes;
  } names[FIELD_NRANKS] = {
      {"count", 5}, {"datatype", 8}, {"op", 2}, {"root", 4}, {"globalrank", 10}};
  static const char ranks[] = "[nranks=";
  const char *const end = line.at + line.bytes;
  run_line *next = NULL;
  for (int i = 0; i < FIELDS; i++) fields[i] = (run_line){line.at, 0};
  for (const char *at = line.at; at < end; at++) {
    const char *const blank = memchr(at, ' ', (size_t)(end - at));
    run_line word = {at, (size_t)((blank ? blank : end) - at)};
    at += word.bytes;
    if (next) *next = word;
    next = NULL;
    for (int i = 0; i < FIELD_NRANKS; i++)
      if (word_equals(word, names[i].name, names[i].bytes)) next = &fields[i];
    if (!line_begins_with(word, ranks)) continue;
    word = line_from(word, word.at + strlen(ranks));
    if (word.bytes > 0 && word.at[word.bytes - 1] == ']') word.bytes--;
    fields[FIELD_NRANKS] = word;
  }
}

static uint64_t parse_number(run_line text) {
  char digits[24] = "";
  memcpy(digits, text.at, text.bytes < sizeof digits - 1 ? text.bytes : sizeof digits - 1);
  return strtoull(digits, NULL, 10);
}

/* ncclDataType_t. */
static const struct {
  const char *name;
  unsigned bytes;
} data_types[] = {{"int8", 1},    {"uint8", 1},    {"int32", 4},      {"uint32", 4},
                  {"int64", 8},   {"uint64", 8},   {"float16", 2},    {"float32", 4},
                  {"float64", 8}, {"bfloat16", 2}, {"float8e4m3", 1}, {"float8e5m2", 1}};

static void call_put_field(run_call *to, const char *name, const char *value, size_t bytes) {
  call_put_bytes(to, name, strlen(name));
  call_put_bytes(to, value, bytes);
}

static void call_put_read_field(run_call *to, const char *name, run_line value) {
  if (value.bytes > 0) call_put_field(to, name, value.at, value.bytes);
}

/* AllReduce count 1001 datatype float32 op 0 root 0 nranks 2 bytes 4004 */
static void write_collective(run_line name, const run_line fields[FIELDS], run_call *to) {
  const run_line count = fields[FIELD_COUNT], type = fields[FIELD_DATATYPE];
  const uint64_t code = parse_number(type);
  const bool is_known = type.bytes > 0 && code < sizeof data_types / sizeof *data_types;
  const char *const type_name = is_known ? data_types[code].name : type.at;
  to->config = (run_line){to->text, 0};
  call_put_field(to, "", name.at, name.bytes);
  call_put_read_field(to, " count ", count);
  if (type.bytes > 0)
    call_put_field(to, " datatype ", type_name, is_known ? strlen(type_name) : type.bytes);
  call_put_read_field(to, " op ", fields[FIELD_OP]);
  call_put_read_field(to, " root ", fields[FIELD_ROOT]);
  call_put_read_field(to, " nranks ", fields[FIELD_NRANKS]);
  if (!is_known) return;
  char bytes[24];
  unsigned long long product;
  if (__builtin_mul_overflow(parse_number(count), data_types[code].bytes, &product))
    product = ULLONG_MAX;
  snprintf(bytes, sizeof bytes, "%llu", product);
  call_put_field(to, " bytes ", bytes, strlen(bytes));
}

/* HOST:PID:TID in front of "[DEV] NCCL INFO": returns where PID begins, or NULL. */
static const char *find_process(run_line line, const char *end, int64_t *pid_out) {
  const char *best = NULL;
  for (const char *at = line.at; at < end;) {
    const char *const word = at;
    while (at < end && *at != ' ') at++;
    const char *tid = at;
    while (tid > word && prof_i_is_digit(tid[-1])) tid--;
    const char *const colon = tid > word && tid < at && tid[-1] == ':' ? tid - 1 : NULL;
    const char *pid = colon;
    while (pid && pid > word && prof_i_is_digit(pid[-1])) pid--;
    if (pid && pid < colon && pid > word && pid[-1] == ':') {
      best = pid;
      *pid_out = (int64_t)parse_number((run_line){pid, (size_t)(colon - pid)});
    }
    while (at < end && *at == ' ') at++;
  }
  return best;
}

/* HOST:PID:TID [DEV] NCCL INFO AllReduce: opCount 3 ... count N datatype D op O root R ... */
static bool parse_collective(run_line line, run_call *to) {
  static const char words[] = "NCCL INFO ";
  const char *const at = line_find(line, words);
  if (!at) return false;
  const run_line name_on = line_from(line, at + strlen(words));
  const char *const end = line_find(name_on, ": opCount ");
  if (!end) return false;
  const run_line name = {name_on.at, (size_t)(end - name_on.at)}, rest = line_from(line, end);
  run_line fields[FIELDS];
  if (name.bytes == 0 || name.bytes > 40) return false;
  read_fields(rest, fields);
  if (fields[FIELD_COUNT].bytes == 0) return false;
  set_call(to, RUN_LIBRARY_RCCL, line, at);
  const char *prefix = find_process(line, at, &to->origin.pid);
  if (!prefix) prefix = memrchr(line.at, '[', (size_t)(at - line.at)); /* [DEV] is no rank */
  if (prefix) to->prefix_bytes = (size_t)(prefix - line.at);
  const run_line rank = fields[FIELD_GLOBALRANK];
  if (rank.bytes > 0 && prof_i_is_digit(*rank.at)) to->origin.rank = (int64_t)parse_number(rank);
  write_collective(name, fields, to);
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
    if (one.bytes == 0 || line_find(one, "=0X") || line_find(one, "=0x")) continue;
    bytes += (size_t)snprintf(to->text + bytes, sizeof to->text - bytes, " %.*s", (int)one.bytes,
                              one.at);
  }
  if (bytes > sizeof to->text - 1) bytes = sizeof to->text - 1;
  to->config = (run_line){to->text, bytes};
}

/* [cublasLt][PID][Trace][cublasLtSSSMatmul] A=0X... Adesc=[type=R_32F ...] ...; a query of a
   heuristic, [Api], is no call. */
static bool parse_cublaslt(run_line line, run_call *to) {
  static const char word[] = "[Trace][", begin[] = "[cublasLt][";
  const char *const library = line_find(line, begin);
  if (!library) return false;
  const char *const at = line_find(line_from(line, library), word);
  if (!at) return false;
  const run_line name_on = line_from(line, at + strlen(word));
  const char *const end = memchr(name_on.at, ']', name_on.bytes);
  if (!end) return false;
  const run_line name = {name_on.at, (size_t)(end - name_on.at)};
  if (!line_find(name, "Matmul") || line_find(name, "Heuristic") || line_find(name, "Algo"))
    return false;
  set_call(to, RUN_LIBRARY_CUBLASLT, line, library);
  const run_line pid = line_from(line, library + strlen(begin));
  if (prof_i_is_digit(*pid.at)) to->origin.pid = (int64_t)parse_number(pid);
  snprintf(to->text, sizeof to->text, "%.*s", (int)name.bytes, name.at);
  put_without_addresses(to, line_from(line, end + 1));
  return true;
}

/* A launcher that colours lines puts the end of the colour behind them. */
static run_line remove_colours(run_line line) {
  for (;;) {
    size_t bytes = line.bytes;
    while (bytes > 0 && line.at[bytes - 1] == '\r') bytes--;
    size_t at = bytes;
    if (at > 0 && (line.at[at - 1] == 'm' || line.at[at - 1] == 'K')) at--;
    while (at > 0 && at < bytes && (prof_i_is_digit(line.at[at - 1]) || line.at[at - 1] == ';'))
      at--;
    const bool is_colour = at > 1 && at < bytes && memcmp(line.at + at - 2, "\x1b[", 2) == 0;
    line.bytes = is_colour ? at - 2 : bytes;
    if (!is_colour) return line;
  }
}

bool run_line_is_call(run_line line, unsigned wanted, run_call *to) {
  static const struct {
    unsigned libraries;
    bool (*take)(run_line line, run_call *to);
  } forms[] = {
      {1u << RUN_LIBRARY_ROCBLAS, parse_rocblas},
      {1u << RUN_LIBRARY_ROCBLAS_FUNCTION, parse_rocblas_function},
      {1u << RUN_LIBRARY_HIPBLASLT, parse_hipblaslt},
      {1u << RUN_LIBRARY_TENSILE, parse_tensile},
      {1u << RUN_LIBRARY_MIOPEN | 1u << RUN_LIBRARY_MIOPEN_FIND, parse_miopen},
      {1u << RUN_LIBRARY_RCCL | 1u << RUN_LIBRARY_NCCL, parse_collective},
      {1u << RUN_LIBRARY_CUBLASLT, parse_cublaslt},
  };
  line = remove_colours(line);
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (wanted & forms[i].libraries && forms[i].take(line, to)) return true;
  return false;
}

/* ---- calls of several lines: the first begins with "I!", the others with "i!" ---- */

/* Ranks of launchers. Those beyond share the last one's. */
enum { BLOCKS_MAX = 1024 };

typedef struct block_key {
  int64_t rank, stream;
} block_key;

typedef struct run_block_entry {
  block_key key;
  run_block block;
  UT_hash_handle hh;
} run_block_entry;

static void block_put(run_block *block, const char *bytes, size_t count) {
  const size_t room = sizeof block->text - 1 - block->bytes, taken = count < room ? count : room;
  memcpy(block->text + block->bytes, bytes, taken);
  block->bytes += taken;
  block->text[block->bytes] = '\0';
}

/* Most functions only set up descriptors. Only functions that compute count as calls. */
static bool function_computes(run_line name) {
  static const char *const words[] = {"Forward", "Backward", "Execute"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (line_find(name, words[i])) return !line_find(name, "Get") && !line_find(name, "Create");
  return false;
}

/* The function's name: the last word in front of the first bracket behind "function ". */
static run_line function_name(run_line line) {
  static const char word[] = "function ";
  const char *const at = line_find(line, word);
  if (!at) return (run_line){line.at, 0};
  const run_line rest = line_from(line, at + strlen(word));
  size_t end = 0, begin = 0;
  while (end < rest.bytes && rest.at[end] != '(') end++;
  for (size_t i = 0; i < end; i++)
    if (rest.at[i] == ' ') begin = i + 1;
  return (run_line){rest.at + begin, end - begin};
}

/* Whether " name=" is an argument of the block already. */
static bool block_has_argument(const run_block *block, run_line name) {
  for (const char *at = block->text; (at = strchr(at, ' ')) != NULL;) {
    at++;
    if (strncmp(at, name.at, name.bytes) == 0 && at[name.bytes] == '=') return true;
  }
  return false;
}

/* "Process=14102; Thread=129943171284992; ...": a call has one such line, the last one. */
static bool parse_process(run_block *block, run_line line) {
  static const char word[] = "Process=";
  const char *const at = line_find(line, word);
  if (!at) return false;
  char digits[20] = "";
  const run_line rest = line_from(line, at + strlen(word));
  for (size_t i = 0; i < rest.bytes && i < sizeof digits - 1; i++) {
    if (!isdigit((unsigned char)rest.at[i])) break;
    digits[i] = rest.at[i];
  }
  block->is_mixed |= block->has_ended;
  block->has_ended = true;
  if (*digits) block->pid = strtoll(digits, NULL, 10);
  return true;
}

/* Turns "name: type=T; val=V" into " name=V". Leaves out pointers. */
static void parse_argument(run_block *block, run_line line) {
  static const char value_word[] = "val=";
  while (line.bytes > 0 && isspace((unsigned char)*line.at)) line.at++, line.bytes--;
  const char *const colon = memchr(line.at, ':', line.bytes), *const found =
                                                                  line_find(line, value_word);
  if (!colon || !found || found < colon) return;
  const run_line name = {line.at, (size_t)(colon - line.at)};
  run_line value = line_from(line, found + strlen(value_word));
  const char *const end = memchr(value.at, ';', value.bytes);
  if (end) value.bytes = (size_t)(end - value.at);
  while (value.bytes > 0 && isspace((unsigned char)value.at[value.bytes - 1])) value.bytes--;
  /* descriptors of cuDNN repeat their members' names */
  const bool is_twice = block->library == RUN_LIBRARY_CUBLAS && block_has_argument(block, name);
  block->is_mixed |= block->has_ended || is_twice;
  if (line_find(value, "POINTER") || line_find(value, "0x") || value.bytes == 0) return;
  block_put(block, " ", 1);
  block_put(block, name.at, name.bytes);
  block_put(block, "=", 1);
  block_put(block, value.at, value.bytes);
}

static bool end_block(run_block *block, run_block *out) {
  if (!block->is_open) return false;
  block->is_open = false;
  if (block->is_mixed) block->bytes = block->name_bytes;
  block->text[block->bytes] = '\0';
  *out = *block;
  return block->bytes > 0;
}

static void begin_block(run_block *block, run_line line, bool is_blas, int64_t rank) {
  const run_line name = function_name(line);
  block->library = is_blas ? RUN_LIBRARY_CUBLAS : RUN_LIBRARY_CUDNN;
  block->bytes = 0;
  block->rank = rank;
  block->pid = -1;
  block->is_mixed = block->has_ended = false;
  block->is_open = name.bytes > 0 && (is_blas || function_computes(name));
  if (block->is_open) block_put(block, name.at, name.bytes);
  block->name_bytes = block->bytes;
}

static run_block *get_block(run_blocks *blocks, int stream, int64_t rank) {
  const block_key key = {rank, stream};
  run_block_entry *entry;
  HASH_FIND(hh, blocks->entries, &key, sizeof key, entry);
  if (!entry && HASH_COUNT(blocks->entries) >= BLOCKS_MAX) return &blocks->entries->block;
  if (!entry) {
    entry = run_make(1, sizeof *entry);
    entry->key = key;
    HASH_ADD(hh, blocks->entries, key, sizeof entry->key, entry);
  }
  return &entry->block;
}

run_block_part run_blocks_take(run_blocks *blocks, int stream, run_line line,
                               run_block *before_out) {
  before_out->bytes = 0;
  const char *const blas = line_find(line, "I! cuBLAS");
  const char *const begin = blas ? blas : line_find(line, "I! CuDNN");
  const char *const at = begin ? begin : line_find(line, "i!");
  if (!at) return RUN_BLOCK_NONE;
  const int64_t rank = run_origin_rank(line.at, (size_t)(at - line.at));
  run_block *const block = get_block(blocks, stream, rank);
  if (begin) {
    if (!end_block(block, before_out)) before_out->bytes = 0;
    begin_block(block, line_from(line, begin), blas != NULL, rank);
    return RUN_BLOCK_BEGIN;
  }
  if (!block->is_open) return RUN_BLOCK_NONE;
  const run_line rest = line_from(line, at + strlen("i!"));
  if (!parse_process(block, rest)) parse_argument(block, rest);
  return RUN_BLOCK_MORE;
}

int run_blocks_end(run_blocks *blocks, run_block *before_out) {
  for (run_block_entry *entry = blocks->entries; entry; entry = entry->hh.next)
    if (end_block(&entry->block, before_out)) return (int)entry->key.stream;
  return 0;
}

void run_blocks_destroy(run_blocks *blocks) {
  run_block_entry *each = blocks->entries;
  HASH_CLEAR(hh, blocks->entries);
  while (each) {
    run_block_entry *const next = each->hh.next;
    free(each);
    each = next;
  }
}
