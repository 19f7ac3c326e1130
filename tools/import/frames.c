/* Frames of call stacks by their numbers. See state.h. */
#include "state.h"

#include <stdlib.h>

#include "../../src/base/text.h"

enum {
  FRAME_BYTES_MAX = 512,     /* of a name, and of a category */
  ALL_BYTES_MAX = 256 << 20, /* further frames are not known */
  DEPTH_MAX = 512,           /* parents may go round in a circle */
  STACK_BYTES_MAX = 6144     /* a record has room for it beside other arguments */
};

struct import_frame {
  uint64_t number, parent; /* hashes */
  UT_hash_handle hh;
  bool has_parent;
  uint32_t bytes;
  char text[];
};

/* Each line has its own numbers. */
static uint64_t line_text_hash(uint32_t line, import_text text) {
  return prof_i_hash64(PROF_I_HASH64_SEED + line * UINT64_C(0x9e3779b97f4a7c15), text.data,
                       text.bytes);
}

static import_frame *frames_find(const import_frames *frames, uint64_t number) {
  import_frame *frame;
  HASH_FIND(hh, frames->all, &number, sizeof number, frame);
  return frame;
}

/* A semicolon ends a frame. */
static void put_frame_text(import_frame *frame, import_text text) {
  for (size_t i = 0; i < text.bytes; i++) {
    frame->text[frame->bytes] = text.data[i];
    if (text.data[i] == ';') frame->text[frame->bytes] = ',';
    frame->bytes++;
  }
}

static void note_line(import_frames *frames, uint32_t line) {
  if (frames->line_count && frames->lines[frames->line_count - 1] == line) return;
  frames->lines =
      import_make_room(frames->lines, &frames->line_room, frames->line_count + 1, sizeof line);
  frames->lines[frames->line_count++] = line;
}

void import_frames_add(import_frames *frames, const import_event *event) {
  static const import_text unnamed = {"(unnamed)", 9};
  const import_text said = import_text_cut(import_member_text(event, IMPORT_NAME), FRAME_BYTES_MAX),
                    name = said.bytes ? said : unnamed,
                    category =
                        import_text_cut(import_member_text(event, IMPORT_CAT), FRAME_BYTES_MAX);
  const uint64_t number = line_text_hash(event->line, import_member_text(event, IMPORT_ID));
  const import_value *const parent = &event->members[IMPORT_SF];
  const size_t bytes = sizeof(import_frame) + name.bytes + category.bytes + 2;
  if (frames_find(frames, number) || frames->bytes + bytes > ALL_BYTES_MAX) return;
  import_frame *const frame = import_make(bytes);
  frame->number = number;
  frame->has_parent = parent->type == IMPORT_TEXT || parent->type == IMPORT_NUMBER;
  frame->parent = line_text_hash(event->line, import_member_text(event, IMPORT_SF));
  put_frame_text(frame, category);
  if (category.bytes) put_frame_text(frame, (import_text){": ", 2});
  put_frame_text(frame, name);
  frames->bytes += bytes;
  note_line(frames, event->line);
  HASH_ADD(hh, frames->all, number, sizeof frame->number, frame);
}

static void frames_put(import_frames *frames, const char *text, size_t bytes) {
  frames->text = import_make_room(frames->text, &frames->room, frames->count + bytes, 1);
  memcpy(frames->text + frames->count, text, bytes);
  frames->count += bytes;
}

/* The last line up to `line` that has frames, or else the first one after it. */
static uint32_t frames_line(const import_frames *frames, uint32_t line) {
  size_t low = 0, high = frames->line_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (frames->lines[middle] <= line)
      low = middle + 1;
    else
      high = middle;
  }
  if (frames->line_count == 0) return line;
  return frames->lines[low > 0 ? low - 1 : 0];
}

import_text import_frames_stack_text(import_frames *frames, uint32_t line, import_text number,
                                     bool *is_cut_out) {
  const import_frame *frame =
      frames_find(frames, line_text_hash(frames_line(frames, line), number));
  *is_cut_out = false;
  if (!frame) return (import_text){"", 0};
  frames->is_used = true;
  frames->count = 0;
  for (int depth = 0; frame; depth++) {
    *is_cut_out = depth == DEPTH_MAX || frames->count + frame->bytes + 1 > STACK_BYTES_MAX;
    if (*is_cut_out) break;
    if (depth) frames_put(frames, ";", 1);
    frames_put(frames, frame->text, frame->bytes);
    const bool has_parent = frame->has_parent;
    frame = has_parent ? frames_find(frames, frame->parent) : NULL;
    *is_cut_out = has_parent && !frame;
  }
  return (import_text){frames->text, frames->count};
}

void import_frames_fini(import_frames *frames) {
  import_frame *frame = frames->all;
  HASH_CLEAR(hh, frames->all);
  for (import_frame *next; frame; frame = next) {
    next = frame->hh.next;
    free(frame);
  }
  free(frames->text);
  free(frames->lines);
}
