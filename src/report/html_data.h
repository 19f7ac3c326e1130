/* The data of an HTML report: 4 bytes (little endian) with the length of a JSON text, the text, and
   the columns of the slices as numbers of 7 bits a byte. report.js reads them. Called by html.c. */
#ifndef PROF_REPORT_HTML_DATA_H
#define PROF_REPORT_HTML_DATA_H

#include "../sink/sink.h"
#include "html_collect.h"

enum {
  PROF_I_HTML_ROWS_MAX = 10000,
  PROF_I_HTML_PATHS_MAX = 20000, /* of each kind of flame graph */
  PROF_I_HTML_POOLS_MAX = 16,
  PROF_I_HTML_LIVE_MAX = 12,
  PROF_I_HTML_TEXTS_BYTES = 1 << 20, /* names are cut so that their sum stays near this */
  PROF_I_HTML_DATA_MAX = 1 << 30
};

/* What all parts of the JSON need. */
typedef struct prof_i_html_json {
  prof_i_sink *sink;
  const prof_i_html *html;
  size_t text_bytes; /* longer names are cut */
} prof_i_html_json;

/* The caller frees *data_out. PROF_OK or an error whose text is set. */
int prof_i_html_data(const prof_i_html *html, const prof_rows *rows, char **data_out,
                     size_t *bytes_out);

/* A string of a JSON text, cut. */
void prof_i_html_put_text(const prof_i_html_json *json, const char *text, size_t bytes);

/* ---- html_lists.c: each puts ,"key":VALUE; int: PROF_OK or an error whose text is set ---- */

void prof_i_html_put_rows(const prof_i_html_json *json, const prof_rows *rows);
int prof_i_html_put_flames(const prof_i_html_json *json);
int prof_i_html_put_pools(const prof_i_html_json *json);
void prof_i_html_put_devices(const prof_i_html_json *json);

#endif
