/* See change_log.h. */
#include "change_log.h"

#include "../buffer/arena.h"
#include "../buffer/clock.h"
#include "../buffer/meta.h"
#include "../buffer/observer.h"

static uint32_t written_count;       /* any thread */
static uint32_t function_ends_count; /* any thread */
static uint32_t known_level;         /* what the capture knows of; any thread */
/* Of the header's changes from outside, how many known_level knows of. Those that are records, or
   counted as untold, are the header's level_change_next - 1. Only the thread that set
   is_writing_announced writes it. */
static uint64_t known_number;
/* a thread writes changes from outside as records; any thread, compare-and-swap */
static uint32_t is_writing_announced;

void prof_i_change_log_begin(void) {
  __atomic_store_n(&written_count, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&function_ends_count, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&known_number, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&prof_i_arena_header()->level_change_next, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&is_writing_announced, 0, __ATOMIC_RELAXED);
}
uint32_t prof_i_change_log_count(void) { return __atomic_load_n(&written_count, __ATOMIC_RELAXED); }

/* They stand in the arena for good, which is for what is recorded: a 64th of it, and as much again
   for what the budget did. What comes after is counted. */
static bool log_has_room(const prof_i_change_entry *change) {
  enum { BYTES = 80 };
  const uint64_t most = prof_i_the_arena.cap_bytes / 64 / BYTES;
  return __atomic_load_n(&written_count, __ATOMIC_RELAXED) <
         (change->reason == PROF_REASON_ASKED ? most : 2 * most);
}

/* False: there is no room. */
static bool write_change(const prof_i_change_entry *change) {
  const uint64_t words[] = {
      change->kind,   change->reason,   change->level_before | (uint64_t)change->level_after << 32,
      change->thread, change->measured, change->allowed};
  if (!log_has_room(change) ||
      !prof_i_meta_write(PROF_I_KIND_CHANGE, prof_i_clock_ticks(), change->site, words,
                         sizeof words / sizeof *words))
    return false;
  __atomic_fetch_add(&written_count, 1, __ATOMIC_RELAXED);
  return true;
}

void prof_i_change_log_write(const prof_i_change_entry *change) {
  if (!__atomic_load_n(&prof_i_the_arena.base, __ATOMIC_ACQUIRE)) return;
  if (!write_change(change))
    __atomic_fetch_add(&prof_i_arena_header()->unwritten_changes, 1, __ATOMIC_RELAXED);
}

void prof_i_change_log_write_site(prof_change_kind kind, uint32_t site) {
  prof_i_change_log_write(
      &(prof_i_change_entry){.kind = kind, .reason = PROF_REASON_ASKED, .site = site});
}

enum { BEING_CHANGED = 3 };

static prof_i_change_entry make_level_change(uint32_t before, uint32_t after,
                                             const prof_i_change_entry *why) {
  prof_i_change_entry change = *why;
  change.kind = PROF_CHANGE_LEVEL;
  change.level_before = before;
  change.level_after = after;
  return change;
}

static void write_level_change(uint32_t before, uint32_t after, const prof_i_change_entry *why) {
  const prof_i_change_entry change = make_level_change(before, after, why);
  if (before != after) prof_i_change_log_write(&change);
}

static bool write_outside_change(const prof_i_level_change *from, uint64_t levels,
                                 uint64_t number) {
  const uint64_t at_ns = __atomic_load_n(&from->monotonic_ns, __ATOMIC_RELAXED);
  const prof_i_change_entry why = {
      .reason = PROF_REASON_OUTSIDE, .measured = at_ns, .allowed = number};
  const prof_i_change_entry change =
      make_level_change((uint32_t)levels, (uint32_t)(levels >> 32), &why);
  return change.level_before == change.level_after || write_change(&change);
}

static uint64_t last_written_number(void) {
  return __atomic_load_n(&prof_i_arena_header()->level_change_next, __ATOMIC_RELAXED) - 1;
}

/* The number of the first change that is in the header and not yet a record. Older ones that were
   overwritten before they became records are counted as untold. */
static uint64_t first_unwritten(uint64_t count) {
  prof_i_header *const header = prof_i_arena_header();
  const uint64_t number = last_written_number();
  if (count - number <= PROF_I_LEVEL_CHANGES) return number;
  const uint64_t first = count - PROF_I_LEVEL_CHANGES;
  __atomic_fetch_add(&header->unwritten_changes, first - number, __ATOMIC_RELAXED);
  return first;
}

static bool change_is_whole(uint64_t number) {
  const prof_i_level_change *const change =
      &prof_i_arena_header()->level_changes[(number - 1) % PROF_I_LEVEL_CHANGES];
  return __atomic_load_n(&change->number, __ATOMIC_ACQUIRE) == number;
}

/* Has another process set a level after it told of change `number`, which has not come about? Then
   whoever told of that one was killed. If it only sleeps, its level is seen as one of an older
   prof. */
static bool change_is_abandoned(uint64_t number, uint64_t count) {
  for (uint64_t later = number + 1; later <= count; later++)
    if (change_is_whole(later) && prof_i_level_was_set(prof_i_arena_header(), later, count))
      return true;
  return false;
}

/* Those that have been told since, as records. What finds no room stays in the header, and is tried
   again at the next look. Returns the level after the last that is new, or `level`. */
