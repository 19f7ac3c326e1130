/* A small caching allocator that tells prof what it does.
   docs/how-to/instrument-an-allocator.md goes through it step by step.

       allocator [trace.prof]        then: prof memory trace.prof

   Blocks are taken from the system and kept; pieces are stacked in them, and a block begins anew
   when its last piece has come back. Two of them work here, for the host and for a device; mmap()
   stands in for both systems, so that no GPU is needed. Each keeps an account of its own, which
   knows nothing of prof. Exit status 1: prof's account is another. SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <inttypes.h>
#include <prof/memory.h>
#include <prof/op.h>
#include <prof/trace.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

enum {
  BLOCKS = 16,
  BLOCK_BYTES = 4 << 20,
  ALIGNMENT = 512,
  STEPS = 4,
  LAYERS = 6,
  WEIGHTS = 3,
  IS_CHECKED = 1
};

/* ---- the allocator ---- */

typedef struct account {
  /* bytes; before: when recording began */
  uint64_t used, allocated, used_peak, allocated_peak, used_before;
  uint64_t alloc_count, free_count, reserve_count, release_count, collection_count, oom_count;
} account;

typedef struct block {
  char *base; /* NULL: not taken */
  size_t bytes, top;
  uint32_t live_count;
} block;

typedef struct allocator {
  pthread_mutex_t lock; /* guards all below, and every call that tells prof of it */
  block blocks[BLOCKS];
  account own;
  prof_pool *profile;
  prof_device device;
  uint64_t limit; /* of allocated, in bytes */
} allocator;

typedef struct tensor {
  void *data;
  size_t given; /* bytes of the block that it takes */
  block *from;
} tensor;

static void raise_to(uint64_t *peak, uint64_t value) {
  if (value > *peak) *peak = value;
}

/* What prof calls at each start, for the current state, and at each PROFILE_MEMORY(). It may take
   the lock, since no call of prof that is made under it calls this. */
static int query(void *user, uint64_t *used_out, uint64_t *allocated_out) {
  allocator *const a = user;
  pthread_mutex_lock(&a->lock);
  *used_out = a->own.used;
  *allocated_out = a->own.allocated;
  pthread_mutex_unlock(&a->lock);
  return 0;
}

static int init(allocator *a, const char *name, prof_device device, uint64_t limit) {
  *a = (allocator){.lock = PTHREAD_MUTEX_INITIALIZER, .device = device, .limit = limit};
  const prof_pool_options options = {.size = sizeof options,
                                     .name = name,
                                     .device = device,
                                     .query = query,
                                     .user = a,
                                     .checked = IS_CHECKED};
  const int status = prof_pool_create(&options, &a->profile);
  return status == PROF_OK ? prof_memory_set_query(device, query, a) : status;
}

static block *find_room(allocator *a, size_t given) {
  for (block *b = a->blocks; b < a->blocks + BLOCKS; b++)
    if (b->base && b->bytes - b->top >= given) return b;
  return NULL;
}

static block *reserve(allocator *a, size_t given) {
  const size_t bytes = given > BLOCK_BYTES ? given : BLOCK_BYTES;
  block *b = a->blocks;
  while (b < a->blocks + BLOCKS && b->base) b++;
  if (b == a->blocks + BLOCKS || a->own.allocated + bytes > a->limit) return NULL;
  void *const base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return NULL;
  *b = (block){.base = base, .bytes = bytes};
  a->own.allocated += bytes;
  a->own.reserve_count++;
  raise_to(&a->own.allocated_peak, a->own.allocated);
  prof_memory_reserve(a->profile, b->base, b->bytes); /* before the first piece in it */
  return b;
}

/* Gives back to the system what holds no piece. */
static void collect(allocator *a) {
  const uint64_t begun = prof_memory_collect_begin(a->profile);
  for (block *b = a->blocks; b < a->blocks + BLOCKS; b++) {
    if (!b->base || b->live_count) continue;
    /* before the system may hand it out again */
    prof_memory_release(a->profile, b->base, b->bytes);
    munmap(b->base, b->bytes);
    a->own.allocated -= b->bytes;
    a->own.release_count++;
    *b = (block){.base = NULL};
  }
  prof_memory_collect_end(a->profile, begun);
  a->own.collection_count++;
}

