/* Start, stop, clear, fork. See control.h. */
#define _GNU_SOURCE
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../base/duplicate.h"
#include "../../base/fault.h"
#include "../../base/log.h"
#include "../../base/options.h"
#include "../../base/path.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "../../base/reentry.h"
#include "../../base/this_thread.h"
#include "../buffer/arena.h"
#include "../buffer/arena_create.h"
#include "../buffer/arena_guard.h"
#include "../buffer/capture_file.h"
#include "../buffer/chunk.h"
#include "../buffer/clock.h"
#include "../buffer/helper.h"
#include "../buffer/mapping.h"
#include "../buffer/meta.h"
#include "../buffer/output_claim.h"
#include "../buffer/session.h"
#include "../buffer/snapshot_pin.h"
#include "../buffer/thread.h"
#include "../record/change_log.h"
#include "../record/cost.h"
#include "../record/cost_sample.h"
#include "../record/mute.h"
#include "../record/name.h"
#include "../record/site.h"
#include "budget.h"
#include "identity.h"
#include "joined_output.h"
#include "level_request.h"
#include "memory_hooks.h"

enum { PATH_ROOM = PROF_I_OUTPUT_ROOM };
/* A change of the capture that released the lock for a time: a stop that waits for devices and the
   helper, or a start that creates a file. TRANSITION_MADE: a child's file was created, and the next
   owner of the lock continues that start. */
typedef enum transition {
  TRANSITION_NONE = 0,
  TRANSITION_STOP,
  TRANSITION_START,
  TRANSITION_MADE
} transition;

/* Guarded by lock. */
static struct {
  pthread_mutex_t control_lock;
  int was_cancel;             /* of the thread that has the lock: could it be cancelled before? */
  bool was_at_control;        /* the same of prof_i_this_flags.is_at_control */
  uint32_t transition_now;    /* change. Written under the lock, except TRANSITION_MADE */
  int child_status;           /* why a child has none: of the start that failed; 0: none did */
  int child_made;             /* the status of creating the file, for TRANSITION_MADE */
  prof_options child_options; /* of the start that creates it */
  bool prepared;
  int fork_error;              /* an errno: forks cannot be watched */
  uint32_t requested_devices;  /* prof_devices, for any thread; relaxed */
  uint32_t preferred_devices;  /* where nobody says what of devices he wants. Under the lock */
  prof_i_device_warning *warn; /* the same */
  /* the variable of the environment that asked for the capture; NULL: the program did */
  const char *started_by;
  /* a child's capture in force: nobody has looked whether others have the output's name. See
     output_claim.h */
  bool is_unsettled;
  prof_options options; /* in force; path points at the next */
  bool has_default_cap; /* nobody said how large the capture may be */
  /* starts of the program join the capture that runs, see prof_i_control_join() */
  bool joins;
  bool is_of_environment;    /* the environment began the first capture, and it has an output */
  char path[PATH_ROOM];      /* expanded */
  char template_[PATH_ROOM]; /* as given, but absolute: a child expands it anew */
  /* of the start at hand: a handler's stack, where a child's comes, may have 8 KiB */
  char given[PATH_ROOM], expanded[PATH_ROOM];
  prof_i_arena fresh; /* the same */
} session = {.control_lock = PTHREAD_MUTEX_INITIALIZER};
/* Set once, from any thread; NULL: the library has no devices. */
static const prof_i_device_hooks *device_hooks PROF_I_WRITTEN_AT_LOAD;

static transition current_transition(void) {
  return __atomic_load_n(&session.transition_now, __ATOMIC_ACQUIRE);
}
static void register_fork_handlers(void);
static void make_child(void);

/* Rank 1. Who forks while another thread has it needs the handlers: they are there before anybody
   takes it. A child that came without handlers has another lock than its parent's, which nobody
   here may ever give back. */
static bool control_lock_with(int (*take)(pthread_mutex_t *mutex)) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  prof_i_process_is_own();
  const int was = prof_i_port_disable_cancel();
  const bool was_there = prof_i_this_flags.is_at_control;
  prof_i_this_flags.is_at_control = true; /* a handler's call is refused: see reentry.h */
  PROF_I_SIGNAL_FENCE();
  pthread_once(&once, register_fork_handlers);
  if (!PROF_I_FAULT(NO_LOCK) && take(&session.control_lock) != 0) {
    prof_i_this_flags.is_at_control = was_there;
    prof_i_port_restore_cancel(&was);
    return false;
  }
  session.was_cancel = was;
  session.was_at_control = was_there;
  return true;
}
static void control_lock(void) { control_lock_with(pthread_mutex_lock); }
static void control_unlock(void) {
  const int was = session.was_cancel;
  const bool was_there = session.was_at_control; /* for a handler inside a call that has the lock */
  /* A start that releases the lock must not be delayed by unmapping. */
  const bool may_unmap = current_transition() != TRANSITION_START;
  struct prof_i_unmap_list *unused = may_unmap ? prof_i_mapping_take_unmap_list() : NULL;
  if (unused && current_transition() != TRANSITION_STOP && prof_i_helper_unmap(unused))
    unused = NULL;
  if (!PROF_I_FAULT(NO_LOCK)) pthread_mutex_unlock(&session.control_lock);
  PROF_I_SIGNAL_FENCE();
  prof_i_this_flags.is_at_control = was_there;
  prof_i_mapping_unmap_list(unused);
  prof_i_port_restore_cancel(&was);
}
static void finish_child(void);

/* A start waits for every change that is under way, what ends something only for a stop: a start
   that is not done has begun nothing. */