static uint32_t write_announced(uint32_t level) {
  prof_i_header *const header = prof_i_arena_header();
  const uint64_t count = __atomic_load_n(&header->level_change_count, __ATOMIC_SEQ_CST);
  const uint64_t seen = __atomic_load_n(&known_number, __ATOMIC_RELAXED);
  uint64_t number = first_unwritten(count), taken = number;
  for (; number < count; number++) {
    const prof_i_level_change *const change = &header->level_changes[number % PROF_I_LEVEL_CHANGES];
    if (!change_is_whole(number + 1)) break; /* somebody is just writing it */
    if (!prof_i_level_was_set(header, number + 1, count)) {
      if (!change_is_abandoned(number + 1, count)) break;
      if (taken == number) taken++;
      continue;
    }
    const uint64_t levels = __atomic_load_n(&change->levels, __ATOMIC_RELAXED);
    if (number >= seen) level = (uint32_t)(levels >> 32);
    if (taken == number && write_outside_change(change, levels, number + 1)) taken++;
  }
  __atomic_store_n(&header->level_change_next, taken + 1, __ATOMIC_RELAXED);
  if (number > seen) __atomic_store_n(&known_number, number, __ATOMIC_RELAXED);
  return level;
}

/* Has somebody told of a change to the level that the capture knows, and not made it yet? */
static bool change_is_pending(uint32_t before, uint32_t after) {
  const prof_i_header *const header = prof_i_arena_header();
  const uint64_t count = __atomic_load_n(&header->level_change_count, __ATOMIC_SEQ_CST);
  const prof_i_level_change *const last =
      &header->level_changes[(count - 1) % PROF_I_LEVEL_CHANGES];
  return count && (__atomic_load_n(&last->number, __ATOMIC_ACQUIRE) != count ||
                   last->levels == (before | (uint64_t)after << 32));
}

/* Past the gate, or with the control lock. */
void prof_i_change_log_check_level(void) {
  uint32_t before = __atomic_load_n(&known_level, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&prof_i_the_arena.base, __ATOMIC_ACQUIRE) || before == BEING_CHANGED) return;
  const prof_i_header *const header = prof_i_arena_header();
  const uint64_t count = __atomic_load_n(&header->level_change_count, __ATOMIC_SEQ_CST);
  const bool has_new = count != __atomic_load_n(&known_number, __ATOMIC_RELAXED);
  const bool has_left = count != last_written_number();
  const uint32_t level = prof_i_arena_level();
  if (before == level && !has_new && !has_left) return;
  uint32_t nobody = 0;
  if (!__atomic_compare_exchange_n(&is_writing_announced, &nobody, 1, false, __ATOMIC_ACQUIRE,
                                   __ATOMIC_RELAXED))
    return;
  const uint32_t last = has_left ? write_announced(before) : before;
  const uint32_t told = has_new ? last : change_is_pending(level, before) ? before : level;
  /* If a change by this process has begun meanwhile, that one knows the level. */
  uint32_t was = before;
  const bool is_known = __atomic_compare_exchange_n(&known_level, &was, told, false,
                                                    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
  /* by an older prof, which tells nobody */
  if (!has_new && is_known)
    write_level_change(before, told, &(prof_i_change_entry){.reason = PROF_REASON_OUTSIDE});
  __atomic_store_n(&is_writing_announced, 0, __ATOMIC_RELEASE);
}

uint32_t prof_i_change_log_begin_level(void) {
  prof_i_change_log_check_level();
  return __atomic_exchange_n(&known_level, BEING_CHANGED, __ATOMIC_SEQ_CST);
}

void prof_i_change_log_end_level(uint32_t before, const prof_i_change_entry *why) {
  const uint32_t level = prof_i_arena_level();
  if (why && before != BEING_CHANGED) write_level_change(before, level, why);
  __atomic_store_n(&known_level, level, __ATOMIC_SEQ_CST);
}

void prof_i_change_log_end_functions(void) {
  /* for good, as changes are: no more than their share of the arena */
  enum { BYTES = 48, SHARE = 64 };
  if (!prof_i_arena_guard_enter()) return;
  const prof_i_header *const header = prof_i_the_arena.base ? prof_i_arena_header() : NULL;
  if (header && __atomic_load_n(&function_ends_count, __ATOMIC_RELAXED) <
                    prof_i_the_arena.cap_bytes / SHARE / BYTES) {
    const uint64_t words[] = {__atomic_load_n(&header->session, __ATOMIC_RELAXED),
                              prof_i_arena_level(), PROF_I_SESSION_FUNCTIONS_END};
    if (prof_i_meta_write(PROF_I_KIND_SESSION, prof_i_clock_ticks(), 0, words,
                          sizeof words / sizeof *words))
      __atomic_fetch_add(&function_ends_count, 1, __ATOMIC_RELAXED);
  }
  prof_i_arena_guard_exit();
}

/* While the change of the chunk is timed: this is part of it. */
static void look_at_level(struct prof_i_thread *thread, prof_i_head *old, prof_i_head *fresh) {
  (void)thread, (void)old, (void)fresh;
  prof_i_change_log_check_level();
}
const prof_i_observer prof_i_change_observer = {.chunk_changed = look_at_level};
