/* Writes the fuzzer's seeds: small captures, packed as sparse.h says. From the project's root: cc
       -Iinclude -Isrc tests/fuzz/seeds/make_seeds.c -o build/make_seeds && build/make_seeds
       tests/fuzz/corpus/fuzz_trace
   usage: make_seeds FOLDER */
#include "../../unit/device_capture.h"
#include "../../unit/small_capture.h"
#include "../sparse.h"

enum { GAP = 48 }; /* zeros that are worth a new piece */

static void put_piece(FILE *file, const capture *c, size_t from, size_t to) {
  const size_t place = from / SPARSE_PLACE_BYTES, count = to - from;
  const unsigned char head[] = {(unsigned char)place, (unsigned char)(place >> 8),
                                (unsigned char)count, (unsigned char)(count >> 8)};
  fwrite(head, 1, sizeof head, file);
  fwrite(c->bytes + from, 1, count, file);
}

static void write_seed(const char *folder, const char *name, const capture *c, int repair) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *const file = fopen(path, "wb");
  if (!file) {
    perror(path);
    exit(1);
  }
  fputc((int)(c->count / PROF_I_UNIT_BYTES - 1) | (repair ? SPARSE_REPAIR : 0), file);
  size_t at = 0;
  while (at < c->count) {
    while (at < c->count && c->bytes[at] == 0) at++;
    if (at == c->count) break;
    const size_t from = at / SPARSE_PLACE_BYTES * SPARSE_PLACE_BYTES;
    size_t end = at, zeros = 0;
    for (; at < c->count && zeros < GAP && at - from < 60000; at++) {
      zeros = c->bytes[at] ? 0 : zeros + 1;
      if (c->bytes[at]) end = at + 1;
    }
    put_piece(file, c, from, end);
  }
  fclose(file);
}

/* One thread, nested scopes, nothing else. */
static void plain_seed(const char *folder) {
  capture c;
  capture_begin(&c, 128 << 10);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "a", "b", 1);
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  for (uint64_t i = 0; i < 8; i++)
    capture_plain(chunk, CAPTURE_START + 100 - i * 10, 10 + i * 20, 1);
  write_seed(folder, "plain", &c, 1);
  capture_end(&c);
}

static void ring_seed(const char *folder) {
  capture c;
  capture_begin(&c, 128 << 10);
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  chunk->generation = 15;
  for (uint64_t i = 0; i < 40; i++) capture_plain(chunk, CAPTURE_START + i * 10, 5, 1);
  capture_header(&c)->policy = PROF_POLICY_RING;
  capture_header(&c)->ring_ns = 100;
  capture_header(&c)->state = 1;
  write_seed(folder, "ring", &c, 1);
  capture_end(&c);
}

/* The counter goes back, then far ahead; then its rate changes. Scopes in each era, and one from
   the first into the second. */
static void eras_seed(const char *folder) {
  enum { MS = 1000000 };
  static const int64_t from[] = {0, -500 * MS, 900 * MS, 920 * MS};
  capture c;
  capture_begin(&c, 128 << 10);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "a", "b", 1);
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  for (uint64_t i = 0; i < 4; i++) {
    const uint64_t ticks = (uint64_t)from[i], rate = i == 3 ? 2 : 1;
    for (uint64_t n = 0; n < 3; n++)
      capture_clock(&c, meta, ticks + n * 5 * MS * rate, (i * 20 + n * 5) * MS, i);
    for (uint64_t n = 0; n < 3; n++)
      capture_plain(chunk, CAPTURE_START + ticks + (n * 4 + 1) * MS, MS / 2, 1);
    if (i == 1) {
      long_record r;
      long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + 2 * MS, 0, 1);
      r.flags = PROF_I_FLAG_LONG;
      long_word(&r, ticks + 12 * MS - 2 * MS); /* negative */
      long_end(&r, chunk);
    }
  }
  write_seed(folder, "eras", &c, 1);
  capture_end(&c);
}

/* Scopes with one short text, of each length that matters; with schemas that fit, and that do
   not. */
static void texts_seed(const char *folder) {
  static const uint32_t types[] = {PROF_ARG_STRING, PROF_ARG_I64};
  static const char *const keys[] = {"text", "number"};
  static const char all[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  capture c;
  capture_begin(&c, 128 << 10);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "a", "b", 1);
  for (uint32_t i = 0; i < 3; i++)
    capture_schema(meta, i + 1, PROF_ARGS_PAIRS, "", i == 2 ? 2 : 1, types + (i == 1), keys);
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  for (uint64_t bytes = 0; bytes < sizeof all; bytes += 4)
    for (uint32_t schema = 0; schema < 5; schema++)
      capture_short_text(chunk, CAPTURE_START + bytes * 100 + schema * 10, 5, 1,
                         schema == 4 ? PROF_I_FLAG_OTHER_THREAD : 0, schema,
                         all + sizeof all - 1 - bytes);
  write_seed(folder, "texts", &c, 1);
  capture_end(&c);
}

