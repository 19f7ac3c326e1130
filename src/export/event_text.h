/* Makes the texts of events for databases: arguments as a JSON object, as in Chrome JSON, and names
   as valid UTF-8. Also makes the parts of Chrome JSON before and after the events, which prof
   import reads back. A text is valid until the next call. Called by sqlite.c and rpd.c. */
#ifndef PROF_EXPORT_EVENT_TEXT_H
#define PROF_EXPORT_EVENT_TEXT_H

#include "exporter.h"

struct prof_i_chrome;
struct prof_i_chrome_shared;

typedef struct prof_i_event_text {
  struct prof_i_chrome *chrome;
  prof_i_sink sink; /* in memory: the text */
  int status;       /* the first failure */
} prof_i_event_text;

/* The heads and tails of the captures of a merged file, which shares them. Begins as zeros. */
typedef struct prof_i_merged_texts {
  struct prof_i_chrome_shared *chrome;
  prof_i_sink heads, tails; /* in memory */
} prof_i_merged_texts;

/* merged: NULL if the capture is alone in the file. PROF_OK or PROF_E_NO_MEMORY, with its text.
   Call fini also after a failure. */
int prof_i_event_text_init(prof_i_event_text *texts, prof_i_export *run,
                           prof_i_merged_texts *merged);
void prof_i_event_text_fini(prof_i_event_text *texts);

/* The arguments of run->event. Changes the event. Empty: it has none. */
prof_i_text prof_i_event_text_args(prof_i_event_text *texts);
/* The text with U+FFFD in place of invalid UTF-8 and NUL. A valid text is returned as it is. */
prof_i_text prof_i_event_text_clean(prof_i_event_text *texts, prof_i_text text);
/* Members of the arguments that locate a function in the source: "file":"a.py","line":7. Empty:
   none. */
prof_i_text prof_i_event_text_place(prof_i_event_text *texts, uint32_t site, prof_i_text name);

/* The number of the event's call site, if the event has the name and category of the site; else
   0. */
uint32_t prof_i_event_text_site(const prof_trace *trace, const prof_event *event);

/* Counts of written events, for the summary in the tail. */
typedef struct prof_i_event_counts {
  uint64_t scopes, unfinished, steps, instants, counters, flow_ends;
} prof_i_event_counts;

prof_i_text prof_i_event_text_head(prof_i_event_text *texts);
prof_i_text prof_i_event_text_tail(prof_i_event_text *texts, const prof_i_event_counts *counts,
                                   const prof_i_findings *findings);

/* ---- merged files ---- */

/* Add the capture's head and tail. A failure becomes the status of `texts`. */
void prof_i_merged_texts_add_head(prof_i_merged_texts *merged, prof_i_event_text *texts);
void prof_i_merged_texts_add_tail(prof_i_merged_texts *merged, prof_i_event_text *texts,
                                  const prof_i_event_counts *counts,
                                  const prof_i_findings *findings);
/* All of them. Valid until the next call. */
prof_i_text prof_i_merged_head(const prof_i_merged_texts *merged);
prof_i_text prof_i_merged_tail(const prof_i_merged_texts *merged);
void prof_i_merged_texts_fini(prof_i_merged_texts *merged);

/* The time of the capture's start, in ns after the base of Chrome JSON's times. */
uint64_t prof_i_event_text_epoch_ns(const prof_i_event_text *texts);

#endif