static void lock_after_transition(bool is_start) {
  enum { A_SECOND_NS = 1000000000 };
  control_lock();
  for (transition now;
       (now = current_transition()) == TRANSITION_STOP || (is_start && now != TRANSITION_NONE);) {
    if (now == TRANSITION_MADE) {
      finish_child();
      continue;
    }
    control_unlock();
    prof_i_port_wait(&session.transition_now, now, A_SECOND_NS);
    control_lock();
  }
}
static void lock_before_start(void) { lock_after_transition(true); }
static void lock_before_end(void) { lock_after_transition(false); }
/* A child's file is usually created quickly. So a concurrent call waits for it up to 10 ms. */
static void await_child(void) {
  enum { PATIENCE_NS = 10000000 };
  if (!__atomic_load_n(&prof_i_the_session.child_waits, __ATOMIC_RELAXED)) return;
  const uint64_t begun = prof_i_port_monotonic_ns();
  for (uint64_t past;
       current_transition() == TRANSITION_START && (past = prof_i_ns_since(begun)) < PATIENCE_NS;)
    prof_i_port_wait(&session.transition_now, TRANSITION_START, PATIENCE_NS - past);
}
void prof_i_control_lock(void) {
  await_child();
  control_lock();
  if (current_transition() == TRANSITION_MADE) finish_child();
}
void prof_i_control_lock_to_clear(void) { lock_before_end(); }

/* Between these two the lock is released, so that other calls need not wait for slow work. Calls
   that change the capture wait: see lock_after_transition(). Signal handlers still see this thread
   as the lock's owner. Lock held at the first call and after the second. */
typedef struct lock_context {
  int was_cancel;
  bool was_there;
} lock_context;
static lock_context begin_transition(transition what) {
  const lock_context before = {session.was_cancel, session.was_at_control};
  session.was_cancel = prof_i_port_disable_cancel();
  session.was_at_control = true;
  __atomic_store_n(&session.transition_now, what, __ATOMIC_RELAXED);
  control_unlock();
  return before;
}
static void end_transition(const lock_context *before) {
  control_lock();
  session.was_cancel = before->was_cancel;
  session.was_at_control = before->was_there;
  __atomic_store_n(&session.transition_now, TRANSITION_NONE, __ATOMIC_RELEASE);
  prof_i_port_wake(&session.transition_now);
}
bool prof_i_control_try_lock(void) { return control_lock_with(pthread_mutex_trylock); }
void prof_i_control_unlock(void) { control_unlock(); }

/* A child's first scope does not look around, its first dump does. Where the name is another one's
   from here on, the capture has one to match. Lock held. */
static void settle_capture_name(void) {
  prof_i_arena *const arena = &prof_i_the_arena;
  struct stat about;
  if (!session.is_unsettled || !arena->base) return;
  session.is_unsettled = false;
  const int fd =
      arena->path[0] ? open(arena->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) : -1;
  const bool is_it = fd >= 0 && fstat(fd, &about) == 0 && about.st_dev == arena->device &&
                     about.st_ino == arena->inode;
  if (is_it) fchmod(fd, PROF_I_MODE_CLAIMING);
  prof_i_output_claim_settle(session.path, sizeof session.path,
                             prof_i_arena_header()->start_realtime_ns, is_it ? fd : -1, arena->path,
                             sizeof arena->path);
  if (fd >= 0) close(fd);
}

bool prof_i_output_path(char *to, size_t room) {
  control_lock();
  if (prof_i_joined_output_is_set()) {
    const bool is_known = prof_i_joined_output_path(to, room);
    control_unlock();
    return is_known;
  }
  if (session.is_unsettled) { /* a start uses the same memory */
    control_unlock();
    lock_before_start();
  }
  settle_capture_name();
  const char *const path = session.options.path;
  const bool is_there = path && strlen(path) < room;
  if (is_there) memcpy(to, path, strlen(path) + 1);
  control_unlock();
  return is_there;
}

PROF_I_COLD void prof_i_control_set_devices(const prof_i_device_hooks *hooks) {
  __atomic_store_n(&device_hooks, hooks, __ATOMIC_RELEASE);
}
uint32_t prof_i_control_devices(void) {
  return __atomic_load_n(&session.requested_devices, __ATOMIC_RELAXED);
}
void prof_i_control_set_device_warning(prof_i_device_warning *warn) {
  __atomic_store_n(&session.warn, warn, __ATOMIC_RELAXED);
}
void prof_i_control_device_warning(char *to, size_t room) {
  prof_i_device_warning *const warn = __atomic_load_n(&session.warn, __ATOMIC_RELAXED);
  if (warn) warn(to, room);
}
static const prof_i_device_hooks *devices(void) {
  return __atomic_load_n(&device_hooks, __ATOMIC_ACQUIRE);
}
void prof_i_control_resolve_devices(void) {
  if (devices()) devices()->harvest();
}

/* ---- fork ---- */

/* No start makes a file just now, of which the child would have a descriptor. Without waiting. */
static bool try_lock_for_fork(void) {
  if (pthread_mutex_trylock(&session.control_lock) != 0) return false;
  if (current_transition() != TRANSITION_START) return true;
  pthread_mutex_unlock(&session.control_lock);
  return false;
}

/* Waits only a moment: whatever another thread does under the lock must not hold the host's fork.
   The child needs nothing of that. Not by pthread_mutex_timedlock(), which goes by CLOCK_REALTIME;
   nor by nanosleep(), where the host's thread could be cancelled. */
