// usage: cupti_walk libcupti.so
// Walks a hand-made buffer of the newest records that this release's headers have, by this
// release's own library: what src/cuda makes of it. That needs no driver. Compiled against each
// release by cupti-walk.sh.
#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_version.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
#include "../../../src/cuda/internal.h"
#include "../../../src/device/vendor.h"
}

#if CUPTI_API_VERSION >= 130000
using kernel = CUpti_ActivityKernel10;
using copy = CUpti_ActivityMemcpy6;
#elif CUPTI_API_VERSION >= 27     // 12.9
using kernel = CUpti_ActivityKernel9;
using copy = CUpti_ActivityMemcpy6;
#elif defined(CUPTI_HAS_KERNEL9)  // 12.0 says the same number as 11.8
using kernel = CUpti_ActivityKernel9;
using copy = CUpti_ActivityMemcpy5;
#else
using kernel = CUpti_ActivityKernel8;
using copy = CUpti_ActivityMemcpy5;
#endif
#if CUPTI_API_VERSION >= 27
using memory = CUpti_ActivityMemory4;
#else
using memory = CUpti_ActivityMemory3;
#endif
#if CUPTI_API_VERSION >= 22  // 12.4
using graph = CUpti_ActivityGraphTrace2;
#else
using graph = CUpti_ActivityGraphTrace;
#endif
using fill = CUpti_ActivityMemset4;
using peer_copy = CUpti_ActivityMemcpyPtoP4;

// ---- prof's side ----

static std::vector<std::string> names;
static std::vector<std::vector<char>> emitted;
static const char *library;

static uint32_t intern(const char *text, size_t bytes) {
  for (size_t i = 0; i < names.size(); i++)
    if (names[i] == std::string(text, bytes)) return (uint32_t)i + 1;
  names.emplace_back(text, bytes);
  return (uint32_t)names.size();
}
static void emit(const void *records, size_t bytes) {
  emitted.emplace_back((const char *)records, (const char *)records + bytes);
}
static uint64_t thread_of(uint64_t kernels_number) { return kernels_number == 4711 ? 3 : 0; }
static const char *option(const char *key) {
  return std::strcmp(key, "CUPTI") == 0 ? library : nullptr;
}

// ---- the buffer ----

alignas(8) static uint8_t buffer[65536];
static size_t valid;

template <typename T>
static T &put(CUpti_ActivityKind kind, uint64_t start, uint64_t end) {
  T &record = *reinterpret_cast<T *>(buffer + valid);
  std::memset(&record, 0, sizeof record);
  record.kind = kind;
  record.start = start;
  record.end = end;
  record.correlationId = 77;
  valid += sizeof record;
  return record;
}

template <typename T>
static T &put_on_stream(CUpti_ActivityKind kind, uint64_t start, uint64_t end) {
  T &record = put<T>(kind, start, end);
  record.deviceId = 1;
  record.contextId = 2;
  record.streamId = 13;
  return record;
}

static void put_memory(CUpti_ActivityMemoryOperationType what, uint64_t when) {
  memory &record = *reinterpret_cast<memory *>(buffer + valid);
  std::memset(&record, 0, sizeof record);
  record.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  record.memoryOperationType = what;
  record.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
  record.address = 0x1000;
  record.bytes = 256;
  record.timestamp = when;
  record.deviceId = 1;
  valid += sizeof record;
}

static void make_buffer() {
  CUpti_ActivityAPI &call = put<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME, 1000, 5000);
  call.cbid = 211;  // cudaLaunchKernel_v7000
  call.threadId = 4711;
  kernel &k = put_on_stream<kernel>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 7000, 9000);
  k.gridX = 6;
  k.gridY = 4;
  k.gridZ = 2;
  k.blockX = 64;
  k.blockY = k.blockZ = 1;
  k.staticSharedMemory = 16;
  k.dynamicSharedMemory = 1024;
  k.registersPerThread = 40;
  k.name = "_Z4busyPfi";
  k.queued = 5500;
  k.submitted = 6000;
  k.graphNodeId = 99;
  k.graphId = 9;
  copy &c = put_on_stream<copy>(CUPTI_ACTIVITY_KIND_MEMCPY, 10000, 11000);
  c.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  c.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  c.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  c.bytes = 4096;
  fill &f = put_on_stream<fill>(CUPTI_ACTIVITY_KIND_MEMSET, 12000, 13000);
  f.bytes = 512;
  f.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  peer_copy &p = put_on_stream<peer_copy>(CUPTI_ACTIVITY_KIND_MEMCPY2, 14000, 15000);
  p.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  p.srcKind = p.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  p.bytes = 8192;
  p.srcDeviceId = 1;
  p.dstDeviceId = 3;
  put_memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, 19000);
  put_memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, 18000);
  put_on_stream<graph>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 16000, 17000).graphId = 7;
}

// ---- the checks ----

static int failures;
static void same(const char *what, uint64_t is, uint64_t wanted) {
  if (is == wanted) return;
  std::printf("%s: %llu, not %llu\n", what, (unsigned long long)is, (unsigned long long)wanted);
  failures++;
}
static void same_text(const char *what, uint32_t number, const char *wanted) {
  const std::string is = number && number <= names.size() ? names[number - 1] : "(none)";
  if (is == wanted) return;
  std::printf("%s: %s, not %s\n", what, is.c_str(), wanted);
  failures++;
}

