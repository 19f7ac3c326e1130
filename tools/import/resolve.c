/* Once all scopes have come: which launch a device's work has, on which device it is, and at which
   ticks of the capture. See internal.h. */
#include "internal.h"

#include <prof/trace.h>
#include <stdlib.h>

static bool thread_is_stream(const import_thread *thread) { return thread->key.device >= 0; }

/* What a device ran: its five words, see import_record_launch(). NULL: it is a mark. */
static uint64_t *entry_launch(import_state *state, const import_entry *entry) {
  uint32_t count;
  if (entry->place & IMPORT_ENTRY_MARK) return NULL;
  return import_record_launch(import_entry_words(&state->spool, entry, &count));
}

/* ---- launches ---- */

void import_launches_add(import_launches *launches, int64_t correlation, int64_t pid,
                         uint64_t start, uint32_t serial) {
  launches->all =
      import_make_room(launches->all, &launches->room, launches->count + 1, sizeof *launches->all);
  launches->all[launches->count] =
      (import_launch){correlation, pid, start, serial, (uint32_t)launches->count};
  launches->count++;
}

/* By number, then by process. */
static int launch_compare(const import_launch *launch, int64_t correlation, int64_t pid) {
  if (launch->correlation != correlation) return launch->correlation < correlation ? -1 : 1;
  return (launch->pid > pid) - (launch->pid < pid);
}

static int launch_compare_for_sort(const void *a, const void *b) {
  const import_launch *const x = a, *const y = b;
  const int order = launch_compare(x, y->correlation, y->pid);
  return order ? order : (x->order > y->order) - (x->order < y->order);
}

static void sort_launches(import_launches *launches) {
  if (launches->count)
    qsort(launches->all, launches->count, sizeof *launches->all, launch_compare_for_sort);
}

/* The first launch of that number in the process, in the order of the file. NULL: there is none. */
static const import_launch *launches_find(const import_launches *launches, int64_t correlation,
                                          int64_t pid) {
  size_t low = 0, high = launches->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (launch_compare(&launches->all[middle], correlation, pid) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == launches->count || launch_compare(&launches->all[low], correlation, pid) != 0)
    return NULL;
  return &launches->all[low];
}

/* ---- whose device a process stands for ---- */

enum {
  LAUNCHING_MAX = 1024,
  OWNERS_MAX = 1024
}; /* more than these no one has; they bound the time */

typedef struct owner_score {
  int64_t pid; /* that launches */
  uint64_t matched,
      taken; /* launches of what ran there; processes of devices that are its own already */
} owner_score;

typedef struct owner_scores {
  owner_score *all;
  size_t count, room;
} owner_scores;

/* Processes that launch something, in the order in which they came. */
static void find_launching(const import_state *state, owner_scores *to) {
  for (size_t i = 0; i < state->launches.count && to->count <= LAUNCHING_MAX; i++) {
    const int64_t pid = state->launches.all[i].pid;
    size_t at = to->count;
    while (at > 0 && to->all[at - 1].pid != pid) at--;
    if (at > 0) continue;
    to->all = import_make_room(to->all, &to->room, to->count + 1, sizeof *to->all);
    to->all[to->count++] = (owner_score){pid, 0, 0};
  }
}

/* Of the first so many that ran there. */
static void count_matches(import_state *state, int64_t pid, owner_scores *all) {
  enum { PROCESSES_CHECKED_MAX = 4096 };
  size_t looked = 0;
  for (size_t i = 0; i < all->count; i++) all->all[i].matched = 0;
  for (import_thread *thread = state->threads.all; thread; thread = thread->hh.next) {
    if (!thread_is_stream(thread) || thread->called.pid != pid) continue;
    for (size_t i = 0; i < thread->count && looked < PROCESSES_CHECKED_MAX; i++) {
      const uint64_t *const launch = entry_launch(state, &thread->entries[i]);
      if (!launch || launch[0] != IMPORT_LAUNCH_WAITS) continue;
      looked++;
      for (size_t n = 0; n < all->count; n++) {
        const import_launch *const found =
            launches_find(&state->launches, (int64_t)launch[1], all->all[n].pid);
        all->all[n].matched += found && found->start <= thread->entries[i].start;
      }
    }
  }
}

/* The one whose launches fit best; of several the one that has fewest devices, of these the
   first. is_sure: only where it is one. */
