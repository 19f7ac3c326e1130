/* libprof_opencl.so: an OpenCL layer, named by OPENCL_LAYERS. The loader (ocl-icd 2.3, Khronos'
   own) opens it in the program's first call, and puts it in front of all others. It gives prof a
   back end that can do what libprof.so's own can, and records each command, too. Without a
   recording a call costs one more load and branch.
   The layer's functions call the next layer's with the program's arguments, and return its result.
   Two things change: a command gets an event if the program wants none, and a queue records times.
   At level 2 each call is a scope of its thread. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void *const *prof_i_layer_next_table;

/* ---- the back end ---- */

/* The program has a queue. */
static int layer_probe(const prof_backend_host *host) {
  prof_i_commands_set_host(host);
  return PROF_BACKEND_OK;
}

static int layer_open(const prof_backend_host *host, prof_backend_self **self_out) {
  const int result = prof_i_opencl_backend.probe(host);
  return result == PROF_BACKEND_OK ? prof_i_opencl_backend.open(host, self_out) : result;
}

static void layer_fork_child(prof_backend_self *self) {
  prof_i_opencl_backend.fork_child(self);
  prof_i_commands_forget();
}

static void add_layer_backend(void) {
  static prof_backend table;
  table = prof_i_opencl_backend;
  table.name = "opencl layer";
  table.probe = layer_probe;
  table.open = layer_open;
  table.fork_child = layer_fork_child;
  table.start = prof_i_commands_start;
  table.stop = prof_i_commands_stop;
  table.drain = prof_i_commands_drain;
  table.records_always = 1;
  /* the layer records all commands: events that the program hands over would be recorded twice */
  table.own_keep = NULL;
  table.own_times = NULL;
  table.own_let_go = NULL;
  prof_backend_add(&table);
}

/* Adds the back end when the program has created its first queue, so its devices exist. Not sooner:
   a driver may crash if another thread queries devices while it creates them (PoCL 3.1 does). Any
   thread; cheap after the first time. */
static void layer_ensure_backend(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, add_layer_backend);
}

/* ---- a queue's properties: a command has times only if its queue was made with profiling. The
   layer adds that, unless PROF_BACKEND_OPENCL_QUEUES=unchanged forbids it ---- */

enum { QUEUE_WORDS = 64 };

static bool may_change_queues(void) {
  const char *const wanted = secure_getenv("PROF_BACKEND_OPENCL_QUEUES");
  return !wanted || strcmp(wanted, "unchanged") != 0;
}

/* Not for a queue on the device, which kernels put commands on. */
static uint64_t with_profiling(uint64_t properties) {
  return properties & PROF_I_CL_QUEUE_ON_DEVICE ? properties
                                                : properties | PROF_I_CL_QUEUE_PROFILING_ENABLE;
}

static uint64_t extend_queue_properties(uint64_t properties) {
  return may_change_queues() ? with_profiling(properties) : properties;
}

/* list: names and values up to a 0, or NULL. Returns the list itself, or a copy in room. */
static const uint64_t *extend_queue_property_list(const uint64_t *list,
                                                  uint64_t room[QUEUE_WORDS]) {
  size_t words = 0, at = SIZE_MAX;
  if (!may_change_queues()) return list;
  for (; list && list[words]; words += 2) {
    /* too long: left as it is */
    if (words + 5 > QUEUE_WORDS) return list;
    if (list[words] == PROF_I_CL_QUEUE_PROPERTIES) at = words + 1;
    memcpy(room + words, list + words, 2 * sizeof *list);
  }
  if (at == SIZE_MAX) {
    room[words] = PROF_I_CL_QUEUE_PROPERTIES;
    room[words + 1] = 0;
    at = words + 1;
    words += 2;
  }
  room[at] = with_profiling(room[at]);
  room[words] = 0;
  return room;
}

/* ---- the functions ---- */

