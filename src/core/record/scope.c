/* Scopes: begin and end, the fast path. scope_slow.c and scope_end_slow.c have the unusual cases.
   scope_argument.c has the scopes with arguments.

   Budget of prof_i_begin_1 and prof_i_end_1: 1.10x of two counter reads and one 32-byte store
   (bench/scope.c). No lock, no system call, no allocation, no errno. The order of the stores makes
   both safe against a handler on the same thread, and against death at any instruction.
     Begin: take the next open entry by one instruction (depth), fill it, store its ticks last. A
            handler in between takes the entry behind it, and gives back no more than it took.
            Before the entry is taken, a handler may pop entries whose scopes are over.
     End:   claim room by one instruction, write, store the record's first word last. Only then
            clear the entry. A reader that finds both the record and the entry shows the record.
   The entry is also the check: it holds this scope's start only if thread, session and process are
   still those of its begin. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <string.h>

#include "../../base/fault.h"
#include "../../format/payload_short.h"
#include "../buffer/arena.h"
#include "../buffer/record.h"
#include "cost_sample.h"
#include "open_stack.h"
#include "scope.h"
#include "scope_fast.h"

/* ---- begin ---- */

static inline __attribute__((always_inline)) uint64_t begin_plain(prof_i_thread *thread,
                                                                  prof_site *site, const char *name,
                                                                  const char *category,
                                                                  uint32_t by_call) {
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(
          !slot || __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) != (uint32_t)(state >> 32) ||
          slot->depth >= PROF_I_OPEN_COUNT)) {
    const prof_details details = {
        name,
        category,
        PROF_NUL_TERMINATED,
        PROF_NUL_TERMINATED,
        PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL | (by_call ? PROF_I_BY_CALL : 0),
        PROF_HOST,
        0,
        0,
        PROF_NO_ARGS};
    return prof_i_scope_begin_slow(site, &details);
  }
  return prof_i_scope_open_plain(thread, slot, state, by_call);
}

uint64_t prof_i_begin_1(prof_site *site, const char *name, const char *category) {
  return begin_plain(prof_i_this_thread, site, name, category, 0);
}

/* own: flags of the texts that the site has, so the payload need not. */
static PROF_I_COLD uint64_t put_payload(prof_i_thread *thread, prof_i_thread_slot *slot,
                                        const prof_i_open_entry *open, const prof_details *details,
                                        uint32_t literal_flags, uint32_t call_site,
                                        uint32_t number) {
  prof_details named = *details;
  named.flags |= literal_flags;
  return prof_i_payload_area_put(thread, slot, open, &named, call_site, number);
}

/* Room for the longest short payload is taken first, so that a handler's payload goes behind it.
   Unused room is given back afterwards. */
