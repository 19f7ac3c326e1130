/* What vendors bring: their table, checked and copied as a whole one, and their results as texts.
   All other files of this folder see only the copy. */
#define _GNU_SOURCE
#include <string.h>

#include "../base/error.h"
#include "internal.h"

enum {
  NAME_BYTES_MAX = 31,
  SIZE_MAX_BYTES = 4096,
  LEAST_BYTES = offsetof(prof_backend, event_time) + sizeof(void *)
};

/* Members that each back end needs. EVENTS may all be missing if it has meters. */
#define NEEDED(X) \
  X(name)         \
  X(version)      \
  X(probe)        \
  X(open)
#define EVENTS(X) \
  X(event_create) \
  X(event_record) \
  X(event_query)  \
  X(event_destroy)

static int check_event_functions(const prof_backend *table, const char *what) {
  const bool has_events = table->event_create || table->event_record || table->event_query ||
                          table->event_destroy || table->event_time || table->event_elapsed;
  if (!has_events && table->metric && table->sample) return PROF_OK;
#define CHECK(member) \
  if (!table->member) \
    return prof_i_fail(PROF_E_INVALID, "%s: prof_backend.%s is NULL", what, #member);
  EVENTS(CHECK)
#undef CHECK
  if (table->event_time || table->event_elapsed) return PROF_OK;
  return prof_i_fail(
      PROF_E_INVALID,
      "%s: prof_backend.event_time and .event_elapsed are both NULL; one of them is needed", what);
}

static int check_backend_table(const prof_backend *table, const char *what) {
#define CHECK(member) \
  if (!table->member) \
    return prof_i_fail(PROF_E_INVALID, "%s: prof_backend.%s is NULL", what, #member);
  NEEDED(CHECK)
#undef CHECK
  const int status = check_event_functions(table, what);
  if (status != PROF_OK) return status;
  if (table->device_type <= PROF_DEVICE_CPU)
    return prof_i_fail(PROF_E_INVALID, "%s: prof_backend.device_type is %d, which is no device's",
                       what, table->device_type);
  const size_t bytes = strnlen(table->name, NAME_BYTES_MAX + 1);
  if (bytes == 0 || bytes > NAME_BYTES_MAX)
    return prof_i_fail(PROF_E_INVALID,
                       "%s: prof_backend.name has %zu bytes or more; 1 to %d are possible", what,
                       bytes, NAME_BYTES_MAX);
  return PROF_OK;
}

int prof_i_backend_table_copy(prof_backend *to, const prof_backend *from, const char *what) {
  *to = (prof_backend){0};
  size_t size;
  memcpy(&size, &from->size, sizeof size);
  if (size < offsetof(prof_backend, device_type) || size > SIZE_MAX_BYTES)
    return prof_i_fail(PROF_E_INVALID,
                       "%s: prof_backend.size is %zu; it must be sizeof(prof_backend), %zu here",
                       what, size, sizeof *to);
  if (from->major != PROF_BACKEND_MAJOR)
    return prof_i_fail(PROF_E_VERSION, "%s was written for back ends of %u.%u; this prof has %u.%u",
                       what, from->major, from->minor, PROF_BACKEND_MAJOR, PROF_BACKEND_MINOR);
  if (size < LEAST_BYTES)
    return prof_i_fail(
        PROF_E_INVALID,
        "%s: prof_backend.size is %zu, which leaves out members that are needed: at least %d", what,
        size, (int)LEAST_BYTES);
  /* no half members */
  memcpy(to, from, size < sizeof *to ? size / sizeof(void *) * sizeof(void *) : sizeof *to);
  to->size = sizeof *to;
  const int status = check_backend_table(to, what);
  if (status != PROF_OK) *to = (prof_backend){0};
  return status;
}

uint32_t prof_i_backend_table_abilities(const prof_backend *table) {
  return (table->event_record ? PROF_CAN_SCOPES : 0u) |
         (!table->clock                                ? 0u
          : table->event_elapsed && !table->event_time ? PROF_CAN_RECORD_CLOCKS
                                                       : PROF_CAN_CLOCKS) |
         (table->start && table->drain ? PROF_CAN_RECORDS : 0u) |
         (table->metric && table->sample ? PROF_CAN_METRICS : 0u);
}

/* ---- results ---- */

const char *prof_backend_result_name(int result) {
  switch (result) {
#define NAME(name, value, text, advice) \
  case value:                           \
    return #name;
    PROF_BACKEND_RESULT_LIST(NAME)
#undef NAME
  }
  return "UNKNOWN";
}

const char *prof_backend_result_text(int result) {
  switch (result) {
#define TEXT(name, value, text, advice) \
  case value:                           \
    return text;
    PROF_BACKEND_RESULT_LIST(TEXT)
#undef TEXT
  }
  return "a result that this prof does not know";
}

/* No switch: results with the same advice would be equal branches. */
const char *prof_backend_result_advice(int result) {
#define ADVICE(name, value, text, advice) \
  if (result == (value)) return advice;
  PROF_BACKEND_RESULT_LIST(ADVICE)
#undef ADVICE
  return "";
}
