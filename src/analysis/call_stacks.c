/* Numbers of stacks, by a hash of node and site, and their texts. */
#include "call_stacks.h"

#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../format/parse.h"
#include "../reader/capture.h"

enum { NODE_TABLE_FIRST = 256, FRAME_ROOM = 4608 /* a path of 4096, and a name */ };
enum {
  OF_BACKWARD = UINT32_MAX,
  OF_STACK = UINT32_MAX - 1,
  OF_SCOPE = UINT32_MAX - 2,
  OF_NAME = UINT32_MAX - 3
}; /* values of prof_i_stack_node.site that are not sites */
enum {
  FUNCTION_TRACED = 1 /* whether it is shown is not known yet */,
  FUNCTION_SHOWN,
  FUNCTION_LEFT_OUT
}; /* values of prof_i_call_stacks.is_function */

static bool site_is_python(const prof_i_site_info *site) {
  return prof_i_text_equals(site->category, "python_function");
}
bool prof_i_is_c_function_site(const prof_i_site_info *site) {
  return prof_i_text_equals(site->category, "c_function");
}
bool prof_i_is_function_category(prof_i_text category) {
  return prof_i_text_equals(category, "python_function") ||
         prof_i_text_equals(category, "c_function");
}
bool prof_i_is_function_site(const prof_i_site_info *site) {
  return prof_i_is_function_category(site->category);
}

bool prof_i_is_named_by_function(const prof_i_site_info *site) {
  if (prof_i_is_function_site(site)) return true;
  const bool is_name = site->name.bytes == site->function.bytes &&
                       memcmp(site->name.data, site->function.data, (size_t)site->name.bytes) == 0;
  return is_name && prof_i_text_equals(site->category, "function");
}

/* ---- a frame ---- */

prof_i_text prof_i_unqualified_name(prof_i_text qualified) {
  uint64_t at = qualified.bytes;
  while (at > 0 && qualified.data[at - 1] != '.') at--;
  return (prof_i_text){qualified.data + at, qualified.bytes - at};
}

static size_t frame_put(const char *text, size_t bytes, char *to, size_t room) {
  for (size_t i = 0; i < bytes && i < room; i++) {
    to[i] = text[i];
    if (to[i] == ';') to[i] = '_'; /* it separates frames */
  }
  return bytes;
}

/* A traced function as a frame in torch.profiler's form: "file.py(12): function", "<built-in
   function len>". Writes at most room bytes and no NUL. Returns the bytes needed; 0: not a
   function. */
static size_t frame_text(const prof_i_site_info *site, char *to, size_t room) {
  char text[FRAME_ROOM];
  int bytes = 0;
  if (prof_i_is_c_function_site(site)) {
    /* the file is the interpreter's name of it */
    const prof_i_text shown = site->file.bytes ? site->file : site->name;
    bytes = snprintf(text, sizeof text, "%.*s", (int)shown.bytes, shown.data);
  } else if (site_is_python(site)) {
    const prof_i_text name = prof_i_unqualified_name(site->function);
    if (site->file.bytes)
      bytes = snprintf(text, sizeof text, "%.*s(%u): %.*s", (int)site->file.bytes, site->file.data,
                       site->line, (int)name.bytes, name.data);
    else
      bytes = snprintf(text, sizeof text, "%.*s", (int)site->name.bytes,
                       site->name.data); /* of an imported trace: in this form already */
  }
  if (bytes < 0) return 0;
  const size_t written = (size_t)bytes < sizeof text ? (size_t)bytes : sizeof text - 1;
  return frame_put(text, written, to, room);
}

/* ---- a stack ---- */

/* Copies the innermost `frames` frames (0: all) that a table shows. `to` has room for all. Returns
   the bytes. */
static size_t frames_of_table(prof_i_text stack, uint32_t frames, char *to) {
  size_t written = 0;
  uint32_t kept = 0;
  for (const char *at = stack.data, *const end = stack.data + stack.bytes;
       at < end && (!frames || kept < frames);) {
    const char *const stop = memchr(at, ';', (size_t)(end - at));
    const size_t bytes = (size_t)((stop ? stop : end) - at);
    if (!prof_i_torch_hides_frame(at, bytes)) {
      if (kept++) to[written++] = ';';
      memcpy(to + written, at, bytes);
      written += bytes;
    }
    at += bytes + 1;
  }
  return written;
}