static tensor take(allocator *a, const char *tag, size_t bytes) {
  const uint32_t number = prof_memory_tag(tag); /* who allocates often keeps the number */
  const size_t given = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  tensor t = {.given = given};
  pthread_mutex_lock(&a->lock);
  t.from = find_room(a, given);
  if (!t.from) t.from = reserve(a, given);
  if (!t.from) { /* what is kept may be in the way */
    collect(a);
    t.from = reserve(a, given);
  }
  if (t.from) {
    t.data = t.from->base + t.from->top;
    t.from->top += given;
    t.from->live_count++;
    a->own.used += given;
    a->own.alloc_count++;
    raise_to(&a->own.used_peak, a->own.used);
    prof_memory_alloc_for(a->profile, t.data, bytes, given, number, PROF_NO_STREAM);
  } else {
    a->own.oom_count++;
  }
  pthread_mutex_unlock(&a->lock);
  if (t.data)
    prof_op_workspace_alloc(given); /* while an operator is measured: its workspace */
  else
    /* outside the lock: it reads the capture, and writes a text */
    prof_memory_oom(a->device, bytes);
  return t;
}

static void give_back(allocator *a, const tensor *t) {
  if (!t->data) return;
  pthread_mutex_lock(&a->lock);
  prof_memory_free(a->profile, t->data, t->given); /* before it may be handed out again */
  a->own.used -= t->given;
  a->own.free_count++;
  if (--t->from->live_count == 0) t->from->top = 0;
  pthread_mutex_unlock(&a->lock);
  prof_op_workspace_free(t->given);
}

static void fini(allocator *a) {
  prof_memory_set_query(a->device, NULL, NULL);
  prof_pool_destroy(a->profile); /* nobody asks the query any more */
  for (block *b = a->blocks; b < a->blocks + BLOCKS; b++)
    if (b->base) munmap(b->base, b->bytes);
  pthread_mutex_destroy(&a->lock);
}

/* ---- what is to be profiled ---- */

/* The account counts from here, as prof does; live allocations stay. */
static void begin_account(allocator *a) {
  a->own =
      (account){.used = a->own.used, .allocated = a->own.allocated, .used_before = a->own.used};
  a->own.used_peak = a->own.used;
  a->own.allocated_peak = a->own.allocated;
}

static void run_step(allocator *a, size_t step) {
  tensor activations[LAYERS];
  WITH_BASE_PROFILER(a->device, "forward", "model", PROF_NO_ARGS, {
    for (size_t i = 0; i < LAYERS; i++)
      activations[i] = take(a, "activations", 500100 * (1 + (step + i) % 3));
  });
  PROFILE_MEMORY(a->device, "after forward");
  WITH_BASE_PROFILER(a->device, "backward", "model", PROF_NO_ARGS, {
    for (size_t i = LAYERS; i-- > 0;) {
      const tensor gradients = take(a, "gradients", 300000);
      give_back(a, &activations[i]);
      give_back(a, &gradients);
    }
  });
}

/* ---- its account against prof's ---- */

static bool is_same(const char *pool, const char *what, uint64_t prof, uint64_t own) {
  if (prof != own)
    fprintf(stderr, "allocator: %s: %s: prof says %" PRIu64 ", the allocator %" PRIu64 "\n", pool,
            what, prof, own);
  return prof == own;
}

static bool is_agreed(const prof_memory_info *m, const account *own) {
  uint64_t wrong_count = 0;
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) wrong_count += m->wrong_count[i];
  const struct {
    const char *what;
    uint64_t prof, own;
  } lines[] = {
      {"used before", m->used_before_bytes, own->used_before},
      {"peak of used", (uint64_t)m->peak_used.used_bytes, own->used_peak},
      {"peak of allocated", (uint64_t)m->peak_allocated.allocated_bytes, own->allocated_peak},
      {"used at the end", (uint64_t)m->end.used_bytes, own->used},
      {"allocated at the end", (uint64_t)m->end.allocated_bytes, own->allocated},
      {"allocs", m->alloc_count, own->alloc_count},
      {"frees", m->free_count, own->free_count},
      {"reserves", m->reserve_count, own->reserve_count},
      {"releases", m->release_count, own->release_count},
      {"collections", m->collection_count, own->collection_count},
      {"out of memory", m->oom_count, own->oom_count},
      {"events missing", m->missing_count, 0},
      {"wrong calls", wrong_count, 0},
  };
  bool all = true;
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    all &= is_same(m->name, lines[i].what, lines[i].prof, lines[i].own);
  return all;
}