#define WAITS uint32_t count, const prof_i_cl_event *events, prof_i_cl_event *event_out
#define NEXT_FUNCTION(name) \
  (*(__typeof__(&hook_##name))prof_i_layer_next_table[PROF_I_CL_PLACE_##name])
/* A site without a place: where the program calls is not known, and this file is not the
   program's. */
#define CALL(name)                                                           \
  static prof_site site = {.file = "", .function = "", .level = 2};          \
  const uint64_t call_scope __attribute__((cleanup(prof_i_leave), unused)) = \
      PROF_I_IS_ON(2) ? prof_i_begin_1(&site, #name, "opencl_runtime") : 0

/* The rest of a function that enqueues a command: its arguments, with `event` for where its event
   goes. */
#define ENQUEUE(name, about, ...)                                                                 \
  CALL(name);                                                                                     \
  const prof_i_command_info what = about;                                                         \
  prof_i_command *const command = prof_i_command_begin(queue, &what);                             \
  prof_i_cl_event ours = NULL, *const event = event_out || !command ? event_out : &ours;          \
  const int32_t error = NEXT_FUNCTION(name)(__VA_ARGS__);                                         \
  prof_i_command_end(command, &what, error, error == 0 && event ? *event : NULL, event == &ours); \
  return error

#define ABOUT(...) \
  { __VA_ARGS__ }
#define TO_HOST(size, waits)                                                           \
  ABOUT(.blocks = (waits) != 0, .kind = PROF_BACKEND_COPY, .from = PROF_DEVICE_OPENCL, \
        .to = PROF_DEVICE_CPU, .bytes = (size))
#define TO_DEVICE(size, waits)                                                      \
  ABOUT(.blocks = (waits) != 0, .kind = PROF_BACKEND_COPY, .from = PROF_DEVICE_CPU, \
        .to = PROF_DEVICE_OPENCL, .bytes = (size))
#define ON_DEVICE(size)                                                                  \
  ABOUT(.kind = PROF_BACKEND_COPY, .from = PROF_DEVICE_OPENCL, .to = PROF_DEVICE_OPENCL, \
        .bytes = (size))
#define FILL(size) ABOUT(.kind = PROF_BACKEND_FILL, .to = PROF_DEVICE_OPENCL, .bytes = (size))

static uint64_t region_bytes(const size_t *region) {
  return region ? (uint64_t)region[0] * region[1] * region[2] : 0;
}

/* ---- kernels ---- */

static int32_t hook_clEnqueueNDRangeKernel(prof_i_cl_queue queue, prof_i_cl_kernel kernel,
                                           uint32_t dims, const size_t *offset,
                                           const size_t *global, const size_t *local, WAITS) {
  ENQUEUE(clEnqueueNDRangeKernel,
          ABOUT(.kind = PROF_BACKEND_KERNEL, .kernel = kernel, .global = global, .local = local,
                .dims = dims),
          queue, kernel, dims, offset, global, local, count, events, event);
}
static int32_t hook_clEnqueueTask(prof_i_cl_queue queue, prof_i_cl_kernel kernel, WAITS) {
  ENQUEUE(clEnqueueTask, ABOUT(.kind = PROF_BACKEND_KERNEL, .kernel = kernel), queue, kernel, count,
          events, event);
}
static int32_t hook_clEnqueueNativeKernel(prof_i_cl_queue queue, void (*function)(void *),
                                          void *arguments, size_t bytes, uint32_t memory_count,
                                          const prof_i_cl_memory *memories, const void **places,
                                          WAITS) {
  ENQUEUE(clEnqueueNativeKernel, ABOUT(.kind = PROF_BACKEND_KERNEL, .name = "native kernel"), queue,
          function, arguments, bytes, memory_count, memories, places, count, events, event);
}

/* ---- copies and fills ---- */

static int32_t hook_clEnqueueReadBuffer(prof_i_cl_queue queue, prof_i_cl_memory buffer,
                                        uint32_t blocks, size_t offset, size_t bytes, void *to,
                                        WAITS) {
  ENQUEUE(clEnqueueReadBuffer, TO_HOST(bytes, blocks), queue, buffer, blocks, offset, bytes, to,
          count, events, event);
}
static int32_t hook_clEnqueueWriteBuffer(prof_i_cl_queue queue, prof_i_cl_memory buffer,
                                         uint32_t blocks, size_t offset, size_t bytes,
                                         const void *from, WAITS) {
  ENQUEUE(clEnqueueWriteBuffer, TO_DEVICE(bytes, blocks), queue, buffer, blocks, offset, bytes,
          from, count, events, event);
}
static int32_t hook_clEnqueueCopyBuffer(prof_i_cl_queue queue, prof_i_cl_memory from,
                                        prof_i_cl_memory to, size_t from_offset, size_t to_offset,
                                        size_t bytes, WAITS) {
  ENQUEUE(clEnqueueCopyBuffer, ON_DEVICE(bytes), queue, from, to, from_offset, to_offset, bytes,
          count, events, event);
}
static int32_t hook_clEnqueueReadBufferRect(prof_i_cl_queue queue, prof_i_cl_memory buffer,
                                            uint32_t blocks, const size_t *origin,
                                            const size_t *host_origin, const size_t *region,
                                            size_t row, size_t slice, size_t host_row,
                                            size_t host_slice, void *to, WAITS) {
  ENQUEUE(clEnqueueReadBufferRect, TO_HOST(region_bytes(region), blocks), queue, buffer, blocks,
          origin, host_origin, region, row, slice, host_row, host_slice, to, count, events, event);
}
static int32_t hook_clEnqueueWriteBufferRect(prof_i_cl_queue queue, prof_i_cl_memory buffer,
                                             uint32_t blocks, const size_t *origin,
                                             const size_t *host_origin, const size_t *region,
                                             size_t row, size_t slice, size_t host_row,
                                             size_t host_slice, const void *from, WAITS) {
  ENQUEUE(clEnqueueWriteBufferRect, TO_DEVICE(region_bytes(region), blocks), queue, buffer, blocks,
          origin, host_origin, region, row, slice, host_row, host_slice, from, count, events,
          event);
}
static int32_t hook_clEnqueueCopyBufferRect(prof_i_cl_queue queue, prof_i_cl_memory from,
                                            prof_i_cl_memory to, const size_t *from_origin,
                                            const size_t *to_origin, const size_t *region,
                                            size_t from_row, size_t from_slice, size_t to_row,
                                            size_t to_slice, WAITS) {
  ENQUEUE(clEnqueueCopyBufferRect, ON_DEVICE(region_bytes(region)), queue, from, to, from_origin,
          to_origin, region, from_row, from_slice, to_row, to_slice, count, events, event);
}
static int32_t hook_clEnqueueFillBuffer(prof_i_cl_queue queue, prof_i_cl_memory buffer,
                                        const void *pattern, size_t pattern_bytes, size_t offset,
                                        size_t bytes, WAITS) {
  ENQUEUE(clEnqueueFillBuffer, FILL(bytes), queue, buffer, pattern, pattern_bytes, offset, bytes,
          count, events, event);
}

/* An image's regions count elements. Their size is not queried. */
static int32_t hook_clEnqueueReadImage(prof_i_cl_queue queue, prof_i_cl_memory image,
                                       uint32_t blocks, const size_t *origin, const size_t *region,
                                       size_t row, size_t slice, void *to, WAITS) {
  ENQUEUE(clEnqueueReadImage, TO_HOST(0, blocks), queue, image, blocks, origin, region, row, slice,
          to, count, events, event);
}
static int32_t hook_clEnqueueWriteImage(prof_i_cl_queue queue, prof_i_cl_memory image,
                                        uint32_t blocks, const size_t *origin, const size_t *region,
                                        size_t row, size_t slice, const void *from, WAITS) {
  ENQUEUE(clEnqueueWriteImage, TO_DEVICE(0, blocks), queue, image, blocks, origin, region, row,
          slice, from, count, events, event);
}
static int32_t hook_clEnqueueCopyImage(prof_i_cl_queue queue, prof_i_cl_memory from,
                                       prof_i_cl_memory to, const size_t *from_origin,
                                       const size_t *to_origin, const size_t *region, WAITS) {
  ENQUEUE(clEnqueueCopyImage, ON_DEVICE(0), queue, from, to, from_origin, to_origin, region, count,
          events, event);
}
static int32_t hook_clEnqueueCopyImageToBuffer(prof_i_cl_queue queue, prof_i_cl_memory from,
                                               prof_i_cl_memory to, const size_t *origin,
                                               const size_t *region, size_t offset, WAITS) {
  ENQUEUE(clEnqueueCopyImageToBuffer, ON_DEVICE(0), queue, from, to, origin, region, offset, count,
          events, event);
}
static int32_t hook_clEnqueueCopyBufferToImage(prof_i_cl_queue queue, prof_i_cl_memory from,
                                               prof_i_cl_memory to, size_t offset,
                                               const size_t *origin, const size_t *region, WAITS) {
  ENQUEUE(clEnqueueCopyBufferToImage, ON_DEVICE(0), queue, from, to, offset, origin, region, count,
          events, event);
}
static int32_t hook_clEnqueueFillImage(prof_i_cl_queue queue, prof_i_cl_memory image,
                                       const void *color, const size_t *origin,
                                       const size_t *region, WAITS) {
  ENQUEUE(clEnqueueFillImage, FILL(0), queue, image, color, origin, region, count, events, event);
}

static int32_t hook_clEnqueueMigrateMemObjects(prof_i_cl_queue queue, uint32_t memory_count,
                                               const prof_i_cl_memory *memories, uint64_t flags,
                                               WAITS) {
  ENQUEUE(clEnqueueMigrateMemObjects, ABOUT(.kind = PROF_BACKEND_COPY, .name = "migrate"), queue,
          memory_count, memories, flags, count, events, event);
}
static int32_t hook_clEnqueueSVMMemcpy(prof_i_cl_queue queue, uint32_t blocks, void *to,
                                       const void *from, size_t bytes, WAITS) {
  ENQUEUE(clEnqueueSVMMemcpy,
          ABOUT(.blocks = blocks != 0, .kind = PROF_BACKEND_COPY, .bytes = bytes), queue, blocks,
          to, from, bytes, count, events, event);
}
static int32_t hook_clEnqueueSVMMemFill(prof_i_cl_queue queue, void *at, const void *pattern,
                                        size_t pattern_bytes, size_t bytes, WAITS) {
  ENQUEUE(clEnqueueSVMMemFill, FILL(bytes), queue, at, pattern, pattern_bytes, bytes, count, events,
          event);
}
static int32_t hook_clEnqueueSVMMigrateMem(prof_i_cl_queue queue, uint32_t at_count,
                                           const void **at, const size_t *bytes, uint64_t flags,
                                           WAITS) {
  ENQUEUE(clEnqueueSVMMigrateMem, ABOUT(.kind = PROF_BACKEND_COPY, .name = "migrate"), queue,
          at_count, at, bytes, flags, count, events, event);
}

/* ---- maps ---- */

#define MAP(size)                                                        \
  ABOUT(.blocks = blocks != 0, .kind = PROF_BACKEND_COPY, .name = "map", \
        .from = PROF_DEVICE_OPENCL, .to = PROF_DEVICE_CPU, .bytes = (size))
#define UNMAP                                                                \
  ABOUT(.kind = PROF_BACKEND_COPY, .name = "unmap", .from = PROF_DEVICE_CPU, \
        .to = PROF_DEVICE_OPENCL)

static int32_t hook_clEnqueueSVMMap(prof_i_cl_queue queue, uint32_t blocks, uint64_t flags,
                                    void *at, size_t bytes, WAITS) {
  ENQUEUE(clEnqueueSVMMap, MAP(bytes), queue, blocks, flags, at, bytes, count, events, event);
}
static int32_t hook_clEnqueueSVMUnmap(prof_i_cl_queue queue, void *at, WAITS) {
  ENQUEUE(clEnqueueSVMUnmap, UNMAP, queue, at, count, events, event);
}
static int32_t hook_clEnqueueUnmapMemObject(prof_i_cl_queue queue, prof_i_cl_memory memory,
                                            void *at, WAITS) {
  ENQUEUE(clEnqueueUnmapMemObject, UNMAP, queue, memory, at, count, events, event);
}

/* These give an address, and the error by the way. */
#define ENQUEUE_MAP(name, about, ...)                                                             \
  CALL(name);                                                                                     \
  const prof_i_command_info what = about;                                                         \
  prof_i_command *const command = prof_i_command_begin(queue, &what);                             \
  prof_i_cl_event ours = NULL, *const event = event_out || !command ? event_out : &ours;          \
  int32_t error = 0;                                                                              \
  void *const mapped = NEXT_FUNCTION(name)(__VA_ARGS__);                                          \
  prof_i_command_end(command, &what, error, error == 0 && event ? *event : NULL, event == &ours); \
  if (error_out) *error_out = error;                                                              \
  return mapped

static void *hook_clEnqueueMapBuffer(prof_i_cl_queue queue, prof_i_cl_memory buffer,
                                     uint32_t blocks, uint64_t flags, size_t offset, size_t bytes,
                                     WAITS, int32_t *error_out) {
  ENQUEUE_MAP(clEnqueueMapBuffer, MAP(bytes), queue, buffer, blocks, flags, offset, bytes, count,
              events, event, &error);
}
static void *hook_clEnqueueMapImage(prof_i_cl_queue queue, prof_i_cl_memory image, uint32_t blocks,
                                    uint64_t flags, const size_t *origin, const size_t *region,
                                    size_t *row_out, size_t *slice_out, WAITS, int32_t *error_out) {
  ENQUEUE_MAP(clEnqueueMapImage, MAP(0), queue, image, blocks, flags, origin, region, row_out,
              slice_out, count, events, event, &error);
}

/* ---- what only the host does ---- */

static int32_t hook_clFlush(prof_i_cl_queue queue) {
  CALL(clFlush);
  return NEXT_FUNCTION(clFlush)(queue);
}
static int32_t hook_clFinish(prof_i_cl_queue queue) {
  CALL(clFinish);
  return NEXT_FUNCTION(clFinish)(queue);
}
static int32_t hook_clWaitForEvents(uint32_t count, const prof_i_cl_event *events) {
  CALL(clWaitForEvents);
  return NEXT_FUNCTION(clWaitForEvents)(count, events);
}
static int32_t hook_clBuildProgram(prof_i_cl_program program, uint32_t count,
                                   const prof_i_cl_device *devices, const char *options,
                                   prof_i_cl_built built, void *with) {
  CALL(clBuildProgram);
  return NEXT_FUNCTION(clBuildProgram)(program, count, devices, options, built, with);
}
static int32_t hook_clCompileProgram(prof_i_cl_program program, uint32_t count,
                                     const prof_i_cl_device *devices, const char *options,
                                     uint32_t header_count, const prof_i_cl_program *headers,
                                     const char **names, prof_i_cl_built built, void *with) {
  CALL(clCompileProgram);
  return NEXT_FUNCTION(clCompileProgram)(program, count, devices, options, header_count, headers,
                                         names, built, with);
}
static prof_i_cl_program hook_clLinkProgram(prof_i_cl_context context, uint32_t count,
                                            const prof_i_cl_device *devices, const char *options,
                                            uint32_t program_count,
                                            const prof_i_cl_program *programs,
                                            prof_i_cl_built built, void *with, int32_t *error_out) {
  CALL(clLinkProgram);
  return NEXT_FUNCTION(clLinkProgram)(context, count, devices, options, program_count, programs,
                                      built, with, error_out);
}

/* ---- queues ---- */

/* A queue that cannot be had so is made as the program wanted it. */
static prof_i_cl_queue hook_clCreateCommandQueue(prof_i_cl_context context, prof_i_cl_device device,
                                                 uint64_t properties, int32_t *error_out) {
  const uint64_t wanted = extend_queue_properties(properties);
  int32_t error = 0;
  prof_i_cl_queue queue = NEXT_FUNCTION(clCreateCommandQueue)(context, device, wanted, &error);
  if (!queue && wanted != properties)
    queue = NEXT_FUNCTION(clCreateCommandQueue)(context, device, properties, &error);
  if (error_out) *error_out = error;
  if (queue) layer_ensure_backend();
  return queue;
}

static prof_i_cl_queue hook_clCreateCommandQueueWithProperties(prof_i_cl_context context,
                                                               prof_i_cl_device device,
                                                               const uint64_t *properties,
                                                               int32_t *error_out) {
  uint64_t room[QUEUE_WORDS];
  const uint64_t *const wanted = extend_queue_property_list(properties, room);
  int32_t error = 0;
  prof_i_cl_queue queue =
      NEXT_FUNCTION(clCreateCommandQueueWithProperties)(context, device, wanted, &error);
  if (!queue && wanted != properties)
    queue = NEXT_FUNCTION(clCreateCommandQueueWithProperties)(context, device, properties, &error);
  if (error_out) *error_out = error;
  if (queue) layer_ensure_backend();
  return queue;
}

/* Puts the functions into the table, where the next layer has some. */
static void layer_hook(void **table, uint32_t places) {
#define HOOK(place, name)                                 \
  if ((place) < places && prof_i_layer_next_table[place]) \
    table[place] = (void *)(uintptr_t)hook_##name;
  PROF_I_CL_HOOKED(HOOK)
#undef HOOK
}

/* ---- what the loader calls ---- */

enum { CL_SUCCESS_ = 0, CL_INVALID_VALUE_ = -30 };

#define EXPORT __attribute__((visibility("default")))
EXPORT int32_t clGetLayerInfo(uint32_t what, size_t room, void *to, size_t *bytes_out);
EXPORT int32_t clInitLayer(uint32_t count, void *const *target, uint32_t *count_out,
                           void *const **table_out);

int32_t clGetLayerInfo(uint32_t what, size_t room, void *to, size_t *bytes_out) {
  static const uint32_t version = PROF_I_CL_LAYER_API_VERSION_100;
  static const char name[] = "prof";
  const void *const from = what == PROF_I_CL_LAYER_API_VERSION ? (const void *)&version : name;
  const size_t bytes = what == PROF_I_CL_LAYER_API_VERSION ? sizeof version : sizeof name;
  if ((what != PROF_I_CL_LAYER_API_VERSION && what != PROF_I_CL_LAYER_NAME) ||
      (to && room < bytes) || (!to && !bytes_out))
    return CL_INVALID_VALUE_;
  if (to) memcpy(to, from, bytes);
  if (bytes_out) *bytes_out = bytes;
  return CL_SUCCESS_;
}

/* An older loader has fewer functions: the table ends where its own does. */
int32_t clInitLayer(uint32_t count, void *const *target, uint32_t *count_out,
                    void *const **table_out) {
  static void *table[PROF_I_CL_PLACES];
  if (!target || !count_out || !table_out || count <= PROF_I_CL_PLACE_clEnqueueNativeKernel ||
      prof_i_layer_next_table)
    return CL_INVALID_VALUE_;
  prof_i_layer_next_table = target;
  layer_hook(table, count < PROF_I_CL_PLACES ? count : PROF_I_CL_PLACES);
  *count_out = count < PROF_I_CL_PLACES ? count : PROF_I_CL_PLACES;
  *table_out = table;
  pthread_atfork(NULL, NULL, prof_i_commands_forget);
  return CL_SUCCESS_;
}