static void find_owner(import_state *state, import_process *process, owner_scores *all,
                       bool is_sure) {
  owner_score *best = &all->all[0];
  size_t best_count = 1;
  if (all->count > 1) count_matches(state, process->pid, all);
  for (size_t i = 1; i < all->count; i++) {
    owner_score *const it = &all->all[i];
    best_count = it->matched > best->matched ? 1 : best_count + (it->matched == best->matched);
    if (it->matched > best->matched || (it->matched == best->matched && it->taken < best->taken))
      best = it;
  }
  if ((all->count > 1 && best->matched == 0) || (is_sure && best_count > 1)) return;
  best->taken++;
  process->has_owner = true;
  process->owner = best->pid;
}

static void find_owners_for_all(import_state *state, owner_scores *all, bool is_sure) {
  size_t found = 0;
  for (import_thread *thread = state->threads.all; thread; thread = thread->hh.next) {
    import_process *const process =
        thread_is_stream(thread) ? import_devices_process(&state->devices, thread->called.pid)
                                 : NULL;
    if (!process || process->has_owner) continue;
    if (import_devices_is_summary(&state->devices, process)) continue;
    if (all->count == 1 || found++ < OWNERS_MAX) find_owner(state, process, all, is_sure);
  }
}

static void find_owners(import_state *state) {
  owner_scores all = {NULL, 0, 0};
  find_launching(state, &all);
  sort_launches(&state->launches);
  if (all.count > 0 && all.count <= LAUNCHING_MAX) {
    find_owners_for_all(state, &all, true);
    find_owners_for_all(state, &all, false);
  }
  free(all.all);
}

void import_resolve_launches(import_state *state) {
  import_spool_map(&state->spool);
  find_owners(state);
  for (import_thread *thread = state->threads.all; thread; thread = thread->hh.next) {
    const import_process *const process =
        thread_is_stream(thread) ? import_devices_process(&state->devices, thread->called.pid)
                                 : NULL;
    for (size_t i = 0; process && i < thread->count; i++) {
      uint64_t *const launch = entry_launch(state, &thread->entries[i]);
      if (!launch || launch[0] != IMPORT_LAUNCH_WAITS) continue;
      const import_launch *const found =
          process->has_owner ? launches_find(&state->launches, (int64_t)launch[1], process->owner)
                             : NULL;
      launch[0] = found ? found->serial : 0;
      launch[1] = found ? found->start : 0;
    }
  }
}

/* ---- devices ---- */

static void put_entry_on_device(import_state *state, const import_entry *entry,
                                const import_device *device) {
  uint32_t count;
  uint64_t *const words = import_entry_words(&state->spool, entry, &count);
  words[2] = (uint32_t)device->type | (uint64_t)(uint32_t)device->index << 32;
}

/* A stretch of a device that another tool named is no work; prof's own is the device's side of a
   scope. */
static void resolve_device_entry(import_state *state, const import_entry *entry,
                                 import_device *device) {
  uint64_t *const launch = entry_launch(state, entry);
  launch[4] &= ~IMPORT_LAUNCH_DRAWN;
  if (launch[4] == IMPORT_KIND_SIDE && !state->devices.is_of_prof)
    launch[4] = PROF_RECORD_ANNOTATION;
  const bool is_work = launch[4] != PROF_RECORD_ANNOTATION;
  const bool has_launch = launch[0] != 0 && import_times_has(&state->times, launch[1]);
  const bool is_early = has_launch && launch[1] > entry->start;
  launch[0] = has_launch ? import_threads_serial(&state->threads, (uint32_t)launch[0]) : 0;
  launch[1] = import_times_ticks(&state->times, has_launch ? launch[1] : entry->start);
  device->scope_count += launch[4] == IMPORT_KIND_SIDE;
  device->record_count += is_work && launch[4] != IMPORT_KIND_SIDE;
  if (is_work && !has_launch) import_count_changed(state, IMPORT_CHANGE_NO_LAUNCH);
  if (is_early) import_count_changed(state, IMPORT_CHANGE_EARLY);
  put_entry_on_device(state, entry, device);
}

/* Where the device stands; of those that have no place of their own the last one. */
static uint32_t place_device(import_state *state, int64_t pid, int64_t number, bool *is_past_out) {
  const uint32_t at = import_devices_find(&state->devices, pid, number);
  *is_past_out = at == IMPORT_DEVICES_MAX;
  return *is_past_out ? IMPORT_DEVICES_MAX - 1 : at;
}

static void resolve_stream(import_state *state, import_thread *thread) {
  bool is_past;
  thread->device = place_device(state, thread->called.pid, thread->key.device, &is_past);
  for (size_t i = 0; i < thread->count; i++) {
    import_entry *const entry = &thread->entries[i];
    if (entry->place & IMPORT_ENTRY_MARK || !import_times_has(&state->times, entry->start))
      continue;
    resolve_device_entry(state, entry, &state->devices.all[thread->device]);
    if (is_past) import_count_changed(state, IMPORT_CHANGE_DEVICES);
  }
}

