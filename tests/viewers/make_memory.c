/* Makes the traces of memory that the viewers' engines are shown: usage: make_memory FOLDER
   [PAIRS]. What it did stands in memory-told.json: each change as it should stand in the file, each
   pool with the peaks that prof_memory_pool_get() says. Threads take turns under a lock, so that
   this program's own sums are exact; but for the pool "raced". With PAIRS, only so many allocs and
   frees are recorded into large.json, and the times are printed. Uses the public face alone. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/trace.h>

enum { ROUNDS = 200, RACES = 5000, POOLS = 5 };

/* 63 bytes are kept of a name. */
static const char *const names[POOLS] = {"host \"pool\"\\\xff</script>", "tensors", "tensors",
                                         "tensors", "old"};
static const char tag_name[] = "wei\"ghts\\\xc3</script>\n";

typedef struct sums {
  int64_t used, allocated;
} sums;

static struct {
  const char *folder;
  FILE *told;
  pthread_mutex_t lock;
  prof_pool *pools[POOLS], *raced;
  sums sums[POOLS];
  prof_device devices[POOLS];
  uint32_t tag;
  unsigned change_count;
  uint64_t asked; /* what the query says next */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .devices = {
             {0, 0}, {PROF_DEVICE_CUDA, 1}, {PROF_DEVICE_CUDA, 0}, {PROF_DEVICE_CUDA, 0}, {0, 0}}};

static void must(int status, const char *what) {
  if (status == PROF_OK) return;
  fprintf(stderr, "make_memory: %s: %s: %s\n", what, prof_status_name(status), prof_last_error());
  exit(1);
}

static const void *at(uint64_t address) { return (const void *)(uintptr_t)address; }

/* ---- what is said, and told ---- */

static void tell(int pool, const char *name, uint64_t address, int64_t bytes, uint64_t requested,
                 bool has_tag) {
  const bool is_host = own.devices[pool].type == 0;
  fprintf(own.told,
          "%s\n {\"name\":\"%s\",\"Addr\":%" PRIu64 ",\"Bytes\":%" PRId64 ",\"Requested\":%" PRIu64
          ",\"Total Allocated\":%" PRId64 ",\"Total Reserved\":%" PRId64
          ",\"Device Type\":%d,\"Device Id\":%d,\"Tag\":%s}",
          own.change_count++ ? "," : "", name, address, bytes, requested, own.sums[pool].used,
          own.sums[pool].allocated, is_host ? 0 : 1, is_host ? -1 : own.devices[pool].index,
          has_tag ? "true" : "false");
}

static void say_alloc(int pool, uint64_t address, uint64_t bytes, uint64_t given, bool has_tag) {
  prof_memory_alloc_for(own.pools[pool], at(address), bytes, given, has_tag ? own.tag : 0,
                        PROF_NO_STREAM);
  own.sums[pool].used += (int64_t)given;
  tell(pool, "[memory]", address, (int64_t)given, bytes, has_tag);
}

static void say_free(int pool, uint64_t address, uint64_t given) {
  prof_memory_free(own.pools[pool], at(address), given);
  own.sums[pool].used -= (int64_t)given;
  tell(pool, "[memory]", address, -(int64_t)given, given, false);
}

static void say_block(int pool, uint64_t address, uint64_t bytes, bool is_taken) {
  if (is_taken)
    prof_memory_reserve(own.pools[pool], at(address), bytes);
  else
    prof_memory_release(own.pools[pool], at(address), bytes);
  own.sums[pool].allocated += is_taken ? (int64_t)bytes : -(int64_t)bytes;
}

/* ---- the traffic ---- */

static int answer(void *user, uint64_t *used_out, uint64_t *allocated_out) {
  const uint64_t factor = *(const uint32_t *)user;
  *used_out = own.asked * factor;
  *allocated_out = own.asked * factor * 2;
  return 0;
}