/* A budget's steps, and what they cost: of known and unknown sites and threads. */
static void changes_seed(const char *folder) {
  capture c;
  capture_begin(&c, 128 << 10);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "a", "b", 1);
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  capture_plain(chunk, CAPTURE_START + 10, 5, 1);
  capture_exit(chunk, 1, "t", PROF_LOSS_MUTED, 7);
  capture_header(&c)->scope_cost_ps = 20000;
  capture_header(&c)->left_out_cost_ps = 2000;
  capture_change(meta, CAPTURE_START + 20, PROF_CHANGE_LEVEL, PROF_REASON_TIME, 0, 2, 1, 1, 34140,
                 10000);
  capture_change(meta, CAPTURE_START + 30, PROF_CHANGE_MUTED, PROF_REASON_EVENTS, 1, 1, 1, 9,
                 UINT64_MAX, 1);
  capture_change(meta, CAPTURE_START + 15, PROF_CHANGE_HEARD, PROF_REASON_ASKED, 77, 0, 0, 0, 0, 0);
  write_seed(folder, "changes", &c, 1);
  capture_end(&c);
}

/* A pool and a query, two threads at the pool, in scopes and steps: pieces short and long, blocks,
   what is wrong, and what is missing. */
static void memory_seed(const char *folder) {
  capture c;
  long_record r;
  capture_begin(&c, 160 << 10);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "a", "b", 1);
  capture_site(meta, 2, "weights", "memory", 1);
  prof_i_pool_state *const pool = capture_pool(&c, meta, 1, 1, "p", 4096), *const query =
                                                                               capture_pool(
                                                                                   &c, meta, 2, 2,
                                                                                   "q", 0);
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1), *const other = capture_chunk(
                                                                          &c, PROF_I_UNIT_BYTES, 2);
  uint64_t counter = PROF_I_USED_ZERO + 4096, one = PROF_I_USED_ONE_EVENT;
  capture_memory(chunk, CAPTURE_START + 5, PROF_I_VERB_RESERVE, 1, 0x10000, 0x10000, counter += one,
                 PROF_I_USED_ZERO + 0x10000, 0, 0);
  capture_piece(chunk, CAPTURE_START + 10, 1, 0, 0x10000, 64, 3, counter += one + 64);
  capture_piece(other, CAPTURE_START + 9, 1, 0, 0x10040, 100, 0, counter += one + 100);
  capture_memory(chunk, CAPTURE_START + 20, PROF_I_VERB_ALLOC, 1, 0x10100, 512,
                 counter += one + 512, 500, 0, 2);
  capture_piece_more(chunk, CAPTURE_START + 25, 1, 0x10400, 512, 100, 2, 7, counter += one + 512);
  capture_plain(chunk, CAPTURE_START + 8, 20, 1);
  long_begin(&r, PROF_I_KIND_STEP, CAPTURE_START + 40, 0, 0);
  long_word(&r, 1);
  long_end(&r, chunk);
  capture_piece(other, CAPTURE_START + 30, 1, 1, 0x10000, 64, 0, counter += one - 64);
  capture_piece(other, CAPTURE_START + 31, 1, 1, 0x10000, 64, 0, counter += one - 64);
  counter += one; /* one is missing */
  capture_piece(chunk, CAPTURE_START + 50, 1, 0, 0x10020, 64, 0, counter += one + 64);
  capture_piece(chunk, CAPTURE_START + 51, 1, 1, 0x10100, 500, 0, counter += one - 500);
  capture_memory(chunk, CAPTURE_START + 52, PROF_I_VERB_WRONG, 1, 0x99, 8, counter += one,
                 PROF_I_USED_ZERO + 0x10000, 2, 0);
  capture_memory(other, CAPTURE_START + 60, PROF_I_VERB_SAMPLE, 2, 0, 5000, 1,
                 PROF_I_USED_ZERO + 9000, 0, 2);
  capture_memory(other, CAPTURE_START + 61, PROF_I_VERB_COLLECT, 1, 0, 0, counter += one,
                 PROF_I_USED_ZERO + 0x10000, 30, 0);
  capture_memory(other, CAPTURE_START + 62, PROF_I_VERB_OOM, 1, 0, 1 << 20, counter += one,
                 PROF_I_USED_ZERO + 0x10000, 0, 0);
  capture_memory(other, CAPTURE_START + 63, PROF_I_VERB_RELEASE, 1, 0x10000, 0x10000,
                 counter += one, PROF_I_USED_ZERO, 0, 0);
  pool->used = counter;
  pool->used_peaks[0] = (prof_i_peak){PROF_I_USED_ZERO + 5284, CAPTURE_START + 25,
                                      PROF_I_USED_ZERO + 4096, CAPTURE_START};
  pool->allocated_peaks[0] =
      (prof_i_peak){PROF_I_USED_ZERO + 0x10000, CAPTURE_START + 5, PROF_I_USED_ZERO, CAPTURE_START};
  query->used = 1;
  write_seed(folder, "memory", &c, 1);
  capture_end(&c);
}

