/* Starts and stops the recording of scopes and of memory, on behalf of the program and of the
   environment. Also names and mutes that the program sets. See control.h. */
#define _GNU_SOURCE
#include "control.h"

#include <errno.h>
#include <prof/profiler.h>
#include <string.h>

#include "../../base/error.h"
#include "../../base/options.h"
#include "../../base/process.h"
#include "../buffer/arena.h"
#include "../buffer/capture_file.h"
#include "../buffer/chunk.h"
#include "../buffer/clock.h"
#include "../buffer/session.h"
#include "../buffer/thread.h"
#include "../record/mute.h"
#include "../record/site.h"
#include "internal.h"

/* The caller may not know that the environment started a capture. The text says how to join it.
   Lock held. */
static int refuse_second_start(void) {
  const uint32_t level = prof_i_arena_level();
  if (prof_i_control.started_by)
    return prof_i_fail(PROF_E_RUNNING,
                       "a capture is running at level %u: %s of the environment began it; "
                       "prof_start(level) joins it, prof_stop() ends it",
                       level, prof_i_control.started_by);
  return prof_i_fail(PROF_E_RUNNING,
                     "a capture is running at level %u; prof_stop() it first, or prof_start(level) "
                     "to change the level",
                     level);
}

/* Makes a relative path absolute, because the host may change its directory. Lock held, not
   recording. */
static const char *make_absolute(const char *path) {
  const prof_i_lock_context before = prof_i_control_begin_transition(PROF_I_TRANSITION_START);
  const char *const absolute =
      prof_i_output_make_absolute(path, prof_i_control.given, sizeof prof_i_control.given);
  prof_i_control_end_transition(&before);
  return absolute;
}

static int start_session(const prof_options *given, bool has_scopes, const char *variable) {
  prof_options options = {.size = sizeof options};
  const int saved = errno;
  int status = prof_i_duplicate_check();
  if (status != PROF_OK) return status;
  status = given ? prof_i_sized_copy(&options, sizeof options, given, "prof_options") : PROF_OK;
  const bool is_default_cap = options.cap_bytes == 0;
  if (status == PROF_OK) status = prof_i_options_complete(&options);
  if (status != PROF_OK) return status;
  if (!has_scopes) options.level = 0;
  prof_i_control_lock_before_start();
  prof_i_child_begin();
  if (options.path && !prof_i_the_session.is_recording) options.path = make_absolute(options.path);
  const bool had_default_cap = prof_i_control.has_default_cap;
  if (!prof_i_the_session.is_recording) prof_i_control.has_default_cap = is_default_cap;
  status = prof_i_the_session.is_recording
               ? refuse_second_start()
               : prof_i_capture_start(&options, prof_i_capture_is_leftover(&options));
  if (status != PROF_OK) prof_i_control.has_default_cap = had_default_cap;
  if (status == PROF_OK) {
    prof_i_control.started_by = variable;
    prof_i_control.is_of_environment |= prof_i_control.joins && variable && options.path;
    if (has_scopes)
      prof_i_level_request_by_program(options.level);
    else
      prof_i_level_request_memory(true);
    prof_i_control_choose_devices(prof_i_control.options.devices);
  }
  prof_i_control_unlock();
  if (status == PROF_OK) prof_i_capture_begin_observers(!variable);
  errno = saved;
  return status;
}

/* ---- starts that join ---- */

void prof_i_control_join(bool joins) {
  prof_i_control_lock_now();
  prof_i_control.joins = joins;
  prof_i_control.is_of_environment &= joins;
  prof_i_joined_output_set("");
  prof_i_control_unlock();
}

static bool program_must_join(void) {
  prof_i_control_lock_before_start();
  prof_i_child_begin();
  const bool must =
      prof_i_control.joins && (prof_i_the_session.is_recording || prof_i_control.is_of_environment);
  prof_i_control_unlock();
  return must;
}

/* The capture keeps its own options. The program's own dump goes to the program's path. */
static int join_capture(const prof_options *given) {
  prof_options options = {.size = sizeof options};
  int status = given ? prof_i_sized_copy(&options, sizeof options, given, "prof_options") : PROF_OK;
  if (status == PROF_OK) status = prof_i_options_complete(&options);
  if (status == PROF_OK && options.path && strlen(options.path) >= PROF_I_OUTPUT_ROOM)
    status =
        prof_i_fail(PROF_E_INVALID, "options.path is longer than %d bytes", PROF_I_OUTPUT_ROOM - 1);
  if (status == PROF_OK) status = prof_start((int)options.level);
  if (status != PROF_OK) return status;
  if (options.devices) prof_i_control_prefer_devices(options.devices);
  if (!options.path) return PROF_OK;
  char path[PROF_I_OUTPUT_ROOM];
  const char *const absolute = prof_i_output_make_absolute(options.path, path, sizeof path);
  prof_i_control_lock_now();
  prof_i_joined_output_set(absolute);
  prof_i_control_unlock();
  return PROF_OK;
}