static void control_before_fork(void) {
  enum { PATIENCE_NS = 10000000, NAP_NS = 100000 };
  const uint64_t begun = prof_i_port_monotonic_ns();
  const bool was_there = prof_i_this_flags.is_at_control;
  bool has_lock;
  prof_i_this_flags.is_at_control = true; /* to the fork's end, where it gets the lock */
  PROF_I_SIGNAL_FENCE();
  while (!(has_lock = try_lock_for_fork()) && prof_i_ns_since(begun) < PATIENCE_NS) {
    uint32_t nobody_wakes_it = 0;
    prof_i_port_wait(&nobody_wakes_it, 0, NAP_NS);
  }
  if (!has_lock) has_lock = pthread_mutex_trylock(&session.control_lock) == 0;
  if (has_lock)
    session.was_at_control = was_there;
  else
    prof_i_this_flags.is_at_control = was_there;
  /* With the lock: a start or a stop of another thread is over, or has not begun. */
  prof_i_this_flags.fork =
      (uint8_t)((prof_i_arena_level() + 1) | (has_lock ? PROF_I_FORK_HAS_LOCK : 0));
  PROF_I_MEMORY(before_fork);
}

static void control_after_fork_parent(void) {
  const bool has_lock = prof_i_this_flags.fork & PROF_I_FORK_HAS_LOCK;
  prof_i_this_flags.fork = 0;
  if (!has_lock) return;
  prof_i_snapshot_pin_fork();
  const bool was_there = session.was_at_control;
  pthread_mutex_unlock(&session.control_lock);
  PROF_I_SIGNAL_FENCE();
  prof_i_this_flags.is_at_control = was_there;
}

/* Only the forking thread is here. What the parent's other threads held is gone with them; the
   arena is the parent's. */
static void reset_in_child(void) {
  PROF_I_DISABLE_CANCEL;
  const int saved = errno;
  const uint32_t before = prof_i_this_flags.fork & PROF_I_FORK_LEVEL;
  uint32_t level = before ? before - 1 : prof_i_arena_level();
  /* A daemon forks twice, and may have no scope in between. */
  const bool was_recording =
      prof_i_the_session.is_recording && current_transition() != TRANSITION_STOP;
  const bool goes_on =
      prof_i_level_request_forget(&level) && (was_recording || prof_i_the_session.child_waits);
  prof_i_the_session.forked_at = prof_i_clock_kind() ? prof_i_clock_ticks() : 0;
  prof_i_arena_guard_reset();
  prof_i_helper_forget();
  prof_i_budget_forget();
  prof_i_cost_sample_forget();
  PROF_I_MEMORY(forget, before != 0);
  prof_i_clock_forget();
  prof_i_thread_forget_all();
  prof_i_mapping_forget();
  prof_i_arena_forget(level);
  prof_i_the_session.since = 0;
  if (devices()) devices()->forget();
  prof_i_meta_reset();
  prof_i_the_session.is_recording = session.transition_now = 0;
  session.is_unsettled = false;
  session.child_status = PROF_OK;
  prof_i_process_set_id(getpid());
  prof_i_the_session.child_waits = goes_on;
  if (!goes_on) PROF_I_MEMORY(end);
  /* If a handler forked, the child returns into the interrupted call: it keeps that state. */
  if (prof_i_this_flags.fork & PROF_I_FORK_HAS_LOCK)
    prof_i_this_flags.is_at_control = session.was_at_control;
#if defined(PROF_I_TSAN) /* it does not see that the lock is a new one */
  if (prof_i_this_flags.fork & PROF_I_FORK_HAS_LOCK) pthread_mutex_unlock(&session.control_lock);
#endif
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  session.control_lock = fresh;
  errno = saved;
}

static void control_after_fork_child(void) {
  prof_i_process_after_fork();
  prof_i_this_flags.fork = 0;
}

static void register_fork_handlers(void) {
  session.fork_error =
      pthread_atfork(control_before_fork, control_after_fork_parent, control_after_fork_child);
  prof_i_the_session.make_child = make_child;
  prof_i_process_watch(reset_in_child);
}

static int prepare_process(void) {
  if (session.fork_error)
    session.fork_error =
        pthread_atfork(control_before_fork, control_after_fork_parent, control_after_fork_child);
  int error = session.fork_error;
  if (!error) error = prof_i_arena_level_page(); /* a forked child may have none of its own yet */
  if (error) return prof_i_fail(PROF_E_NO_MEMORY, "cannot start: %s", prof_i_error_text(error));
  session.prepared = true;
  return PROF_OK;
}

/* The helper would go on in code that is not there any more, and the threads that recorded would go
   there when they end. */
void prof_i_control_unload(void) {
  prof_i_thread_remove_exit_hook();
  if (!session.prepared) return;
  prof_i_process_is_own(); /* a child without handlers has no helper */
  prof_i_helper_stop();
}

/* ---- the arena ---- */

static int make_fresh_arena(const prof_options *options, char *output, bool is_child) {
  memset(&session.fresh, 0, sizeof session.fresh);
  session.fresh.fd = -1;
  prof_i_site_fit(prof_i_port_space().left_bytes);
  return prof_i_arena_create(&session.fresh, options, session.has_default_cap, output, is_child);
}

/* Replaces the old arena by session.fresh, complete except that nothing records into it. If that
   fails, the old arena stays and session.fresh is discarded. Lock held. */