static inline __attribute__((always_inline)) uint64_t put_short_payload(
    prof_i_thread *thread, prof_i_thread_slot *slot, const prof_i_open_entry *open,
    const prof_details *details, uint32_t literal_flags, uint32_t call_site, uint32_t number,
    bool is_twin) {
  const uint64_t top = slot->payload_top, taken = top + PROF_I_SHORT_WORDS * 8;
  if (PROF_I_UNLIKELY(taken > PROF_I_TEXT_END))
    return put_payload(thread, slot, open, details, literal_flags, call_site, number);
  __atomic_store_n(&slot->payload_top, taken, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  const uint64_t words =
      prof_i_short_pack((uint64_t *)((char *)slot + top), details, literal_flags, call_site);
  PROF_I_SIGNAL_FENCE();
  if (PROF_I_LIKELY(slot->payload_top == taken)) /* else a handler has left something open */
    __atomic_store_n(&slot->payload_top, top + words * 8, __ATOMIC_RELAXED);
  if (PROF_I_UNLIKELY(words == 0)) {
    if (is_twin) return (uint64_t)number << PROF_I_PACKED_SITE_SHIFT;
    return put_payload(thread, slot, open, details, literal_flags, call_site, number);
  }
  return (uint64_t)number << PROF_I_PACKED_SITE_SHIFT | prof_i_details_by_call(details) |
         PROF_I_TYPE_LONG | top << PROF_I_PACKED_OFFSET_SHIFT | words << PROF_I_PACKED_WORDS_SHIFT;
}

/* The state of a known name. NAME_COPIED: the payload gets a copy of it. NAME_ASKED: the slow path
   decides. */
enum { NAME_COPIED = 0, NAME_ASKED = 1 };
static inline __attribute__((always_inline)) uint64_t look_up_name(prof_i_thread *thread,
                                                                   const prof_details *details,
                                                                   uint32_t site, bool is_twin) {
  const prof_i_name **const recent = prof_i_name_recent(thread, details->name);
  if (PROF_I_LIKELY(*recent && prof_i_name_is_of(*recent, details, site)))
    return __atomic_load_n(&(*recent)->state, __ATOMIC_ACQUIRE);
  prof_i_name_key key;
  if (!prof_i_name_key_of(&key, details, site))
    return __atomic_load_n(&prof_i_the_names.watch, __ATOMIC_RELAXED) ? NAME_ASKED : NAME_COPIED;
  if (is_twin ? *prof_i_name_miss_count(thread, key.of) >= PROF_I_NAME_MISSES_MAX
              : !prof_i_name_is_worth_look_up(thread, key.of))
    return NAME_COPIED;
  const prof_i_name *const name = prof_i_name_find(&key);
  const bool is_new = !name && (is_twin || prof_i_name_is_new(key.hash));
  if (!is_twin) prof_i_name_count_look_up(thread, key.of, is_new);
  if (!name) return is_new ? NAME_COPIED : NAME_ASKED;
  *recent = name;
  return __atomic_load_n(&name->state, __ATOMIC_ACQUIRE);
}
static __attribute__((noinline)) uint64_t state_of_name(prof_i_thread *thread,
                                                        const prof_details *details,
                                                        uint32_t site) {
  return look_up_name(thread, details, site, false);
}

/* is_twin: prof_i_scope_twin_begin(). */
static inline __attribute__((always_inline)) uint64_t begin_details(prof_i_thread *thread,
                                                                    prof_site *site,
                                                                    const prof_details *details,
                                                                    bool is_twin) {
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  const uint32_t both = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL,
                 epoch = __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED);
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(!slot || epoch != (uint32_t)(state >> 32) ||
                      slot->depth >= PROF_I_OPEN_COUNT))
    return prof_i_scope_begin_slow(site, details);
  uint32_t literal_flags = details->flags & both, number = (uint32_t)state;
  if (literal_flags != both) {
    const uint64_t named = is_twin ? look_up_name(thread, details, number, true)
                                   : state_of_name(thread, details, number);
    if (named != NAME_COPIED) {
      const bool is_ready = PROF_I_LIKELY((uint32_t)(named >> 32) == epoch);
      if (!is_ready && !is_twin) return prof_i_scope_begin_slow_named(site, details, named);
      if (PROF_I_LIKELY((uint32_t)named != 0) && is_ready) {
        literal_flags = both;
        number = (uint32_t)named;
      }
    }
  }
  prof_i_open_entry *const open = prof_i_open_entry_push(slot);
  const uint64_t packed =
      literal_flags == both && prof_i_details_are_bare(details)
          ? (uint64_t)number << PROF_I_PACKED_SITE_SHIFT | prof_i_details_by_call(details)
          : put_short_payload(thread, slot, open, details, literal_flags, (uint32_t)state, number,
                              is_twin);
  __atomic_store_n(&open->packed, packed, __ATOMIC_RELAXED);
  const uint64_t start = prof_i_scope_start_now(thread);
  prof_i_open_entry_set(open, start);
  return start;
}

/* Stores the shape that prof_i_begin_values_1() reads. The keys belong to the call site, so the
   shape is valid as long as the site. */