prof_i_text prof_i_scope_own_stack(const prof_event *scope) {
  const size_t key_bytes = sizeof PROF_STACK_KEY - 1;
  for (uint32_t i = 0; i < scope->arg_count; i++) {
    const prof_trace_arg *const arg = &scope->args[i];
    if (arg->type == PROF_ARG_STRING && arg->key_bytes == key_bytes &&
        memcmp(arg->key, PROF_STACK_KEY, key_bytes) == 0)
      return (prof_i_text){arg->value.text.data, arg->value.text.bytes};
  }
  return (prof_i_text){"", 0};
}

/* ---- numbers ---- */

/* False: no memory. */
static bool find_functions(prof_i_call_stacks *call_stacks, const prof_trace *trace) {
  const uint32_t site_count = prof_i_trace_site_count(trace);
  for (uint32_t site = 0; site < site_count; site++) {
    const prof_i_site_info *const info = prof_i_trace_site(trace, site);
    if (!call_stacks->has_scopes && !prof_i_is_function_site(info)) continue;
    if (!call_stacks->is_function)
      call_stacks->is_function = calloc(site_count, sizeof *call_stacks->is_function);
    if (!call_stacks->is_function) return false;
    call_stacks->is_function[site] = FUNCTION_TRACED;
  }
  return true;
}

static void function_ends_ns(const prof_trace *trace, uint64_t *to_ns, uint32_t count) {
  const prof_i_time_line *line = trace->timeline.lines;
  for (uint32_t i = 0; i < count; i++)
    to_ns[i] = prof_i_timeline_ns(&trace->timeline, &line, trace->catalog.function_ends[i]);
}

/* False: no memory. */
static bool find_ends(prof_i_call_stacks *call_stacks, const prof_trace *trace) {
  const uint32_t count = trace->catalog.function_end_count;
  if (count == 0) return true;
  call_stacks->ends_ns = malloc(count * sizeof *call_stacks->ends_ns);
  if (!call_stacks->ends_ns) return false;
  call_stacks->end_count = count;
  function_ends_ns(trace, call_stacks->ends_ns, count);
  return true;
}

bool prof_i_call_stacks_init(prof_i_call_stacks *call_stacks, const prof_trace *trace,
                             uint32_t frames, bool with_scopes) {
  *call_stacks = (prof_i_call_stacks){
      .trace = trace,
      .frames = frames && frames < PROF_I_STACK_FRAMES_MAX ? frames : PROF_I_STACK_FRAMES_MAX,
      .own_frames = frames,
      .has_scopes = with_scopes};
  if (!find_functions(call_stacks, trace)) return false;
  if (!call_stacks->is_function) return true;
  return find_ends(call_stacks, trace) && prof_i_call_stacks_make_room(call_stacks);
}

bool prof_i_call_stacks_make_room(prof_i_call_stacks *call_stacks) {
  if (call_stacks->count > 0) return true;
  if (!call_stacks->table)
    call_stacks->table = calloc(NODE_TABLE_FIRST, sizeof *call_stacks->table);
  call_stacks->table_room = NODE_TABLE_FIRST;
  if (!call_stacks->table || !prof_i_make_room((void **)&call_stacks->items, &call_stacks->room, 0,
                                               sizeof *call_stacks->items))
    return false;
  call_stacks->items[call_stacks->count++] = (prof_i_stack_node){0};
  return true;
}

void prof_i_call_stacks_fini(prof_i_call_stacks *call_stacks) {
  for (uint32_t i = 0; i < call_stacks->count; i++) {
    if (!call_stacks->items[i].is_given) free(call_stacks->items[i].text);
    if (call_stacks->items[i].site == OF_NAME)
      free((void *)(uintptr_t)call_stacks->items[i].own.data);
  }
  free(call_stacks->buffer);
  free(call_stacks->is_function);
  free(call_stacks->items);
  free(call_stacks->table);
  free(call_stacks->ends_ns);
  prof_i_backward_destroy(call_stacks->backward);
  *call_stacks = (prof_i_call_stacks){0};
}

