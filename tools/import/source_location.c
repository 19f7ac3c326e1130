/* See source_location.h. */
#include "source_location.h"

#include "event.h"

static bool value_is_text(const import_event *event, const import_value *value) {
  return value->type == IMPORT_TEXT && import_text_of(event, value).bytes > 0;
}

static bool text_arg(const import_event *event, const char *key, import_text *out) {
  const import_value *const value = import_event_arg(event, key);
  if (!value || !value_is_text(event, value)) return false;
  *out = import_text_of(event, value);
  return true;
}

static bool line_arg(const import_event *event, uint32_t *out) {
  const import_value *const value = import_event_arg(event, "line");
  int64_t line;
  if (!value || value->type != IMPORT_NUMBER ||
      !import_number_i64(import_text_of(event, value), &line) || line < 0 || line > UINT32_MAX)
    return false;
  *out = (uint32_t)line;
  return true;
}

bool import_source_location_of(const import_event *event, import_text category, import_text name,
                               import_source_location *place_out) {
  import_source_location place = {.function = name};
  *place_out = (import_source_location){.file = {"", 0}, .function = {"", 0}};
  if (import_text_is(category, "c_function")) {
    if (!text_arg(event, "frame", &place.file)) return false;
    place.is_frame = true;
  } else if (import_text_is(category, "python_function") || import_text_is(category, "function")) {
    if (!text_arg(event, "file", &place.file) || !line_arg(event, &place.line)) return false;
    text_arg(event, "function", &place.function);
  } else {
    return false;
  }
  *place_out = place;
  return true;
}

bool import_source_location_has(const import_source_location *place, const import_event *event,
                                const import_arg *arg) {
  const import_text key = {event->text + arg->key_at, arg->key_bytes};
  if (place->file.bytes == 0) return false;
  if (place->is_frame) return import_text_is(key, "frame");
  return import_text_is(key, "file") || import_text_is(key, "line") ||
         (import_text_is(key, "function") && value_is_text(event, &arg->value));
}
