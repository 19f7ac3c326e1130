/* See event.h. */
#include "event.h"

/* Of a key that comes twice the last counts, as everywhere. */
const import_value *import_event_arg(const import_event *event, const char *key) {
  for (uint32_t i = event->arg_count; i-- > 0;) {
    const import_arg *const arg = &event->args[i];
    if (import_text_is((import_text){event->text + arg->key_at, arg->key_bytes}, key))
      return &arg->value;
  }
  return NULL;
}
