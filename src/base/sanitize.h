/* Text for people: any bytes made readable, measured and cut by columns of a terminal. Pure
   functions. */
#ifndef PROF_BASE_SANITIZE_H
#define PROF_BASE_SANITIZE_H

#include <stddef.h>
#include <stdint.h>

/* Copies bytes as valid UTF-8 without NUL: U+FFFD for each ill-formed part, U+2400 for a NUL.
   Writes at most room bytes, never half a character, and no NUL; returns what it would need. 3
   bytes out for one in are always enough. */
size_t prof_i_sanitize_utf8(char *to, size_t room, const char *bytes, size_t count);

/* The same, followed by a NUL. The caller provides enough room. Returns the bytes written, NUL
   included. */
size_t prof_i_sanitize_text(char *to, const char *bytes, size_t count);

/* What a terminal would obey is spelt out (\x1b, \u202e), so that a name cannot move the cursor or
   turn the line around. Input is valid UTF-8. As above; 8 bytes out for one in are enough. */
size_t prof_i_sanitize_controls(char *to, size_t room, const char *text, size_t count);

/* Columns of valid UTF-8 without controls: 0 for combining marks, 2 for wide characters. */
size_t prof_i_display_width(const char *text, size_t count);

/* Bytes of the longest front that takes at most that many columns. */
size_t prof_i_display_cut(const char *text, size_t count, size_t columns);

/* A name of any bytes for a cell: repaired, made plain, cut where no cell shows more.
   NUL-terminated; returns its bytes. */
enum { PROF_I_SANITIZED_NAME_BYTES = 1032 };
size_t prof_i_sanitize_name(char to[PROF_I_SANITIZED_NAME_BYTES], const char *text);

#endif
