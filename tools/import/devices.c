/* See devices.h. */
#include "devices.h"

#include <prof/backend.h>
#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>

#include "import.h"
#include "number.h"
#include "record.h"

enum { PID_FIRST = 5000000, PID_TYPE_STEP = 1000, PID_COUNT = 1000000 }; /* of src/export/tids.h */

static void put_name(char to[IMPORT_DEVICE_NAME_BYTES], import_text name) {
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
static bool read_number(import_text name, const char *word, int64_t *number_out) {
  size_t at = strlen(word);
  if (name.bytes < at || memcmp(name.data, word, at) != 0) return false;
  if (at < name.bytes && name.data[at] == ' ') at++;
  *number_out = 0;
  if (at == name.bytes) return true;
  const import_text digits = {name.data + at, name.bytes - at};
  return import_number_i64(digits, number_out) && *number_out >= 0 && *number_out <= INT32_MAX;
}

bool import_devices_call(import_devices *devices, int64_t pid, import_text name, bool is_label) {
  static const char *const words[] = {"GPU", "NPU"};
  int64_t number = 0;
  bool is_numbered = false;
  for (size_t i = 0; !is_numbered && i < sizeof words / sizeof *words; i++)
    is_numbered = read_number(name, words[i], &number);
  const bool is_device = is_numbered || import_text_is(name, "Ascend Hardware");
  if (!is_device || (is_label && name.bytes == 3)) return false;
  import_process *const process = import_devices_process(devices, pid);
  process->is_device |= !is_label;
  if (!is_label) put_name(process->name, name);
  if (is_numbered && !process->has_number) process->number = number;
  process->has_number |= is_numbered;
  return true;
}

void import_devices_note(import_devices *devices, int64_t pid, int64_t number) {
  import_process *const process = import_devices_process(devices, pid);
  if (!process->has_number) process->number = number;
  process->has_number = true;
}

/* ---- devices ---- */

void import_devices_name(import_devices *devices, int64_t number, import_text name) {
  devices->names = import_room(devices->names, &devices->name_room, devices->name_count + 1,
                               sizeof *devices->names);
  import_device_name *const to = &devices->names[devices->name_count++];
  to->number = number;
  put_name(to->name, name);
}

int32_t import_devices_type(const import_devices *devices) {
  return devices->is_hip ? PROF_DEVICE_ROCM : PROF_DEVICE_CUDA;
}

/* A trace of prof's has the type in the process's number. */
static int32_t type_of(const import_devices *devices, int64_t pid) {
  const int64_t type = (pid - PID_FIRST) / PID_TYPE_STEP;
  const bool is_told =
      devices->is_of_prof && pid >= PID_FIRST && pid < PID_FIRST + PID_COUNT && type > 1;
  return is_told ? (int32_t)type : import_devices_type(devices);
}

static bool is_taken(const import_devices *devices, int32_t type, int32_t index) {
  for (size_t i = 0; i < devices->count; i++)
    if (devices->all[i].type == type && devices->all[i].index == index) return true;
  return false;
}

/* The device's own number where it is free, else the next free one. */
static int32_t free_index(const import_devices *devices, int32_t type, int64_t number) {
  int32_t index = number >= 0 && number <= INT32_MAX ? (int32_t)number : 0;
  if (!is_taken(devices, type, index)) return index;
  for (index = 0; is_taken(devices, type, index);) index++;
  return index;
}

uint32_t import_devices_find(import_devices *devices, int64_t pid, int64_t number) {
  const import_process *const process = import_devices_process(devices, pid);
  const int64_t owner = process->has_owner ? process->owner : pid;
  const int32_t type = type_of(devices, pid);
  for (size_t i = 0; i < devices->count; i++) {
    const import_device *const it = &devices->all[i];
    const bool is_owned = devices->is_shared || it->owner == owner;
    if (is_owned && it->number == number && it->type == type) return (uint32_t)i;
  }
  if (devices->count == IMPORT_DEVICES_MAX) return IMPORT_DEVICES_MAX;
  devices->all =
      import_room(devices->all, &devices->room, devices->count + 1, sizeof *devices->all);
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