static int install_fresh_arena(const prof_options *options, bool is_child) {
  prof_i_arena *const fresh = &session.fresh;
  int error = prof_i_chunk_prepare(fresh);
  if (!error) error = prof_i_arena_install(fresh);
  if (error) {
    prof_i_arena_discard(fresh);
    return prof_i_fail(PROF_E_NO_MEMORY, "cannot start: %s", prof_i_error_text(error));
  }
  session.is_unsettled = is_child && options->path;
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
  prof_i_cost_sample_begin_capture();
  if (!prof_i_the_session.first_at)
    __atomic_store_n(&prof_i_the_session.first_at, header->start_ticks, __ATOMIC_RELAXED);
  __atomic_store_n(&prof_i_the_session.since, header->start_ticks, __ATOMIC_RELAXED);
  prof_i_identity_begin();
  prof_i_site_begin_capture();
  if (is_child) prof_i_site_copy_all();
  if (prof_i_name_is_any())
    prof_i_site_raise_epoch(); /* their sites are written when they come again */
  prof_i_change_log_begin();
  prof_i_thread_flush_losses();
  __atomic_store_n(&header->magic, PROF_I_MAGIC, __ATOMIC_RELEASE);
  return PROF_OK;
}

/* Sessions need their turn in the capture: what ends after a stop, or in a later session, is told
   apart by these ticks. */
static void begin_session(uint32_t level, bool is_child) {
  prof_i_header *const header = prof_i_arena_header();
  prof_i_clock_begin_session();
  const uint64_t now = prof_i_clock_ticks();
  __atomic_store_n(&header->session_ticks, now, __ATOMIC_RELAXED);
  __atomic_store_n(&header->session, header->session + 1, __ATOMIC_RELEASE);
  __atomic_store_n(&header->state, PROF_I_STATE_RECORDING, __ATOMIC_RELAXED);
  const uint64_t words[] = {header->session, level, 1};
  prof_i_meta_write(PROF_I_KIND_SESSION, now, 0, words, 3);
  prof_i_budget_begin(&session.options, header->session == 1);
  /* a child is inside of a scope, and starts no thread */
  if (session.options.helper_thread && !is_child) prof_i_helper_start();
  __atomic_store_n(&prof_i_the_session.is_recording, 1, __ATOMIC_SEQ_CST);
  prof_i_arena_set_level(level);
  prof_i_change_log_end_level(0, NULL);
}

static bool options_match(const prof_options *a, const prof_options *b, const char *template_) {
  const bool same_path =
      a->path && b->path ? strcmp(template_, session.template_) == 0 : a->path == b->path;
  return same_path && a->policy == b->policy && a->cap_bytes == b->cap_bytes &&
         a->ring_ns == b->ring_ns && a->clock == b->clock;
}

/* What the options say, or else the wishes, or else what a vendor's library that loads prof is
   there for. */
static void choose_devices(void) {
  const uint32_t said =
      session.options.devices ? session.options.devices : prof_i_level_request_devices();
  __atomic_store_n(&session.requested_devices, said ? said : session.preferred_devices,
                   __ATOMIC_RELAXED);
}

static void store_options(const prof_options *options, const char *template_,
                          const char *expanded) {
  session.options = *options;
  choose_devices();
  if (!options->path) {
    session.template_[0] = session.path[0] = '\0';
    return;
  }
  memmove(session.template_, template_, strlen(template_) + 1);
  memmove(session.path, expanded, strlen(expanded) + 1);
  session.options.path = session.path;
}

/* Runs before anything is recorded, so that each site precedes its records. A child, in its first
   scope, copies the sites with the lock held. */
static void copy_sites(void) {
  const lock_context before = begin_transition(TRANSITION_START);
  const bool is_past_gate = prof_i_arena_guard_enter();
  if (is_past_gate) {
    prof_i_site_copy_all();
    prof_i_arena_guard_exit();
  }
  end_transition(&before);
  if (!is_past_gate) prof_i_site_copy_all();
}

/* Makes session.fresh, created with these options, the arena in force, or discards it. Lock held.
   The lock is released meanwhile, except in a child. */
static int start_new_capture(const prof_options *options, const char *template_,
                             const char *expanded, bool is_child) {
  const uint32_t clock_before = prof_i_clock_kind();
  int status = prof_i_clock_choose(options->clock);
  if (status == PROF_OK && !prof_i_arena_guard_drain()) {
    status = prof_i_fail(PROF_E_BUSY, "cannot start: %s", prof_i_arena_guard_busy_reason());
    if (clock_before) prof_i_clock_choose(clock_before);
  } else if (status == PROF_OK) {
    status = install_fresh_arena(options, is_child);
    if (status == PROF_OK) {
      session.child_status = PROF_OK;
      store_options(options, template_, expanded);
    } else if (clock_before) {
      prof_i_clock_choose(clock_before);
    }
    prof_i_arena_guard_open();
    if (status == PROF_OK && !is_child) copy_sites();
    if (status == PROF_OK) begin_session(options->level, is_child);
    return status;
  }
  prof_i_arena_discard(&session.fresh);
  return status;
}

/* The part of a start that uses the file system, which may be slow. is_new: creates an arena.
   Runs without the lock: all other users of the same memory wait for the start. */
static int make_capture(const prof_options *options, char *expanded, bool is_new, bool is_child) {
  const bool has_suffix = is_child && options->path && !prof_i_path_has(session.template_, 'p');
  int status = options->path ? prof_i_output_check(expanded) : PROF_OK;
  if (status == PROF_OK && is_new && has_suffix)
    status = prof_i_output_add_suffix(expanded, PATH_ROOM);
  return status == PROF_OK && is_new ? make_fresh_arena(options, expanded, is_child) : status;
}
static int make_capture_unlocked(const prof_options *options, bool is_new, bool is_child) {
  const lock_context before = begin_transition(TRANSITION_START);
  const int status = make_capture(options, session.expanded, is_new, is_child);
  end_transition(&before);
  return status;
}

