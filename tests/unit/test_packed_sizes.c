/* The bytes of an event in a packed capture, against their bounds. The captures are made with a
   seed, so a size does not depend on the machine, only a little on the version of zstd. Each test
   says how many random bits an event has, because no method stores it in less. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>

#include "run_command.h"
#include "trace_checks.h"

enum { CHUNKS = 4, ROOM = (CHUNKS + 1) << 20, SITES = 100, PIECE_WORDS_MAX = 6 };

static capture made;
static prof_i_head *chunk;
static uint64_t seed, now_steps;
static uint32_t noise_most; /* one time of so many is a tick late; 0: none */

static uint64_t random_bits(uint32_t count) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed * UINT64_C(0x2545f4914f6cdd1d) >> (64 - count);
}

static int set_up(void **state) {
  (void)state;
  return make_folder() ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  char path[PATH_MAX];
  static const char *const names[] = {"plain.prof", "packed.prof"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    path_of(path, names[i]);
    unlink(path);
  }
  return rmdir(own.folder);
}

/* ---- captures ---- */

/* The counter of 2.45 GHz advances by a clock of 10 ns. */
static prof_i_head *begin(void) {
  need_the_command();
  void *const zstd = dlopen("libzstd.so.1", RTLD_LAZY);
  if (!zstd) {
    print_message("skip: zstd is not installed\n");
    skip();
  }
  dlclose(zstd);
  capture_begin(&made, ROOM);
  capture_header(&made)->ticks_hz = 2450000000;
  prof_i_head *const meta = capture_meta(&made);
  capture_session(meta, CAPTURE_START, 2, 1);
  capture_clock(&made, meta, 0, 0, 0);
  chunk = NULL;
  seed = 88172645463325252;
  now_steps = 0;
  noise_most = 0;
  return meta;
}

/* The next record has this many words. False: all chunks are full. */
static bool has_room(uint64_t words) {
  if (chunk && chunk->cursor + (words + 1) / 2 * 16 <= chunk->bytes) return true;
  if (made.sequence == CHUNKS) return false;
  chunk = capture_chunk(&made, 1 << 20, 1);
  return true;
}

/* Lets the time pass by 1 to `most` steps. */
static uint64_t pass_time(uint32_t most) {
  now_steps += 1 + random_bits(32) % most;
  return CAPTURE_START + now_steps * 49 / 2 + (noise_most && random_bits(32) % noise_most == 0);
}

/* Packs the capture, which has this many events of this kind. Returns the bytes of an event in the
   packed file. *plain_out: in the plain one. */
static double packed_bytes(uint64_t event_count, const char *kind, double *plain_out) {
  char path[PATH_MAX], text[64];
  struct stat packed;
  assert_int_equal(write_capture(&made, "plain.prof"), 0);
  *plain_out = (double)made.count / (double)event_count;
  capture_end(&made);
  if (run("dump plain.prof -o packed.prof --pack") != 0) fail_msg("%s", own.output);
  path_of(path, "packed.prof");
  assert_int_equal(stat(path, &packed), 0);
  assert_int_equal(run("info --json packed.prof"), 0);
  snprintf(text, sizeof text, "\"%s\":%llu,", kind, (unsigned long long)event_count);
  assert_says(text);
  assert_says("\"damaged\":0,");
  return (double)packed.st_size / (double)event_count;
}

/* bound: for any capture of this kind. usual: of this capture. A tenth more is for other versions
   of zstd. */
static void assert_size(double bytes, double bound, double usual) {
  const double most = usual * 1.1 < bound ? usual * 1.1 : bound;
  if (bytes > most) fail_msg("%.3f bytes an event, more than %.3f", bytes, most);
}

static void assert_plain_size(double bytes, double least, double most) {
  if (bytes < least || bytes > most)
    fail_msg("%.3f plain bytes an event; %.3f to %.3f are expected", bytes, least, most);
}

/* ---- scopes ---- */