static bool text_same(prof_i_text a, prof_i_text b) {
  return a.bytes == b.bytes && memcmp(a.data, b.data, (size_t)a.bytes) == 0;
}

static uint32_t text_hash(prof_i_text text) {
  uint64_t hash = text.bytes;
  for (uint64_t i = 0; i < text.bytes; i += 8) {
    uint64_t word = 0;
    memcpy(&word, text.data + i, text.bytes - i < 8 ? (size_t)(text.bytes - i) : 8);
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
  }
  return (uint32_t)hash;
}

static uint32_t *node_slot(const prof_i_call_stacks *call_stacks, const prof_i_stack_node *asked) {
  const bool has_text = asked->site == OF_STACK || asked->site == OF_NAME;
  const uint64_t text = asked->site == OF_NAME ? text_hash(asked->own) : 0;
  const uint64_t hash = (((uint64_t)asked->outer << 32 | asked->site) ^
                         (uint64_t)asked->forward << 20 ^ (uint64_t)asked->range << 40 ^ text) *
                        UINT64_C(0x9e3779b97f4a7c15);
  uint32_t at = (uint32_t)(hash >> 32) & (call_stacks->table_room - 1);
  for (; call_stacks->table[at]; at = (at + 1) & (call_stacks->table_room - 1)) {
    const prof_i_stack_node *const there = &call_stacks->items[call_stacks->table[at]];
    if (there->outer == asked->outer && there->site == asked->site &&
        there->forward == asked->forward && there->range == asked->range &&
        (!has_text || text_same(there->own, asked->own)))
      break;
  }
  return &call_stacks->table[at];
}

static bool grow_table(prof_i_call_stacks *call_stacks) {
  uint32_t *const larger = calloc((size_t)call_stacks->table_room * 2, sizeof *larger);
  if (!larger) return false;
  free(call_stacks->table);
  call_stacks->table = larger;
  call_stacks->table_room *= 2;
  for (uint32_t i = 1; i < call_stacks->count; i++)
    *node_slot(call_stacks, &call_stacks->items[i]) = i;
  return true;
}

/* Writes a scope's name as a frame. Returns the bytes written, at most room. */
static size_t named_frame(prof_i_text name, char *to, size_t room) {
  return frame_put(name.data, name.bytes < room ? (size_t)name.bytes : room, to, room);
}

/* Writes the frame of a function. Returns 0 if the table leaves it out. */
static size_t site_frame(const prof_i_call_stacks *call_stacks, uint32_t site, char *to,
                         size_t room) {
  const prof_i_site_info *const info = prof_i_trace_site(call_stacks->trace, site);
  const size_t bytes = frame_text(info, to, room);
  if (bytes == 0 && call_stacks->has_scopes) return named_frame(info->name, to, room);
  return call_stacks->is_of_table && prof_i_torch_hides_frame(to, bytes) ? 0 : bytes;
}

/* Decides once for each site. */
static bool has_frame(const prof_i_call_stacks *call_stacks, uint32_t site) {
  uint8_t *const is_function = &call_stacks->is_function[site];
  char frame[FRAME_ROOM];
  if (*is_function == FUNCTION_TRACED)
    *is_function =
        site_frame(call_stacks, site, frame, sizeof frame) ? FUNCTION_SHOWN : FUNCTION_LEFT_OUT;
  return *is_function == FUNCTION_SHOWN;
}

/* The node itself if it has a frame in texts, else the nearest outer one; 0: none. So nodes without
   a frame take no time when a text is made. */
static uint32_t nearest_frame(const prof_i_call_stacks *call_stacks, uint32_t number) {
  const prof_i_stack_node *const c = &call_stacks->items[number];
  if (c->site == OF_NAME) return number;
  return number && c->site < OF_NAME && has_frame(call_stacks, c->site) ? number : c->up;
}

