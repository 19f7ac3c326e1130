/* libprof_opencl.so: an OpenCL layer, named by OPENCL_LAYERS. The loader (ocl-icd 2.3, Khronos'
   own) opens it in the program's first call, and puts it in front of all others. It gives prof a
   back end that can do what libprof.so's own can, and records each command, too. Without a
   recording a call costs one more load and branch. */
#define _GNU_SOURCE
#include "layer.h"

#include <prof/device.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <string.h>

#include "../../src/opencl/internal.h"
#include "commands.h"

enum { CL_SUCCESS_ = 0, CL_INVALID_VALUE_ = -30 };

void *const *prof_i_layer_next_table;

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

void prof_i_layer_add_backend(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, add_layer_backend);
}

/* ---- what the loader calls ---- */

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
  prof_i_layer_hook(table, count < PROF_I_CL_PLACES ? count : PROF_I_CL_PLACES);
  *count_out = count < PROF_I_CL_PLACES ? count : PROF_I_CL_PLACES;
  *table_out = table;
  pthread_atfork(NULL, NULL, prof_i_commands_forget);
  return CL_SUCCESS_;
}
