/* See want.h. */
#include "want.h"

#include <prof/status.h>

#include "log.h"

enum { WISHES_MAX = 1024 };

typedef struct wish {
  const void *who;
  uint32_t level;
} wish;

static struct {
  wish wishes[WISHES_MAX];
  uint32_t count;
  uint32_t level_set;   /* that stands for all of them; 0: none */
  uint32_t level_asked; /* by prof_start() and its kin; 0 after a stop */
  bool is_asked;        /* the recording that is on is theirs, be it of memory alone */
  bool holds_asked;     /* and what they recorded stands in the capture */
} own;

static wish *find(const void *who) {
  for (uint32_t i = 0; i < own.count; i++)
    if (own.wishes[i].who == who) return &own.wishes[i];
  return NULL;
}

static void set(const void *who, uint32_t level) {
  wish *const at = find(who);
  if (at && level) at->level = level;
  else if (at) *at = own.wishes[--own.count];
  else if (level) own.wishes[own.count++] = (wish){who, level};
}

uint32_t prof_i_want_level(void) {
  uint32_t level = own.level_asked;
  for (uint32_t i = 0; i < own.count; i++)
    if (own.wishes[i].level > level) level = own.wishes[i].level;
  return level;
}

int prof_i_want_put(const void *who, uint32_t level, uint32_t level_now, prof_i_want_step *step_out) {
  const wish *const at = find(who);
  const bool is_first = own.count == 0;
  *step_out = (prof_i_want_step){.kind = PROF_I_WANT_NOTHING, .who = who, .before = at ? at->level : 0};
  if (!at && level && own.count == WISHES_MAX) return prof_i_fail(PROF_E_TOO_LARGE, "%d record already, each for itself", WISHES_MAX);
  set(who, level);
  step_out->level = prof_i_want_level();
  if (level > step_out->before) {
    if (step_out->level > level_now) step_out->kind = PROF_I_WANT_LEVEL;
    step_out->is_fresh = is_first && !own.holds_asked;
  } else if (own.level_set && level_now == own.level_set && step_out->level < level_now) { /* else somebody else has set it */
    step_out->kind = step_out->level || own.is_asked ? PROF_I_WANT_LEVEL : PROF_I_WANT_STOP;
  } else if (own.count == 0) {
    own.level_set = 0;
  }
  return PROF_OK;
}

void prof_i_want_done(const prof_i_want_step *step, bool has_worked) {
  if (has_worked) own.level_set = step->kind == PROF_I_WANT_STOP ? 0 : step->level;
  else set(step->who, step->before);
}

void prof_i_want_asked(uint32_t level, bool is_on) {
  own.level_asked = level;
  own.is_asked = is_on;
  own.holds_asked |= is_on;
  if (!is_on) own.level_set = 0; /* the wishes' recording has ended with it */
}

void prof_i_want_memory(void) { own.is_asked = own.holds_asked = true; }

void prof_i_want_cleared(void) { own.holds_asked = own.is_asked; }

void prof_i_want_forget(uint32_t level, bool is_on) {
  own.count = own.level_set = 0;
  prof_i_want_asked(level, is_on);
}