static int was_there(void *user, uint64_t *used_out, uint64_t *allocated_out) {
  (void)user;
  *used_out = 5000000;
  *allocated_out = 6000000;
  return 0;
}

static void take_turn(uint64_t base, int round) {
  const uint64_t block = base + (uint64_t)round * 0x10000;
  for (int pool = 0; pool < 4; pool++) {
    const uint64_t first = block + (uint64_t)pool * 0x1000000000;
    if (round % 4 == 0) say_block(pool, first, 0x10000, true);
    say_alloc(pool, first, 1000, 1024, false);
    say_alloc(pool, first + 1024, 500 + (uint64_t)round, 500 + (uint64_t)round, pool % 2 == 1);
    if (round % 3) say_free(pool, first, 1024);
    if (round % 8 == 4) say_block(pool, first - 0x40000, 0x10000, false);
  }
  if (round % 50 == 49) {
    own.asked = (uint64_t)round * 1000;
    PROFILE_MEMORY(PROF_HOST, "turn");
    PROFILE_MEMORY(((prof_device){PROF_DEVICE_CUDA, 1}), "tu\"rn\xff");
  }
}

static void *work(void *number) {
  const uint64_t base = 0x100000000 * (1 + (uint64_t) * (int *)number);
  for (int round = 0; round < ROUNDS; round++) {
    PROF_SCOPE("round");
    pthread_mutex_lock(&own.lock);
    {
      PROF_SCOPE("turn");
      take_turn(base, round);
    }
    pthread_mutex_unlock(&own.lock);
  }
  return NULL;
}

static void *race(void *number) {
  const uint64_t base = 0x1000000 * (1 + (uint64_t) * (int *)number);
  for (uint64_t i = 0; i < RACES; i++) {
    prof_memory_alloc(own.raced, at(base + i * 64), 64, 64);
    if (i % 2) prof_memory_free(own.raced, at(base + i * 64), 64);
  }
  return NULL;
}

static void on_two_threads(void *(*run)(void *)) {
  int numbers[2] = {0, 1};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run, &numbers[i]);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

/* What failed, and frees of what was in use before: the host's pool had no baseline, and goes below
   0. */
static void end_badly(void) {
  prof_memory_oom(own.devices[1], 1ull << 33);
  fprintf(own.told,
          ",\n {\"name\":\"[OutOfMemory]\",\"Addr\":0,\"Bytes\":%llu,\"Device Type\":1,\"Device "
          "Id\":1}",
          1ull << 33);
  own.change_count++;
  say_free(4, 0x7000, 1000000);
  say_block(4, 0x7000000, 2000000, false);
  const int64_t used = own.sums[0].used;
  say_free(0, 0x9000, (uint64_t)used + 4096);
}

/* ---- files ---- */

static void tell_pools(void) {
  prof_trace *trace;
  prof_memory *memory;
  must(prof_get(&trace), "get");
  must(prof_memory_read(trace, &memory), "read");
  fprintf(own.told, "],\n\"pools\":[");
  for (uint32_t i = 0; i < prof_memory_pool_count(memory); i++) {
    prof_memory_info info = {.size = sizeof info};
    must(prof_memory_pool_get(memory, i, &info), "info");
    fprintf(own.told,
            "%s\n {\"source\":%u,\"type\":%d,\"index\":%d,\"peak_used\":%" PRId64
            ",\"peak_allocated\":%" PRId64 ",\"end_used\":%" PRId64 ",\"end_allocated\":%" PRId64
            ",\"changes\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\"ooms\":%" PRIu64
            ",\"samples\":%" PRIu64 ",\"missing\":%" PRIu64 ",\"name\":\"",
            i ? "," : "", info.source, info.device.type, info.device.index,
            info.peak_used.used_bytes, info.peak_allocated.allocated_bytes, info.end.used_bytes,
            info.end.allocated_bytes, info.alloc_count + info.free_count,
            info.reserve_count + info.release_count, info.oom_count, info.sample_count,
            info.missing_count);
    for (const char *c = info.name; *c; c++) fprintf(own.told, "%02x", (unsigned char)*c);
    fputs("\"}", own.told);
  }
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
}

