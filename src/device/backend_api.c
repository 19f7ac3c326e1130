/* prof_backend_add() and prof_backend_status(). See <prof/device.h>. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <stdio.h>

#include "../base/error.h"
#include "../base/options.h"
#include "../base/process.h"
#include "internal.h"
#include "registry.h"

/* A back end may ask to record always: it starts without a request. */
static void start_always_on_records(const prof_backend *table) {
  prof_i_backend *backend;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++)
    if (backend->origin == table && backend->table.records_always)
      prof_i_registry_probe(backend, 0);
  if (prof_i_collector_ensure()) prof_i_collector_wake_for_records();
}

int prof_backend_add(const prof_backend *table) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (!table) return prof_i_fail(PROF_E_INVALID, "prof_backend_add: table is NULL");
  prof_i_registry_prepare();
  const int status = prof_i_registry_add_table(table, "prof_backend_add");
  if (status == PROF_OK && prof_i_activity_is_wanted()) start_always_on_records(table);
  return status;
}

/* What an open back end's devices can do, or what the table can. */
static uint32_t usable_abilities(const prof_i_backend *backend) {
  const uint32_t all = prof_i_backend_table_abilities(&backend->table);
  /* not known yet */
  const bool has_none =
      prof_i_registry_is_open(backend) ? !backend->has_meter : backend->table.opens_late != 0;
  return has_none ? all & ~(uint32_t)PROF_CAN_METRICS : all;
}

int prof_backend_status(uint32_t number, prof_backend_state *state_out) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  enum { PATIENCE_MS = 2000 };
  if (!state_out) return prof_i_fail(PROF_E_INVALID, "prof_backend_status: state_out is NULL");
  prof_i_registry_prepare();
  for (uint32_t ms = 0; prof_i_registry_is_listing() && !prof_i_plugins_is_loading();
       ms++, prof_i_registry_sleep_1ms())
    if (ms >= PATIENCE_MS)
      return prof_i_fail(PROF_E_BUSY, "another thread has been loading plug-ins for %d ms",
                         PATIENCE_MS);
  prof_i_backend *const backend = prof_i_registry_at(number);
  if (!backend) return prof_i_fail(PROF_E_NOT_FOUND, "there is no back end %u", number);
  if (!prof_i_registry_probe(backend, PATIENCE_MS))
    return prof_i_fail(PROF_E_BUSY, "another thread has been looking at back end %s for %d ms",
                       backend->table.name, PATIENCE_MS);
  prof_backend_state state = {.device_type = backend->table.device_type,
                              .is_open = prof_i_registry_is_open(backend),
                              .is_emulated = backend->table.is_emulated,
                              .is_plugin = backend->is_plugin,
                              .abilities = usable_abilities(backend)};
  if (state.is_open) state.device_count = backend->device_count;
  snprintf(state.name, sizeof state.name, "%s", backend->table.name ? backend->table.name : "");
  snprintf(state.version, sizeof state.version, "%s",
           backend->table.version ? backend->table.version : "");
  snprintf(state.path, sizeof state.path, "%.*s", (int)sizeof state.path - 1, backend->path);
  prof_i_registry_result(backend, &state.result, state.reason);
  snprintf(state.advice, sizeof state.advice, "%s", prof_backend_result_advice(state.result));
  return prof_i_sized_copy_out(state_out, &state, sizeof state, "prof_backend_state");
}