static PROF_I_COLD void learn_values(prof_site *site, const prof_args *args) {
  const uint32_t number = (uint32_t)__atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (args->count == 0 || args->count > PROF_I_VALUES_MAX || !args->items) return;
  uint64_t strings = 0;
  for (uint32_t i = 0; i < args->count; i++) {
    if (args->items[i].type == PROF_ARG_TENSOR) return;
    strings |= (uint64_t)(args->items[i].type == PROF_ARG_STRING) << i;
  }
  const uint64_t schema = prof_i_schema_number(number, args, args->count);
  if (schema)
    __atomic_store_n(&site->values,
                     schema | (uint64_t)args->count << PROF_I_VALUES_COUNT_SHIFT |
                         strings << PROF_I_VALUES_STRINGS_SHIFT,
                     __ATOMIC_RELAXED);
}

static inline void learn_site_values(prof_site *site, const prof_details *details) {
  if (PROF_I_UNLIKELY(details->args.kind & PROF_I_KEYS_LITERAL) &&
      !__atomic_load_n(&site->values, __ATOMIC_RELAXED))
    learn_values(site, &details->args);
}

uint64_t prof_i_begin_details_1(prof_site *site, const prof_details *details) {
  const uint64_t start = begin_details(prof_i_this_thread, site, details, false);
  learn_site_values(site, details);
  return details->flags & PROF_I_BY_CALL ? prof_i_handle_with_tag(start) : start;
}

/* Looks up the name. A name that is new, or that the table cannot hold, is copied. category NULL:
   the call site has it. */
static __attribute__((noinline)) uint64_t look_up_named(const prof_site *site, const char *name,
                                                        size_t name_bytes, const char *category,
                                                        size_t category_bytes, uint64_t by_call) {
  prof_i_thread *const thread = prof_i_this_thread;
  prof_i_thread_slot *const slot = thread->fast;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (!prof_i_scope_is_fast(thread, slot, state)) return PROF_I_NOT_SHORT;
  prof_i_name_key key = {
      name, category, (uint32_t)name_bytes, (uint32_t)category_bytes, (uint32_t)state, 0};
  prof_i_name_hash(&key);
  const prof_i_name *const known = prof_i_name_find(&key);
  const bool is_new = !known && prof_i_name_is_new(key.hash);
  prof_i_name_count_look_up(thread, key.of, is_new);
  if (known) {
    const uint64_t start = prof_i_scope_begin_known(thread, slot, known, by_call);
    if (start != PROF_I_NOT_SHORT)
      *prof_i_name_recent(thread, name) = known; /* attached: not prof_i_no_thread */
    return start;
  }
  if (!is_new) return PROF_I_NOT_SHORT;
  const uint64_t flags = PROF_I_FLAG_NAME | (category ? PROF_I_FLAG_CATEGORY : 0);
  return prof_i_scope_begin_copied(site, name, name_bytes, category, category_bytes, flags, 0,
                                   by_call);
}

/* The name is not among the thread's recent ones. */
static __attribute__((noinline)) uint64_t begin_name(const prof_site *site, const char *name,
                                                     uint32_t name_bytes) {
  const size_t bytes =
      name_bytes != PROF_NUL_TERMINATED ? name_bytes : strnlen(name, PROF_I_NAME_TEXT_BYTES + 1);
  if (PROF_I_UNLIKELY(bytes - 1 >= PROF_I_NAME_TEXT_BYTES)) return PROF_I_NOT_SHORT;
  const uint32_t number = (uint32_t)__atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (PROF_I_UNLIKELY(prof_i_name_is_worth_look_up(prof_i_this_thread, number)))
    return look_up_named(site, name, bytes, NULL, 0, 0);
  return prof_i_scope_begin_copied(site, name, bytes, NULL, 0, PROF_I_FLAG_NAME, 0, 0);
}

/* Not inlined, so that other names save no registers twice. */
static __attribute__((noinline)) uint64_t begin_recent_name(const prof_site *site, const char *name,
                                                            uint32_t name_bytes,
                                                            const prof_i_name *recent) {
  prof_i_thread *const thread = prof_i_this_thread;
  if (PROF_I_LIKELY(
          prof_i_name_is_given((const char *)recent->words, recent->name_bytes, name, name_bytes)))
    return prof_i_scope_begin_known(thread, thread->fast, recent, 0);
  return begin_name(site, name, name_bytes);
}

