/* PyTorch's allocations, without a preload. Torch's allocators report each allocation and each free
   to the object that the thread has registered under PROFILER_STATE in c10::ThreadLocalDebugInfo.
   This file registers such an object, built by hand: torch's headers are not needed.

   Torch casts what is registered there to the class of its own profiler. Hence three rules:
   - While torch's own profiler is on in a thread, nothing is registered on top of it. Instead, its
     object gets a copy of its virtual table. Two entries of the copy are ours.

   - Before torch's profiler starts in a thread, our object is removed there.
     bindings/python/prof/_torch_memory.py sees these starts.

   - Every other virtual function of our object returns 0, and zeros follow the object. Torch reads
     both as "no profiler is on".

   Autograd's threads inherit what the thread that calls backward() has registered. Each report
   becomes an event of the pool of its device, on the thread that allocates. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <prof/memory.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "internal.h"

enum {
  TABLE_ENTRIES = 30,   /* of a virtual table; torch's longest has some 25 */
  TABLE_HEAD = 2,       /* words before the entries: the offset to the top, the type */
  ENTRY_REPORT = 2,     /* reportMemoryUsage(), behind two destructors */
  ENTRY_IS_ENABLED = 4, /* memoryProfilingEnabled() */
  PATCHES_MAX = 8,      /* classes of torch's profilers: three in 2.15 */
  POOLS_MAX = 64
};

/* c10::Device. index -1: the type has one device. */
typedef struct torch_device {
  int8_t type, index;
} torch_device;

/* A std::shared_ptr. Without a control block it owns nothing, and nothing is counted or freed. */
typedef struct shared_pointer {
  const void *object;
  uint32_t *control; /* the use count is at [2] */
} shared_pointer;

/* What a function returns that returns a std::shared_ptr: to an address that the caller gives. A
   struct of this size is returned like that in C. The last member is not written. */
typedef struct shared_pointer_returned {
  shared_pointer pointer;
  void *unused;
} shared_pointer_returned;

typedef void (*any_function)(void);
typedef struct debug_object {
  const any_function *functions;
} debug_object;
typedef void (*report_function)(debug_object *, const void *, int64_t, size_t, size_t,
                                torch_device);
typedef bool (*is_enabled_function)(debug_object *);

/* ---- what torch exports ---- */

/* DebugInfoKind is one byte up to torch 2.12, and a pointer since 2.13, under the same mangled
   names. A whole register serves both. */
static struct {
  void (*push)(uint64_t kind, shared_pointer *info);
  shared_pointer_returned (*pop)(uint64_t kind);
  debug_object *(*get)(uint64_t kind);
  shared_pointer_returned (*current)(void);
  bool (*is_enabled)(void);
  uint64_t kind;
} torch_functions;

#define PROF_I_TORCH_INFO "_ZN3c1020ThreadLocalDebugInfo"

static const char *find_symbols(void) {
  static const struct {
    void *to;
    const char *symbol;
  } wanted[] = {
      {&torch_functions.push,
       PROF_I_TORCH_INFO "5_pushENS_13DebugInfoKindESt10shared_ptrINS_13DebugInfoBaseEE"},
      {&torch_functions.pop, PROF_I_TORCH_INFO "4_popENS_13DebugInfoKindE"},
      {&torch_functions.get, PROF_I_TORCH_INFO "3getENS_13DebugInfoKindE"},
      {&torch_functions.current, PROF_I_TORCH_INFO "7currentEv"},
      {&torch_functions.is_enabled, "_ZN3c1022memoryProfilingEnabledEv"},
  };
  void *const c10 = dlopen("libc10.so", RTLD_NOLOAD | RTLD_NOW); /* kept: torch is never unloaded */
  if (!c10) return "libc10.so";
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    void *const found = dlsym(c10, wanted[i].symbol);
    if (!found) return wanted[i].symbol;
    memcpy(wanted[i].to, &found, sizeof found);
  }
  const void *const kind = dlsym(c10, "_ZN3c1013DebugInfoKind14PROFILER_STATEE");
  torch_functions.kind = 2; /* PROFILER_STATE in the enumeration of before */
  if (kind) memcpy(&torch_functions.kind, kind, sizeof torch_functions.kind);
  return NULL;
}

/* ---- this process, this thread ---- */