/* The C API of reading: of each pool what prof knows, and who held the peak. */
static bool compare(const char *path, const allocator *const *all, uint32_t count) {
  prof_trace *trace = NULL;
  prof_memory *memory = NULL;
  prof_memory_info info = {.size = sizeof info};
  uint32_t found = 0;
  bool is_right =
      prof_trace_open(path, &trace) == PROF_OK && prof_memory_read(trace, &memory) == PROF_OK;
  for (uint32_t i = 0; is_right && i < prof_memory_pool_count(memory); i++) {
    prof_memory_rows *rows = NULL;
    is_right = prof_memory_pool_get(memory, i, &info) == PROF_OK;
    /* the samples of PROFILE_MEMORY() are beside */
    if (!is_right || info.source != PROF_MEMORY_POOL) continue;
    for (uint32_t k = 0; k < count; k++)
      if (all[k]->device.type == info.device.type)
        found++, is_right &= is_agreed(&info, &all[k]->own);
    is_right &= prof_memory_live(memory, i, PROF_MEMORY_AT_PEAK_USED, 0, PROF_MEMORY_BY_TAG,
                                 &rows) == PROF_OK;
    for (uint64_t r = 0; is_right && r < rows->row_count; r++)
      printf("%s: at its peak %" PRIu64 " bytes in %" PRIu64 " %s\n", info.name,
             rows->rows[r].bytes, rows->rows[r].count, rows->rows[r].label);
    prof_free(rows);
  }
  if (!trace || !memory) fprintf(stderr, "allocator: %s: %s\n", path, prof_last_error());
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  return is_right && found == count;
}

int main(int argc, char **argv) {
  const char *const path = argc > 1 ? argv[1] : "allocator.prof";
  const prof_device gpu = {PROF_DEVICE_CUDA, 0};
  allocator host, device;
  tensor weights[2][WEIGHTS];
  if (init(&host, "tensors", PROF_HOST, 64 << 20) != PROF_OK ||
      init(&device, "device tensors", gpu, 16 << 20) != PROF_OK)
    return 1;
  allocator *const all[] = {&host, &device};

  /* The host's are not recorded yet: prof asks for their sum when it starts. */
  for (size_t i = 0; i < WEIGHTS; i++) weights[0][i] = take(&host, "weights", 1000000);
  for (size_t k = 0; k < 2; k++) begin_account(all[k]);
  const prof_options options = {.size = sizeof options, .level = 2, .path = path};
  if (prof_start_with(&options) != PROF_OK) {
    fprintf(stderr, "allocator: %s\n", prof_last_error());
    return 1;
  }
  for (size_t i = 0; i < WEIGHTS; i++) weights[1][i] = take(&device, "weights", 1000000);
  for (size_t step = 0; step < STEPS; step++) {
    for (size_t k = 0; k < 2; k++) run_step(all[k], step);
    prof_step();
  }
  WITH_BASE_PROFILER(gpu, "head", "model", PROF_NO_ARGS, {
    const tensor hidden = take(&device, "activations", 3000000);
    /* beyond the limit, also after a collection */
    const tensor logits = take(&device, "logits", 15 << 20);
    give_back(&device, &logits);
    give_back(&device, &hidden);
  });
  for (size_t k = 0; k < 2; k++) give_back(all[k], &weights[k][0]);
  prof_stop();
  if (prof_dump(NULL) != PROF_OK) {
    fprintf(stderr, "allocator: %s\n", prof_last_error());
    return 1;
  }
  const bool is_right = compare(path, (const allocator *const *)all, 2);
  for (size_t k = 0; k < 2; k++) fini(all[k]);
  if (is_right) printf("prof's account is the allocators' own: %s\n", path);
  return is_right ? 0 : 1;
}
