/* Commands on the program's queues. A thread that enqueues pushes its command to a list without a
   lock. The collector takes the list, sorts it by queues, and asks the events in their order. No
   callback of the driver's is used: those run on the threads that run kernels. */
#define _GNU_SOURCE
#include "internal.h"

#include <prof/scope.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/process.h"

enum { SAMPLE_EVERY = 64, UNDECIDED_MAX = 4096, OUT_OF_ORDER_POLLS = 256, PATIENCE_NS = 500000000 };

/* Until prof decides for the first time, commands are kept if a recording is on. prof decides only
   after it has opened the devices. */
enum { COMMANDS_UNDECIDED, COMMANDS_OFF, COMMANDS_ON, COMMANDS_DEAD };

struct prof_i_command {
  struct prof_i_command *next;
  prof_i_cl_event event;
  prof_i_cl_queue queue;
  prof_i_cl_device device;
  bool is_in_order;
  bool is_sample;   /* the clocks were read around its call */
  bool is_blocking; /* it took long, so it says little of the clock */
  union {
    prof_backend_record record;
    prof_backend_kernel kernel;
    prof_backend_copy copy;
  } as;
  prof_i_opencl_sample sample;
};

/* Of one queue, oldest first. */
typedef struct queue_row {
  prof_i_cl_queue queue;
  prof_i_command *first, **end;
  /* since when it holds records back, because the device's clock is not known; 0: no */
  uint64_t held_since_ns;
  struct queue_row *next;
} queue_row;

static struct {
  const prof_backend_host *host;    /* release */
  uint32_t state;                   /* relaxed */
  uint32_t in_flight_count, number; /* relaxed */
  uint32_t is_clock_known;          /* some device's clock is known; relaxed */
  uint64_t lost;                    /* relaxed */
  prof_i_command *pushed;           /* PROF_I_PUSH() */
  queue_row *queue_rows;            /* the collector's */
} command_log;

