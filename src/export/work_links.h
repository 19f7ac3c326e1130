/* Connects the work of devices with the scopes that launched it, for exporters that write events in
   the order of time and number their rows. A record belongs to the innermost scope that was open at
   its launch. If calls of the vendor were open, it belongs to the outermost one. The device's side
   of a scope belongs to the scope with the same begin. Called by sqlite.c and rpd.c. */
#ifndef PROF_EXPORT_WORK_LINKS_H
#define PROF_EXPORT_WORK_LINKS_H

#include "../analysis/launch.h"
#include "exporter.h"

/* The rows of the host's side and the device's side of a launch. 0: the side is not written. */
typedef struct prof_i_work_link {
  uint64_t scope_id, work_id;
} prof_i_work_link;

typedef struct prof_i_link_scope {
  uint64_t id; /* 0: the filter leaves it out */
  uint64_t start_ns, end_ns;
  bool is_call;
  bool has_no_side; /* no side on a device belongs to it any more */
} prof_i_link_scope;

typedef struct prof_i_work_links {
  prof_i_launches launches;
  prof_i_work_link *links;        /* of each launch */
  uint32_t next, end;             /* launches of the thread that are not yet linked */
  prof_i_link_scope *open_scopes; /* of the thread */
  uint32_t open_count, open_room;
} prof_i_work_links;

/* PROF_OK or PROF_E_NO_MEMORY, with its text. */
int prof_i_work_links_init(prof_i_work_links *links, const prof_trace *trace);
void prof_i_work_links_fini(prof_i_work_links *links);

/* Call it before a thread's first event, and with UINT32_MAX after the last thread. */
void prof_i_work_links_thread(prof_i_work_links *links, uint32_t thread);
/* Adds a scope of the host when it begins. False: no memory. */
bool prof_i_work_links_scope(prof_i_work_links *links, const prof_event *event, uint64_t id);
/* Adds work on a device; the current thread is its stream. Returns the number of its launch.
   UINT32_MAX: none. */
uint32_t prof_i_work_links_work(prof_i_work_links *links, const prof_event *work, uint64_t id);

#endif