/* Takes the path, a template, into use. Lock held. */
static int expand_template(prof_options *options) {
  const char *const template_ = options->path;
  int status = prepare_process();
  if (status != PROF_OK || !template_) return status;
  if (strlen(template_) >= PATH_ROOM)
    return prof_i_fail(PROF_E_INVALID, "options.path is longer than %d bytes", PATH_ROOM - 1);
  char host[64] = "host";
  gethostname(host, sizeof host - 1);
  const prof_i_path_words words = {(uint32_t)getpid(), prof_i_identity_rank(), host};
  status = prof_i_expand_path(template_, &words, session.expanded, PATH_ROOM);
  options->path = session.expanded;
  return status;
}

/* Lock held, not recording. options are complete; path is the template. */
static int start_with_lock(const prof_options *given, bool is_fresh) {
  prof_options complete = *given, *const options = &complete;
  const char *const template_ = options->path;
  int status = expand_template(options);
  if (status != PROF_OK) return status;
  const bool goes_on =
      !is_fresh && prof_i_the_arena.base && options_match(options, &session.options, template_);
  status = template_ ? make_capture_unlocked(options, !goes_on, false)
                     : make_capture(options, session.expanded, !goes_on, false);
  if (status != PROF_OK) return status;
  if (goes_on) {
    options->path = template_ ? session.path : NULL; /* perhaps with a suffix */
    store_options(options, template_ ? template_ : "", session.path);
    begin_session(options->level, false);
    return PROF_OK;
  }
  return start_new_capture(options, template_ ? template_ : "", session.expanded, false);
}

/* What would have begun with a child's first event does not begin any more. Lock held, not
   recording. */
static void cancel_child_wait(void) {
  __atomic_store_n(&prof_i_the_session.child_waits, 0, __ATOMIC_RELAXED);
  prof_i_arena_set_level(0);
  PROF_I_MEMORY(end);
}

/* Continues the parent's recording in this child's own capture, in three steps: planning, creating
   the file without the lock, and beginning. If the template has no pid, the child adds a suffix to
   the name: the parent may have ended, and its trace must stay. */

/* Lock held. False: no capture is needed. */
static bool plan_child(void) {
  if (!prof_i_the_session.child_waits || current_transition() != TRANSITION_NONE) return false;
  if (!prof_i_arena_level() && !prof_i_session_has_memory()) {
    cancel_child_wait();
    return false;
  }
  session.child_options = session.options;
  if (session.options.path) session.child_options.path = session.template_;
  prof_i_fail_silently(true);
  session.child_status = expand_template(&session.child_options);
  prof_i_fail_silently(false);
  if (session.child_status != PROF_OK) cancel_child_wait();
  return session.child_status == PROF_OK;
}

/* Lock held. A concurrent stop may have cancelled the begin. */
static void install_child_arena(void) {
  const bool wants_memory = prof_i_session_has_memory();
  session.child_options.level = prof_i_arena_level();
  int status = session.child_made;
  if (status == PROF_OK && prof_i_the_session.child_waits &&
      (session.child_options.level || wants_memory))
    status =
        start_new_capture(&session.child_options, session.options.path ? session.template_ : "",
                          session.expanded, true);
  else if (status == PROF_OK)
    prof_i_arena_discard(&session.fresh);
  const bool has_begun = prof_i_the_session.child_waits && prof_i_the_session.is_recording;
  if (prof_i_the_session.child_waits) session.child_status = status;
  __atomic_store_n(&prof_i_the_session.child_waits, 0, __ATOMIC_RELAXED);
  if (has_begun && wants_memory) PROF_I_MEMORY(begin_child);
  if (!has_begun) cancel_child_wait();
}

/* In the state TRANSITION_MADE. Lock held. */
static void finish_child(void) {
  __atomic_store_n(&session.transition_now, TRANSITION_NONE, __ATOMIC_RELEASE);
  prof_i_port_wake(&session.transition_now);
  prof_i_fail_silently(true);
  install_child_arena();
  prof_i_fail_silently(false);
}

/* Lock held. It is released meanwhile. */
static void begin_child(void) {
  if (current_transition() == TRANSITION_MADE) finish_child();
  if (!plan_child()) return;
  prof_i_fail_silently(true);
  session.child_made = make_capture_unlocked(&session.child_options, true, true);
  install_child_arena();
  prof_i_fail_silently(false);
}

/* Waits at most 10 ms for the lock. Its owner may begin the child's capture. */
static bool try_lock_for_child(void) {
  enum { PATIENCE_NS = 10000000, NAP_NS = 100000 };
  const uint64_t begun = prof_i_port_monotonic_ns();
  uint32_t nobody_wakes_it = 0;
  while (pthread_mutex_trylock(&session.control_lock) != 0) {
    if (!__atomic_load_n(&prof_i_the_session.child_waits, __ATOMIC_RELAXED) ||
        prof_i_ns_since(begun) >= PATIENCE_NS)
      return false;
    prof_i_port_wait(&nobody_wakes_it, 0, NAP_NS);
  }
  return true;
}

/* A child's first scope. It uses trylock: this may be a handler that interrupted code which the
   lock's owner waits for. The next owner of the lock after the file's creation continues. */
