/* What a terminal may be given. Names come out of captures and paths out of scripts: anybody may
   have chosen them, and none may reach the terminal as a command. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../src/base/display.h"
#include "../../src/base/text.h"
#include "commands.h"

enum { LINE_BYTES = 4096, COLUMNS_MAX = 100000 };

size_t utf8_character(const unsigned char *at, size_t left, unsigned *code_out) {
  const size_t bytes = prof_i_utf8_decode((const char *)at, left, code_out);
  return *code_out == PROF_I_UTF8_ILL_FORMED ? 0 : bytes;
}

/* Controls, what has no width, line separators, and the marks that turn the direction of
   writing. */
static int code_is_control(unsigned code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || code == 0x61c ||
         (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
         (code >= 0xfff9 && code <= 0xfffb) || (code >= 0xe0000 && code <= 0xe007f);
}

void print_text(FILE *to, const char *text, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    unsigned code;
    const size_t found = utf8_character((const unsigned char *)text + at, bytes - at, &code),
                 taken = found ? found : 1;
    if (found && !code_is_control(code))
      fwrite(text + at, 1, taken, to);
    else
      for (size_t i = 0; i < taken; i++) fprintf(to, "\\x%02x", (unsigned char)text[at + i]);
    at += taken;
  }
}

static void print_tail(data_printer *p) {
  print_text(stdout, p->tail, p->tail_bytes);
  p->tail_bytes = 0;
}

static void print_on_terminal(data_printer *p, char byte) {
  unsigned code;
  if ((byte & 0xc0) != 0x80 && p->tail_bytes) print_tail(p);
  if (byte == '\n' || byte == '\r') {
    putchar(byte);
    return;
  }
  p->tail[p->tail_bytes++] = byte;
  if (p->tail_bytes == sizeof p->tail ||
      utf8_character((const unsigned char *)p->tail, p->tail_bytes, &code))
    print_tail(p);
}

void print_data(data_printer *p, const char *text, size_t bytes) {
  if (!isatty(STDOUT_FILENO)) {
    fwrite(text, 1, bytes, stdout);
    return;
  }
  for (size_t i = 0; i < bytes; i++) print_on_terminal(p, text[i]);
}

/* The bytes up to the last blank that leaves at most so many columns in front of it, or else up to
   the first blank behind `least` bytes, or all. */
static size_t fold_at(const char *line, size_t bytes, size_t least, unsigned columns) {
  size_t at = 0;
  for (size_t i = least; i < bytes; i++) {
    if (line[i] != ' ' || line[i - 1] == ' ') continue;
    if (at && prof_i_display_width(line, i) > columns) break;
    at = i;
  }
  return at && prof_i_display_width(line, bytes) > columns ? at : bytes;
}

void print_folded(const char *text, unsigned columns, unsigned indent) {
  while (*text) {
    size_t bytes = strcspn(text, "\n"), part = fold_at(text, bytes, indent + 1, columns);
    fwrite(text, 1, part, stdout);
    while (part < bytes) {
      text += part + strspn(text + part, " ");
      bytes = strcspn(text, "\n");
      part = fold_at(text, bytes, 1, columns > indent ? columns - indent : 1);
      printf("\n%*s%.*s", (int)indent, "", (int)part, text);
    }
    putchar('\n');
    text += bytes + (text[bytes] == '\n');
  }
}

unsigned terminal_columns(int fd) {
  struct winsize size;
  if (!isatty(fd)) return 0;
  const char *const columns = getenv("COLUMNS");
  char *end;
  const unsigned long told = columns ? strtoul(columns, &end, 10) : 0;
  if (told && !*end && columns[0] >= '0' && columns[0] <= '9' && told <= COLUMNS_MAX)
    return (unsigned)told;
  return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

unsigned terminal_lines(int fd) {
  struct winsize size;
  if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_row;
}

const char *flush_words(const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  if (info.is_end_seen) return "its process was last seen alive";
  return info.is_live || info.is_copy ? "the end" : "the last thing recorded";
}

void say(const char *format, ...) {
  char line[LINE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  const int count = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  /* in one write(): ranks share a terminal */
  char *text = NULL;
  size_t bytes = 0;
  FILE *const memory = open_memstream(&text, &bytes);
  FILE *const to = memory ? memory : stderr;
  print_text(to, line, count < 0 ? 0 : count < LINE_BYTES ? (size_t)count : LINE_BYTES - 1);
  fputc('\n', to);
  progress_pause();
  if (memory && fclose(memory) == 0) fwrite(text, 1, bytes, stderr);
  progress_resume();
  free(text);
}

int say_status(const char *name, int status) {
  say("prof %s: %s: %s", name, prof_status_text(status), prof_last_error());
  return EXIT_FAILED;
}

/* As setlocale() would look, which the command does not call: it formats nothing by a locale. */
bool locale_is_utf8(void) {
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *const value = getenv(names[i]);
    if (value && value[0]) return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
  }
  return false;
}