int prof_start_with(const prof_options *given) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  const int saved = errno;
  const bool joins = prof_i_duplicate_check() == PROF_OK && program_must_join();
  const int status = joins ? join_capture(given) : start_session(given, true, NULL);
  errno = saved;
  return status;
}

int prof_i_control_start_environment(const prof_options *options, const char *variable) {
  return start_session(options, options->level != 0, variable);
}

/* PROF_LEVEL is the least level of a capture that the environment began. Lock held. */
static uint32_t level_to_request(int level) {
  const uint32_t least = prof_i_the_session.is_recording && prof_i_control.started_by
                             ? prof_i_control.options.level
                             : 0;
  return (uint32_t)level > least ? (uint32_t)level : least;
}

int prof_start(int level) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  const int saved = errno;
  int status = prof_i_control_check_level(level, 1);
  if (status == PROF_OK) status = prof_i_duplicate_check();
  if (status != PROF_OK) return status;
  prof_i_control_lock_before_start();
  prof_i_child_begin();
  const bool was_recording = prof_i_the_session.is_recording;
  if (!was_recording)
    status = prof_i_capture_restart(level, prof_i_capture_is_leftover(&prof_i_control.options));
  if (status == PROF_OK) {
    prof_i_level_request_by_program(level_to_request(level));
    prof_i_control_choose_devices(prof_i_control.options.devices);
    if (was_recording || prof_i_level_request_count())
      prof_i_control_change_level(prof_i_level_request_max());
  }
  prof_i_control_unlock();
  if (status == PROF_OK && !was_recording) prof_i_capture_begin_observers(true);
  errno = saved;
  return status;
}

/* The program stops its own part, and the environment's capture continues at level 0. Open scopes
   are recorded when they end. Lock held, recording. */
static int pause_environment_capture(bool was_asked) {
  if (prof_i_arena_level() != 0) prof_i_control_change_level(0);
  return was_asked ? PROF_OK : prof_i_fail(PROF_E_NOT_RUNNING, "nothing is recording");
}

int prof_stop(void) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  const int saved = errno;
  int status = PROF_OK;
  bool has_paused = false;
  prof_i_thread_reap_exited();
  prof_i_control_lock_to_clear();
  const bool was_asked = prof_i_level_request_drop_program();
  prof_i_control_choose_devices(prof_i_control.options.devices);
  if (!prof_i_the_session.is_recording) {
    status = prof_i_fail(PROF_E_NOT_RUNNING, "nothing is recording");
    prof_i_child_cancel();
  } else if (prof_i_level_request_count()) {
    if (prof_i_arena_level() != prof_i_level_request_max())
      prof_i_control_change_level(prof_i_level_request_max());
    if (!was_asked)
      status = prof_i_fail(
          PROF_E_NOT_RUNNING,
          "nothing that was started is recording; %u record for themselves (prof_level_want())",
          prof_i_level_request_count());
  } else if (prof_i_control.joins && prof_i_control.is_of_environment) {
    status = pause_environment_capture(was_asked);
    has_paused = status == PROF_OK;
  } else {
    prof_i_capture_stop();
    prof_i_level_request_end_all();
  }
  prof_i_control_unlock();
  if (has_paused && prof_i_control_device_hooks()) prof_i_control_device_hooks()->resolve();
  errno = saved;
  return status;
}

void prof_i_control_end_process(void) {
  const int saved = errno;
  prof_i_thread_reap_exited();
  prof_i_control_lock_before_start();
  prof_i_level_request_drop_program();
  prof_i_level_request_end_all();
  if (prof_i_the_session.is_recording) prof_i_capture_stop();
  prof_i_control_unlock();
  errno = saved;
}

/* ---- who the process is ---- */

int prof_rank_set(int rank, int world_size) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (rank < 0 || rank >= world_size)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_rank_set: rank is %d, world_size %d; 0 <= rank < world_size", rank,
                       world_size);
  prof_i_control_lock();
  prof_i_identity_set_rank(rank, world_size);
  prof_i_control_unlock();
  return PROF_OK;
}