static void make_child(void) {
  PROF_I_DISABLE_CANCEL;
  const bool was_there = prof_i_this_flags.is_at_control;
  prof_i_this_flags.is_at_control = true;
  PROF_I_SIGNAL_FENCE();
  const int saved = errno;
  bool has_lock = pthread_mutex_trylock(&session.control_lock) == 0;
  if (has_lock && plan_child()) {
    __atomic_store_n(&session.transition_now, TRANSITION_START, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&session.control_lock);
    prof_i_fail_silently(true);
    session.child_made = make_capture(&session.child_options, session.expanded, true, true);
    prof_i_fail_silently(false);
    __atomic_store_n(&session.transition_now, TRANSITION_MADE, __ATOMIC_RELEASE);
    prof_i_port_wake(&session.transition_now);
    has_lock = try_lock_for_child();
  }
  if (has_lock && current_transition() == TRANSITION_MADE) finish_child();
  if (has_lock) pthread_mutex_unlock(&session.control_lock);
  errno = saved;
  PROF_I_SIGNAL_FENCE();
  prof_i_this_flags.is_at_control = was_there;
}

/* Who calls may not know of the environment, and needs only to join. Lock held. */
static int refuse_second_start(void) {
  const uint32_t level = prof_i_arena_level();
  if (session.started_by)
    return prof_i_fail(PROF_E_RUNNING,
                       "a capture is running at level %u: %s of the environment began it; "
                       "prof_start(level) joins it, prof_stop() ends it",
                       level, session.started_by);
  return prof_i_fail(PROF_E_RUNNING,
                     "a capture is running at level %u; prof_stop() it first, or prof_start(level) "
                     "to change the level",
                     level);
}

/* In memory, and of those alone who wanted it for a while: nobody has asked that it be kept. */
static bool capture_is_leftover(const prof_options *options) {
  return !options->path && prof_i_level_request_all_ended();
}

/* A relative path is absolute from here on: the host may change its directory. Lock held, not
   recording. */
static const char *make_absolute(const char *path) {
  const lock_context before = begin_transition(TRANSITION_START);
  const char *const absolute =
      prof_i_output_make_absolute(path, session.given, sizeof session.given);
  end_transition(&before);
  return absolute;
}

/* Recording has begun; what asks others is done without the lock. From the environment: while the
   program is loaded, which others that open a library wait for. */
static void begin_observers(bool waits) {
  PROF_I_MEMORY(begin);
  if (devices()) devices()->start(waits);
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
  lock_before_start();
  begin_child();
  if (options.path && !prof_i_the_session.is_recording) options.path = make_absolute(options.path);
  const bool had_default_cap = session.has_default_cap;
  if (!prof_i_the_session.is_recording) session.has_default_cap = is_default_cap;
  status = prof_i_the_session.is_recording
               ? refuse_second_start()
               : start_with_lock(&options, capture_is_leftover(&options));
  if (status != PROF_OK) session.has_default_cap = had_default_cap;
  if (status == PROF_OK) {
    session.started_by = variable;
    session.is_of_environment |= session.joins && variable && options.path;
    if (has_scopes)
      prof_i_level_request_by_program(options.level);
    else
      prof_i_level_request_memory(true);
    choose_devices();
  }
  control_unlock();
  if (status == PROF_OK) begin_observers(!variable);
  errno = saved;
  return status;
}

/* ---- starts that join ---- */

void prof_i_control_join(bool joins) {
  control_lock();
  session.joins = joins;
  session.is_of_environment &= joins;
  prof_i_joined_output_set("");
  control_unlock();
}

static bool program_must_join(void) {
  lock_before_start();
  begin_child();
  const bool must = session.joins && (prof_i_the_session.is_recording || session.is_of_environment);
  control_unlock();
  return must;
}

