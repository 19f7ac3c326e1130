/* What exporters share, beside exporter.h: what is missing from a trace, call paths, and the links
   between work of devices and its launches. */
#ifndef PROF_EXPORT_INTERNAL_H
#define PROF_EXPORT_INTERNAL_H

#include "../analysis/launch.h"
#include "../analysis/paths.h"
#include "exporter.h"

/* ---- loss_report.c ---- */

/* What is missing from a trace, and why: as JSON, the same in every export. */

static inline uint64_t prof_i_loss_report_sum(const uint64_t counts[16]) {
  uint64_t sum = 0;
  for (int i = 0; i < 16; i++) sum += counts[i];
  return sum;
}

/* {"total":3,"full":3,...} */
void prof_i_loss_report_counts(prof_i_sink *sink, const uint64_t counts[16]);

/* "level 2 -> 1: thread 4711 spent ...", a string: the line of prof_trace_change_text() without its
   time. */
void prof_i_loss_report_change(prof_i_sink *sink, const prof_trace *trace, uint32_t index);

/* [{"at_ns":1,"change":"..."}, ..., {"untold":5}] */
void prof_i_loss_report_changes(prof_i_sink *sink, const prof_trace *trace);

/* ["not taken: 3 ends without a begin", ...]: what the capture's writer says of it. */
void prof_i_loss_report_notes(prof_i_sink *sink, const prof_trace *trace, uint32_t count);

/* Silent: scopes were put on it, or records asked for, and not one of its own times is there. Late:
   its records began after the program had. */
typedef enum prof_i_device_selection {
  PROF_I_DEVICES_ALL,
  PROF_I_DEVICES_SILENT,
  PROF_I_DEVICES_LATE
} prof_i_device_selection;

/* ["opencl:0 ...: 12 scopes, times within ...", ...], as under the table. */
void prof_i_loss_report_devices(prof_i_sink *sink, const prof_trace *trace,
                                prof_i_device_selection which);
uint32_t prof_i_loss_report_devices_of(const prof_trace *trace, prof_i_device_selection which);

/* ---- path_tree.c ---- */

/* The call paths of a capture as a tree, with the calls and the self time of each. For formats that
   are profiles and not logs. A path begins at a thread. A scope that overlaps another of its thread
   without nesting stands right below the thread. Folded stacks, speedscope.c and
   pprof.c use it. */

typedef struct prof_i_path_tree {
  prof_i_paths paths; /* sums are in PROF_I_SIDE_NEW */
  uint32_t *open;     /* of lane 0, the outermost first */
  uint32_t open_count, open_room;
  uint32_t thread_path;
} prof_i_path_tree;

/* Callbacks of an exporter of PROF_I_ORDER_TIME whose state begins with the tree. */
int prof_i_path_tree_begin(prof_i_export *run);
int prof_i_path_tree_thread(prof_i_export *run, const prof_trace_thread *thread);
int prof_i_path_tree_event(prof_i_export *run, prof_i_export_event *event);
void prof_i_path_tree_destroy(prof_i_export *run);

static inline const prof_i_path_sums *prof_i_path_tree_sums(const prof_i_path_tree *tree,
                                                            uint32_t path) {
  return &tree->paths.items[path].sums[PROF_I_SIDE_NEW];
}

/* The frame's name as the capture has it. */
static inline prof_i_text prof_i_path_frame_name(const prof_i_path_row *frame) {
  return frame->values[0].raw;
}

/* "main 1234", "process 77, main 1234" or "device 5000000, name stream 1". In a merged file, it
   begins with the process: "rank 1, main 1234". Returns its length; a text that does not fit is
   cut. */
enum { PROF_I_THREAD_TEXT_ROOM = 384 };
size_t prof_i_path_thread_text(const prof_i_export *run, uint32_t number, char *to, size_t room);

/* ---- work_links.c ---- */

/* Connects the work of devices with the scopes that launched it, for exporters that write events in
   the order of time and number their rows. A record belongs to the innermost scope that was open at
   its launch. If calls of the vendor were open, it belongs to the outermost one. The device's side
   of a scope belongs to the scope with the same begin. Called by sqlite.c, rpd.c and arrow.c. */

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