uint64_t prof_i_begin_name_1(prof_site *site, const char *name, uint32_t name_bytes) {
  prof_i_thread *const thread = prof_i_this_thread;
  const prof_i_name *const recent = *prof_i_name_recent(thread, name);
  if (PROF_I_UNLIKELY(!thread->fast || !name)) return PROF_I_NOT_SHORT;
  if (PROF_I_LIKELY(recent &&
                    recent->of == (uint32_t)__atomic_load_n(&site->state, __ATOMIC_RELAXED)))
    return begin_recent_name(site, name, name_bytes, recent);
  return begin_name(site, name, name_bytes);
}

/* A name with a category, not among the thread's recent ones. */
static uint64_t begin_named(const prof_site *site, const char *name, size_t name_bytes,
                            const char *category, size_t category_bytes) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (PROF_I_UNLIKELY(name_bytes - 1 >= PROF_I_NAME_TEXT_BYTES ||
                      category_bytes > PROF_I_NAME_TEXT_BYTES))
    return PROF_I_NOT_SHORT;
  if (!prof_i_scope_is_fast(thread, thread->fast, state)) return PROF_I_NOT_SHORT;
  if (PROF_I_LIKELY(prof_i_name_is_worth_look_up(thread, (uint32_t)state)))
    return look_up_named(site, name, name_bytes, category, category_bytes, PROF_I_OPEN_BY_CALL);
  return prof_i_scope_begin_copied(site, name, name_bytes, category, category_bytes,
                                   PROF_I_FLAG_NAME | PROF_I_FLAG_CATEGORY, 0, PROF_I_OPEN_BY_CALL);
}

/* A name and a category, both made at run time and NUL-terminated. */
static inline uint64_t begin_texts_by_call(prof_i_thread *thread, const prof_site *site,
                                           const char *name, const char *category) {
  prof_i_thread_slot *const slot = thread->fast;
  const prof_i_name *const recent = *prof_i_name_recent(thread, name);
  if (PROF_I_LIKELY(slot && recent &&
                    recent->of == (uint32_t)__atomic_load_n(&site->state, __ATOMIC_RELAXED)) &&
      PROF_I_LIKELY(strcmp((const char *)recent->words, name) == 0 &&
                    strcmp(prof_i_name_category(recent), category) == 0))
    return prof_i_scope_begin_known(thread, slot, recent, PROF_I_OPEN_BY_CALL);
  return begin_named(site, name, strnlen(name, PROF_I_NAME_TEXT_BYTES + 1), category,
                     strnlen(category, PROF_I_NAME_TEXT_BYTES + 1));
}

/* ---- end ---- */

/* Clears the entry of an ended scope, then frees its place. Release: a reader that finds the entry
   cleared finds the record. */
static inline void close_top_entry(prof_i_thread_slot *slot, prof_i_open_entry *open,
                                   uint64_t depth) {
  PROF_I_SIGNAL_FENCE();
  prof_i_open_entry_set(open, 0);
  if (!PROF_I_FAULT(DEPTH)) __atomic_store_n(&slot->depth, depth - 1, __ATOMIC_RELAXED);
}

/* duration4: the duration << 4. The fast path keeps nothing else of the end. */
static PROF_I_COLD void end_slow(uint64_t start, uint64_t duration4) {
  prof_i_scope_end_slow(start, (start + duration4) >> 4);
}

/* Records a scope whose payload is in the slot. The order of the last stores matters. A reader
   loads payload_top with acquire, which pairs with the release here, and copies the payload. If it
   then finds the entry unchanged, the copy is valid. Separate from end_any(), so that a plain end
   saves no registers. */
