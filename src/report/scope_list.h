/* Single scopes as text, CSV or JSON, a line each. Called by the command `prof events`. */
#ifndef PROF_REPORT_SCOPE_LIST_H
#define PROF_REPORT_SCOPE_LIST_H

#include "../analysis/single_scopes.h"

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

/* Takes the next bytes. Non-zero stops. */
typedef int (*prof_i_scope_list_write)(void *user, const char *bytes, size_t count);

/* Memory is that of prof_i_trace_scopes(). Returns PROF_OK, what `write` returned, or a negative
   error whose text is set. */
int prof_i_scope_list(const prof_trace *trace, const prof_i_scope_list_options *options,
                      prof_i_scope_list_write write, void *user, prof_i_scopes_result *result_out);

#endif
