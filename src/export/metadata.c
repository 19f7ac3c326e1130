/* The user's metadata, and values that are JSON already. See exporter.h. */
#include "exporter.h"

#include <stdio.h>
#include <string.h>

#include "../base/error.h"
#include "../base/text.h"

/* ---- JSON ---- */

enum { DEPTH_MAX = 64 };

typedef struct json_reader {
  const unsigned char *next;
  int depth;
} json_reader;

static bool json_read_value(json_reader *r);

static void json_skip_blanks(json_reader *r) {
  r->next += strspn((const char *)r->next, " \t\r\n");
}

static bool json_take(json_reader *r, char c) {
  if (*r->next != (unsigned char)c) return false;
  r->next++;
  return true;
}

static bool json_take_word(json_reader *r, const char *word) {
  const size_t bytes = strlen(word);
  if (strncmp((const char *)r->next, word, bytes) != 0) return false;
  r->next += bytes;
  return true;
}

static bool json_take_digits(json_reader *r) {
  const size_t count = strspn((const char *)r->next, "0123456789");
  r->next += count;
  return count > 0;
}

static bool json_read_number(json_reader *r) {
  json_take(r, '-');
  if (!json_take(r, '0') && !json_take_digits(r)) return false;
  if (json_take(r, '.') && !json_take_digits(r)) return false;
  if (!json_take(r, 'e') && !json_take(r, 'E')) return true;
  if (!json_take(r, '+')) json_take(r, '-');
  return json_take_digits(r);
}

/* One character of several bytes. */
static bool json_read_wide(json_reader *r) {
  enum { SEQUENCE_MAX = 4 }; /* a NUL ends a shorter text */
  bool is_well_formed;
  const size_t bytes = prof_i_utf8_bytes(r->next, SEQUENCE_MAX, &is_well_formed);
  if (is_well_formed) r->next += bytes;
  return is_well_formed;
}

static bool json_read_escape(json_reader *r) {
  if (!json_take(r, 'u')) return *r->next && strchr("\"\\/bfnrt", *r->next++) != NULL;
  for (int i = 0; i < 4; i++, r->next++)
    if (!*r->next || !strchr("0123456789abcdefABCDEF", *r->next)) return false;
  return true;
}

static bool json_read_string(json_reader *r) {
  if (!json_take(r, '"')) return false;
  while (!json_take(r, '"')) {
    if (json_take(r, '\\')) {
      if (!json_read_escape(r)) return false;
    } else if (*r->next < 0x80) {
      if (*r->next < 0x20) return false; /* the end of the text, too */
      r->next++;
    } else if (!json_read_wide(r)) {
      return false;
    }
  }
  return true;
}

static bool json_read_member(json_reader *r) {
  if (!json_read_string(r)) return false;
  json_skip_blanks(r);
  return json_take(r, ':') && json_read_value(r);
}

static bool json_read_list(json_reader *r, char end, bool (*read_item)(json_reader *r)) {
  json_skip_blanks(r);
  if (json_take(r, end)) return true;
  do {
    json_skip_blanks(r);
    if (!read_item(r)) return false;
    json_skip_blanks(r);
  } while (json_take(r, ','));
  return json_take(r, end);
}

static bool json_read_value(json_reader *r) {
  bool is_right = r->depth++ < DEPTH_MAX;
  json_skip_blanks(r);
  switch (is_right ? *r->next : 0) {
    case '"':
      is_right = json_read_string(r);
      break;
    case '{':
      r->next++, is_right = json_read_list(r, '}', json_read_member);
      break;
    case '[':
      r->next++, is_right = json_read_list(r, ']', json_read_value);
      break;
    case 't':
      is_right = json_take_word(r, "true");
      break;
    case 'f':
      is_right = json_take_word(r, "false");
      break;
    case 'n':
      is_right = json_take_word(r, "null");
      break;
    case 0:
      is_right = false;
      break;
    default:
      is_right = json_read_number(r);
  }
  r->depth--;
  return is_right;
}