static inline __attribute__((always_inline)) void write_long_end(
    prof_i_thread_slot *slot, uint64_t depth, uint64_t start, uint64_t duration4,
    const prof_i_head *chunk, uint64_t *record, uint64_t packed) {
  prof_i_open_entry *const open = &slot->open[depth];
  const uint64_t words = packed >> PROF_I_PACKED_WORDS_SHIFT;
  record[1] = duration4 << (PROF_I_DURATION_SHIFT - 4) | prof_i_packed_record_word(packed);
  for (;;) {
    const uint64_t *const payload =
        (const uint64_t *)((const char *)slot + prof_i_packed_payload_offset(packed));
    /* Word 3 always exists. As padding it has the bytes behind the payload. */
    record[2] = __atomic_load_n(&payload[0], __ATOMIC_RELAXED);
    record[3] = __atomic_load_n(&payload[1], __ATOMIC_RELAXED);
    if (words > 2) { /* words 4 and 5 exist then, perhaps as padding */
      record[4] = __atomic_load_n(&payload[2], __ATOMIC_RELAXED);
      record[5] = __atomic_load_n(&payload[3], __ATOMIC_RELAXED);
    }
    for (uint64_t i = 4; i < words; i++) /* atomic loads: gcc would make a memcpy() of plain ones */
      record[2 + i] = __atomic_load_n(&payload[i], __ATOMIC_RELAXED);
    PROF_I_SIGNAL_FENCE();
    const uint64_t now = __atomic_load_n(&open->packed, __ATOMIC_RELAXED);
    if (PROF_I_LIKELY(now == packed)) break;
    packed = now; /* a handler has moved it: see close_holes() */
  }
  __atomic_store_n(&record[0], start | chunk->generation, __ATOMIC_RELEASE);
  prof_i_open_entry_set(open, 0);
  __atomic_store_n(&slot->payload_top, prof_i_packed_payload_offset(packed), __ATOMIC_RELEASE);
  PROF_I_SIGNAL_FENCE();
  if (!PROF_I_FAULT(DEPTH)) __atomic_store_n(&slot->depth, depth - 1, __ATOMIC_RELAXED);
}

static uint64_t bytes_of_long(uint64_t packed) {
  return (2 + (packed >> PROF_I_PACKED_WORDS_SHIFT) + 1) / 2 * 16;
}

/* The limit may be only a sampling stop (cost_sample.h); then the record still fits. Separate, so
   that end_long() saves fewer registers. */
static PROF_I_COLD void end_long_at_limit(prof_i_head *chunk, prof_i_thread_slot *slot,
                                          uint64_t depth, uint64_t start, uint64_t duration4,
                                          uint64_t at) {
  const uint64_t packed = __atomic_load_n(&slot->open[depth].packed, __ATOMIC_RELAXED);
  uint64_t *const record = prof_i_record_take(chunk, at, bytes_of_long(packed));
  if (record) {
    write_long_end(slot, depth, start, duration4, chunk, record, packed);
    return;
  }
  prof_i_scope_note_failed_claim(prof_i_this_thread, chunk, at, start);
  end_slow(start, duration4);
}

static __attribute__((noinline)) void end_long(prof_i_thread *thread, prof_i_thread_slot *slot,
                                               uint64_t depth, uint64_t start, uint64_t duration4) {
  prof_i_head *const chunk = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED);
  const uint64_t packed = __atomic_load_n(&slot->open[depth].packed, __ATOMIC_RELAXED);
  const uint64_t bytes = bytes_of_long(packed), at = prof_i_claim(&chunk->cursor, bytes);
  if (PROF_I_UNLIKELY(!prof_i_record_fits(chunk, at, bytes))) {
    end_long_at_limit(chunk, slot, depth, start, duration4, at);
    return;
  }
  write_long_end(slot, depth, start, duration4, chunk, prof_i_record_mark(chunk, at, bytes),
                 packed);
}

/* The claim has reached the chunk's limit. If that is only a sampling stop (cost_sample.h), the
   record still fits. Slot and depth are those of the caller's check. The arena may have been
   replaced since, and the slot's memory is zeros then. */
static PROF_I_COLD void end_at_limit(prof_i_head *chunk, prof_i_thread_slot *slot, uint64_t depth,
                                     uint64_t start, uint64_t duration4, uint64_t at) {
  if (!prof_i_record_extends(chunk, at, 16)) {
    prof_i_scope_note_failed_claim(prof_i_this_thread, chunk, at, start);
    end_slow(start, duration4);
    return;
  }
  uint64_t *const record = (uint64_t *)((char *)chunk + at);
  const uint64_t packed = __atomic_load_n(&slot->open[depth].packed, __ATOMIC_RELAXED);
  __atomic_store_n(&record[1],
                   duration4 << (PROF_I_DURATION_SHIFT - 4) | prof_i_packed_record_word(packed),
                   __ATOMIC_RELAXED);
  __atomic_store_n(&record[0], start | chunk->generation, __ATOMIC_RELEASE);
  close_top_entry(slot, &slot->open[depth], depth);
}