/* 0: no memory. */
static uint32_t node_find(prof_i_call_stacks *call_stacks, const prof_i_stack_node *asked) {
  uint32_t *const place = node_slot(call_stacks, asked);
  const uint32_t known = *place;
  if (known != 0) return known;
  if (!prof_i_make_room((void **)&call_stacks->items, &call_stacks->room, call_stacks->count,
                        sizeof *call_stacks->items))
    return 0;
  call_stacks->items[call_stacks->count] = *asked;
  if (asked->site != OF_STACK)
    call_stacks->items[call_stacks->count].up = nearest_frame(call_stacks, asked->outer);
  const uint32_t number = call_stacks->count++;
  *place = number;
  return call_stacks->count * 2 < call_stacks->table_room || grow_table(call_stacks) ? number : 0;
}

/* The node of a function called in `outer`. In a backward call it stays part of it. */
static uint32_t child_node(prof_i_call_stacks *call_stacks, uint32_t outer, uint32_t site) {
  return node_find(call_stacks, &(prof_i_stack_node){.outer = outer,
                                                     .site = site,
                                                     .range = call_stacks->items[outer].range,
                                                     .forward = call_stacks->items[outer].forward});
}

/* The node of a scope with a name in its record. 0: no memory. */
static uint32_t named_child_node(prof_i_call_stacks *call_stacks, uint32_t outer,
                                 prof_i_text name) {
  prof_i_stack_node asked = {.outer = outer, .site = OF_NAME, .own = name};
  const uint32_t known = *node_slot(call_stacks, &asked);
  if (known) return known;
  char *const copy = malloc((size_t)name.bytes + 1);
  if (!copy) return 0;
  memcpy(copy, name.data, (size_t)name.bytes);
  asked.own.data = copy;
  const uint32_t count = call_stacks->count, number = node_find(call_stacks, &asked);
  if (call_stacks->count == count) free(copy);
  return number;
}

/* Enters a scope that is neither function nor backward call. The node changes only if an autograd
   range becomes the innermost scope, or is no longer it. False: no memory. */
static bool enter_scope(prof_i_call_stacks *call_stacks, uint32_t site, uint32_t *number) {
  const uint32_t range = call_stacks->backward->is_range[site] ? site : 0, outer = *number;
  if (range != call_stacks->items[outer].range)
    *number =
        node_find(call_stacks, &(prof_i_stack_node){.outer = outer,
                                                    .site = OF_SCOPE,
                                                    .range = range,
                                                    .forward = call_stacks->items[outer].forward});
  return range == call_stacks->items[outer].range || *number != 0;
}

static uint32_t backward_child_node(prof_i_call_stacks *call_stacks, uint32_t outer,
                                    prof_i_call_numbers numbers) {
  return node_find(
      call_stacks,
      &(prof_i_stack_node){.outer = outer,
                           .site = OF_BACKWARD,
                           .forward = 1 + prof_i_backward_forward(call_stacks->backward, numbers)});
}

bool prof_i_call_stacks_of_text(prof_i_call_stacks *call_stacks, prof_i_text stack,
                                uint32_t *number_out) {
  *number_out = 0;
  if (!prof_i_call_stacks_make_room(call_stacks)) return false;
  *number_out = node_find(
      call_stacks, &(prof_i_stack_node){.outer = text_hash(stack), .site = OF_STACK, .own = stack});
  return *number_out != 0;
}

/* The last end of function tracing until then; 0: none. */
static uint64_t last_function_end(const prof_i_call_stacks *call_stacks, uint64_t at_ns) {
  uint32_t low = 0, high = call_stacks->end_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (call_stacks->ends_ns[middle] <= at_ns)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? call_stacks->ends_ns[low - 1] : 0;
}

/* A function that began before its tracing ended is not part of later stacks. So the numbers on the
   walk's stack are cleared at each such end. `around` may be above lane 0's count, within a plain
   segment. */
static void start_after_function_ends(prof_i_call_stacks *call_stacks, prof_i_walker *walker,
                                      const prof_i_pending_span *around, uint64_t start_ns) {
  const uint64_t from_ns = last_function_end(call_stacks, start_ns);
  if (from_ns == walker->functions_from_ns) return;
  walker->functions_from_ns = from_ns;
  for (uint32_t i = 0; i < walker->lane_count; i++) {
    prof_i_lane *const lane = &walker->lanes[i];
    const uint32_t count =
        walker->around && i == 0 && (uint32_t)(around - lane->stack) >= lane->count
            ? (uint32_t)(around - lane->stack) + 1
            : lane->count;
    for (uint32_t place = 1; place < count; place++) lane->stack[place].stack_node = 0;
  }
}

