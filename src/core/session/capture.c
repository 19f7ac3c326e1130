/* How a capture is created, begun and stopped. All with the control lock held, unless a function
   says otherwise: see internal.h. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "../../base/log.h"
#include "../../base/options.h"
#include "../../base/path.h"
#include "../../base/port.h"
#include "../buffer/arena.h"
#include "../buffer/capture_file.h"
#include "../buffer/chunk.h"
#include "../buffer/clock.h"
#include "../buffer/meta.h"
#include "../buffer/session.h"
#include "../buffer/thread.h"
#include "../record/change_log.h"
#include "../record/cost_sample.h"
#include "../record/name.h"
#include "../record/site.h"
#include "control.h"
#include "internal.h"
#include "level.h"

static int make_fresh_arena(const prof_options *options, char *output, bool is_child) {
  memset(&prof_i_control.fresh, 0, sizeof prof_i_control.fresh);
  prof_i_control.fresh.fd = -1;
  prof_i_site_fit(prof_i_port_space().left_bytes);
  return prof_i_arena_create(&prof_i_control.fresh, options, prof_i_control.has_default_cap, output,
                             is_child);
}

/* Replaces the old arena by prof_i_control.fresh. It is complete, but nothing records into it yet.
   If that fails, the old arena stays and the fresh one is discarded. */
static int install_fresh_arena(const prof_options *options, bool is_child) {
  prof_i_arena *const fresh = &prof_i_control.fresh;
  int error = prof_i_chunk_prepare(fresh);
  if (!error) error = prof_i_arena_install(fresh);
  if (error) {
    prof_i_arena_discard(fresh);
    return prof_i_fail(PROF_E_NO_MEMORY, "cannot start: %s", prof_i_error_text(error));
  }
  prof_i_control.is_unsettled = is_child && options->path;
  prof_i_chunk_begin();
  prof_i_level_request_cleared();
  prof_i_header *const header = prof_i_arena_header();
  header->version = PROF_I_FORMAT_VERSION;
  header->header_bytes = PROF_I_HEADER_BYTES;
  header->ring_ns = options->ring_ns;
  const prof_i_cost cost = prof_i_cost_at_start();
  header->scope_cost_ps = cost.scope_ps;
  header->left_out_cost_ps = cost.left_out_ps;
  prof_i_cost_sample_calibrate();
  prof_i_thread_renew_all();
  prof_i_meta_reset();
  PROF_I_MEMORY(renumber);
  prof_i_clock_begin();
  prof_i_cost_sample_begin_capture(cost.scope_ps);
  if (!prof_i_the_session.first_at)
    __atomic_store_n(&prof_i_the_session.first_at, header->start_ticks, __ATOMIC_RELAXED);
  __atomic_store_n(&prof_i_the_session.since, header->start_ticks, __ATOMIC_RELAXED);
  prof_i_identity_begin();
  prof_i_site_begin_capture();
  if (is_child) prof_i_site_copy_all();
  if (prof_i_name_is_any())
    prof_i_site_raise_epoch(); /* their sites are written when the names come again */
  prof_i_change_log_begin();
  prof_i_thread_flush_losses();
  __atomic_store_n(&header->magic, PROF_I_MAGIC, __ATOMIC_RELEASE);
  return PROF_OK;
}

/* Begins a session. Its ticks tell apart what ends after a stop or in a later session. */
static void begin_session(uint32_t level, bool is_child) {
  prof_i_header *const header = prof_i_arena_header();
  prof_i_clock_begin_session();
  const uint64_t now = prof_i_clock_ticks();
  __atomic_store_n(&header->session_ticks, now, __ATOMIC_RELAXED);
  __atomic_store_n(&header->session, header->session + 1, __ATOMIC_RELEASE);
  __atomic_store_n(&header->state, PROF_I_STATE_RECORDING, __ATOMIC_RELAXED);
  const uint64_t words[] = {header->session, level, 1};
  prof_i_meta_write(PROF_I_KIND_SESSION, now, 0, words, 3);
  prof_i_budget_begin(&prof_i_control.options, header->session == 1);
  /* a child is inside a scope here, and must not start a thread */
  if (prof_i_control.options.helper_thread && !is_child) prof_i_helper_start();
  __atomic_store_n(&prof_i_the_session.is_recording, 1, __ATOMIC_SEQ_CST);
  prof_i_arena_set_level(level);
  prof_i_change_log_end_level(0, NULL);
}

