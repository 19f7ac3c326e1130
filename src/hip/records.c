/* Converts rocprofiler's records to prof's: kernels, copies and calls, and what launched them. The
   collector alone.
   A kernel's record has a number for its name, which was reported once, when its code was
   loaded. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "../base/text.h"
#include "../device/vendor.h"

enum {
  KERNELS_AT_FIRST = 1024,
  KERNELS_MAX = 1 << 24,
  CALLS_MAX = 2048,
  UNKNOWN_DEVICE = UINT32_MAX
};

typedef struct known_kernel {
  const prof_i_rocp_name *name;
  uint32_t number; /* interned, in words; 0: not yet */
} known_kernel;

static struct {
  const prof_backend_host *host;
  const prof_i_hip_agent *agents;
  uint32_t agent_count, kinds;
  /* by the agent's place; one more than the number, 0: not looked for yet */
  uint32_t devices[PROF_I_HIP_AGENTS];
  prof_i_launch_matcher launches;
  known_kernel *kernels; /* by rocprofiler's number */
  uint64_t kernel_room;
  size_t names_at;
  uint32_t calls[CALLS_MAX]; /* interned names, by operation; 0: not asked yet */
} rocp_drain;

void prof_i_hip_records_begin(const prof_backend_host *host, const prof_i_hip_agent *agents,
                              uint32_t agent_count, uint32_t kinds, bool is_last) {
  rocp_drain.host = host;
  rocp_drain.agents = agents;
  rocp_drain.agent_count = agent_count;
  rocp_drain.kinds = kinds;
  prof_i_launch_matcher_begin(&rocp_drain.launches, host, is_last);
}

uint64_t prof_i_hip_records_unfinished(void) {
  return prof_i_launch_matcher_unfinished(&rocp_drain.launches);
}

void prof_i_hip_records_flush(bool are_all) {
  prof_i_launch_matcher_flush(&rocp_drain.launches, are_all);
}

static bool is_hip_kind_wanted(uint32_t kind) { return rocp_drain.kinds >> kind & 1; }

/* ---- kernels' names ---- */

static bool reserve_kernel(uint64_t number) {
  uint64_t room = rocp_drain.kernel_room ? rocp_drain.kernel_room : KERNELS_AT_FIRST;
  if (number < rocp_drain.kernel_room) return true;
  if (number >= KERNELS_MAX) return false;
  while (room <= number) room *= 2;
  known_kernel *const larger = realloc(rocp_drain.kernels, room * sizeof *larger);
  if (!larger) return false;
  memset(larger + rocp_drain.kernel_room, 0, (room - rocp_drain.kernel_room) * sizeof *larger);
  rocp_drain.kernels = larger;
  rocp_drain.kernel_room = room;
  return true;
}

static void read_kernel_names(void) {
  for (const prof_i_rocp_name *name; (name = prof_i_rocp_name_next(&rocp_drain.names_at)) != NULL;)
    if (reserve_kernel(name->kernel)) rocp_drain.kernels[name->kernel] = (known_kernel){name, 0};
}

/* A code object's symbol: "_Z4busyPfi.kd". */
static uint32_t intern_kernel_name(const prof_i_rocp_name *name) {
  static const char suffix[] = ".kd";
  const size_t end = sizeof suffix - 1,
               bytes = name->bytes > end && memcmp(name->text + name->bytes - end, suffix, end) == 0
                           ? name->bytes - end
                           : name->bytes;
  char *const words = prof_i_demangle(name->text, bytes);
  const uint32_t number = words ? rocp_drain.host->intern(words, strlen(words))
                                : rocp_drain.host->intern(name->text, bytes);
  free(words);
  return number;
}

static uint32_t hip_kernel_name(uint64_t number) {
  if (number >= rocp_drain.kernel_room || !rocp_drain.kernels[number].name) read_kernel_names();
  known_kernel *const it = number < rocp_drain.kernel_room ? &rocp_drain.kernels[number] : NULL;
  if (!it || !it->name) return 0;
  if (!it->number) it->number = intern_kernel_name(it->name);
  return it->number;
}

/* ---- devices ---- */

static bool is_agent_at(const prof_i_hip_agent *agent, const prof_backend_device *device) {
  return agent->domain == device->pci_domain &&
         (agent->location & 0xffff) >> 3 == (device->pci_bus << 5 | device->pci_device);
}

/* HIP's number: some may be hidden, or in another order. */
static uint32_t find_agent_device(const prof_i_hip_agent *agent) {
  for (uint32_t i = 0; i < prof_i_hip_devices_count(); i++) {
    prof_backend_device about = {.size = sizeof about};
    prof_i_hip_device_describe(i, &about);
    if (is_agent_at(agent, &about)) return i;
  }
  return UNKNOWN_DEVICE;
}

static uint32_t device_of_agent(uint64_t agent) {
  for (uint32_t i = 0; i < rocp_drain.agent_count; i++) {
    if (rocp_drain.agents[i].id != agent) continue;
    if (!rocp_drain.devices[i])
      rocp_drain.devices[i] = find_agent_device(&rocp_drain.agents[i]) + 1;
    return rocp_drain.devices[i] ? rocp_drain.devices[i] - 1 : UNKNOWN_DEVICE;
  }
  return UNKNOWN_DEVICE;
}

/* ---- what ran ---- */

static void begin_hip_record(prof_i_launched_record *it, uint32_t kind, size_t bytes,
                             uint64_t correlation, uint64_t start, uint64_t end) {
  memset(it, 0, sizeof *it);
  it->record.kind = (uint16_t)kind;
  it->record.size = (uint16_t)bytes;
  it->record.correlation = correlation;
  it->record.start = start;
  it->record.end = end;
  if (!start || !end) it->record.flags = PROF_BACKEND_NO_TIMES;
}

