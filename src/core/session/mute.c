/* prof_mute(). The rules and what they mute: see ../record/mute.h. */
#define _GNU_SOURCE
#include "../record/mute.h"

#include <prof/profiler.h>
#include <string.h>

#include "../../base/log.h"
#include "../../base/reentry.h"
#include "../record/site.h"
#include "control.h"

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
