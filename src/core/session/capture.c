/* How a capture is created, with its file or memory and its size limit, begun and stopped. All with
   the control lock held, unless a function says otherwise: see internal.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../../base/error.h"
#include "../../base/options.h"
#include "../../base/port.h"
#include "../../base/text.h"
#include "../../format/layout.h"
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

static const uint64_t cap_bytes_min = 1 << 20; /* no smaller cap is tried */
/* prof's share of the free address space, in parts. The tables of sites take one more part, see
   ../record/site.h. Both together are at most an eighth. */
enum { SPACE_PART = 3, SPACE_PARTS = 32 };

static uint64_t whole_units(uint64_t bytes) { return bytes & ~(uint64_t)(PROF_I_UNIT_BYTES - 1); }

/* The budget is checked where a chunk ends, so a chunk must not have more events than it. */
static bool chunk_outlasts_budget(uint64_t chunk_bytes, uint64_t budget_events) {
  enum { EVENT_BYTES = 16 };
  return budget_events && chunk_bytes / EVENT_BYTES > budget_events;
}

/* Chunks grow from 16 KiB to at most a 64th of the arena, or to the events of a second's budget.
   The maximum is at least 64 KiB, which hold the longest record. */
static void choose_chunk_sizes(prof_i_arena *arena, uint64_t budget_events) {
  arena->chunk_bytes_min = PROF_I_UNIT_BYTES;
  arena->chunk_bytes_max = PROF_I_CHUNK_BYTES_MAX;
  while (arena->chunk_bytes_max > 4 * PROF_I_UNIT_BYTES &&
         (arena->chunk_bytes_max * 64 > arena->cap_bytes ||
          chunk_outlasts_budget(arena->chunk_bytes_max, budget_events)))
    arena->chunk_bytes_max /= 4;
}

/* Appends to the reason. limit UINT64_MAX: no limit. */
static void append_cap_reason(prof_i_arena *fresh, uint64_t cap, uint64_t asked,
                              const char *limit_name, uint64_t limit, const char *advice) {
  prof_i_compose reason = {fresh->reason, sizeof fresh->reason, strlen(fresh->reason), false};
  if (reason.bytes) prof_i_compose_text(&reason, "; ");
  prof_i_compose_text(&reason, "the cap is ");
  prof_i_compose_number(&reason, cap);
  prof_i_compose_text(&reason, " bytes, not ");
  prof_i_compose_number(&reason, asked);
  prof_i_compose_text(&reason, ": ");
  prof_i_compose_text(&reason, limit_name);
  if (limit != UINT64_MAX) {
    prof_i_compose_text(&reason, " is ");
    prof_i_compose_number(&reason, limit);
    prof_i_compose_text(&reason, " bytes");
  }
  prof_i_compose_text(&reason, advice);
  fresh->is_cap_cut = true;
}

/* Appends the reason, the command that raises the limit, and then `advice`. */
static void append_space_reason(prof_i_arena *fresh, uint64_t cap, uint64_t asked,
                                const prof_i_space *space, const char *advice) {
  append_cap_reason(fresh, cap, asked, space->name, space->limit_bytes, "; raise it (");
  prof_i_compose reason = {fresh->reason, sizeof fresh->reason, strlen(fresh->reason), false};
  prof_i_compose_text(&reason, space->command);
  prof_i_compose_text(&reason, ")");
  prof_i_compose_text(&reason, advice);
}

/* prof's share of the address space. The host needs the rest, and a reader needs a copy. */
static uint64_t space_share(void) {
  const uint64_t left = prof_i_port_space().left_bytes;
  if (left == UINT64_MAX) return UINT64_MAX;
  const uint64_t share = whole_units(left / SPACE_PARTS * SPACE_PART);
  return share < cap_bytes_min ? cap_bytes_min : share;
}

/* Says that the kernel refused `asked` bytes with this error, and mapped `cap` bytes. */
static void append_refusal_reason(prof_i_arena *fresh, uint64_t cap, uint64_t asked, int error) {
  const uint64_t locked = prof_i_port_locked_memory_limit();
  const prof_i_space space = prof_i_port_space();
  if (error == EAGAIN && locked != UINT64_MAX)
    append_cap_reason(fresh, cap, asked, "mlockall() locks all that is mapped, and RLIMIT_MEMLOCK",
                      locked, "; raise it (ulimit -l) or set a smaller cap");
  else if (error == ENOMEM && space.limit_bytes != UINT64_MAX)
    append_space_reason(fresh, cap, asked, &space, " or set a smaller cap");
  else
    append_cap_reason(fresh, cap, asked, prof_i_error_text(error), UINT64_MAX,
                      "; set a smaller cap");
}

/* Halves the cap until the kernel maps it, and leaves the host its share of the address space.
   Returns 0 or the kernel's last error. */
static int map_as_large(prof_i_arena *fresh, int fd, uint64_t asked, uint32_t policy) {
  int error = 0, refused = 0;
  for (uint64_t cap = asked; cap == asked || cap >= cap_bytes_min; cap = whole_units(cap / 2)) {
    const uint64_t share = refused == ENOMEM ? space_share() : UINT64_MAX;
    if (cap > share) cap = share;
    error = prof_i_arena_map(fresh, fd, cap, policy);
    if (!error && refused) append_refusal_reason(fresh, cap, asked, refused);
    if (!error) return 0;
    refused = error;
  }
  return error;
}