/* A hardware queue is not a stream: several streams share one. Its number cannot be a handle,
   because handles are lower. */
static uint64_t stream_of_queue(uint64_t queue) { return PROF_BACKEND_QUEUE | queue; }

static void take_dispatch(const prof_i_rocp_dispatch *from) {
  prof_i_launched_record it;
  begin_hip_record(&it, PROF_BACKEND_KERNEL, sizeof it.kernel, from->record.correlation,
                   from->start, from->end);
  it.record.flags |= PROF_BACKEND_GRID_ITEMS;
  it.record.device = device_of_agent(from->agent);
  it.record.stream = stream_of_queue(from->queue);
  it.record.name = hip_kernel_name(from->kernel);
  memcpy(it.kernel.grid, from->items, sizeof it.kernel.grid);
  memcpy(it.kernel.block, from->block, sizeof it.kernel.block);
  it.kernel.shared_bytes = from->group_bytes;
  prof_i_launch_matcher_emit(&rocp_drain.launches, &it);
}

/* The device that is not the host; of two, the destination. */
static void take_hip_copy(const prof_i_rocp_copy *from) {
  /* from HOST_TO_HOST on */
  static const char *const names[] = {"Memcpy HtoH", "Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoD"};
  const int32_t way = from->record.operation;
  const bool is_known = way >= PROF_I_ROCP_MEMORY_COPY_HOST_TO_HOST &&
                        way <= PROF_I_ROCP_MEMORY_COPY_DEVICE_TO_DEVICE;
  const char *const name = is_known ? names[way - PROF_I_ROCP_MEMORY_COPY_HOST_TO_HOST] : "Memcpy";
  const uint32_t to = device_of_agent(from->to), source = device_of_agent(from->from);
  prof_i_launched_record it;
  begin_hip_record(&it, PROF_BACKEND_COPY, sizeof it.copy, from->record.correlation, from->start,
                   from->end);
  it.record.device = way == PROF_I_ROCP_MEMORY_COPY_DEVICE_TO_HOST ? source : to;
  it.record.name = rocp_drain.host->intern(name, strlen(name));
  it.copy.bytes = from->bytes;
  if (is_known) {
    it.copy.from =
        way == PROF_I_ROCP_MEMORY_COPY_HOST_TO_HOST || way == PROF_I_ROCP_MEMORY_COPY_HOST_TO_DEVICE
            ? PROF_DEVICE_CPU
            : PROF_DEVICE_ROCM;
    it.copy.to =
        way == PROF_I_ROCP_MEMORY_COPY_HOST_TO_HOST || way == PROF_I_ROCP_MEMORY_COPY_DEVICE_TO_HOST
            ? PROF_DEVICE_CPU
            : PROF_DEVICE_ROCM;
  }
  it.copy.from_index = source == UNKNOWN_DEVICE ? 0 : source;
  it.copy.to_index = to == UNKNOWN_DEVICE ? 0 : to;
  /* between two places of the host's */
  if (it.record.device == UNKNOWN_DEVICE) it.record.device = 0;
  prof_i_launch_matcher_emit(&rocp_drain.launches, &it);
}

/* ---- what the host did ---- */

static uint32_t hip_call_name(int32_t operation) {
  const char *text = NULL;
  uint64_t bytes = 0;
  if (operation < 0 || operation >= CALLS_MAX) return 0;
  uint32_t *const name = &rocp_drain.calls[operation];
  if (!*name &&
      prof_i_rocp.rocprofiler_query_buffer_tracing_kind_operation_name(
          PROF_I_ROCP_BUFFER_TRACING_HIP_RUNTIME_API, operation, &text, &bytes) ==
          PROF_I_ROCP_STATUS_SUCCESS &&
      text && bytes)
    *name = rocp_drain.host->intern(text, (size_t)bytes);
  return *name;
}

static void take_hip_call(const prof_i_rocp_record *record) {
  prof_i_rocp_call_0 from = {.record = *record};
  prof_i_launched_record it;
  if (record->size >= sizeof(prof_i_rocp_call_1))
    memcpy(&from.start, &((const prof_i_rocp_call_1 *)record)->start,
           sizeof from - offsetof(prof_i_rocp_call_0, start));
  else if (record->size >= sizeof from)
    from = *(const prof_i_rocp_call_0 *)record;
  else
    return;
  prof_i_launch_matcher_add_call(
      &rocp_drain.launches,
      &(prof_i_launch_call){record->correlation, from.thread, from.start, from.end});
  if (!is_hip_kind_wanted(PROF_BACKEND_CALL)) return;
  begin_hip_record(&it, PROF_BACKEND_CALL, sizeof it.record, record->correlation, from.start,
                   from.end);
  it.record.launch_thread = prof_i_launch_matcher_thread_serial(&rocp_drain.launches, from.thread);
  it.record.name = hip_call_name(record->operation);
  rocp_drain.host->emit(&it, it.record.size);
}

void prof_i_hip_record_add(const prof_i_rocp_record *record) {
  switch (record->kind) {
    case PROF_I_ROCP_BUFFER_TRACING_KERNEL_DISPATCH:
      if (record->size >= sizeof(prof_i_rocp_dispatch))
        take_dispatch((const prof_i_rocp_dispatch *)record);
      break;
    case PROF_I_ROCP_BUFFER_TRACING_MEMORY_COPY:
      if (record->size >= sizeof(prof_i_rocp_copy)) take_hip_copy((const prof_i_rocp_copy *)record);
      break;
    case PROF_I_ROCP_BUFFER_TRACING_HIP_RUNTIME_API:
      take_hip_call(record);
      break;
    default:
      break; /* not requested */
  }
}
