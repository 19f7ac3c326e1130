/* The face of back ends: who adds one, and who asks how they are. See <prof/device.h>. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <stdio.h>
#include <time.h>

#include "../base/call.h"
#include "../base/log.h"
#include "../base/options.h"
#include "activity.h"
#include "collector.h"
#include "plugin.h"
#include "registry.h"
#include "table.h"

static void nap(void) {
  const struct timespec ms = {0, 1000000};
  nanosleep(&ms, NULL);
}

/* One whose records are always wanted is asked for them without anybody's doing. */
static void begin_records(const prof_backend *table) {
  prof_i_back_end *end;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++)
    if (end->origin == table && end->table.records_always) prof_i_registry_look(end, 0);
  if (prof_i_collector_is_wanted()) prof_i_collector_wake_for_records();
}

int prof_backend_add(const prof_backend *table) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (!table) return prof_i_fail(PROF_E_INVALID, "prof_backend_add: table is NULL");
  prof_i_registry_prepare();
  const int status = prof_i_registry_take(table, "prof_backend_add");
  if (status == PROF_OK && prof_i_activity_is_wanted()) begin_records(table);
  return status;
}

/* Of one that is open what its devices can. */
static uint32_t abilities_of(const prof_i_back_end *end) {
  const uint32_t all = prof_i_table_abilities(&end->table);
  /* the latter: nobody knows yet */
  const bool has_none = prof_i_registry_is_open(end) ? !end->has_meter : end->table.opens_late != 0;
  return has_none ? all & ~(uint32_t)PROF_CAN_METRICS : all;
}

int prof_backend_status(uint32_t number, prof_backend_state *state_out) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  enum { PATIENCE_MS = 2000 };
  if (!state_out) return prof_i_fail(PROF_E_INVALID, "prof_backend_status: state_out is NULL");
  prof_i_registry_prepare();
  for (uint32_t ms = 0; prof_i_registry_is_listing() && !prof_i_plugins_is_loading(); ms++, nap())
    if (ms >= PATIENCE_MS)
      return prof_i_fail(PROF_E_BUSY, "another thread has been loading plug-ins for %d ms",
                         PATIENCE_MS);
  prof_i_back_end *const end = prof_i_registry_at(number);
  if (!end) return prof_i_fail(PROF_E_NOT_FOUND, "there is no back end %u", number);
  if (!prof_i_registry_look(end, PATIENCE_MS))
    return prof_i_fail(PROF_E_BUSY, "another thread has been looking at back end %s for %d ms",
                       end->table.name, PATIENCE_MS);
  prof_backend_state state = {.device_type = end->table.device_type,
                              .is_open = prof_i_registry_is_open(end),
                              .is_emulated = end->table.is_emulated,
                              .is_plugin = end->is_plugin,
                              .abilities = abilities_of(end)};
  if (state.is_open) state.device_count = end->device_count;
  snprintf(state.name, sizeof state.name, "%s", end->table.name ? end->table.name : "");
  snprintf(state.version, sizeof state.version, "%s", end->table.version ? end->table.version : "");
  snprintf(state.path, sizeof state.path, "%.*s", (int)sizeof state.path - 1, end->path);
  prof_i_registry_result(end, &state.result, state.reason);
  snprintf(state.advice, sizeof state.advice, "%s", prof_backend_result_advice(state.result));
  return prof_i_sized_give(state_out, &state, sizeof state, "prof_backend_state");
}

/* ---- words ---- */

static const struct {
  int value;
  const char *name, *text, *advice;
} words[] = {
#define WORDS(name, value, text, advice) {value, #name, text, advice},
    PROF_BACKEND_RESULT_LIST(WORDS)};

static int place_of(int result) {
  for (int i = 0; i < (int)(sizeof words / sizeof *words); i++)
    if (words[i].value == result) return i;
  return -1;
}

const char *prof_backend_result_name(int result) {
  const int at = place_of(result);
  return at < 0 ? "UNKNOWN" : words[at].name;
}
const char *prof_backend_result_text(int result) {
  const int at = place_of(result);
  return at < 0 ? "a result that this prof does not know" : words[at].text;
}
const char *prof_backend_result_advice(int result) {
  const int at = place_of(result);
  return at < 0 ? "" : words[at].advice;
}
