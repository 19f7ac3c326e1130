/* Single scopes as text, CSV or JSON, a line each. Called by the command `prof events`. */
#ifndef PROF_REPORT_SCOPE_LIST_H
#define PROF_REPORT_SCOPE_LIST_H

#include "../analysis/internal.h"

typedef enum prof_i_scope_list_form {
  PROF_I_SCOPE_LIST_TEXT,
  PROF_I_SCOPE_LIST_CSV,
  PROF_I_SCOPE_LIST_JSON /* an object a line */
} prof_i_scope_list_form;

typedef struct prof_i_scope_list_options {
  prof_i_scopes_options scopes;
  prof_i_scope_list_form form;
  uint32_t width; /* of a line of text; 0: any */
} prof_i_scope_list_options;

/* A capture, as a row shows it. */
typedef struct prof_i_scope_list_capture {
  uint64_t pid_offset; /* to add to the numbers of its processes */
  const char *label;   /* "rank 3"; NULL: it is the only capture */
} prof_i_scope_list_capture;

/* Takes the next bytes. Non-zero stops. */
typedef int (*prof_i_scope_list_write)(void *user, const char *bytes, size_t count);

/* captures: of each trace. Memory is that of prof_i_traces_scopes(). Returns PROF_OK, what `write`
   returned, or a negative error whose text is set. */
int prof_i_scope_list(const prof_i_placed_trace *traces, const prof_i_scope_list_capture *captures,
                      uint32_t count, const prof_i_scope_list_options *options,
                      prof_i_scope_list_write write, void *user, prof_i_scopes_result *result_out);

#endif
