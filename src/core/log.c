/* The thread's last error, and the list of codes made into names and texts. Never called on the hot path; allocates nothing, so
   that it also works when memory is out. */
#define _GNU_SOURCE
#include "log.h"

#include <errno.h>
#include <prof/profiler.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ERROR_BYTES = 1024 };
static __thread char last_error[ERROR_BYTES];

const char *prof_last_error(void) { return last_error; }

const char *prof_version(void) { return PROF_VERSION_STRING; }

const char *prof_status_name(int status) {
  switch (status) {
#define NAME(name, value, text) \
  case value: return #name;
    PROF_STATUS_LIST(NAME)
#undef NAME
  }
  return "PROF_E_UNKNOWN";
}

const char *prof_status_text(int status) {
  switch (status) {
#define TEXT(name, value, text) \
  case value: return text;
    PROF_STATUS_LIST(TEXT)
#undef TEXT
  }
  return "unknown status";
}

static const struct {
  const char *name, *text;
} losses[] = {
#define LOSS(name, word, text) {word, text},
    PROF_LOSS_LIST(LOSS)
#undef LOSS
};

const char *prof_loss_name(int loss) { return loss >= 0 && loss < PROF_LOSS_COUNT ? losses[loss].name : "unknown"; }
const char *prof_loss_text(int loss) { return loss >= 0 && loss < PROF_LOSS_COUNT ? losses[loss].text : "unknown reason"; }

int prof_i_fail(int status, const char *format, ...) {
  const int saved = errno;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
  errno = saved;
  return status;
}

int prof_i_fail_in(const char *path, int status) {
  enum { SHOWN_BYTES = 512 }; /* of the name, its end: the text behind it must have room */
  char text[ERROR_BYTES];
  const size_t bytes = strlen(path), left_out = bytes > SHOWN_BYTES ? bytes - SHOWN_BYTES : 0;
  memcpy(text, last_error, sizeof text);
  return prof_i_fail(status, "%s%s: %s", left_out ? "..." : "", path + left_out, text);
}

int prof_i_status_of_errno(int error) {
  switch (error) {
    case 0: return PROF_OK;
    case ENOENT:
    case ENOTDIR: return PROF_E_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS: return PROF_E_PERMISSION;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return PROF_E_NO_SPACE;
    case ENOMEM: return PROF_E_NO_MEMORY;
    case ENAMETOOLONG: return PROF_E_INVALID;
    case EISDIR:
    case ENXIO:
    case ELOOP: return PROF_E_FILE_TYPE;
    default: return PROF_E_IO;
  }
}

/* The values come out of the environment and go to a terminal: none may reach it as a command, or as a second line. A byte of the second
   set of controls is one unless it goes on a character. */
static void make_plain(char *line) {
  unsigned char before = 0;
  for (unsigned char *at = (unsigned char *)line; *at; at++) {
    const unsigned char now = *at;
    if (now < 0x20 || now == 0x7f || (now >= 0x80 && now < 0xa0 && (before < 0x80 || before == 0xc2))) *at = '?';
    before = now;
  }
}

void prof_i_say(const char *format, ...) {
  char line[ERROR_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  make_plain(line);
  fprintf(stderr, "prof: %s\n", line);
}
