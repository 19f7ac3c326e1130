/* Frames of call stacks: the member stackFrames beside the events has them by number, and an
   event names the innermost of its own (sf). */
#ifndef PROF_IMPORT_FRAMES_H
#define PROF_IMPORT_FRAMES_H

#include <uthash.h>

#include "event.h"

typedef struct import_frame import_frame;

typedef struct import_frames {
  import_frame *all;
  size_t bytes; /* of all frames */
  char *text;   /* the stack that was put together last */
  size_t count, room;
  bool is_used;
  uint32_t *lines; /* those that have frames, in order */
  size_t line_count, line_room;
} import_frames;

/* The event has the frame's number as id, its name and category, and as sf the number of the frame
   around it. */
void import_frames_add(import_frames *frames, const import_event *event);

/* "CATEGORY: NAME;...", from the innermost frame on, until the next call. *is_cut_out: there are
   more frames, or should be. Empty: that frame is not known. line: the event's; one
   without frames has those of the line before it. */
import_text import_frames_stack_text(import_frames *frames, uint32_t line, import_text number,
                                     bool *is_cut_out);

void import_frames_fini(import_frames *frames);

#endif