static void dump(const char *name, prof_dump_options options) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", own.folder, name);
  options.size = sizeof options;
  must(prof_dump_with(path, &options), name);
}

static uint64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The clocks of the files may differ by some ns, so nothing happens near the begin of a part. */
static uint64_t in_a_quiet_ms(void) {
  const struct timespec half = {0, 500000};
  nanosleep(&half, NULL);
  const uint64_t middle_ns = monotonic_ns();
  nanosleep(&half, NULL);
  return middle_ns;
}

static void make(void) {
  static uint32_t one = 1, three = 3;
  char path[4096];
  snprintf(path, sizeof path, "%s/memory-told.json", own.folder);
  own.told = fopen(path, "w");
  if (!own.told) must(PROF_E_IO, path);
  fputs("{\"changes\":[", own.told);
  for (int i = 0; i < POOLS; i++)
    must(prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options),
                                               .name = names[i],
                                               .device = own.devices[i],
                                               .query = i == 4 ? was_there : NULL},
                          &own.pools[i]),
         "pool");
  must(prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options), .name = "raced"},
                        &own.raced),
       "pool");
  own.sums[4] = (sums){5000000, 6000000};
  own.tag = prof_memory_tag(tag_name);
  must(prof_memory_set_query(PROF_HOST, answer, &one), "query");
  must(prof_memory_set_query((prof_device){PROF_DEVICE_CUDA, 1}, answer, &three), "query");
  must(prof_start(2), "start");
  on_two_threads(work);
  const uint64_t worked_ns = in_a_quiet_ms();
  end_badly();
  on_two_threads(race);
  PROF_COUNTER("mine", 1.0);
  PROF_COUNTER("mine", 2.0);
  must(prof_stop(), "stop");
  tell_pools();
  fputs("]}\n", own.told);
  if (fclose(own.told) != 0) must(PROF_E_IO, path);
  dump("memory.json", (prof_dump_options){0});
  dump("memory.json.gz", (prof_dump_options){0});
  prof_trace *trace;
  prof_trace_info info = {.size = sizeof info};
  must(prof_get(&trace), "get");
  must(prof_trace_info_get(trace, &info), "info");
  prof_trace_destroy(trace);
  /* whatever the machine did meanwhile: the pools hold something there */
  dump("memory-part.json",
       (prof_dump_options){.from_ns = worked_ns - info.start_ns, .to_ns = info.duration_ns});
}

/* ---- how long it takes ---- */

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void make_large(uint64_t pairs) {
  must(prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options), .name = "large"},
                        &own.raced),
       "pool");
  must(prof_start_with(
           &(prof_options){.size = sizeof(prof_options), .level = 2, .cap_bytes = 1ull << 30}),
       "start");
  for (uint64_t i = 0; i < pairs; i++) {
    prof_memory_alloc(own.raced, at(0x10000 + i % 1024 * 4096), 1000 + i % 3000, 0);
    prof_memory_free(own.raced, at(0x10000 + i % 1024 * 4096), 1000 + i % 3000);
  }
  must(prof_stop(), "stop");
  const double begin = seconds();
  dump("large.json", (prof_dump_options){0});
  const double middle = seconds();
  dump("large.json.gz", (prof_dump_options){0});
  printf("%" PRIu64 " pairs: JSON in %.2f s, compressed in %.2f s\n", pairs, middle - begin,
         seconds() - middle);
}

int main(int count, char **words) {
  if (count != 2 && count != 3) {
    fprintf(stderr, "usage: make_memory FOLDER [PAIRS]\n");
    return 2;
  }
  own.folder = words[1];
  if (count == 3)
    make_large(strtoull(words[2], NULL, 10));
  else
    make();
  return 0;
}