static void devices_seed(const char *folder) {
  capture c;
  device_capture(&c);
  write_seed(folder, "devices", &c, 1);
  capture_end(&c);
}

static void operator_of(prof_i_head *chunk, uint64_t start, uint64_t duration, uint32_t site,
                        uint32_t schema, uint64_t sequence, uint64_t forward_thread) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + start, duration, site);
  r.schema = schema;
  long_word(&r, sequence);
  long_word(&r, forward_thread);
  if (schema == 1) long_word(&r, 1);
  if (schema == 3) long_text(&r, "own.py(1): a;torch/autograd/__init__.py(2): backward");
  long_end(&r, chunk);
}

/* Functions, forward calls on two threads, their backward calls in each other and in autograd's
   ranges. */
static void backward_seed(const char *folder) {
  static const uint32_t types[] = {PROF_ARG_I64, PROF_ARG_U64, PROF_ARG_U64},
                        types_with_stack[] = {PROF_ARG_I64, PROF_ARG_U64, PROF_ARG_STRING};
  static const char *const keys[] = {"Sequence number", "Fwd thread id", "Thread id"},
                           *const keys_with_stack[] = {"Sequence number", "Fwd thread id",
                                                       PROF_STACK_KEY};
  capture c;
  capture_begin(&c, 160 << 10);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "step", "python_function", 1);
  capture_site(meta, 2, "backward", "python_function", 1);
  capture_site(meta, 3, "aten::mul", "cpu_op", 1);
  capture_site(meta, 4, "MulBackward0", "cpu_op", 1);
  capture_site(meta, 5, "autograd::engine::evaluate_function: MulBackward0", "cpu_op", 1);
  capture_schema(meta, 1, PROF_ARGS_PAIRS, "", 3, types, keys);
  capture_schema(meta, 2, PROF_ARGS_PAIRS, "", 2, types, keys);
  capture_schema(meta, 3, PROF_ARGS_PAIRS, "", 3, types_with_stack, keys_with_stack);
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1), *const other = capture_chunk(
                                                                          &c, PROF_I_UNIT_BYTES, 2);
  operator_of(chunk, 20, 10, 3, 1, 1, 0);
  operator_of(chunk, 40, 10, 3, 3, 2, 0);
  operator_of(chunk, 120, 5, 3, 2, 1, 1);
  capture_plain(chunk, CAPTURE_START + 130, 5, 3);
  operator_of(chunk, 110, 40, 4, 2, 1, 1);
  capture_plain(chunk, CAPTURE_START + 100, 60, 5);
  capture_plain(chunk, CAPTURE_START + 90, 80, 2);
  operator_of(chunk, 180, 10, 4, 2, 2, 1);
  capture_plain(chunk, CAPTURE_START + 175, 20, 5);
  capture_plain(chunk, CAPTURE_START + 10, 300, 1);
  operator_of(other, 30, 10, 3, 2, 1, 0);
  operator_of(other, 50, 10, 4, 2, 9, 1);
  capture_plain(other, CAPTURE_START + 10, 300, 1);
  write_seed(folder, "backward", &c, 1);
  capture_end(&c);
}

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: make_seeds FOLDER\n"), 2;
  capture c;
  small_capture(&c);
  write_seed(argv[1], "small", &c, 1);
  write_seed(argv[1], "small-checked", &c, 0);
  capture_end(&c);
  plain_seed(argv[1]);
  ring_seed(argv[1]);
  eras_seed(argv[1]);
  texts_seed(argv[1]);
  changes_seed(argv[1]);
  memory_seed(argv[1]);
  devices_seed(argv[1]);
  backward_seed(argv[1]);
  return 0;
}
