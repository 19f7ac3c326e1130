/* The thread's last error, and the list of codes made into names and texts. Never called on the hot
   path; allocates nothing, so that it also works when memory is out. The texts are not
   thread-local. In glibc all libraries of a process share some 1600 bytes for initial-exec
   variables, and a second copy of prof could not be opened. */
#define _GNU_SOURCE
#include "error.h"

#include <errno.h>
#include <prof/profiler.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "process.h"

enum { ERROR_BYTES = 1024, TEXT_COUNT = 64 };

typedef struct error_text {
  const void
      *owner; /* the address of its thread's flags; a thread that takes it over writes, relaxed */
  char text[ERROR_BYTES];
} error_text;

static struct {
  uint32_t next; /* the one to take: the oldest, when all are taken; any thread, relaxed */
  error_text texts[TEXT_COUNT];
} error_ring;

/* Of this thread; NULL: none, or another has taken it over. */
static error_text *last_error_text(void) {
  const uint8_t number = prof_i_this_flags.last_error; /* from 1 */
  error_text *const text = number ? &error_ring.texts[number - 1] : NULL;
  const void *const owner = text ? __atomic_load_n(&text->owner, __ATOMIC_RELAXED) : NULL;
  return owner == &prof_i_this_flags ? text : NULL;
}

const char *prof_last_error(void) {
  const error_text *const text = last_error_text();
  return text ? text->text : "";
}

static char *error_text_of_thread(void) {
  error_text *const text = last_error_text();
  if (text) return text->text;
  const uint32_t place = __atomic_fetch_add(&error_ring.next, 1, __ATOMIC_RELAXED) % TEXT_COUNT;
  prof_i_this_flags.last_error = (uint8_t)(place + 1);
  __atomic_store_n(&error_ring.texts[place].owner, &prof_i_this_flags, __ATOMIC_RELAXED);
  return error_ring.texts[place].text;
}

const char *prof_version(void) { return PROF_VERSION_STRING; }

const char *prof_status_name(int status) {
  switch (status) {
#define NAME(name, value, text) \
  case value:                   \
    return #name;
    PROF_STATUS_LIST(NAME)
#undef NAME
  }
  return "PROF_E_UNKNOWN";
}

const char *prof_status_text(int status) {
  switch (status) {
#define TEXT(name, value, text) \
  case value:                   \
    return text;
    PROF_STATUS_LIST(TEXT)
#undef TEXT
  }
  return "unknown status";
}

const char *prof_loss_name(int loss) {
  switch (loss) {
#define NAME(name, word, text) \
  case PROF_LOSS_##name:       \
    return word;
    PROF_LOSS_LIST(NAME)
#undef NAME
  }
  return "unknown";
}

const char *prof_loss_text(int loss) {
  switch (loss) {
#define TEXT(name, word, text) \
  case PROF_LOSS_##name:       \
    return text;
    PROF_LOSS_LIST(TEXT)
#undef TEXT
  }
  return "unknown reason";
}

void prof_i_fail_silently(bool is_silent) { prof_i_this_flags.fails_silently = is_silent; }

/* glibc's own words; those that making a file, mapping it and looking for it can say. */
static const char *error_text_without_locale(int error) {
  switch (error) {
    case EPERM:
      return "Operation not permitted";
    case ENOENT:
      return "No such file or directory";
    case EINTR:
      return "Interrupted system call";
    case EIO:
      return "Input/output error";
    case ENOMEM:
      return "Cannot allocate memory";
    case EACCES:
      return "Permission denied";
    case EBUSY:
      return "Device or resource busy";
    case ENOTDIR:
      return "Not a directory";
    case EISDIR:
      return "Is a directory";
    case EINVAL:
      return "Invalid argument";
    case ENFILE:
      return "Too many open files in system";
    case EMFILE:
      return "Too many open files";
    case EFBIG:
      return "File too large";
    case ENOSPC:
      return "No space left on device";
    case EROFS:
      return "Read-only file system";
    case ENAMETOOLONG:
      return "File name too long";
    case ENOSYS:
      return "Function not implemented";
    case ELOOP:
      return "Too many levels of symbolic links";
    case EOPNOTSUPP:
      return "Operation not supported";
    case ESTALE:
      return "Stale file handle";
    case EDQUOT:
      return "Disk quota exceeded";
    default:
      return "another error of the system";
  }
}

const char *prof_i_error_text(int error) {
  return prof_i_this_flags.fails_silently ? error_text_without_locale(error) : strerror(error);
}

int prof_i_fail(int status, const char *format, ...) {
  if (prof_i_this_flags.fails_silently) return status;
  const int saved = errno;
  va_list arguments;
  va_start(arguments, format);
  /* clang-tidy 14 does not see the va_start() before it. */
  /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
  vsnprintf(error_text_of_thread(), ERROR_BYTES, format, arguments);
  va_end(arguments);
  errno = saved;
  return status;
}

int prof_i_fail_in(const char *path, int status) {
  enum { SHOWN_BYTES = 512 }; /* of the name, its end: the text behind it must have room */
  char text[ERROR_BYTES];
  const size_t bytes = strlen(path), left_out = bytes > SHOWN_BYTES ? bytes - SHOWN_BYTES : 0;
  memcpy(text, error_text_of_thread(), sizeof text);
  return prof_i_fail(status, "%s%s: %s", left_out ? "..." : "", path + left_out, text);
}

int prof_i_status_of_errno(int error) {
  switch (error) {
    case 0:
      return PROF_OK;
    case ENOENT:
    case ENOTDIR:
      return PROF_E_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
      return PROF_E_PERMISSION;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return PROF_E_NO_SPACE;
    case ENOMEM:
      return PROF_E_NO_MEMORY;
    case ENAMETOOLONG:
      return PROF_E_INVALID;
    case EISDIR:
    case ENXIO:
    case ELOOP:
      return PROF_E_FILE_TYPE;
    default:
      return PROF_E_IO;
  }
}

/* The values come out of the environment and go to a terminal: none may reach it as a command, or
   as a second line. A byte of the second set of controls is one unless it goes on a character. */
static void sanitize_text(char *line) {
  unsigned char before = 0;
  for (unsigned char *at = (unsigned char *)line; *at; at++) {
    const unsigned char now = *at;
    if (now < 0x20 || now == 0x7f ||
        (now >= 0x80 && now < 0xa0 && (before < 0x80 || before == 0xc2)))
      *at = '?';
    before = now;
  }
}

void prof_i_log(const char *format, ...) {
  char line[ERROR_BYTES];
  va_list arguments;
  va_start(arguments, format);
  /* clang-tidy 14 does not see the va_start() before it. */
  /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  sanitize_text(line);
  fprintf(stderr, "prof: %s\n", line);
}