bool prof_i_json_is_value(const char *text, size_t *at_out) {
  json_reader r = {(const unsigned char *)text, 0};
  bool is_right = json_read_value(&r);
  if (is_right) json_skip_blanks(&r);
  is_right = is_right && *r.next == '\0';
  *at_out = (size_t)(r.next - (const unsigned char *)text);
  return is_right;
}

/* ---- members ---- */

int prof_i_metadata_check(const prof_i_metadata *metadata) {
  if (metadata->count && !metadata->items)
    return prof_i_fail(PROF_E_INVALID, "prof_dump_options.metadata is NULL, and metadata_count %u",
                       metadata->count);
  for (uint32_t i = 0; i < metadata->count; i++) {
    const prof_metadata *const item = &metadata->items[i];
    size_t at = 0;
    if (!item->key || !item->json)
      return prof_i_fail(PROF_E_INVALID, "prof_dump_options.metadata[%u].%s is NULL", i,
                         item->key ? "json" : "key");
    if (strcmp(item->key, "traceEvents") == 0 || strcmp(item->key, "prof") == 0)
      return prof_i_fail(
          PROF_E_INVALID,
          "prof_dump_options.metadata[%u].key is '%s', which is what the file is made of", i,
          item->key);
    if (!prof_i_json_is_value(item->json, &at))
      return prof_i_fail(
          PROF_E_INVALID,
          "prof_dump_options.metadata[%u], '%.64s', is not JSON: '%.64s', at byte %zu", i,
          item->key, item->json, at);
  }
  return PROF_OK;
}

bool prof_i_metadata_has_key(const prof_i_metadata *metadata, const char *key) {
  for (uint32_t i = 0; i < metadata->count; i++)
    if (strcmp(metadata->items[i].key, key) == 0) return true;
  return false;
}

/* What no reader may see raw, as \u and four digits: all of it stands in strings. 0: it may
   stay. */
static unsigned hidden_character(const unsigned char *at, size_t *bytes_out) {
  *bytes_out = 1;
  if (*at == '<' || *at == 0x7f) return *at;
  *bytes_out = 2;
  if (at[0] == 0xc2 && at[1] < 0xa0) return at[1]; /* controls */
  *bytes_out = 3;
  /* ends of lines to JavaScript */
  if (at[0] == 0xe2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9))
    return 0x2000u + (at[2] & 0x3fu);
  *bytes_out = 1;
  return 0;
}

/* An escape, which stands as it is, but for a string's last backslash: Perfetto v52 takes the quote
   behind it for an escaped one. Returns its bytes. */
static size_t put_escape(prof_i_sink *sink, const unsigned char *at) {
  if (at[1] == '\\' && at[2] == '"')
    prof_i_sink_text(sink, "\\u005c");
  else
    prof_i_sink_bytes(sink, at, 2);
  return 2;
}

void prof_i_json_put(prof_i_sink *sink, const char *json) {
  for (const unsigned char *at = (const unsigned char *)json; *at;) {
    char escaped[8];
    size_t bytes;
    if (*at == '\\') {
      at += put_escape(sink, at);
      continue;
    }
    const unsigned code = hidden_character(at, &bytes);
    if (code) {
      snprintf(escaped, sizeof escaped, "\\u%04x", code);
      prof_i_sink_text(sink, escaped);
    } else {
      prof_i_sink_bytes(
          sink, *at == '\n' || *at == '\r' || *at == '\t' ? (const unsigned char *)" " : at, 1);
    }
    at += bytes;
  }
}

void prof_i_metadata_put(const prof_i_metadata *metadata, prof_i_sink *sink) {
  for (uint32_t i = 0; i < metadata->count; i++) {
    const prof_metadata *const item = &metadata->items[i];
    const prof_i_metadata behind = {item + 1, metadata->count - i - 1};
    if (prof_i_metadata_has_key(&behind, item->key)) continue;
    prof_i_sink_string(sink, item->key, strlen(item->key));
    prof_i_sink_text(sink, ": ");
    prof_i_json_put(sink, item->json);
    prof_i_sink_text(sink, ",\n");
  }
}