static int map_status(int error) {
  const int status = prof_i_status_of_errno(error);
  const bool has_no_descriptor = error == EMFILE || error == ENFILE;
  return status == PROF_E_IO && !has_no_descriptor ? PROF_E_NO_MEMORY : status;
}

static int map_memory(prof_i_arena *fresh, const prof_options *options) {
  uint64_t cap = options->cap_bytes;
  const uint64_t limit = prof_i_port_file_size_limit();
  if (cap > limit) { /* past RLIMIT_FSIZE the kernel kills, memfds too */
    cap = whole_units(limit);
    append_cap_reason(fresh, cap, options->cap_bytes, "RLIMIT_FSIZE", limit,
                      "; raise it (ulimit -f)");
  }
  if (cap < 4 * PROF_I_SLOT_BYTES)
    return prof_i_fail(PROF_E_NO_SPACE, "RLIMIT_FSIZE of %llu bytes leaves no room to record",
                       (unsigned long long)limit);
  const uint32_t policy =
      options->policy == PROF_POLICY_STREAM ? PROF_POLICY_KEEP : options->policy;
  const int error = map_as_large(fresh, -1, cap, policy);
  if (!error) return PROF_OK;
  fresh->error = error;
  return prof_i_fail(map_status(error), "cannot map %llu bytes to record into: %s",
                     (unsigned long long)options->cap_bytes, prof_i_error_text(error));
}

/* A file on tmpfs is memory, which the machine or the control group limits. Without a cap of the
   program, the cap of such a file is that of a capture in memory. */
static uint64_t cap_of_file(int fd, const prof_options *options, bool is_chosen) {
  const uint64_t most = prof_i_options_memory_cap();
  return is_chosen || options->cap_bytes <= most || !prof_i_capture_file_is_memory(fd)
             ? options->cap_bytes
             : most;
}

/* Lowers the cap, because that of a file may be too large for memory. */
static int map_memory_instead(prof_i_arena *fresh, const prof_options *options) {
  const uint64_t most = prof_i_options_memory_cap();
  prof_options in_memory = *options;
  if (in_memory.cap_bytes > most) in_memory.cap_bytes = most;
  return map_memory(fresh, &in_memory);
}

static int map_anywhere(prof_i_arena *fresh, const prof_options *options, bool has_default_cap,
                        char *output, bool is_child) {
  if (!options->path) return map_memory(fresh, options);
  const int fd = prof_i_capture_file_create(output, is_child, fresh->path, sizeof fresh->path,
                                            fresh->reason, sizeof fresh->reason);
  const int status = is_child ? PROF_OK
                              : prof_i_output_claim_settle(output, PROF_I_OUTPUT_ROOM, 0, fd,
                                                           fresh->path, sizeof fresh->path);
  if (status != PROF_OK) {
    if (fd >= 0) close(fd);
    if (fd >= 0) unlink(fresh->path);
    return status;
  }
  if (fd < 0) return map_memory_instead(fresh, options);
  const bool is_elsewhere = fresh->reason[0];
  const uint64_t cap = cap_of_file(fd, options, !has_default_cap && !is_elsewhere);
  const int error = map_as_large(fresh, fd, cap, options->policy);
  if (!error) return PROF_OK;
  close(fd);
  unlink(fresh->path);
  return prof_i_fail(map_status(error), "cannot map the capture '%s': %s", fresh->path,
                     prof_i_error_text(error));
}

/* Creates *fresh from complete options. On entry it is zeros, with fd -1. has_default_cap: the
   program set no cap. output: options->path, with room for PROF_I_OUTPUT_ROOM bytes. It gets
   another name if another process uses it. After an error nothing is left. Returns 0, or a status
   with its text. Control lock held. Signal-safe in a forked child. */
static int arena_create(prof_i_arena *fresh, const prof_options *options, bool has_default_cap,
                        char *output, bool is_child) {
  const uint64_t usual = options->cap_bytes, share = has_default_cap ? space_share() : UINT64_MAX;
  prof_options made = *options;
  if (share < usual) made.cap_bytes = share;
  const int status = map_anywhere(fresh, &made, has_default_cap, output, is_child);
  if (status != PROF_OK) return status;
  choose_chunk_sizes(fresh, options->budget_events);
  if (share >= usual || fresh->cap_bytes != share || fresh->is_cap_cut) return PROF_OK;
  const prof_i_space space = prof_i_port_space();
  append_space_reason(fresh, share, usual, &space, " or set a cap");
  return PROF_OK;
}

static int make_fresh_arena(const prof_options *options, char *output, bool is_child) {
  memset(&prof_i_control.fresh, 0, sizeof prof_i_control.fresh);
  prof_i_control.fresh.fd = -1;
  prof_i_site_fit(prof_i_port_space().left_bytes);
  return arena_create(&prof_i_control.fresh, options, prof_i_control.has_default_cap, output,
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
  const uint64_t process = prof_i_thread_process();
  prof_i_header *const header = prof_i_arena_header();
  prof_i_change_log_begin_level(); /* without an end: nobody looks until the next start */
  prof_i_arena_set_level(0);
  end_observers();
  if (prof_i_thread_process() != process) return; /* a child, forked by a handler meanwhile */
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
