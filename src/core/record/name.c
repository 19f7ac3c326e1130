/* See name.h. Places are taken by compare-and-swap; of two threads that learn one name at once the
   slower uses the other's. */
#define _GNU_SOURCE
#include "name.h"

#include <errno.h>

#include "../buffer/arena.h"
#include "../buffer/meta.h"
#include "../buffer/session.h"
#include "mute.h"
#include "open_stack.h"
#include "site.h"

enum { SITE_BYTES = 256 }; /* of its site in the capture, about */

prof_i_names prof_i_the_names;

/* Neither learnt nor asked for again. */
static void name_mark_copied(uint64_t hash) {
  __atomic_store_n(prof_i_name_mark_of(hash), ~prof_i_name_mark(hash), __ATOMIC_RELAXED);
}

static size_t name_text_bytes(const char *text, uint32_t bytes, bool is_own) {
  return !is_own && bytes != PROF_NUL_TERMINATED ? bytes : strnlen(text, PROF_I_SITE_TEXT_BYTES);
}

/* The texts of the name's own site. */
static prof_i_site_texts texts_of(const prof_details *details) {
  const char *const name = details->name ? details->name : "", *const category =
                                                                   details->category
                                                                       ? details->category
                                                                       : "";
  return (prof_i_site_texts){
      name, category,
      details->name
          ? name_text_bytes(name, details->name_bytes, details->flags & PROF_I_NAME_LITERAL)
          : 0,
      details->category ? name_text_bytes(category, details->category_bytes,
                                          details->flags & PROF_I_CATEGORY_LITERAL)
                        : 0};
}

static prof_i_name *name_create(const prof_i_name_key *key, uint32_t number) {
  const size_t words = prof_i_name_words(key->name_bytes) + prof_i_name_words(key->category_bytes);
  prof_i_name *const name = prof_i_site_allot(sizeof *name + words * sizeof *name->words);
  if (!name) return NULL;
  *name = (prof_i_name){key->hash, 0, key->of, key->name_bytes, key->category_bytes, number};
  memcpy(name->words, key->name, key->name_bytes);
  memcpy(name->words + prof_i_name_words(key->name_bytes), key->category, key->category_bytes);
  return name;
}