/* Whether the frame is a function, whose tracing may end before it does. */
static inline bool may_outlive_tracing(const prof_i_call_stacks *call_stacks, uint32_t site) {
  return !call_stacks->has_scopes ||
         prof_i_is_function_site(prof_i_trace_site(call_stacks->trace, site));
}

static inline bool has_own_name(const prof_i_span *span) {
  return span->record && span->kind <= PROF_EVENT_OPEN &&
         prof_i_word_flags(span->record[2]) & PROF_I_FLAG_NAME;
}

/* Steps from the node around `at` to the node inside of it. False: no memory. */
static inline bool step_node(prof_i_call_stacks *call_stacks, const prof_i_walker *walker,
                             const prof_i_pending_span *at, uint32_t *number) {
  static const prof_i_text step_name = {"ProfilerStep*", 13};
  prof_i_call_numbers numbers;
  const uint32_t outer = *number;
  if (at->span.kind == PROF_EVENT_STEP && call_stacks->has_scopes)
    return (*number = named_child_node(call_stacks, outer, step_name)) != 0;
  if (prof_i_call_stacks_is_function(call_stacks, at->span.site)) {
    if (at->span.start_ns < walker->functions_from_ns &&
        may_outlive_tracing(call_stacks, at->span.site))
      return true;
    if (call_stacks->has_scopes && has_own_name(&at->span)) {
      prof_event *const event = &call_stacks->named;
      const uint32_t thread = (uint32_t)(walker->thread - call_stacks->trace->threads);
      prof_i_trace_expand(call_stacks->trace, thread, &at->span, event);
      const prof_i_text name = {event->name, event->name_bytes};
      return !name.bytes || (*number = named_child_node(call_stacks, outer, name)) != 0;
    }
    return (*number = child_node(call_stacks, outer, at->span.site)) != 0;
  }
  if (!call_stacks->backward) return true;
  if (prof_i_backward_is_call(call_stacks->backward, &at->span, call_stacks->items[outer].range,
                              &numbers))
    return (*number = backward_child_node(call_stacks, outer, numbers)) != 0;
  return enter_scope(call_stacks, at->span.site, number);
}

/* The node of a call at that time inside of the pending span `around`. */
static bool node_of_stack(prof_i_call_stacks *call_stacks, prof_i_walker *walker,
                          prof_i_pending_span *around, uint64_t start_ns, uint32_t *number_out) {
  if (call_stacks->end_count) start_after_function_ends(call_stacks, walker, around, start_ns);
  prof_i_pending_span *at = around;
  while (!at->stack_node) at--; /* entry 0 has a node */
  uint32_t number = at->stack_node - 1;
  while (at != around) {
    at++;
    if (!step_node(call_stacks, walker, at, &number)) return false;
    at->stack_node = number + 1;
  }
  *number_out = number;
  return true;
}

bool prof_i_call_stacks_of_span(prof_i_call_stacks *call_stacks, prof_i_walker *walker,
                                const prof_i_span *span, uint32_t *number_out) {
  prof_i_pending_span *const around = prof_i_walker_parent(walker, span);
  if (!node_of_stack(call_stacks, walker, around, span->start_ns, number_out)) return false;
  if (*number_out == 0 && span->lane > 0) *number_out = walker->outside;
  return true;
}

bool prof_i_call_stacks_of_pending(prof_i_call_stacks *call_stacks, prof_i_walker *walker,
                                   prof_i_pending_span *around, uint64_t start_ns,
                                   uint32_t *number_out) {
  return node_of_stack(call_stacks, walker, around, start_ns, number_out);
}

bool prof_i_call_stacks_of_scope(prof_i_call_stacks *call_stacks, const prof_i_span *span,
                                 uint32_t around, uint32_t *number_out) {
  prof_i_call_numbers numbers;
  *number_out = around;
  if (!call_stacks->backward ||
      !prof_i_backward_is_call(call_stacks->backward, span, call_stacks->items[around].range,
                               &numbers))
    return true;
  *number_out = backward_child_node(call_stacks, around, numbers);
  return *number_out != 0;
}

