/* Python's literals as JSON: {'tools': [{'name': 'rocprof', 'on': True}]}. */
#ifndef PROF_TOOLS_RUN_LITERAL_H
#define PROF_TOOLS_RUN_LITERAL_H

#include "json.h"

/* The same value. NULL: the text is not a literal, and *error_out has the reason and the place.
   Known: dict, list, tuple, str with Python's escapes, int, float, True, False, None, comments,
   commas at the end. Sets, bytes, f-strings and calls are refused. */
const run_json *run_python_literal_parse(const char *text, run_json_error *error_out);

#endif