static struct {
  pthread_once_t once;
  uint32_t
      wanting_threads; /* atomic, relaxed: a late report is of an allocation beside the change */
  uint8_t cuda_type;   /* what torch calls CUDA: PROF_DEVICE_ROCM where torch is built for it */
} torch_memory = {.once = PTHREAD_ONCE_INIT, .cuda_type = PROF_DEVICE_CUDA};

/* What torch reported to a thread that proves the recipe. */
typedef struct allocation_proof {
  const void *address;
  int64_t bytes;
  uint32_t count;
  torch_device device;
} allocation_proof;

static __thread struct {
  bool wants_memory;
  allocation_proof *proof_out; /* NULL: reports are recorded */
} memory_thread __attribute__((tls_model("initial-exec")));

/* ---- reports become events of pools ---- */

static struct {
  pthread_mutex_t lock;
  uint32_t count; /* atomic, release: the entries below it are complete */
  struct {
    torch_device device;
    prof_pool *pool;
  } of[POOLS_MAX];
} torch_pools = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The lock may have been held by a thread that the child does not have. */
static void renew_lock(void) { pthread_mutex_init(&torch_pools.lock, NULL); }

static void register_fork(void) { pthread_atfork(NULL, NULL, renew_lock); }

/* By c10::DeviceType. MKLDNN and IDEEP, 2 and 5, are the host's, as in torch's tables. */
static prof_device device_of_torch(torch_device device) {
  enum { CPU = 0, CUDA = 1, MKLDNN = 2, OPENCL = 4, IDEEP = 5, HIP = 6, VULKAN = 10, METAL = 11 };
  enum { XPU = 12, MPS = 13 };
  const int32_t index = device.index > 0 ? device.index : 0;
  switch (device.type) {
    case CPU:
    case MKLDNN:
    case IDEEP:
      return PROF_HOST;
    case CUDA:
      return (prof_device){torch_memory.cuda_type, index};
    case HIP:
      return (prof_device){PROF_DEVICE_ROCM, index};
    case OPENCL:
      return (prof_device){PROF_DEVICE_OPENCL, index};
    case VULKAN:
      return (prof_device){PROF_DEVICE_VULKAN, index};
    case METAL:
    case MPS:
      return (prof_device){PROF_DEVICE_METAL, index};
    case XPU:
      return (prof_device){PROF_DEVICE_ONEAPI, index};
    default:
      return (prof_device){PROF_DEVICE_EXT_DEV, index};
  }
}

static prof_pool *pool_find(torch_device device, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (torch_pools.of[i].device.type == device.type &&
        torch_pools.of[i].device.index == device.index)
      return torch_pools.of[i].pool;
  return NULL;
}

/* How much was allocated before a start is not known: torch counts only while it is profiled. */
static int memory_query_unknown(void *user, uint64_t *used_bytes_out,
                                uint64_t *allocated_bytes_out) {
  (void)user;
  *used_bytes_out = *allocated_bytes_out = 0;
  return 1;
}