template <typename T>
static T emitted_at(size_t i) {
  T record;
  std::memset(&record, 0, sizeof record);
  if (i < emitted.size())
    std::memcpy(&record, emitted[i].data(),
                emitted[i].size() < sizeof record ? emitted[i].size() : sizeof record);
  return record;
}

static void check_launch(const char *what, const prof_backend_record &record, uint32_t kind,
                         uint64_t start, uint64_t end) {
  same(what, record.kind, kind);
  same("start", record.start, start);
  same("end", record.end, end);
  same("launch", record.launch, 3000);  // the middle of its call
  same("launch thread", record.launch_thread, 3);
  same("flags", record.flags, PROF_BACKEND_LAUNCH_CLOCK);
  same("correlation", record.correlation, 77);
  same("device", record.device, 1);
  same("stream", record.stream, UINT64_C(2) << 32 | 13);
}

static void check_all() {
  same("records", emitted.size(), 7);
  const prof_backend_record call = emitted_at<prof_backend_record>(0);
  same("call", call.kind, PROF_BACKEND_CALL);
  same("its start", call.start, 1000);
  same_text("its name", call.name,
            "cudaLaunchKernel");  // as the real table has it, without the release
  const prof_backend_kernel k = emitted_at<prof_backend_kernel>(1);
  check_launch("kernel", k.record, PROF_BACKEND_KERNEL, 7000, 9000);
  same_text("its name", k.record.name, "busy(float*, int)");
  same("grid", k.grid[0] * 100 + k.grid[1] * 10 + k.grid[2], 642);
  same("block", k.block[0], 64);
  same("shared memory", k.shared_bytes, 1040);
  same("registers", k.registers, 40);
  same("queued", k.queued, 5500);
  same("submitted", k.submitted, 6000);
  same("graph", k.graph, 9);
  same("graph node", k.graph_node, 99);
  same("context", k.context, 2);
  const prof_backend_copy c = emitted_at<prof_backend_copy>(2),
                          f = emitted_at<prof_backend_copy>(3),
                          p = emitted_at<prof_backend_copy>(4);
  check_launch("copy", c.record, PROF_BACKEND_COPY, 10000, 11000);
  same_text("its name", c.record.name, "Memcpy HtoD (Pinned -> Device)");
  same("bytes", c.bytes, 4096);
  check_launch("fill", f.record, PROF_BACKEND_FILL, 12000, 13000);
  same_text("its name", f.record.name, "Memset (Device)");
  same("bytes", f.bytes, 512);
  check_launch("peer copy", p.record, PROF_BACKEND_COPY, 14000, 15000);
  same_text("its name", p.record.name, "Memcpy PtoP (Device -> Device)");
  same("from", p.from_index, 1);
  same("to", p.to_index, 3);
  const prof_backend_record g = emitted_at<prof_backend_record>(5);
  check_launch("graph", g, PROF_BACKEND_OTHER, 16000, 17000);
  same_text("its name", g.name, "CUDA graph 7");
  for (size_t i = 0; i < 2; i++) {  // in the order of their times, as one
    prof_backend_memory m = {};
    if (emitted[6].size() == 2 * sizeof m)
      std::memcpy(&m, emitted[6].data() + i * sizeof m, sizeof m);
    same("memory", m.record.kind, PROF_BACKEND_MEMORY);
    same("its size", m.record.size, sizeof m);
    same("when", m.record.start, 18000 + 1000 * i);
    same("device", m.record.device, 1);
    same("address", m.address, 0x1000);
    same("bytes", m.bytes, 256);
    same("place", m.place, PROF_BACKEND_MEMORY_MANAGED);
    same("is a release", m.is_release, i);
  }
}

static int walk() {
  void *record = nullptr;
  int32_t error;
  while ((error = prof_i_cupti.cuptiActivityGetNextRecord(buffer, valid, &record)) == 0 && record)
    prof_i_cuda_record_add(record);
  return error;
}

int main(int argc, char **argv) {
  prof_backend_host host = {};
  if (argc != 2) return 2;
  library = argv[1];
  host.size = sizeof host;
  host.option = option;
  host.intern = intern;
  host.emit = emit;
  host.thread_of = thread_of;
  const int result = prof_i_cupti_library_open(&host, 13000);
  if (result != 0)
    return std::printf("the library cannot be used: %d, %s\n", result, prof_i_backend_last_error()),
           1;
  prof_i_cuda_records_begin(&host, ~0u, false);
  make_buffer();
  same("the walk's end", (uint64_t)walk(), PROF_I_CUPTI_ERROR_MAX_LIMIT_REACHED);
  prof_i_cuda_records_flush(true);
  check_all();
  // Of what no release knows the walk stops, and says so.
  *reinterpret_cast<uint32_t *>(buffer + valid) = 777;
  valid += 64;
  const int error = walk();
  if (error == 0 || error == PROF_I_CUPTI_ERROR_MAX_LIMIT_REACHED)
    std::printf("an unknown record: %d\n", error), failures++;
  return failures ? 1 : 0;
}
