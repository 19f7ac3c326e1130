/* See internal.h. The text is translated to JSON. The JSON parser that reads it checks
   brackets and commas. */
#define _GNU_SOURCE
#include "internal.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A token's begin in the text and in the JSON. */
typedef struct json_token {
  size_t at, json_at;
} json_token;

typedef struct literal_translation {
  const char *at;
  FILE *to;
  const char *error;
  json_token *tokens;
  size_t count, room;
} literal_translation;

static bool refuse_literal(literal_translation *t, const char *error) {
  if (!t->error) t->error = error;
  return false;
}

static void literal_skip_blanks(literal_translation *t) {
  for (;;) {
    while (isspace((unsigned char)*t->at) || (t->at[0] == '\\' && t->at[1] == '\n')) t->at++;
    if (*t->at != '#') return;
    t->at += strcspn(t->at, "\n");
  }
}

/* ---- strings ---- */

/* A character as JSON escapes it: by UTF-16. */
static void put_code(FILE *to, unsigned long code) {
  if (code < 0x80 && code >= 0x20 && code != '"' && code != '\\')
    fputc((int)code, to);
  else if (code < 0x10000)
    fprintf(to, "\\u%04lx", code);
  else
    fprintf(to, "\\u%04lx\\u%04lx", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
}

/* So many hexadecimal digits. */
static bool literal_take_hex(literal_translation *t, int digits) {
  char text[9] = "";
  for (int i = 0; i < digits; i++) {
    if (!isxdigit((unsigned char)*t->at))
      return refuse_literal(t, "an escape lacks hexadecimal digits");
    text[i] = *t->at++;
  }
  const unsigned long code = strtoul(text, NULL, 16);
  if (code > 0x10ffff) return refuse_literal(t, "an escape is beyond Unicode");
  put_code(t->to, code);
  return true;
}

static void literal_take_octal(literal_translation *t) {
  unsigned long code = 0;
  for (int i = 0; i < 3 && *t->at >= '0' && *t->at <= '7'; i++)
    code = 8 * code + (unsigned long)(*t->at++ - '0');
  put_code(t->to, code);
}

/* Reads an escape sequence; t->at is behind the backslash. */
static bool literal_take_escape(literal_translation *t) {
  static const char names[] = "abfnrtv\\'\"", codes[] = "\a\b\f\n\r\t\v\\'\"";
  const char *const known = *t->at ? strchr(names, *t->at) : NULL;
  if (known) {
    put_code(t->to, (unsigned char)codes[known - names]);
    t->at++;
    return true;
  }
  if (*t->at >= '0' && *t->at <= '7') {
    literal_take_octal(t);
    return true;
  }
  switch (*t->at++) {
    case '\n':
      return true; /* a line continuation */
    case 'x':
      return literal_take_hex(t, 2);
    case 'u':
      return literal_take_hex(t, 4);
    case 'U':
      return literal_take_hex(t, 8);
    case 'N':
      return refuse_literal(t, "\\N{NAME} is not known here");
    case '\0':
      t->at--;
      return refuse_literal(t, "a string has no end");
    default: /* Python keeps the backslash */
      t->at--;
      put_code(t->to, '\\');
      return true;
  }
}

/* One string of quotes, or three; t->at is at the first quote. */
static bool literal_take_quoted(literal_translation *t, bool is_raw) {
  const char quote = *t->at;
  const bool is_triple = t->at[1] == quote && t->at[2] == quote;
  t->at += is_triple ? 3 : 1;
  for (;;) {
    const char next = *t->at;
    if (next == '\0' || (next == '\n' && !is_triple))
      return refuse_literal(t, "a string has no end");
    if (next == quote && (!is_triple || (t->at[1] == quote && t->at[2] == quote))) break;
    t->at++;
    if (next == '\\' && !is_raw) {
      if (!literal_take_escape(t)) return false;
    } else if (next == '\\' && *t->at) {
      put_code(t->to, '\\');
      put_code(t->to, (unsigned char)*t->at++);
    } else if ((unsigned char)next >= 0x80) {
      fputc(next, t->to); /* UTF-8 stays */
    } else {
      put_code(t->to, (unsigned char)next);
    }
  }
  t->at += is_triple ? 3 : 1;
  return true;
}

/* The letters in front of a quote: r, R, u, U. Length; 0: there is no string here. */
static size_t string_prefix(const char *at) {
  if (*at == '\'' || *at == '"') return 0;
  return strchr("rRuU", *at) && (at[1] == '\'' || at[1] == '"') ? 1 : 0;
}

static bool literal_is_string(const char *at) {
  at += string_prefix(at);
  return *at == '\'' || *at == '"';
}

/* Adjacent strings are concatenated. */
static bool literal_take_string(literal_translation *t) {
  fputc('"', t->to);
  do {
    const bool is_raw = *t->at == 'r' || *t->at == 'R';
    t->at += string_prefix(t->at);
    if (!literal_take_quoted(t, is_raw)) return false;
    literal_skip_blanks(t);
  } while (*t->at && literal_is_string(t->at));
  fputc('"', t->to);
  return true;
}

/* ---- the rest ---- */

static bool literal_take_word(literal_translation *t) {
  static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"},
                                         {"true", "true"}, {"false", "false"}, {"null", "null"}};
  size_t bytes = 0;
  while (isalnum((unsigned char)t->at[bytes]) || t->at[bytes] == '_') bytes++;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strlen(words[i][0]) != bytes || memcmp(words[i][0], t->at, bytes) != 0) continue;
    fputs(words[i][1], t->to);
    t->at += bytes;
    return true;
  }
  return refuse_literal(t, "a word that is neither True, False, None nor in quotes");
}