uint32_t prof_i_call_stacks_enclosing(prof_i_call_stacks *call_stacks, prof_i_walker *walker,
                                      uint64_t start, uint64_t start_ns) {
  prof_i_lane *const lane = &walker->lanes[0];
  prof_i_pending_span *at = &lane->stack[lane->count - 1];
  uint32_t number;
  while (at->start > start) at--; /* entry 0 has start 0 */
  return node_of_stack(call_stacks, walker, at, start_ns, &number) ? number : 0;
}

/* ---- texts ---- */

/* False: no memory. */
static bool make_own_text(const prof_i_call_stacks *call_stacks, prof_i_stack_node *c) {
  if (!(c->text = malloc((size_t)c->own.bytes + 1))) return false;
  c->bytes = frames_of_table(c->own, call_stacks->own_frames, c->text);
  return true;
}

/* False: no memory. */
static bool make_text(prof_i_call_stacks *call_stacks, uint32_t number, prof_i_stack_node *c) {
  if (c->site == OF_STACK) return make_own_text(call_stacks, c);
  if (!call_stacks->buffer &&
      !(call_stacks->buffer = malloc(PROF_I_STACK_BYTES_MAX + 1 + FRAME_ROOM)))
    return false;
  uint64_t bytes = 0;
  uint32_t frames = 0;
  for (uint32_t at = nearest_frame(call_stacks, number); at && frames < call_stacks->frames;
       at = call_stacks->items[at].up, frames++) {
    char *const to = call_stacks->buffer + bytes;
    if (frames) *to = ';';
    const prof_i_stack_node *const it = &call_stacks->items[at];
    char *const frame = to + (frames != 0);
    const uint64_t more =
        (frames != 0) + (it->site == OF_NAME
                             ? named_frame(it->own, frame, FRAME_ROOM)
                             : site_frame(call_stacks, it->site, frame, FRAME_ROOM));
    if (bytes + more > PROF_I_STACK_BYTES_MAX) break;
    bytes += more;
  }
  if (!(c->text = malloc((size_t)bytes + 1))) return false;
  memcpy(c->text, call_stacks->buffer, (size_t)bytes);
  c->bytes = bytes;
  return true;
}

bool prof_i_call_stacks_text(prof_i_call_stacks *call_stacks, uint32_t number, bool is_of_function,
                             prof_i_text *text_out) {
  *text_out = (prof_i_text){"", 0};
  if (call_stacks->items[number].forward && !is_of_function)
    number = call_stacks->items[number].forward - 1;
  prof_i_stack_node *const c = &call_stacks->items[number];
  if (number == 0) return true;
  if (!c->text && !make_text(call_stacks, number, c)) return false;
  *text_out = (prof_i_text){c->text, c->bytes};
  call_stacks->query_number = number;
  return true;
}

bool prof_i_call_stacks_give_text(prof_i_call_stacks *call_stacks, const char *text,
                                  bool *is_owner_out) {
  prof_i_stack_node *const c =
      call_stacks->count ? &call_stacks->items[call_stacks->query_number] : NULL;
  if (!c || c->text != text) return false;
  *is_owner_out = !c->is_given;
  c->is_given = true;
  return true;
}

int prof_trace_frame_text(const prof_trace *trace, uint32_t site, char **text_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (!trace || !text_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_frame_text: %s is NULL",
                       trace ? "text_out" : "trace");
  char frame[FRAME_ROOM];
  const size_t bytes = site < prof_i_trace_site_count(trace)
                           ? frame_text(prof_i_trace_site(trace, site), frame, sizeof frame)
                           : 0;
  char *const text = malloc(bytes + 1);
  if (!text) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a line of text");
  memcpy(text, frame, bytes);
  text[bytes] = '\0';
  *text_out = text;
  return PROF_OK;
}

uint32_t prof_trace_function_ends(const prof_trace *trace, uint64_t *at_ns, uint32_t room) {
  if (!trace) return 0;
  const uint32_t count = trace->catalog.function_end_count;
  if (at_ns) function_ends_ns(trace, at_ns, count < room ? count : room);
  return count;
}