static bool options_match(const prof_options *a, const prof_options *b, const char *template_) {
  const bool same_path =
      a->path && b->path ? strcmp(template_, prof_i_control.template_) == 0 : a->path == b->path;
  return same_path && a->policy == b->policy && a->cap_bytes == b->cap_bytes &&
         a->ring_ns == b->ring_ns && a->clock == b->clock;
}

static void store_options(const prof_options *options, const char *template_,
                          const char *expanded) {
  prof_i_control.options = *options;
  prof_i_control_choose_devices(prof_i_control.options.devices);
  if (!options->path) {
    prof_i_control.template_[0] = prof_i_control.path[0] = '\0';
    return;
  }
  memmove(prof_i_control.template_, template_, strlen(template_) + 1);
  memmove(prof_i_control.path, expanded, strlen(expanded) + 1);
  prof_i_control.options.path = prof_i_control.path;
}

/* Runs before anything is recorded, so that each site precedes its records. A child, in its first
   scope, copies the sites with the lock held. */
static void copy_sites(void) {
  const prof_i_lock_context before = prof_i_control_begin_transition(PROF_I_TRANSITION_START);
  const bool is_past_gate = prof_i_arena_guard_enter();
  if (is_past_gate) {
    prof_i_site_copy_all();
    prof_i_arena_guard_exit();
  }
  prof_i_control_end_transition(&before);
  if (!is_past_gate) prof_i_site_copy_all();
}

/* Makes prof_i_control.fresh, created with these options, the arena in force, or discards it. Lock
   held. The lock is released meanwhile, except in a child. */
int prof_i_capture_start_new(const prof_options *options, const char *template_,
                             const char *expanded, bool is_child) {
  const uint32_t clock_before = prof_i_clock_kind();
  int status = prof_i_clock_choose(options->clock);
  if (status == PROF_OK && !prof_i_arena_guard_drain()) {
    status = prof_i_fail(PROF_E_BUSY, "cannot start: %s", prof_i_arena_guard_busy_reason());
    if (clock_before) prof_i_clock_choose(clock_before);
  } else if (status == PROF_OK) {
    status = install_fresh_arena(options, is_child);
    if (status == PROF_OK) {
      prof_i_control.child_status = PROF_OK;
      store_options(options, template_, expanded);
    } else if (clock_before) {
      prof_i_clock_choose(clock_before);
    }
    prof_i_arena_guard_open();
    if (status == PROF_OK && !is_child) copy_sites();
    if (status == PROF_OK) begin_session(options->level, is_child);
    return status;
  }
  prof_i_arena_discard(&prof_i_control.fresh);
  return status;
}

/* The part of a start that uses the file system, which may be slow. is_new: creates an arena.
   Runs without the lock: all other users of the same memory wait for the start. */
int prof_i_capture_make(const prof_options *options, char *expanded, bool is_new, bool is_child) {
  const bool has_suffix =
      is_child && options->path && !prof_i_path_has(prof_i_control.template_, 'p');
  int status = options->path ? prof_i_output_check(expanded) : PROF_OK;
  if (status == PROF_OK && is_new && has_suffix)
    status = prof_i_output_add_suffix(expanded, PROF_I_OUTPUT_ROOM);
  return status == PROF_OK && is_new ? make_fresh_arena(options, expanded, is_child) : status;
}
int prof_i_capture_make_unlocked(const prof_options *options, bool is_new, bool is_child) {
  const prof_i_lock_context before = prof_i_control_begin_transition(PROF_I_TRANSITION_START);
  const int status = prof_i_capture_make(options, prof_i_control.expanded, is_new, is_child);
  prof_i_control_end_transition(&before);
  return status;
}