#define NEXT_FUNCTION(result, name, ...) \
  ((result(*)(__VA_ARGS__))prof_i_layer_next_table[PROF_I_CL_PLACE_##name])
static int32_t info_of_queue(prof_i_cl_queue queue, uint32_t what, void *to, size_t bytes) {
  return NEXT_FUNCTION(int32_t, clGetCommandQueueInfo, prof_i_cl_queue, uint32_t, size_t, void *,
                       size_t *)(queue, what, bytes, to, NULL);
}
static int32_t info_of_event(prof_i_cl_event event, uint32_t what, void *to, size_t bytes) {
  return NEXT_FUNCTION(int32_t, clGetEventInfo, prof_i_cl_event, uint32_t, size_t, void *,
                       size_t *)(event, what, bytes, to, NULL);
}
static int32_t time_of_event(prof_i_cl_event event, uint32_t what, uint64_t *ns_out) {
  return NEXT_FUNCTION(int32_t, clGetEventProfilingInfo, prof_i_cl_event, uint32_t, size_t, void *,
                       size_t *)(event, what, sizeof *ns_out, ns_out, NULL);
}
static void retain_cl_event(prof_i_cl_event event) {
  NEXT_FUNCTION(int32_t, clRetainEvent, prof_i_cl_event)(event);
}
static void release_cl_event(prof_i_cl_event event) {
  NEXT_FUNCTION(int32_t, clReleaseEvent, prof_i_cl_event)(event);
}

static uint32_t commands_state(void) {
  return __atomic_load_n(&command_log.state, __ATOMIC_RELAXED);
}
static void count_lost_command(void) { __atomic_fetch_add(&command_log.lost, 1, __ATOMIC_RELAXED); }

void prof_i_commands_set_host(const prof_backend_host *host) {
  __atomic_store_n(&command_log.host, host, __ATOMIC_RELEASE);
}

/* ---- from the program ---- */

static prof_i_command *make_command(void) {
  const uint32_t most =
      commands_state() == COMMANDS_UNDECIDED ? UNDECIDED_MAX : PROF_I_COMMANDS_MAX;
  prof_i_command *const command =
      __atomic_fetch_add(&command_log.in_flight_count, 1, __ATOMIC_RELAXED) < most
          ? calloc(1, sizeof *command)
          : NULL;
  if (command) return command;
  __atomic_fetch_sub(&command_log.in_flight_count, 1, __ATOMIC_RELAXED);
  count_lost_command();
  return NULL;
}

static void free_command(prof_i_command *command) {
  __atomic_fetch_sub(&command_log.in_flight_count, 1, __ATOMIC_RELAXED);
  free(command);
}

/* False: this command has no times. */
static bool read_queue_properties(prof_i_command *command, prof_i_cl_queue queue) {
  uint64_t properties = 0;
  if (info_of_queue(queue, PROF_I_CL_QUEUE_PROPERTIES, &properties, sizeof properties) != 0 ||
      !(properties & PROF_I_CL_QUEUE_PROFILING_ENABLE))
    return false;
  command->queue = queue;
  command->is_in_order = !(properties & PROF_I_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  return info_of_queue(queue, PROF_I_CL_QUEUE_DEVICE, (void *)&command->device,
                       sizeof command->device) == 0;
}

/* The kernel may be gone when the command is done. */
static uint32_t cl_kernel_name(prof_i_cl_kernel kernel) {
  char name[1024] = "";
  size_t bytes = 0;
  if (NEXT_FUNCTION(int32_t, clGetKernelInfo, prof_i_cl_kernel, uint32_t, size_t, void *, size_t *)(
          kernel, PROF_I_CL_KERNEL_FUNCTION_NAME, sizeof name, name, &bytes) != 0)
    return 0;
  return command_log.host->intern(name, strnlen(name, bytes < sizeof name ? bytes : sizeof name));
}

/* If the driver chooses the size of groups, the number of items is reported. */
static void describe_kernel(prof_backend_kernel *kernel, const prof_i_command_info *about) {
  kernel->record.size = sizeof *kernel;
  if (!about->name) kernel->record.name = cl_kernel_name(about->kernel);
  if (!about->local) kernel->record.flags |= PROF_BACKEND_GRID_ITEMS;
  /* at most three, by CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS of all devices */
  for (uint32_t i = 0; about->global && i < 3; i++) {
    const size_t global = i < about->dims ? about->global[i] : 1,
                 local = about->local && i < about->dims ? about->local[i] : 1;
    kernel->grid[i] = (uint32_t)(local ? (global + local - 1) / local : 0);
    kernel->block[i] = about->local ? (uint32_t)local : 0;
  }
}

static void describe_command(prof_i_command *command, const prof_i_command_info *about) {
  prof_backend_record *const record = &command->as.record;
  record->kind = (uint16_t)about->kind;
  if (about->name) record->name = command_log.host->intern(about->name, strlen(about->name));
  if (about->kind == PROF_BACKEND_KERNEL) {
    describe_kernel(&command->as.kernel, about);
    return;
  }
  record->size = sizeof command->as.copy;
  command->as.copy.bytes = about->bytes;
  command->as.copy.from = about->from;
  command->as.copy.to = about->to;
}

prof_i_command *prof_i_command_begin(prof_i_cl_queue queue, const prof_i_command_info *about) {
  const prof_backend_host *const host = __atomic_load_n(&command_log.host, __ATOMIC_ACQUIRE);
  if (!PROF_I_IS_ON(1) || !host ||
      (commands_state() != COMMANDS_ON && commands_state() != COMMANDS_UNDECIDED))
    return NULL;
  prof_i_command *const command = make_command();
  if (!command) return NULL;
  if (!read_queue_properties(command, queue)) {
    free_command(command);
    count_lost_command();
    return NULL;
  }
  command->is_blocking = about->blocks;
  command->is_sample =
      __atomic_fetch_add(&command_log.number, 1, __ATOMIC_RELAXED) % SAMPLE_EVERY == 0 ||
      !__atomic_load_n(&command_log.is_clock_known, __ATOMIC_RELAXED);
  command->as.record.stream = (uintptr_t)queue;
  command->as.record.launch_thread = host->thread();
  if (command->is_sample) command->sample.before = prof_i_opencl_read_host_clocks();
  command->as.record.launch = host->ticks();
  return command;
}

/* What the program gave is looked at when the driver has found it good. */
void prof_i_command_end(prof_i_command *command, const prof_i_command_info *about, int32_t error,
                        prof_i_cl_event event, bool is_ours) {
  if (!command) return;
  if (error != 0 || !event) {
    free_command(command);
    return;
  }
  if (command->is_sample) command->sample.after = prof_i_opencl_read_host_clocks();
  describe_command(command, about);
  if (!is_ours) retain_cl_event(event);
  command->event = event;
  PROF_I_PUSH(&command_log.pushed, command);
  command_log.host->wake();
}

/* ---- to prof: the collector's ---- */

static void finish_command(prof_i_command *command) {
  release_cl_event(command->event);
  free_command(command);
}

static queue_row *find_queue_row(prof_i_cl_queue queue) {
  for (queue_row *r = command_log.queue_rows; r; r = r->next)
    if (r->queue == queue) return r;
  queue_row *const r = calloc(1, sizeof *r);
  if (!r) return NULL;
  *r = (queue_row){.queue = queue, .next = command_log.queue_rows};
  r->end = &r->first;
  command_log.queue_rows = r;
  return r;
}

static prof_i_command *take_pushed(void) {
  prof_i_command *oldest;
  PROF_I_TAKE_PUSHED(&command_log.pushed, oldest);
  return oldest;
}

static void sort_by_queue(void) {
  for (prof_i_command *command = take_pushed(), *next; command; command = next) {
    next = command->next;
    command->next = NULL;
    queue_row *const r = find_queue_row(command->queue);
    if (!r) {
      count_lost_command();
      finish_command(command);
      continue;
    }
    *r->end = command;
    r->end = &command->next;
  }
}

static bool read_command_times(prof_i_command *command, uint64_t *queued_ns,
                               uint64_t *submitted_ns) {
  prof_backend_record *const record = &command->as.record;
  time_of_event(command->event, PROF_I_CL_PROFILING_COMMAND_QUEUED, queued_ns);
  time_of_event(command->event, PROF_I_CL_PROFILING_COMMAND_SUBMIT, submitted_ns);
  return time_of_event(command->event, PROF_I_CL_PROFILING_COMMAND_START, &record->start) == 0 &&
         time_of_event(command->event, PROF_I_CL_PROFILING_COMMAND_END, &record->end) == 0;
}

/* Of a command that is done. */
static void learn_clock(prof_i_command *command, prof_i_opencl_device *device) {
  uint64_t queued_ns = 0, end_ns = 0;
  command->is_sample = false;
  if (time_of_event(command->event, PROF_I_CL_PROFILING_COMMAND_QUEUED, &queued_ns) != 0 ||
      time_of_event(command->event, PROF_I_CL_PROFILING_COMMAND_END, &end_ns) != 0)
    return;
  command->sample.clock = &device->clock;
  prof_i_opencl_clock_add_sample(&command->sample, queued_ns, end_ns);
  __atomic_store_n(&command_log.is_clock_known, 1, __ATOMIC_RELAXED);
}

static void emit_command(prof_i_command *command, int32_t status) {
  prof_backend_record *const record = &command->as.record;
  prof_i_opencl_device *const device = prof_i_opencl_device_find(command->device);
  uint64_t queued_ns = 0, submitted_ns = 0;
  if (status < 0 || !device || !read_command_times(command, &queued_ns, &submitted_ns))
    record->flags |= PROF_BACKEND_NO_TIMES;
  if (device) record->device = prof_i_opencl_device_number(device);
  *(record->kind == PROF_BACKEND_KERNEL ? &command->as.kernel.queued : &command->as.copy.queued) =
      queued_ns;
  *(record->kind == PROF_BACKEND_KERNEL ? &command->as.kernel.submitted
                                        : &command->as.copy.submitted) = submitted_ns;
  if (device && command->is_sample && !command->is_blocking &&
      !(record->flags & PROF_BACKEND_NO_TIMES))
    learn_clock(command, device);
  command_log.host->emit(record, record->size);
}

/* CL_COMPLETE, or less where it failed. */
static int32_t command_status_of(const prof_i_command *command) {
  int32_t status = 0;
  return info_of_event(command->event, PROF_I_CL_EVENT_COMMAND_EXECUTION_STATUS, &status,
                       sizeof status) == 0
             ? status
             : -1;
}

/* False: it is not done. */
static bool poll_command(prof_i_command *command) {
  const int32_t status = command_status_of(command);
  if (status > PROF_I_CL_COMPLETE) return false;
  emit_command(command, status);
  return true;
}

static void poll_queue_row(queue_row *r) {
  uint32_t left = OUT_OF_ORDER_POLLS;
  for (prof_i_command **at = &r->first; *at && left > 0;) {
    prof_i_command *const command = *at;
    if (!poll_command(command)) {
      if (command->is_in_order) return;
      left--;
      at = &command->next;
      continue;
    }
    *at = command->next;
    if (r->end == &command->next) r->end = at;
    finish_command(command);
  }
}

/* Most programs begin with large blocking copies, which say little of the clock. Their records are
   held back until a shorter command says more. False: not yet. */
static bool is_clock_ready(queue_row *r) {
  prof_i_opencl_device *const device = prof_i_opencl_device_find(r->first->device);
  if (!device || commands_state() == COMMANDS_OFF ||
      prof_i_opencl_clock_has_sample(&device->clock) ||
      command_status_of(r->first) > PROF_I_CL_COMPLETE)
    return true;
  for (const queue_row *other = command_log.queue_rows; other; other = other->next)
    for (prof_i_command *command = other->first; command; command = command->next)
      if (command->device == r->first->device && command->is_sample && !command->is_blocking &&
          command_status_of(command) == PROF_I_CL_COMPLETE)
        learn_clock(command, device);
  if (prof_i_opencl_clock_has_sample(&device->clock)) return true;
  if (!r->held_since_ns) r->held_since_ns = command_log.host->now_ns();
  if (command_log.host->now_ns() - r->held_since_ns < PATIENCE_NS) return false;
  if (r->first->is_sample && command_status_of(r->first) == PROF_I_CL_COMPLETE)
    learn_clock(r->first, device);
  return true;
}

/* What is not done when recording has ended. */
static void drop_queue_row(queue_row *r) {
  for (prof_i_command *command = r->first, *next; command; command = next) {
    next = command->next;
    count_lost_command();
    finish_command(command);
  }
  r->first = NULL;
}

int prof_i_commands_drain(prof_backend_self *self, uint32_t how, uint64_t *lost_out) {
  (void)self, (void)how;
  sort_by_queue();
  for (queue_row **at = &command_log.queue_rows; *at;) {
    queue_row *const r = *at;
    if (is_clock_ready(r)) poll_queue_row(r);
    if (commands_state() == COMMANDS_OFF) drop_queue_row(r);
    if (r->first) {
      at = &r->next;
      continue;
    }
    *at = r->next; /* its queue may be gone, and the handle another's */
    free(r);
  }
  *lost_out = __atomic_exchange_n(&command_log.lost, 0, __ATOMIC_RELAXED);
  return command_log.queue_rows ? PROF_BACKEND_NOT_READY : PROF_BACKEND_OK;
}

/* What threads pushed that were just enqueueing when recording ended is of no recording. */
static void drop_late_commands(void) {
  for (prof_i_command *command = take_pushed(), *next; command; command = next) {
    next = command->next;
    finish_command(command);
  }
}

int prof_i_commands_start(prof_backend_self *self, uint32_t kinds, uint32_t *kinds_out) {
  (void)self;
  *kinds_out = kinds & (1u << PROF_BACKEND_KERNEL | 1u << PROF_BACKEND_COPY |
                        1u << PROF_BACKEND_FILL); /* calls are scopes of their threads already */
  if (commands_state() == COMMANDS_UNDECIDED)
    *kinds_out |= PROF_BACKEND_FROM_FIRST; /* what came before was kept */
  if (commands_state() == COMMANDS_OFF) drop_late_commands();
  if (commands_state() != COMMANDS_DEAD)
    __atomic_store_n(&command_log.state, COMMANDS_ON, __ATOMIC_RELAXED);
  return PROF_BACKEND_OK;
}

int prof_i_commands_stop(prof_backend_self *self) {
  (void)self;
  if (commands_state() != COMMANDS_DEAD)
    __atomic_store_n(&command_log.state, COMMANDS_OFF, __ATOMIC_RELAXED);
  return PROF_BACKEND_OK;
}

void prof_i_commands_forget(void) {
  __atomic_store_n(&command_log.state, COMMANDS_DEAD, __ATOMIC_RELAXED);
}
