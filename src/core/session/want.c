/* See want.h. */
#include "want.h"

#include <prof/profiler.h>

#include "../../base/log.h"

enum { WISHES_MAX = 1024 };

typedef struct wish {
  const void *who;
  uint32_t level;
  uint32_t devices; /* prof_devices */
} wish;

static struct {
  wish wishes[WISHES_MAX]; /* level 0: paused */
  uint32_t count;
  bool has_set; /* the level in force, level_set, is theirs to lower */
  uint32_t level_set;
  uint32_t level_asked; /* by prof_start() and its kin; 0 after a stop */
  bool memory_asked;    /* by prof_memory_start(); false after a stop */
  bool holds_asked;     /* what was asked for stands in the capture */
  bool holds_wished;    /* and what was recorded for a wish */
} own;

static bool is_asked(void) { return own.level_asked || own.memory_asked; }

static wish *find(const void *who) {
  for (uint32_t i = 0; i < own.count; i++)
    if (own.wishes[i].who == who) return &own.wishes[i];
  return NULL;
}

static void set(const void *who, bool is_there, uint32_t level, uint32_t devices) {
  wish *const at = find(who);
  if (at && is_there)
    *at = (wish){who, level, devices};
  else if (at)
    *at = own.wishes[--own.count];
  else if (is_there)
    own.wishes[own.count++] = (wish){who, level, devices};
}

uint32_t prof_i_want_level(void) {
  uint32_t level = own.level_asked;
  for (uint32_t i = 0; i < own.count; i++)
    if (own.wishes[i].level > level) level = own.wishes[i].level;
  return level;
}

/* As they weigh: scopes alone, the default, records too, memory too. */
static uint32_t weight_of(uint32_t devices) {
  return devices == PROF_DEVICES_SCOPES ? 0 : devices == PROF_DEVICES_DEFAULT ? 1 : devices;
}

uint32_t prof_i_want_devices(void) {
  bool is_any = is_asked();
  uint32_t most = is_any ? PROF_DEVICES_DEFAULT : PROF_DEVICES_SCOPES;
  for (uint32_t i = 0; i < own.count; i++) {
    if (!own.wishes[i].level) continue;
    is_any = true;
    if (weight_of(own.wishes[i].devices) > weight_of(most)) most = own.wishes[i].devices;
  }
  return is_any ? most : PROF_DEVICES_DEFAULT;
}

int prof_i_want_put(const void *who, bool is_there, uint32_t level, uint32_t devices,
                    bool is_recording, uint32_t level_now, prof_i_want_step *step_out) {
  const wish *const at = find(who);
  const bool is_first = own.count == 0;
  *step_out = (prof_i_want_step){.kind = PROF_I_WANT_NOTHING,
                                 .who = who,
                                 .was_there = at != NULL,
                                 .before = at ? at->level : 0,
                                 .devices_before = at ? at->devices : 0};
  if (!at && is_there && own.count == WISHES_MAX)
    return prof_i_fail(PROF_E_TOO_LARGE, "%d record already, each for itself", WISHES_MAX);
  set(who, is_there, level, devices);
  step_out->level = prof_i_want_level();
  if (level > step_out->before) {
    if (step_out->level > level_now) step_out->kind = PROF_I_WANT_LEVEL;
    step_out->is_fresh = is_first && !own.holds_asked;
  } else if (own.count == 0 && !is_asked()) {
    /* whatever the level is by now: a budget, or another process, may have set it */
    if (is_recording) step_out->kind = PROF_I_WANT_STOP;
    own.has_set = false;
  } else if (own.has_set && level_now == own.level_set) { /* else somebody else has set it */
    /* 0 where all that is left is paused: scopes that are open end as they should */
    if (step_out->level < level_now) step_out->kind = PROF_I_WANT_LEVEL;
  }
  return PROF_OK;
}

void prof_i_want_done(const prof_i_want_step *step, bool has_worked) {
  if (!has_worked) {
    set(step->who, step->was_there, step->before, step->devices_before);
    return;
  }
  own.has_set = step->kind != PROF_I_WANT_STOP;
  own.level_set = step->level;
  own.holds_wished |= own.has_set;
}

/* With wishes there: what is in force from here on is the highest of all. */
static void set_by_all(void) {
  own.has_set = own.count > 0;
  own.level_set = prof_i_want_level();
}

void prof_i_want_asked(uint32_t level) {
  own.level_asked = level;
  own.holds_asked |= level != 0;
  set_by_all();
}

void prof_i_want_memory(bool is_on) {
  own.memory_asked = is_on;
  own.holds_asked |= is_on;
}

bool prof_i_want_unasked(void) {
  const bool was_asked = is_asked();
  own.level_asked = 0;
  own.memory_asked = false;
  set_by_all();
  return was_asked;
}

void prof_i_want_ended(void) { own.has_set = false; }

uint32_t prof_i_want_count(void) { return own.count; }

bool prof_i_want_memory_too(void) {
  for (uint32_t i = 0; i < own.count; i++)
    if (own.wishes[i].level) return true;
  return false;
}

bool prof_i_want_has_left(void) { return own.count == 0 && own.holds_wished && !own.holds_asked; }

void prof_i_want_cleared(void) {
  own.holds_asked = is_asked();
  own.holds_wished = own.has_set;
}

bool prof_i_want_forget(uint32_t *level) {
  if (!is_asked())
    *level = 0;
  else if (own.has_set && *level == own.level_set)
    *level = own.level_asked; /* else somebody else has set it */
  own.count = 0;
  own.has_set = false;
  own.holds_asked = is_asked();
  own.holds_wished = false;
  return is_asked();
}
