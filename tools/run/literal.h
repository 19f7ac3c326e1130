/* Python's literals as JSON: {'tools': [{'name': 'rocprof', 'on': True}]}. */
#ifndef PROF_TOOLS_RUN_LITERAL_H
#define PROF_TOOLS_RUN_LITERAL_H

#include <stddef.h>

/* The same value as JSON. NULL: the text is not a literal, and *error_out has the reason and place.
   Known: dict, list, tuple, str with Python's escapes, int, float, True, False, None, comments,
   commas at the end. Sets, bytes, f-strings and calls are refused. */
char *run_literal_to_json(const char *text, const char **error_out);

#endif
