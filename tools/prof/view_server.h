/* The server of `prof view`: one page and one trace on 127.0.0.1, over HTTP. It answers requests of
   this machine's browser alone, and ends after one whole download. */
#ifndef PROF_TOOLS_VIEW_SERVER_H
#define PROF_TOOLS_VIEW_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VIEW_TOKEN_BYTES = 33 };

typedef struct view_site {
  char token[VIEW_TOKEN_BYTES]; /* hexadecimal; the first part of each path */
  char nonce[VIEW_TOKEN_BYTES]; /* of the page's own script and style */
  const char *page;
  size_t page_bytes;
  /* Writes the trace to the descriptor; returns an exit status, after it has said what is wrong.
     It runs in a process of its own. */
  int (*write_trace)(const void *context, int to);
  const void *context;
} view_site;

/* A socket that listens on a free port of 127.0.0.1, or -1: errno says why. */
int view_listen(uint16_t *port_out);

/* Returns after one download, with an exit status. bytes_out: the size of the trace. */
int view_serve(int listener, const view_site *site, uint64_t *bytes_out);

/* ---- view_page.c ---- */

/* The page that hands the trace to the Perfetto UI at `ui`. NULL: no memory. */
char *view_page_make(const char *ui, const char *file_name, const char *nonce, size_t *bytes_out);

#endif