/* NULL: there is no place. */
static prof_i_name *name_publish(prof_i_name *fresh, const prof_i_name_key *key) {
  prof_i_name **const places = __atomic_load_n(&prof_i_the_names.places, __ATOMIC_ACQUIRE);
  for (uint64_t i = key->hash, tries = 0; tries < PROF_I_NAME_TRIES; i++, tries++) {
    prof_i_name *there = NULL;
    if (__atomic_compare_exchange_n(&places[i % PROF_I_NAME_TABLE_SIZE], &there, fresh, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return fresh;
    there = prof_i_name_find(key);
    if (there) return there;
  }
  return NULL;
}

static bool name_has_room(const prof_i_name_key *key) {
  prof_i_name **const places = prof_i_site_map_once((void **)&prof_i_the_names.places,
                                                    PROF_I_NAME_TABLE_SIZE * sizeof *places);
  if (!places || !prof_i_site_has_room_for_name(SITE_BYTES) ||
      __atomic_load_n(&prof_i_the_names.count, __ATOMIC_RELAXED) >= PROF_I_NAMES_MAX)
    return false;
  for (uint64_t i = key->hash, tries = 0; tries < PROF_I_NAME_TRIES; i++, tries++)
    if (!__atomic_load_n(&places[i % PROF_I_NAME_TABLE_SIZE], __ATOMIC_RELAXED)) return true;
  return false;
}

static prof_i_name *name_learn(const prof_site *site, const prof_i_name_key *key,
                               const prof_details *details) {
  if (memchr(key->name, 0, key->name_bytes) || memchr(key->category, 0, key->category_bytes) ||
      !name_has_room(key))
    return NULL;
  __atomic_fetch_add(&prof_i_the_names.count, 1,
                     __ATOMIC_RELAXED); /* of all that take memory, learnt or not */
  const prof_i_site_texts texts = texts_of(details);
  const uint32_t number = prof_i_site_number_of_name(site, (uint32_t)key->of, &texts);
  prof_i_name *const fresh = number ? name_create(key, number) : NULL;
  if (!fresh) return NULL;
  prof_i_mute_check_new_site(number);
  return name_publish(fresh, key);
}

/* As prof_i_site_look_up(), of a name. The state's number is 0 where the capture has no room for
   its site. */
static uint64_t name_refresh(prof_i_name *name) {
  const uint64_t state = __atomic_load_n(&name->state, __ATOMIC_ACQUIRE);
  const uint32_t epoch = prof_i_session_epoch();
  if ((state >> 32 & ~(uint64_t)PROF_I_EPOCH_MUTED) == epoch) return state;
  const uint64_t muted =
      prof_i_mute_is_muted(name->number) || prof_i_mute_is_muted((uint32_t)name->of)
          ? PROF_I_EPOCH_MUTED
          : 0;
  const uint64_t fresh =
      (epoch | muted) << 32 | (prof_i_site_is_written(name->number) ? name->number : 0);
  __atomic_store_n(&name->state, fresh, __ATOMIC_RELEASE);
  return fresh;
}

static prof_i_name_route decode_state(uint64_t state, uint32_t *number_out) {
  *number_out = (uint32_t)state;
  return state >> 32 & PROF_I_EPOCH_MUTED ? PROF_I_NAME_MUTED
         : *number_out                    ? PROF_I_NAME_SITE
                                          : PROF_I_NAME_COPY;
}

static bool name_is_muted(const prof_details *details) {
  if (!__atomic_load_n(&prof_i_the_names.watch, __ATOMIC_RELAXED)) return false;
  const prof_i_site_texts texts = texts_of(details);
  return prof_i_mute_matches_texts(&texts);
}

/* A muted one is learnt at once: so the capture tells of it, and its next scope is left out sooner.
 */
static prof_i_name_route learn_or_copy(const prof_site *site, const prof_i_name_key *key,
                                       const prof_details *details, uint32_t *number_out) {
  const bool muted = name_is_muted(details);
  if (!muted && !prof_i_name_is_repeated(key->hash)) return PROF_I_NAME_COPY;
  prof_i_name *const name = name_learn(site, key, details);
  if (!name) {
    name_mark_copied(key->hash);
    return muted ? PROF_I_NAME_MUTED : PROF_I_NAME_COPY;
  }
  return decode_state(name_refresh(name), number_out);
}

prof_i_name_route prof_i_name_look_up(const prof_site *site, uint32_t number,
                                      const prof_details *details, uint32_t *number_out) {
  prof_i_name_key key;
  const uint32_t both = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL;
  if ((details->flags & both) == both) return PROF_I_NAME_COPY;
  if (!prof_i_name_key_of(&key, details, number))
    return name_is_muted(details) ? PROF_I_NAME_MUTED : PROF_I_NAME_COPY;
  prof_i_name *const name = prof_i_name_find(&key);
  return name ? decode_state(name_refresh(name), number_out)
              : learn_or_copy(site, &key, details, number_out);
}

/* ---- the text of an argument ---- */

enum { RECORD_WORDS = 3 + 1 + PROF_I_NAME_TEXT_BYTES / 8 };

/* The record of a scope that has it, but for its times and its site. */
static uint32_t pack_argument(uint64_t to[RECORD_WORDS], const prof_i_name_key *key) {
  const uint64_t words = 3 + prof_i_text_words(key->name_bytes), slots = (words + 1) / 2;
  to[slots * 2 - 1] = to[0] = 0; /* the last slot may be half empty */
  to[1] = PROF_I_TYPE_LONG;
  to[2] = slots | (uint64_t)PROF_I_KIND_SCOPE << 16 | key->of >> 32 << 32;
  prof_i_put_text(to + 3, key->name, key->name_bytes);
  return (uint32_t)slots * 2;
}

static prof_i_name *learn_argument(const prof_i_name_key *key) {
  if (memchr(key->name, 0, key->name_bytes) || !name_has_room(key) ||
      __atomic_load_n(&prof_i_the_names.arguments, __ATOMIC_RELAXED) >= PROF_I_ARGUMENTS_MAX)
    return NULL;
  __atomic_fetch_add(&prof_i_the_names.count, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&prof_i_the_names.arguments, 1, __ATOMIC_RELAXED);
  uint64_t given[RECORD_WORDS];
  const uint32_t count = pack_argument(given, key);
  const uint32_t number = prof_i_site_number_of_argument((uint32_t)key->of, given, count);
  prof_i_name *const name = number ? name_create(key, number) : NULL;
  return name ? name_publish(name, key) : NULL;
}

void prof_i_name_look_up_argument(const prof_i_name_key *key) {
  if (!prof_i_arena_guard_enter()) return;
  const int saved = errno;
  prof_i_name *name = prof_i_name_find(key);
  if (!name && prof_i_name_is_repeated(key->hash) && !(name = learn_argument(key)))
    name_mark_copied(key->hash);
  if (name) name_refresh(name);
  errno = saved;
  prof_i_arena_guard_exit();
}