static __attribute__((noinline)) prof_pool *pool_make(torch_device device) {
  prof_pool_options options = {
      .size = sizeof options, .name = "torch", .query = memory_query_unknown};
  options.device = device_of_torch(device);
  pthread_mutex_lock(&torch_pools.lock);
  const uint32_t count = torch_pools.count;
  prof_pool *pool = pool_find(device, count); /* another thread may have made it meanwhile */
  if (!pool && count < POOLS_MAX && prof_pool_create(&options, &pool) == PROF_OK) {
    torch_pools.of[count].device = device;
    torch_pools.of[count].pool = pool;
    __atomic_store_n(&torch_pools.count, count + 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&torch_pools.lock);
  return pool;
}

static void record_allocation(const void *address, int64_t bytes, torch_device device) {
  if (memory_thread.proof_out) {
    *memory_thread.proof_out =
        (allocation_proof){address, bytes, memory_thread.proof_out->count + 1, device};
    return;
  }
  if (!prof_memory_is_on() || !bytes || prof_i_torch_silence) return;
  prof_pool *pool = pool_find(device, __atomic_load_n(&torch_pools.count, __ATOMIC_ACQUIRE));
  if (!pool) pool = pool_make(device);
  if (bytes > 0)
    prof_memory_alloc(pool, address, (uint64_t)bytes, 0);
  else
    prof_memory_free(pool, address, 0 - (uint64_t)bytes);
}

static bool is_recording_wanted(void) {
  return memory_thread.proof_out ||
         __atomic_load_n(&torch_memory.wanting_threads, __ATOMIC_RELAXED) != 0;
}

/* ---- the object that is registered ---- */

static void report_allocation(debug_object *object, const void *address, int64_t bytes,
                              size_t allocated_bytes, size_t reserved_bytes, torch_device device) {
  (void)object;
  (void)allocated_bytes;
  (void)reserved_bytes;
  if (is_recording_wanted()) record_allocation(address, bytes, device);
}

static bool is_reporting_enabled(debug_object *object) {
  (void)object;
  return is_recording_wanted();
}

static uint64_t return_zero(void) { return 0; }

#define NOTHING (any_function) return_zero
#define NOTHING_5 NOTHING, NOTHING, NOTHING, NOTHING, NOTHING

/* The Itanium C++ ABI. The destructors are never called: nothing owns the object. */
static const struct {
  const void *offset_to_top, *type;
  any_function entries[TABLE_ENTRIES];
} debug_table = {
    NULL,
    NULL,
    {NOTHING, NOTHING, (any_function)report_allocation, NOTHING, (any_function)is_reporting_enabled,
     NOTHING_5, NOTHING_5, NOTHING_5, NOTHING_5, NOTHING_5},
};

static struct {
  debug_object object;
  uint64_t zeros[512]; /* more than the class that torch takes it for has */
} debug_state = {.object = {debug_table.entries}};

/* ---- torch's own object, while torch's profiler is on ---- */

typedef struct table_patch {
  const any_function *original; /* the class's own table */
  any_function table[TABLE_HEAD + TABLE_ENTRIES];
} table_patch;

static struct {
  pthread_mutex_t lock;
  uint32_t count;
  table_patch of[PATCHES_MAX];
} table_patches = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const table_patch *patch_of(const debug_object *object) {
  const char *const entries = (const char *)object->functions;
  return (const table_patch *)(entries - offsetof(table_patch, table) -
                               TABLE_HEAD * sizeof(any_function));
}

static bool is_enabled_originally(debug_object *object) {
  is_enabled_function original;
  memcpy(&original, &patch_of(object)->original[ENTRY_IS_ENABLED], sizeof original);
  return original(object);
}

static bool is_enabled_patched(debug_object *object) {
  return is_recording_wanted() || is_enabled_originally(object);
}

static void report_patched(debug_object *object, const void *address, int64_t bytes,
                           size_t allocated_bytes, size_t reserved_bytes, torch_device device) {
  report_function original;
  memcpy(&original, &patch_of(object)->original[ENTRY_REPORT], sizeof original);
  if (is_enabled_originally(object))
    original(object, address, bytes, allocated_bytes, reserved_bytes, device);
  if (is_recording_wanted()) record_allocation(address, bytes, device);
}

/* A table may be shorter than what is copied; what lies behind it need not be readable. */
static bool table_copy(table_patch *to, const any_function *entries) {
  const struct iovec local = {to->table, sizeof to->table};
  const struct iovec remote = {(void *)(uintptr_t)(entries - TABLE_HEAD), sizeof to->table};
  const size_t least = (TABLE_HEAD + ENTRY_IS_ENABLED + 1) * sizeof(any_function);
  const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (got < (ssize_t)least) return false;
  to->original = entries;
  to->table[TABLE_HEAD + ENTRY_REPORT] = (any_function)report_patched;
  to->table[TABLE_HEAD + ENTRY_IS_ENABLED] = (any_function)is_enabled_patched;
  return true;
}

/* Lock held. NULL: there is no room, or the table cannot be read. */
static const any_function *table_for(const any_function *entries) {
  for (uint32_t i = 0; i < table_patches.count; i++) {
    const any_function *const ours = table_patches.of[i].table + TABLE_HEAD;
    if (entries == ours || entries == table_patches.of[i].original) return ours;
  }
  if (table_patches.count == PATCHES_MAX ||
      !table_copy(&table_patches.of[table_patches.count], entries))
    return NULL;
  return table_patches.of[table_patches.count++].table + TABLE_HEAD;
}

static bool object_patch(debug_object *object) {
  pthread_mutex_lock(&table_patches.lock);
  const any_function *const table = table_for(object->functions);
  pthread_mutex_unlock(&table_patches.lock);
  if (table) __atomic_store_n(&object->functions, table, __ATOMIC_RELEASE);
  return table != NULL;
}

/* ---- this thread's registration ---- */

/* Is ours the last that was registered? Only the last one can be removed: else torch throws. */
static bool is_observer_on_top(void) {
  const shared_pointer top = torch_functions.current().pointer;
  if (!top.object) return false;
  const void *object;
  memcpy(&object, top.object, sizeof object); /* the first member of a ThreadLocalDebugInfo */
  if (top.control) __atomic_sub_fetch(&top.control[2], 1, __ATOMIC_ACQ_REL);
  return object == &debug_state.object;
}

/* The owner of what was registered above ours removes it first. Ours is then removed later. */
static void detach_observer(void) {
  if (torch_functions.get(torch_functions.kind) == &debug_state.object && is_observer_on_top())
    torch_functions.pop(torch_functions.kind);
}

typedef enum attach_result { ATTACHED = 0, ATTACHED_BESIDE = 1, ATTACHED_NOT = -1 } attach_result;

static attach_result attach_observer(void) {
  shared_pointer info = {&debug_state.object, NULL};
  debug_object *const there = torch_functions.get(torch_functions.kind);
  if (there && there != &debug_state.object)
    return object_patch(there) ? ATTACHED_BESIDE : ATTACHED_NOT;
  if (!there) torch_functions.push(torch_functions.kind, &info);
  if (torch_functions.get(torch_functions.kind) == &debug_state.object &&
      torch_functions.is_enabled())
    return ATTACHED;
  detach_observer();
  return ATTACHED_NOT;
}

/* ---- for _torch_memory.py ---- */

PROF_I_TORCH_EXPORT const char *prof_i_torch_memory_open_1(int is_rocm);
PROF_I_TORCH_EXPORT int prof_i_torch_memory_prove_1(allocation_proof *proof_or_null);
PROF_I_TORCH_EXPORT int prof_i_torch_memory_want_1(int wants_memory);
PROF_I_TORCH_EXPORT void prof_i_torch_memory_forget_1(void);
PROF_I_TORCH_EXPORT void prof_i_torch_memory_yield_1(void);
PROF_I_TORCH_EXPORT int prof_i_torch_memory_resume_1(void);

/* Before all others. NULL, or the symbol that is missing. */
const char *prof_i_torch_memory_open_1(int is_rocm) {
  const char *const missing = find_symbols();
  if (missing) return missing;
  if (is_rocm) torch_memory.cuda_type = PROF_DEVICE_ROCM;
  pthread_once(&torch_memory.once, register_fork);
  return NULL;
}

/* Reports of this thread go to *proof_or_null, which the caller owns, until a call with NULL.
   Returns an attached. */
int prof_i_torch_memory_prove_1(allocation_proof *proof_or_null) {
  memory_thread.proof_out = proof_or_null;
  if (proof_or_null) return attach_observer();
  detach_observer();
  return ATTACHED;
}

/* Whether this thread, and autograd's threads that work for it, report. An attached. */
int prof_i_torch_memory_want_1(int wants_memory) {
  if (memory_thread.wants_memory != (wants_memory != 0)) {
    memory_thread.wants_memory = wants_memory != 0;
    __atomic_fetch_add(&torch_memory.wanting_threads, wants_memory ? 1U : -1U, __ATOMIC_RELAXED);
  }
  if (wants_memory) return attach_observer();
  detach_observer();
  return ATTACHED;
}

/* In place of prof_i_torch_memory_want_1(0), of a thread that has ended. */
void prof_i_torch_memory_forget_1(void) {
  __atomic_fetch_sub(&torch_memory.wanting_threads, 1, __ATOMIC_RELAXED);
}

/* A profiler of torch's is about to start in this thread. */
void prof_i_torch_memory_yield_1(void) { detach_observer(); }

/* It has started, or ended, or could not start. An attached. */
int prof_i_torch_memory_resume_1(void) {
  return memory_thread.wants_memory ? attach_observer() : ATTACHED;
}
