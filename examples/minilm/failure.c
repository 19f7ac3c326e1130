/* See failure.h. SPDX-License-Identifier: MIT */
#include "failure.h"

#include <stdarg.h>
#include <stdio.h>

int failure_set(failure *why, const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(why->text, sizeof why->text, format, values);
  va_end(values);
  return -1;
}