static void put_sites(prof_i_head *meta) {
  for (uint32_t i = 1; i <= SITES; i++) {
    char name[32];
    snprintf(name, sizeof name, "aten::operator_%u", i);
    capture_site(meta, i, name, "operator", 1);
  }
}

/* Blocks of five scopes: a layer holds two operators, the first of which holds two kernels. Behind
   each layer comes one of two. Returns the number of scopes. */
static uint64_t put_blocks(uint32_t most) {
  uint64_t count = 0;
  for (uint64_t layer = 0; has_room(10); layer = (2 * layer + random_bits(1)) % 20, count += 5) {
    uint64_t starts[5];
    const uint32_t site = 1 + 5 * (uint32_t)layer;
    starts[0] = pass_time(most);
    starts[1] = pass_time(most);
    for (uint32_t i = 2; i < 4; i++) {
      starts[i] = pass_time(most);
      capture_plain(chunk, starts[i], pass_time(most) - starts[i], site + i);
    }
    capture_plain(chunk, starts[1], pass_time(most) - starts[1], site + 1);
    starts[4] = pass_time(most);
    capture_plain(chunk, starts[4], pass_time(most) - starts[4], site + 4);
    capture_plain(chunk, starts[0], pass_time(most) - starts[0], site);
  }
  return count;
}

/* 6 random bits a scope: 2.8 for each of its two times, 1 for each layer, and 0.2 for noise. */
static void a_plain_scope_takes_one_byte(void **state) {
  (void)state;
  double plain;
  put_sites(begin());
  noise_most = 64;
  const uint64_t count = put_blocks(7);
  const double bytes = packed_bytes(count, "scopes", &plain);
  assert_plain_size(plain, 16, 16.2);
  assert_size(bytes, 1.1, 1.02);
}

/* 9.4 random bits: 3.6 for a time, 1 for its noise, 1 for each layer. */
static void a_plain_scope_with_noise_takes_two_bytes(void **state) {
  (void)state;
  double plain;
  put_sites(begin());
  noise_most = 2;
  const uint64_t count = put_blocks(12);
  const double bytes = packed_bytes(count, "scopes", &plain);
  assert_plain_size(plain, 16, 16.2);
  assert_size(bytes, 2.2, 1.91);
}

/* ---- arguments ---- */

enum { NODES = 320, NODE_KINDS = 10 };

/* A node of a graph, as ggml has it: a name, a type and four dimensions. All tokens have the same
   nodes. Three kinds of ten have the number of tokens so far as a dimension. */
static void put_node(uint64_t token, uint32_t node) {
  static const char *const names[NODE_KINDS] = {"attn_norm",   "Qcur", "Kcur",     "Vcur",   "kq",
                                                "kq_soft_max", "kqv",  "ffn_gate", "ffn_up", "ffn"};
  const uint32_t kind = node % NODE_KINDS;
  const bool grows = kind >= 4 && kind <= 6;
  char name[32];
  long_record r;
  const uint64_t start = pass_time(64);
  long_begin(&r, PROF_I_KIND_SCOPE, start, pass_time(4096) - start, 1 + kind);
  r.schema = 1;
  snprintf(name, sizeof name, "%s-%u", names[kind], node / NODE_KINDS);
  long_text(&r, name);
  long_text(&r, grows ? "f32" : "q4_K");
  long_word(&r, grows ? token : 4096);
  long_word(&r, kind == 4 ? 32 : 1);
  long_word(&r, 1);
  long_word(&r, 1);
  long_end(&r, chunk);
}

/* 18 random bits: 6 for its begin, 12 for its duration. */
static void a_scope_with_arguments_takes_four_bytes(void **state) {
  (void)state;
  static const uint32_t types[] = {PROF_ARG_STRING, PROF_ARG_STRING, PROF_ARG_I64,
                                   PROF_ARG_I64,    PROF_ARG_I64,    PROF_ARG_I64};
  static const char *const keys[] = {"name", "type", "ne0", "ne1", "ne2", "ne3"};
  prof_i_head *const meta = begin();
  put_sites(meta);
  capture_schema(meta, 1, PROF_ARGS_PAIRS, "", 6, types, keys);
  double plain;
  uint64_t count = 0;
  for (; has_room(20); count++) put_node(1 + count / NODES, (uint32_t)(count % NODES));
  const double bytes = packed_bytes(count, "scopes", &plain);
  assert_plain_size(plain, 96, 97);
  assert_size(bytes, 4.5, 3.89);
}