static inline __attribute__((always_inline)) void end_any(prof_i_thread *thread, uint64_t start) {
  prof_i_thread_slot *const slot = thread->fast;
  if (PROF_I_UNLIKELY(!slot)) {
    prof_i_scope_end_slow(start, 0);
    return;
  }
  const uint64_t depth = slot->depth;
  prof_i_open_entry *const open = prof_i_open_entry_at(slot, depth);
  if (PROF_I_UNLIKELY(__atomic_load_n(&open->ticks, __ATOMIC_RELAXED) != start)) {
    prof_i_scope_end_slow(start, 0);
    return;
  }
  /* shifted like start: a counter that wraps, or has more than 60 bits, does no harm */
  const uint64_t duration4 = prof_i_scope_end_now(thread) - start;
  const uint64_t packed = __atomic_load_n(&open->packed, __ATOMIC_RELAXED);
  const uint64_t duration_what =
      duration4 << (PROF_I_DURATION_SHIFT - 4) | prof_i_packed_record_word(packed);
  if (PROF_I_UNLIKELY(duration4 >> (PROF_I_DURATION_BITS + 4))) {
    end_slow(start, duration4);
    return;
  }
  if (packed & PROF_I_TYPE_LONG) {
    end_long(thread, slot, depth, start, duration4);
    return;
  }
  prof_i_head *const chunk = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED);
  if (PROF_I_FAULT(EARLY_CLEAR)) prof_i_open_entry_set(open, 0);
  if (PROF_I_FAULT(HOT_CALL)) prof_i_port_tid();
  const uint64_t at = PROF_I_FAULT(LOST) ? __atomic_load_n(&chunk->cursor, __ATOMIC_RELAXED)
                                         : prof_i_claim(&chunk->cursor, 16);
  if (PROF_I_UNLIKELY(at >= chunk->limit)) {
    end_at_limit(chunk, slot, depth, start, duration4, at);
    return;
  }
  uint64_t *const record = (uint64_t *)((char *)chunk + at);
  if (PROF_I_FAULT(LATE_COMMIT)) {
    __atomic_store_n(&record[0], start | chunk->generation, __ATOMIC_RELEASE);
    PROF_I_SIGNAL_FENCE();
  }
  __atomic_store_n(&record[1], duration_what, __ATOMIC_RELAXED);
  /* The commit. Release: pairs with the reader's acquire load of this word. */
  __atomic_store_n(&record[0], start | chunk->generation,
                   PROF_I_FAULT(RELAXED) ? __ATOMIC_RELAXED : __ATOMIC_RELEASE);
  if (PROF_I_FAULT(LOST)) __atomic_store_n(&chunk->cursor, at + 16, __ATOMIC_RELAXED);
  close_top_entry(slot, open, depth);
}

void prof_i_end_1(uint64_t start) { end_any(prof_i_this_thread, start); }

static __attribute__((noinline)) uint64_t begin_called(prof_i_thread *thread, prof_site *site) {
  return begin_plain(thread, site, "", "", 0);
}
static __attribute__((noinline)) void end_called(prof_i_thread *thread, uint64_t start) {
  end_any(thread, start);
}

void prof_i_scope_run_empty(prof_i_thread *thread, prof_site *site, int count) {
  for (int i = 0; i < count; i++) end_called(thread, begin_called(thread, site));
}

/* ---- the twin: see scope.h ---- */

/* On pages of their own, because the recorder's code is not in the near caches either. */
#define TWIN_PAGE(name) __attribute__((noinline, aligned(64), section(".text.prof_i_twin_" name)))
#define TWIN_PAGE_FIRST(name) \
  __attribute__((noinline, aligned(4096), section(".text.prof_i_twin_" name)))