static bool literal_take_number(literal_translation *t) {
  if (*t->at == '+') t->at++; /* JSON has none */
  const char *const from = t->at;
  char *end;
  (void)strtod(from, &end);
  if (end == from) return refuse_literal(t, "a character that no literal begins with");
  for (const char *at = from; at < end; at++)
    if (*at == 'x' || *at == 'X') return refuse_literal(t, "a hexadecimal number");
  fwrite(from, 1, (size_t)(end - from), t->to);
  t->at = end;
  return true;
}

/* Leaves out a comma in front of a closing bracket. */
static void literal_take_comma(literal_translation *t) {
  t->at++;
  literal_skip_blanks(t);
  if (*t->at != ']' && *t->at != '}' && *t->at != ')') fputc(',', t->to);
}

static bool literal_take_next(literal_translation *t) {
  switch (*t->at) {
    case '(':
    case '[':
      t->at++;
      fputc('[', t->to);
      return true;
    case ')':
    case ']':
      t->at++;
      fputc(']', t->to);
      return true;
    case '{':
    case '}':
    case ':':
      fputc(*t->at++, t->to);
      return true;
    case ',':
      literal_take_comma(t);
      return true;
    default:
      break;
  }
  if (literal_is_string(t->at)) return literal_take_string(t);
  if (isalpha((unsigned char)*t->at) || *t->at == '_') return literal_take_word(t);
  return literal_take_number(t);
}

static void note_token(literal_translation *t, const char *text) {
  if (t->count == t->room) {
    t->room = t->room ? 2 * t->room : 64;
    t->tokens = run_grow(t->tokens, t->room, sizeof *t->tokens);
  }
  t->tokens[t->count++] = (json_token){(size_t)(t->at - text), (size_t)ftell(t->to)};
}

/* The place in the text of a place in the JSON. */
static size_t index_in_text(const literal_translation *t, size_t json_at) {
  size_t i = t->count;
  while (i > 0 && t->tokens[i - 1].json_at > json_at) i--;
  return i > 0 ? t->tokens[i - 1].at : 0;
}

const run_json *run_python_literal_parse(const char *text, run_json_error *error_out) {
  char *json = NULL;
  size_t bytes = 0;
  literal_translation t = {.at = text, .to = open_memstream(&json, &bytes)};
  if (!t.to) run_fail("out of memory");
  for (literal_skip_blanks(&t); *t.at && !t.error; literal_skip_blanks(&t)) {
    note_token(&t, text);
    if (!literal_take_next(&t)) break;
  }
  fclose(t.to);
  *error_out = (run_json_error){t.error, (size_t)(t.at - text)};
  const run_json *const value = t.error ? NULL : run_json_parse(json, error_out);
  if (!t.error && !value) error_out->at = index_in_text(&t, error_out->at);
  free(t.tokens);
  free(json);
  return value;
}
