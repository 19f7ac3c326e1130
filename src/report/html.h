/* The HTML report: one file that a browser opens without a network. Called by `prof report`.

   html_collect.c collects slices, distributions, steps and counters.

   html_data.c and html_lists.c write the data as JSON and columns.

   html.c writes the summary and the page around the data.

   html_page.c has the page's own HTML, CSS and script, made from src/report/html. */
#ifndef PROF_REPORT_HTML_H
#define PROF_REPORT_HTML_H

#include <prof/trace.h>
#include <stdbool.h>

#include "../analysis/internal.h"

typedef struct prof_i_html_options {
  const char *title;      /* any bytes; NULL: the first process's name */
  const char *difference; /* from another side: the text of prof_i_diff_text(), or NULL */
  /* Selects the scopes; NULL: all. It does not apply to memory and devices. */
  const struct prof_i_filter *filter;
  /* The groups of the table's rows: bits of prof_group and of analysis/internal.h; 0: name and
     category. keys: those that the page shows, one or two. arg_key: of PROF_I_GROUP_ARG. */
  uint32_t group;
  uint32_t keys[PROF_I_GROUP_KEYS_MAX];
  uint32_t key_count;
  const char *arg_key;
} prof_i_html_options;

/* Writes the file under a temporary name, and renames it at the end. *is_empty_out: no scope passes
   the filter, or no scope has what the rows are grouped by. Then no file is written. PROF_OK or an
   error whose text is set. */
int prof_i_html_write(const prof_trace *const *traces, size_t count,
                      const prof_i_html_options *options, const char *path, bool *is_empty_out);

#endif