/* Takes the path, a template, into use. Lock held. */
int prof_i_capture_expand_template(prof_options *options) {
  const char *const template_ = options->path;
  int status = prof_i_control_prepare_process();
  if (status != PROF_OK || !template_) return status;
  if (strlen(template_) >= PROF_I_OUTPUT_ROOM)
    return prof_i_fail(PROF_E_INVALID, "options.path is longer than %d bytes",
                       PROF_I_OUTPUT_ROOM - 1);
  char host[64] = "host";
  gethostname(host, sizeof host - 1);
  const prof_i_path_words words = {(uint32_t)getpid(), prof_i_identity_rank(), host};
  status = prof_i_expand_path(template_, &words, prof_i_control.expanded, PROF_I_OUTPUT_ROOM);
  options->path = prof_i_control.expanded;
  return status;
}

/* Lock held, not recording. options are complete; path is the template. */
int prof_i_capture_start(const prof_options *given, bool is_fresh) {
  prof_options complete = *given, *const options = &complete;
  const char *const template_ = options->path;
  int status = prof_i_capture_expand_template(options);
  if (status != PROF_OK) return status;
  const bool goes_on = !is_fresh && prof_i_the_arena.base &&
                       options_match(options, &prof_i_control.options, template_);
  status = template_ ? prof_i_capture_make_unlocked(options, !goes_on, false)
                     : prof_i_capture_make(options, prof_i_control.expanded, !goes_on, false);
  if (status != PROF_OK) return status;
  if (goes_on) {
    options->path =
        template_ ? prof_i_control.path : NULL; /* the path in force may have a suffix */
    store_options(options, template_ ? template_ : "", prof_i_control.path);
    begin_session(options->level, false);
    return PROF_OK;
  }
  return prof_i_capture_start_new(options, template_ ? template_ : "", prof_i_control.expanded,
                                  false);
}

/* In memory, and of those alone who wanted it for a while: nobody has asked that it be kept. */
bool prof_i_capture_is_leftover(const prof_options *options) {
  return !options->path && prof_i_level_request_all_ended();
}

/* Recording has begun; what asks others is done without the lock. From the environment: while the
   program is loaded, which others that open a library wait for. */
void prof_i_capture_begin_observers(bool waits) {
  PROF_I_MEMORY(begin);
  if (prof_i_control_device_hooks()) prof_i_control_device_hooks()->start(waits);
}

/* Releases the lock meanwhile: a vendor's library may need seconds for its last records, and the
   helper waits for the disk. */
static void end_observers(void) {
  const prof_i_lock_context before = prof_i_control_begin_transition(PROF_I_TRANSITION_STOP);
  if (prof_i_control_device_hooks()) prof_i_control_device_hooks()->stop();
  prof_i_helper_stop();
  prof_i_control_end_transition(&before);
}

/* First the level, so that no scope begins any more. Then every thread's chunk is detached, so that
   later ends are late. */
void prof_i_capture_stop(void) {
  prof_i_header *const header = prof_i_arena_header();
  prof_i_change_log_begin_level(); /* without an end: nobody looks until the next start */
  prof_i_arena_set_level(0);
  end_observers();
  PROF_I_MEMORY(end);
  __atomic_store_n(&prof_i_the_session.is_recording, 0, __ATOMIC_SEQ_CST);
  prof_i_chunk_detach_all();
  prof_i_clock_write_pair(false);
  const uint64_t words[] = {header->session, 0, 0};
  prof_i_meta_write(PROF_I_KIND_SESSION, prof_i_clock_ticks(), 0, words, 3);
  __atomic_store_n(&header->state, PROF_I_STATE_STOPPED, __ATOMIC_SEQ_CST);
  /* again: another process may have raised the level, and looks at the state afterwards */
  prof_i_arena_set_level(0);
}

/* With the options of the last start, or none; into another capture, or as it comes. Lock held. */
int prof_i_capture_restart(int level, bool is_fresh) {
  prof_options options = {.size = sizeof options};
  if (prof_i_control.options.size)
    options = prof_i_control.options;
  else
    prof_i_control.has_default_cap = true;
  options.level = level ? (uint32_t)level : 1;
  if (options.path) options.path = prof_i_control.template_;
  int status = prof_i_options_complete(&options);
  options.level = (uint32_t)level;
  if (status == PROF_OK) status = prof_i_capture_start(&options, is_fresh);
  if (status == PROF_OK) prof_i_control.started_by = NULL;
  return status;
}
