/* Python's literals as JSON: {'tools': [{'name': 'rocprof', 'on': True}]}. */
#ifndef PROF_TOOLS_RUN_LITERAL_H
#define PROF_TOOLS_RUN_LITERAL_H

#include <stddef.h>

/* The same value as JSON, or NULL where the text is no literal; *error_out then says why and where.
   Known: dict, list, tuple, str with Python's escapes, int, float, True, False, None, comments,
   commas at the end. A set, bytes, f-strings and calls are none. */
char *run_literal_to_json(const char *text, const char **error_out);

#endif