static TWIN_PAGE_FIRST("library") uint64_t
    twin_begin(const prof_i_twin_data *data, prof_site *site) {
  return begin_plain(*data->thread, site, "", "", 0);
}
static TWIN_PAGE("library") uint64_t
    twin_begin_details(const prof_i_twin_data *data, prof_site *site, const prof_details *details) {
  return begin_details(*data->thread, site, details, true);
}
static TWIN_PAGE("library") void twin_end(const prof_i_twin_data *data, uint64_t start) {
  end_any(*data->thread, start);
}

/* These stand for the linker's stubs, through which the host calls a library. */
static TWIN_PAGE_FIRST("stubs") uint64_t stub_begin(const prof_i_twin_data *data, prof_site *site) {
  return data->calls.begin(data, site);
}
static TWIN_PAGE("stubs") uint64_t
    stub_begin_details(const prof_i_twin_data *data, prof_site *site, const prof_details *details) {
  return data->calls.begin_details(data, site, details);
}
static TWIN_PAGE("stubs") void stub_end(const prof_i_twin_data *data, uint64_t start) {
  data->calls.end(data, start);
}

void prof_i_scope_twin_link(prof_i_twin_calls *stubs, prof_i_twin_data *data) {
  *stubs = (prof_i_twin_calls){stub_begin, stub_begin_details, stub_end};
  data->calls = (prof_i_twin_calls){twin_begin, twin_begin_details, twin_end};
}

TWIN_PAGE_FIRST("host")
uint64_t prof_i_scope_twin_begin(const prof_i_twin *twin, prof_site *site,
                                 const prof_details *details) {
  return details ? twin->calls->begin_details(twin->data, site, details)
                 : twin->calls->begin(twin->data, site);
}
TWIN_PAGE("host") void prof_i_scope_twin_end(const prof_i_twin *twin, uint64_t start) {
  twin->calls->end(twin->data, start);
}

/* ---- scopes by call, for other languages ---- */

static prof_site by_call[3] = {{.file = "", .function = ""},
                               {.file = "", .function = "prof_scope_begin", .level = 1},
                               {.file = "", .function = "prof_scope_begin", .level = 2}};

uint64_t prof_scope_begin(int level, const char *name, const char *category,
                          const prof_args *args) {
  if (level < 1 || level > 2 || (uint32_t)level > prof_i_arena_level()) return 0;
  name = name ? name : "";
  category = category ? category : "";
  if (!args || args->count == 0) {
    prof_i_thread *const thread = prof_i_this_thread;
    const uint64_t start = begin_texts_by_call(thread, &by_call[level], name, category);
    if (PROF_I_LIKELY(start != PROF_I_NOT_SHORT)) return start | thread->tag;
  }
  const prof_details details = {
      name, category, PROF_NUL_TERMINATED,        PROF_NUL_TERMINATED, PROF_I_BY_CALL, PROF_HOST,
      0,    0,        args ? *args : PROF_NO_ARGS};
  return prof_i_handle_with_tag(
      begin_details(prof_i_this_thread, &by_call[level], &details, false));
}

uint64_t prof_scope_begin_at(prof_site *site, const char *name, const char *category) {
  const uint32_t level = site && site->level ? site->level : 1;
  if (!site || level > prof_i_arena_level()) return 0;
  return prof_i_handle_with_tag(begin_plain(prof_i_this_thread, site, name ? name : "",
                                            category ? category : "", PROF_I_OPEN_BY_CALL));
}

static __attribute__((noinline)) void end_without_own_tag(prof_i_thread *thread, uint64_t handle) {
  if (prof_i_handle_tag(handle))
    prof_i_scope_end_slow(handle, 0);
  else if (handle)
    end_any(thread, handle);
}

/* Start 0 is that of an empty entry, and must not match one. */
void prof_scope_end(uint64_t handle) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t start = prof_i_open_entry_start(handle);
  if (PROF_I_LIKELY(prof_i_handle_tag(handle) == thread->tag) && PROF_I_LIKELY(start != 0))
    end_any(thread, start);
  else
    end_without_own_tag(thread, handle);
}
