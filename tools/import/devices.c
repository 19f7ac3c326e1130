/* Processes of devices, their rows, and their places in the capture. See state.h. */
#define _GNU_SOURCE
#include "state.h"

#include <prof/backend.h>
#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of src/export/names.h. */
enum { PID_FIRST = 5000000, PID_TYPE_STEP = 1000, PID_COUNT = 1000000 };
enum { FAR_PID_FIRST = 8000000, FAR_PID_TYPES = 32, FAR_PID_COUNT = 100000 * FAR_PID_TYPES };

static void copy_device_name(char to[IMPORT_DEVICE_NAME_BYTES], import_text name) {
  const import_text kept = import_text_cut(name, IMPORT_DEVICE_NAME_BYTES - 1);
  snprintf(to, IMPORT_DEVICE_NAME_BYTES, "%.*s", (int)kept.bytes, kept.data);
}

/* ---- processes ---- */

import_process *import_devices_process(import_devices *devices, int64_t pid) {
  import_process *it = devices->last;
  if (it && it->pid == pid) return it;
  HASH_FIND(hh, devices->processes, &pid, sizeof pid, it);
  if (!it) {
    it = import_make(sizeof *it);
    it->pid = pid;
    HASH_ADD(hh, devices->processes, pid, sizeof it->pid, it);
  }
  return devices->last = it;
}

/* "GPU 1", "GPU1": 1. Nothing behind the word: 0. */
static bool read_number_after_word(import_text name, const char *word, int64_t *number_out) {
  size_t at = strlen(word);
  if (name.bytes < at || memcmp(name.data, word, at) != 0) return false;
  if (at < name.bytes && name.data[at] == ' ') at++;
  *number_out = 0;
  if (at == name.bytes) return true;
  const import_text digits = {name.data + at, name.bytes - at};
  return import_number_i64(digits, number_out) && *number_out >= 0 && *number_out <= INT32_MAX;
}