/* The first row of a stream. */
typedef struct stream_key {
  struct {
    uint64_t device, stream;
  } key;
  UT_hash_handle hh;
  import_thread *thread;
} stream_key;

/* One stream's work may stand on several rows. */
static void join_streams(import_state *state) {
  stream_key *all = NULL, *it;
  for (import_thread *thread = state->threads.all; thread; thread = thread->hh.next) {
    if (!thread_is_stream(thread) || !thread->count) continue;
    const stream_key wanted = {.key = {thread->device, (uint64_t)thread->key.id.tid}};
    HASH_FIND(hh, all, &wanted.key, sizeof wanted.key, it);
    if (it) {
      import_thread_move(thread, it->thread);
      continue;
    }
    it = import_make(sizeof *it);
    it->key = wanted.key;
    it->thread = thread;
    HASH_ADD(hh, all, key, sizeof it->key, it);
  }
  it = all;
  HASH_CLEAR(hh, all);
  for (stream_key *next; it; it = next) {
    next = it->hh.next;
    free(it);
  }
}

/* ---- times ---- */

/* Of what goes one event fewer is counted. */
static void drop_entry(import_state *state, const import_thread *thread,
                       const import_entry *entry) {
  import_counts *const c = state->counts;
  uint32_t count;
  const uint64_t *const words = import_entry_words(&state->spool, entry, &count);
  const uint32_t kind = (words[0] & 15) == 1 ? words[1] >> 16 & 0xff : 0;
  import_count_dropped(state, IMPORT_MISS_TIME);
  if ((words[0] & 15) == PROF_I_ALLOC_TYPE || kind == PROF_I_KIND_MEMORY)
    c->memory_events--;
  else if (kind == PROF_I_KIND_STEP)
    c->steps--, c->step_marks--;
  else if (kind == PROF_I_KIND_INSTANT)
    c->instants--;
  else if (kind == PROF_I_KIND_COUNTER)
    c->counters--;
  else if (kind == PROF_I_KIND_FLOW)
    c->flow_ends--;
  else if (thread_is_stream(thread))
    c->device_scopes--;
  else
    c->scopes--;
}

static void resolve_thread(import_state *state, import_thread *thread) {
  size_t kept = 0;
  for (size_t i = 0; i < thread->count; i++) {
    import_entry entry = thread->entries[i];
    if (entry.start == 0) { /* of metadata: where the trace begins */
      thread->entries[kept++] = entry;
      continue;
    }
    if (!import_times_has(&state->times, entry.start)) {
      drop_entry(state, thread, &entry);
      continue;
    }
    entry.start = import_times_ticks(&state->times, entry.start);
    entry.end = import_times_ticks(&state->times, entry.end);
    if (state->begin_ticks == 0 || entry.start < state->begin_ticks)
      state->begin_ticks = entry.start;
    if (entry.end > state->end_ticks) state->end_ticks = entry.end;
    thread->entries[kept++] = entry;
  }
  thread->count = kept;
  thread->is_sorted = false;
}

/* A device's counter says so by its flag; its process is where the device will be. */
static void resolve_counters(import_state *state, const import_thread *thread) {
  for (size_t i = 0; i < thread->count; i++) {
    uint32_t count;
    uint64_t *const words = import_entry_words(&state->spool, &thread->entries[i], &count);
    if ((words[0] & 15) != 1 || (words[1] >> 16 & 0xff) != PROF_I_KIND_COUNTER) continue;
    const int64_t pid = (int64_t)words[3];
    words[3] = 0;
    if (!(words[1] >> 24 & PROF_I_FLAG_DEVICE)) continue;
    const int64_t number = import_devices_process(&state->devices, pid)->number;
    bool is_past;
    const uint32_t at = place_device(state, pid, number, &is_past); /* it may move `all` */
    const import_device *const device = &state->devices.all[at];
    if (is_past) import_count_changed(state, IMPORT_CHANGE_DEVICES);
    words[3] = (uint32_t)device->type | (uint64_t)(uint32_t)device->index << 32;
  }
}

void import_resolve_times(import_state *state) {
  import_spool_map(&state->spool);
  if (state->devices.is_of_prof) import_threads_join(&state->threads);
  for (import_thread *thread = state->threads.all; thread; thread = thread->hh.next)
    if (thread_is_stream(thread)) resolve_stream(state, thread);
  join_streams(state);
  for (import_thread *thread = state->threads.all; thread; thread = thread->hh.next) {
    resolve_thread(state, thread);
    if (thread->key.device == IMPORT_HOST) resolve_counters(state, thread);
  }
  import_pools_resolve_times(&state->pools, &state->times);
}