/* The capture keeps its own options. The program's own dump goes where the program wants it. */
static int join_capture(const prof_options *given) {
  prof_options options = {.size = sizeof options};
  int status = given ? prof_i_sized_copy(&options, sizeof options, given, "prof_options") : PROF_OK;
  if (status == PROF_OK) status = prof_i_options_complete(&options);
  if (status == PROF_OK && options.path && strlen(options.path) >= PATH_ROOM)
    status = prof_i_fail(PROF_E_INVALID, "options.path is longer than %d bytes", PATH_ROOM - 1);
  if (status == PROF_OK) status = prof_start((int)options.level);
  if (status != PROF_OK) return status;
  if (options.devices) prof_i_control_prefer_devices(options.devices);
  if (!options.path) return PROF_OK;
  char path[PATH_ROOM];
  const char *const absolute = prof_i_output_make_absolute(options.path, path, sizeof path);
  control_lock();
  prof_i_joined_output_set(absolute);
  control_unlock();
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

/* A vendor's library may need seconds to deliver its last records, and the helper as long as the
   disk for one chunk. Lock held at the call and at the return. */
static void end_observers(void) {
  const lock_context before = begin_transition(TRANSITION_STOP);
  if (devices()) devices()->stop();
  prof_i_helper_stop();
  end_transition(&before);
}

/* Level first: no scope begins any more. Then every thread's chunk is taken out of its hands: what
   ends from here on is late. Lock held, recording. */
static void stop_with_lock(void) {
  prof_i_header *const header = prof_i_arena_header();
  prof_i_change_log_begin_level(); /* and no end: until the next start nobody looks */
  prof_i_arena_set_level(0);
  end_observers();
  PROF_I_MEMORY(end);
  __atomic_store_n(&prof_i_the_session.is_recording, 0, __ATOMIC_SEQ_CST);
  prof_i_thread_stop_all();
  prof_i_clock_write_pair(false);
  const uint64_t words[] = {header->session, 0, 0};
  prof_i_meta_write(PROF_I_KIND_SESSION, prof_i_clock_ticks(), 0, words, 3);
  __atomic_store_n(&header->state, PROF_I_STATE_STOPPED, __ATOMIC_SEQ_CST);
  /* again: another process may have switched it since, and will look at the state after that */
  prof_i_arena_set_level(0);
}

/* With the options of the last start, or none; into another capture, or as it comes. Lock held. */
static int restart_capture(int level, bool is_fresh) {
  prof_options options = {.size = sizeof options};
  if (session.options.size)
    options = session.options;
  else
    session.has_default_cap = true;
  options.level = level ? (uint32_t)level : 1;
  if (options.path) options.path = session.template_;
  int status = prof_i_options_complete(&options);
  options.level = (uint32_t)level;
  if (status == PROF_OK) status = start_with_lock(&options, is_fresh);
  if (status == PROF_OK) session.started_by = NULL;
  return status;
}

static void change_level(uint32_t level) {
  if (prof_i_mute_count() || prof_i_arena_level() != level) prof_i_budget_restart(true);
  const uint32_t before = prof_i_change_log_begin_level();
  prof_i_arena_set_level(level);
  prof_i_change_log_end_level(before, &(prof_i_change_entry){.reason = PROF_REASON_ASKED});
}

static int check_level(int level, int least) {
  if (level >= least && level <= 2) return PROF_OK;
  return prof_i_fail(PROF_E_LEVEL,
                     "level is %d; 1 records kernels and operators, 2 also the runtime around them",
                     level);
}

/* Who has set PROF_LEVEL wants no less than that from the program. Lock held. */
static uint32_t level_to_request(int level) {
  const uint32_t least =
      prof_i_the_session.is_recording && session.started_by ? session.options.level : 0;
  return (uint32_t)level > least ? (uint32_t)level : least;
}

int prof_start(int level) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  const int saved = errno;
  int status = check_level(level, 1);
  if (status == PROF_OK) status = prof_i_duplicate_check();
  if (status != PROF_OK) return status;
  lock_before_start();
  begin_child();
  const bool was_recording = prof_i_the_session.is_recording;
  if (!was_recording) status = restart_capture(level, capture_is_leftover(&session.options));
  if (status == PROF_OK) {
    prof_i_level_request_by_program(level_to_request(level));
    choose_devices();
    if (was_recording || prof_i_level_request_count()) change_level(prof_i_level_request_max());
  }
  control_unlock();
  if (status == PROF_OK && !was_recording) begin_observers(true);
  errno = saved;
  return status;
}

/* Lock held. */
static int apply_level_request(const void *who, int level, uint32_t requested_devices,
                               bool *has_begun_out) {
  prof_i_level_request_step step;
  const uint32_t level_now = prof_i_the_session.is_recording ? prof_i_arena_level() : 0;
  int status =
      prof_i_level_request_put(who, level != 0, level > 0 ? (uint32_t)level : 0, requested_devices,
                               prof_i_the_session.is_recording, level_now, &step);
  if (status != PROF_OK || step.kind == PROF_I_LEVEL_REQUEST_NOTHING) return status;
  *has_begun_out = level_now == 0;
  if (step.kind == PROF_I_LEVEL_REQUEST_STOP)
    stop_with_lock();
  else if (prof_i_the_session.is_recording)
    change_level(step.level);
  else
    status = restart_capture((int)step.level, step.is_fresh && !session.options.path);
  prof_i_level_request_finish(&step, status == PROF_OK);
  return status;
}

/* Another wish of devices holds from here on: who records for them begins now, or has ended with
   what is past. */
static void update_devices(void) {
  if (!devices()) return;
  devices()->start(true);
  devices()->harvest();
}

void prof_i_control_prefer_devices(uint32_t wanted) {
  PROF_I_REFUSE_INTERRUPTED();
  const int saved = errno;
  if (prof_i_duplicate_check() != PROF_OK) return;
  control_lock();
  begin_child();
  const uint32_t before = prof_i_control_devices();
  session.preferred_devices = wanted;
  choose_devices();
  const bool wants_others = prof_i_the_session.is_recording &&
                            current_transition() != TRANSITION_STOP &&
                            prof_i_control_devices() != before;
  control_unlock();
  if (wants_others && devices()) devices()->start(false);
  errno = saved;
}

int prof_level_want_with(const void *who, int level, uint32_t requested_devices) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (!who) return prof_i_fail(PROF_E_INVALID, "prof_level_want: who is NULL");
  if (requested_devices > PROF_DEVICES_MEMORY)
    return prof_i_fail(PROF_E_INVALID, "prof_level_want_with: devices is %u; 0 to 3 are known",
                       requested_devices);
  const int saved = errno;
  int status = level == PROF_LEVEL_PAUSED ? PROF_OK : check_level(level, 0);
  if (status == PROF_OK) status = prof_i_duplicate_check();
  if (status != PROF_OK) return status;
  bool has_begun = false;
  lock_before_start();
  begin_child();
  const uint32_t before = prof_i_control_devices();
  status = apply_level_request(who, level, requested_devices, &has_begun);
  choose_devices();
  const bool wants_others = prof_i_the_session.is_recording &&
                            current_transition() != TRANSITION_STOP &&
                            prof_i_control_devices() != before;
  control_unlock();
  if (status == PROF_OK && has_begun)
    begin_observers(true);
  else if (wants_others)
    update_devices();
  errno = saved;
  return status;
}