static bool read_any_number(import_text name, int64_t *number_out) {
  static const char *const words[] = {"GPU", "NPU"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (read_number_after_word(name, words[i], number_out)) return true;
  return false;
}

static bool word_is_host(import_text word) {
  return import_text_is(word, "CPU") || import_text_is(word, "XLA_CPU") ||
         import_text_is(word, "CUSTOM");
}

/* "/device:TPU:1", "/device:TPU:1 SparseCore 0", as JAX and TensorFlow call them: 1. */
static bool read_xla_name(import_text name, int64_t *number_out, bool *is_unknown_out) {
  static const char begin[] = "/device:";
  const char *const found =
      name.bytes ? memmem(name.data, name.bytes, begin, sizeof begin - 1) : NULL;
  if (!found) return false;
  const char *const word = found + sizeof begin - 1, *const end = name.data + name.bytes;
  const char *const colon = memchr(word, ':', (size_t)(end - word));
  if (!colon || word_is_host((import_text){word, (size_t)(colon - word)})) return false;
  const char *const digits = colon + 1;
  size_t count = 0;
  while (digits + count < end && digits[count] >= '0' && digits[count] <= '9') count++;
  const bool is_number =
      import_number_i64((import_text){digits, count}, number_out) && *number_out <= INT32_MAX;
  const bool ends_there = digits + count == end || digits[count] == ' ';
  *is_unknown_out = !is_number || !ends_there || found != name.data;
  return !*is_unknown_out;
}

/* "Device 1": 1, as nsys2json calls it. */
static bool read_mixed_name(import_text name, int64_t *number_out) {
  static const char begin[] = "Device ";
  return name.bytes > sizeof begin - 1 && read_number_after_word(name, "Device", number_out) &&
         name.data[sizeof begin - 2] == ' ';
}

static bool is_summary(import_text name) {
  return import_text_is(name, "Overlap Analysis") || import_text_is(name, "Communication") ||
         import_text_is(name, "HCCL");
}

bool import_devices_call(import_devices *devices, int64_t pid, import_text name, bool is_label) {
  int64_t number = 0;
  bool is_unknown = false;
  const bool is_numbered = read_any_number(name, &number),
             is_xla = !is_label && read_xla_name(name, &number, &is_unknown),
             is_mixed = !is_label && read_mixed_name(name, &number),
             is_ascend = import_text_is(name, "Ascend Hardware");
  const bool is_device = is_numbered || is_xla || is_mixed || is_ascend;
  import_process *const process = import_devices_process(devices, pid);
  if (!is_label) {
    process->is_summary = is_summary(name);
    process->is_unknown = is_unknown;
  }
  if (!is_device || (is_label && name.bytes == 3)) return false;
  process->is_device |= !is_label;
  process->is_xla |= is_xla;
  process->is_mixed |= is_mixed;
  devices->is_ascend |= is_ascend;
  devices->is_npu |= is_ascend || (is_numbered && import_text_begins(name, "NPU"));
  if (!is_label) copy_device_name(process->name, name);
  if (!is_ascend && !process->has_number) process->number = number;
  process->has_number |= !is_ascend;
  return true;
}

void import_devices_call_text(import_devices *devices, int64_t pid, import_text text) {
  int64_t number;
  if (import_devices_call(devices, pid, text, false) || text.bytes == 3) return;
  if (!read_number_after_word(text, "gpu", &number)) return;
  import_process *const process = import_devices_process(devices, pid);
  process->number = number;
  process->has_number = true;
}

void import_devices_note(import_devices *devices, int64_t pid, int64_t number) {
  import_process *const process = import_devices_process(devices, pid);
  process->has_work = true;
  if (number == IMPORT_DEVICE_UNSAID) return;
  if (!process->has_number) process->number = number;
  process->has_number = true;
}

/* ---- rows ---- */

/* On a GPU, JAX and TensorFlow derive rows from the streams of the same process. A TPU has no
   streams, and its ops are only on a row. nsys2json puts the host's rows into the process of the
   device that the host uses. */

static bool text_is_listed(import_text text, const char *const *words) {
  while (*words && !import_text_is(text, *words)) words++;
  return *words != NULL;
}

static import_row_kind kind_of_xla(const import_process *process, import_text name) {
  static const char *const ops[] = {"XLA Ops", "Sparse Core Ops", NULL};
  static const char *const sides[] = {"Steps",
                                      "Sparse Core Steps",
                                      "XLA Modules",
                                      "Sparse Core Modules",
                                      "Async XLA Ops",
                                      "Framework Name Scope",
                                      "Framework Ops",
                                      "TensorFlow Name Scope",
                                      "TensorFlow Ops",
                                      "XLA TraceMe",
                                      "Source code",
                                      "Launch Stats",
                                      NULL};
  if (text_is_listed(name, sides)) return IMPORT_ROW_SIDE;
  if (text_is_listed(name, ops) && process->has_stream_rows) return IMPORT_ROW_SIDE;
  return IMPORT_ROW_WORK;
}

static import_row_kind kind_of_mixed(import_text name, import_text category) {
  int64_t number;
  bool is_whole;
  if (import_text_is(category, "nvtx-kernel")) return IMPORT_ROW_SIDE;
  if (import_text_is(category, "cuda")) return IMPORT_ROW_WORK;
  return import_text_begins(name, "Stream ") && import_row_read_stream(name, &number, &is_whole)
             ? IMPORT_ROW_WORK
             : IMPORT_ROW_HOST;
}

import_row_kind import_row_kind_of(const import_state *state, const import_process *process,
                                   import_thread_id row, import_text category) {
  if (import_devices_is_summary(&state->devices, process)) return IMPORT_ROW_SIDE;
  if (!process->is_device) return IMPORT_ROW_HOST;
  if (!process->is_xla && !process->is_mixed) return IMPORT_ROW_WORK;
  const import_text name = import_threads_name_of(&state->threads, row);
  return process->is_xla ? kind_of_xla(process, name) : kind_of_mixed(name, category);
}

bool import_row_read_stream(import_text name, int64_t *number_out, bool *is_whole_out) {
  static const char *const begins[] = {"Stream #", "Stream ", "stream ", "CUDA API ", NULL};
  const char *const *begin = begins;
  while (*begin && !import_text_begins(name, *begin)) begin++;
  if (!*begin) return false;
  const size_t from = strlen(*begin);
  size_t bytes = 0;
  while (from + bytes < name.bytes && name.data[from + bytes] >= '0' &&
         name.data[from + bytes] <= '9')
    bytes++;
  *is_whole_out = from + bytes == name.bytes;
  return import_number_i64((import_text){name.data + from, bytes}, number_out);
}

int64_t import_row_stream(import_state *state, const import_process *process,
                          import_thread_id row) {
  enum { MADE_FIRST = 1000000 }; /* exports have room for numbers up to ten times that */
  const bool is_summary = import_devices_is_summary(&state->devices, process);
  const int64_t said = import_threads_number_of(&state->threads, row, -1);
  int64_t number;
  bool is_whole;
  if (said >= 0) return said;
  if (row.tid >= 0 && !is_summary) return row.tid;
  const import_thread *const known = import_threads_stream_of(&state->threads, row);
  if (known) return known->key.id.tid;
  const import_text name = import_threads_name_of(&state->threads, row);
  if (!is_summary && import_row_read_stream(name, &number, &is_whole)) return number;
  return MADE_FIRST + state->made_stream_count++;
}

/* ---- devices ---- */

void import_devices_name(import_devices *devices, int64_t number, import_text name) {
  devices->names = import_make_room(devices->names, &devices->name_room, devices->name_count + 1,
                                    sizeof *devices->names);
  import_device_name *const to = &devices->names[devices->name_count++];
  to->number = number;
  copy_device_name(to->name, name);
}

int32_t import_devices_type(const import_devices *devices) {
  if (devices->is_npu) return PROF_DEVICE_EXT_DEV;
  return devices->is_hip ? PROF_DEVICE_ROCM : PROF_DEVICE_CUDA;
}

/* A trace of prof's has the type in the process's number. */
static int32_t pid_device_type(const import_devices *devices, int64_t pid) {
  int64_t type = 0;
  if (pid >= PID_FIRST && pid < PID_FIRST + PID_COUNT) type = (pid - PID_FIRST) / PID_TYPE_STEP;
  if (pid >= FAR_PID_FIRST && pid < FAR_PID_FIRST + FAR_PID_COUNT)
    type = (pid - FAR_PID_FIRST) % FAR_PID_TYPES;
  return devices->is_of_prof && type > 1 ? (int32_t)type : import_devices_type(devices);
}

static bool index_is_taken(const import_devices *devices, int32_t type, int32_t index) {
  for (size_t i = 0; i < devices->count; i++)
    if (devices->all[i].type == type && devices->all[i].index == index) return true;
  return false;
}

/* The device's own number where it is free, else the next free one. */
static int32_t free_index(const import_devices *devices, int32_t type, int64_t number) {
  int32_t index = number >= 0 && number <= INT32_MAX ? (int32_t)number : 0;
  if (!index_is_taken(devices, type, index)) return index;
  for (index = 0; index_is_taken(devices, type, index);) index++;
  return index;
}

/* A summary is about the device of the trace. */
static const import_process *owner_of_device(import_devices *devices, int64_t pid) {
  import_process *const process = import_devices_process(devices, pid);
  if (!import_devices_is_summary(devices, process)) return process;
  for (const import_process *it = devices->processes; it; it = it->hh.next)
    if (it->is_device && !import_devices_is_summary(devices, it)) return it;
  return process;
}

uint32_t import_devices_find(import_devices *devices, int64_t asked_pid, int64_t number) {
  const import_process *const process = owner_of_device(devices, asked_pid);
  const int64_t pid = process->pid;
  if (pid != asked_pid || number == IMPORT_DEVICE_UNSAID) number = process->number;
  const int64_t owner = process->has_owner ? process->owner : pid;
  const int32_t type = pid_device_type(devices, pid);
  for (size_t i = 0; i < devices->count; i++) {
    const import_device *const it = &devices->all[i];
    const bool is_owned = devices->is_shared || it->owner == owner;
    if (is_owned && it->number == number && it->type == type) return (uint32_t)i;
  }
  if (devices->count == IMPORT_DEVICES_MAX) return IMPORT_DEVICES_MAX;
  devices->all =
      import_make_room(devices->all, &devices->room, devices->count + 1, sizeof *devices->all);
  import_device *const made = &devices->all[devices->count];
  *made = (import_device){.owner = owner, .number = number, .type = type};
  made->index = free_index(devices, type, number);
  for (size_t i = 0; i < devices->name_count; i++)
    if (devices->names[i].number == number)
      memcpy(made->name, devices->names[i].name, sizeof made->name);
  if (!made->name[0] && !process->has_number) memcpy(made->name, process->name, sizeof made->name);
  return (uint32_t)devices->count++;
}

void import_devices_fini(import_devices *devices) {
  import_process *it = devices->processes;
  HASH_CLEAR(hh, devices->processes);
  for (import_process *next; it; it = next) {
    next = it->hh.next;
    free(it);
  }
  free(devices->all);
  free(devices->names);
}