int prof_process_set_name(const char *name) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (!name) return prof_i_fail(PROF_E_INVALID, "prof_process_set_name: name is NULL");
  prof_i_control_lock();
  prof_i_identity_set_process_name(name);
  prof_i_control_unlock();
  return PROF_OK;
}

int prof_track_set_name(prof_device device, uint64_t stream, const char *name) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (!name) return prof_i_fail(PROF_E_INVALID, "prof_track_set_name: name is NULL");
  prof_i_control_lock();
  const int status = prof_i_identity_set_track_name(device, stream, name);
  prof_i_control_unlock();
  return status;
}

/* ---- memory, as far as its calls begin or end a capture. src/memory has the events ---- */

int prof_i_control_start_memory(void) {
  const int saved = errno;
  int status = prof_i_duplicate_check();
  if (status != PROF_OK) return status;
  prof_i_control_lock_before_start();
  prof_i_child_begin();
  if (!prof_i_the_session.is_recording)
    status = prof_i_capture_restart(0, prof_i_capture_is_leftover(&prof_i_control.options));
  if (status == PROF_OK) prof_i_level_request_memory(true);
  prof_i_control_unlock();
  if (status == PROF_OK) PROF_I_MEMORY(begin);
  errno = saved;
  return status;
}

/* Lock held. */
static int check_memory(void) {
  if (prof_i_session_has_memory()) return PROF_OK;
  return prof_i_fail(PROF_E_NOT_RUNNING, "memory is not recorded: %s",
                     prof_i_the_session.is_recording ? "it was stopped" : "nothing is recording");
}

int prof_i_control_stop_memory(void) {
  const int saved = errno;
  prof_i_control_lock_to_clear();
  const int status = check_memory();
  const bool is_alone = status == PROF_OK && prof_i_arena_level() == 0 &&
                        prof_i_level_request_max() == 0 && prof_i_level_request_count() == 0;
  if (status == PROF_OK) {
    if (!prof_i_level_request_has_memory()) PROF_I_MEMORY(end);
    prof_i_level_request_memory(false);
  }
  if (is_alone) {
    if (prof_i_the_session.is_recording)
      prof_i_capture_stop();
    else
      prof_i_child_cancel();
    prof_i_level_request_end_all();
  }
  prof_i_control_unlock();
  errno = saved;
  return status;
}

/* While memory is not recorded, its use is unknown, so the sums are hidden until a start. Lock
   held. */
static void reset_memory(void) {
  if (prof_i_session_has_memory()) {
    PROF_I_MEMORY(reset);
  } else {
    PROF_I_MEMORY(hide_sums);
  }
  prof_i_header *const header = prof_i_arena_header();
  __atomic_store_n(&header->memory_reset_ticks, prof_i_clock_ticks(), __ATOMIC_RELAXED);
}

int prof_i_control_reset_memory(void) {
  const int saved = errno;
  int status = PROF_OK;
  prof_i_control_lock_to_clear();
  prof_i_child_begin();
  if (prof_i_the_arena.base)
    reset_memory();
  else if (!prof_i_the_session.child_waits) /* a child's own capture begins reset */
    status = prof_i_fail(PROF_E_NOT_RUNNING, "no memory has been recorded");
  prof_i_control_unlock();
  errno = saved;
  return status;
}

/* ---- mutes. ../record/mute.h has the rules ---- */

int prof_mute(const char *name, const char *category, int is_muted) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (is_muted != 0 && is_muted != 1)
    return prof_i_fail(PROF_E_INVALID, "prof_mute: is_muted is %d, not 0 or 1", is_muted);
  if (is_muted && !name && !category)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_mute: name and category are NULL; prof_stop() ends recording");
  if ((name && strnlen(name, PROF_I_MUTE_TEXT_BYTES) == PROF_I_MUTE_TEXT_BYTES) ||
      (category && strnlen(category, PROF_I_MUTE_TEXT_BYTES) == PROF_I_MUTE_TEXT_BYTES))
    return prof_i_fail(PROF_E_INVALID, "prof_mute: %s is longer than %d bytes",
                       name && strnlen(name, PROF_I_MUTE_TEXT_BYTES) == PROF_I_MUTE_TEXT_BYTES
                           ? "name"
                           : "category",
                       PROF_I_MUTE_TEXT_BYTES - 1);
  prof_i_control_lock();
  const int status =
      is_muted ? prof_i_mute_add_rule(name, category) : prof_i_mute_remove_rule(name, category);
  prof_i_site_raise_epoch();
  prof_i_control_unlock();
  return status;
}