int prof_level_want(const void *who, int level) {
  return prof_level_want_with(who, level, PROF_DEVICES_DEFAULT);
}

int prof_i_control_start_memory(void) {
  const int saved = errno;
  int status = prof_i_duplicate_check();
  if (status != PROF_OK) return status;
  lock_before_start();
  begin_child();
  if (!prof_i_the_session.is_recording)
    status = restart_capture(0, capture_is_leftover(&session.options));
  if (status == PROF_OK) prof_i_level_request_memory(true);
  control_unlock();
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
  lock_before_end();
  const int status = check_memory();
  const bool is_alone = status == PROF_OK && prof_i_arena_level() == 0 &&
                        prof_i_level_request_max() == 0 && prof_i_level_request_count() == 0;
  if (status == PROF_OK) {
    if (!prof_i_level_request_has_memory()) PROF_I_MEMORY(end);
    prof_i_level_request_memory(false);
  }
  if (is_alone) {
    if (prof_i_the_session.is_recording)
      stop_with_lock();
    else
      cancel_child_wait();
    prof_i_level_request_end_all();
  }
  control_unlock();
  errno = saved;
  return status;
}

/* While memory is off, what is used is not known: it is not told until a start. Lock held. */
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
  lock_before_end();
  begin_child();
  if (prof_i_the_arena.base)
    reset_memory();
  else if (!prof_i_the_session.child_waits) /* a child's own capture begins as if it were reset */
    status = prof_i_fail(PROF_E_NOT_RUNNING, "no memory has been recorded");
  control_unlock();
  errno = saved;
  return status;
}

/* The program stops what it has started, and the environment's capture goes on at level 0: scopes
   that are open now are recorded when they end. Lock held, recording. */
static int pause_environment_capture(bool was_asked) {
  if (prof_i_arena_level() != 0) change_level(0);
  return was_asked ? PROF_OK : prof_i_fail(PROF_E_NOT_RUNNING, "nothing is recording");
}

int prof_stop(void) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  const int saved = errno;
  int status = PROF_OK;
  bool has_paused = false;
  prof_i_thread_reap_exited();
  lock_before_end();
  const bool was_asked = prof_i_level_request_drop_program();
  choose_devices();
  if (!prof_i_the_session.is_recording) {
    status = prof_i_fail(PROF_E_NOT_RUNNING, "nothing is recording");
    cancel_child_wait();
  } else if (prof_i_level_request_count()) {
    if (prof_i_arena_level() != prof_i_level_request_max())
      change_level(prof_i_level_request_max());
    if (!was_asked)
      status = prof_i_fail(
          PROF_E_NOT_RUNNING,
          "nothing that was started is recording; %u record for themselves (prof_level_want())",
          prof_i_level_request_count());
  } else if (session.joins && session.is_of_environment) {
    status = pause_environment_capture(was_asked);
    has_paused = status == PROF_OK;
  } else {
    stop_with_lock();
    prof_i_level_request_end_all();
  }
  control_unlock();
  if (has_paused && devices()) devices()->harvest();
  errno = saved;
  return status;
}

void prof_i_control_end_process(void) {
  const int saved = errno;
  prof_i_thread_reap_exited();
  lock_before_start();
  prof_i_level_request_drop_program();
  prof_i_level_request_end_all();
  if (prof_i_the_session.is_recording) stop_with_lock();
  control_unlock();
  errno = saved;
}

int prof_level(void) { return (int)prof_i_arena_level(); }

const char *prof_i_control_no_capture_reason(char *to, size_t room) {
  to[0] = '\0';
  if (session.child_status == PROF_OK) return to;
  const char *const path = session.options.path ? session.expanded : "memory";
  const char *const why = session.fresh.error ? prof_i_error_text(session.fresh.error)
                                              : prof_status_text(session.child_status);
  snprintf(to, room, "a forked child could not begin its own: %s: '%s'", why, path);
  return to;
}

/* ---- after a dump ---- */

/* Removes the capture. Somebody may have moved it, and put another file in its place. False: it is
   still there, or nobody can tell; the next dump tries again. */
static bool remove_capture_file(const char *path) {
  struct stat about;
  if (lstat(path, &about) != 0) return errno == ENOENT;
  if (about.st_dev != prof_i_the_arena.device || about.st_ino != prof_i_the_arena.inode)
    return true;
  return unlink(path) == 0;
}

void prof_i_capture_dumped(void) {
  lock_before_start();
  if (prof_i_the_arena.is_file && !prof_i_the_session.is_recording &&
      !session.options.keep_capture && !session.is_of_environment && prof_i_the_arena.path[0] &&
      remove_capture_file(prof_i_the_arena.path))
    /* the mapping stays: prof_get() and a further dump still work */
    prof_i_the_arena.path[0] = '\0';
  control_unlock();
}

int prof_i_capture_rename(const char *output) {
  int status;
  lock_before_start();
  if (prof_i_the_session.is_recording)
    status = prof_i_fail(PROF_E_RUNNING, "cannot write '%s': the capture is being recorded into",
                         output);
  else if (!prof_i_the_arena.is_file || !prof_i_the_arena.path[0])
    status = prof_i_fail(PROF_E_NOT_FOUND, "cannot write '%s': the capture has no name", output);
  else
    status = prof_i_capture_file_rename(prof_i_the_arena.path, output);
  /* it is the output now: no dump may remove it */
  if (status == PROF_OK) prof_i_the_arena.path[0] = '\0';
  control_unlock();
  return status;
}