/* ---- malloc ---- */

enum { CLASSES = 256, LIVE_MIN = 1024, LIVE_MAX = 4096, FREE_MAX = LIVE_MAX };

/* The pieces of a heap. A class has the pieces of a size. What was freed last is used first. */
static struct {
  uint64_t free[CLASSES][FREE_MAX];
  uint32_t free_count[CLASSES];
  uint64_t address[LIVE_MAX];
  uint32_t class[LIVE_MAX];
  uint32_t live_count;
  uint64_t top;
} heap;

/* A quarter of the allocations has the longer record. */
static void put_piece(prof_i_pool_state *pool, bool is_free, uint64_t address, uint32_t class) {
  const uint64_t bytes = 16 * (class + 1), ticks = pass_time(1 << 16);
  pool->used += PROF_I_USED_ONE_EVENT + (is_free ? 0 - bytes : bytes);
  if (!is_free && random_bits(2) == 0)
    capture_piece_more(chunk, ticks, 1, address, bytes, bytes - random_bits(4), 0, UINT64_MAX,
                       pool->used);
  else
    capture_piece(chunk, ticks, 1, is_free, address, bytes, is_free ? 0 : random_bits(4),
                  pool->used);
}

static void put_alloc(prof_i_pool_state *pool) {
  const uint32_t class = (uint32_t)random_bits(8), live = heap.live_count++;
  if (heap.free_count[class]) {
    heap.address[live] = heap.free[class][--heap.free_count[class]];
  } else {
    heap.address[live] = heap.top;
    heap.top += 16 * (class + 2);
  }
  heap.class[live] = class;
  put_piece(pool, false, heap.address[live], class);
}

/* Frees one of the last LIVE_MIN. */
static void put_free(prof_i_pool_state *pool) {
  const uint32_t live = heap.live_count - 1 - (uint32_t)random_bits(10), class = heap.class[live];
  put_piece(pool, true, heap.address[live], class);
  heap.free[class][heap.free_count[class]++] = heap.address[live];
  heap.live_count--;
  for (uint32_t i = live; i < heap.live_count; i++) {
    heap.address[i] = heap.address[i + 1];
    heap.class[i] = heap.class[i + 1];
  }
}

/* 25 random bits: 16 for its time. An allocation has 8 for the size and 4 for the waste, a free has
   10 for the choice. Allocations and frees come in runs. */
static void an_event_of_malloc_takes_five_bytes(void **state) {
  (void)state;
  prof_i_head *const meta = begin();
  prof_i_pool_state *const pool = capture_pool(&made, meta, 1, 1, "malloc", 0);
  pool->used_peaks[0] = (prof_i_peak){PROF_I_USED_ZERO, CAPTURE_START, 0, CAPTURE_START};
  memset(&heap, 0, sizeof heap);
  heap.top = 0x7f0012340000;
  double plain;
  uint64_t count = 0;
  bool frees = false;
  for (; has_room(PIECE_WORDS_MAX); count++) {
    if (random_bits(7) == 0) frees = !frees;
    if ((frees && heap.live_count >= LIVE_MIN) || heap.live_count == LIVE_MAX)
      put_free(pool);
    else
      put_alloc(pool);
  }
  const double bytes = packed_bytes(count, "events", &plain);
  assert_plain_size(plain, 33.5, 34.5);
  assert_size(bytes, 9, 5.10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_plain_scope_takes_one_byte),
                                     cmocka_unit_test(a_plain_scope_with_noise_takes_two_bytes),
                                     cmocka_unit_test(a_scope_with_arguments_takes_four_bytes),
                                     cmocka_unit_test(an_event_of_malloc_takes_five_bytes)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
