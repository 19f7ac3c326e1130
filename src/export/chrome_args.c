/* Chrome JSON: what stands in "args". Values keep their types; what JSON or a double cannot hold
   becomes a string. Also writes the dimensions of inputs, the place where a function is defined,
   and "Call stack". */
#include <string.h>

#include "../analysis/call_stacks.h"
#include "../base/text.h"
#include "../reader/internal.h"
#include "chrome.h"

typedef struct own_key {
  const char *text;
  size_t bytes;
} own_key;

/* clang-format off */
#define KEY(text) {(text), sizeof(text) - 1}

/* What prof itself may put beside a user's pairs: a user's key of that name is changed. Readers,
   and prof import, take each of them for prof's. */
static const own_key own_keys[] = {
    KEY("External id"),  KEY("correlation"),             KEY("unfinished"), KEY("Device"),
    KEY("Stream"),       KEY("cut"),                     KEY("skipped"),    KEY("details lost"),
    KEY("asynchronous"), KEY("ended on another thread"), KEY("arrow mark"), KEY("step mark"),
    KEY("Ev Idx"),       KEY("Record function id")};

/* The same, on rows of devices alone. */
static const own_key device_keys[] = {KEY("device"), KEY("stream"), KEY("annotation")};
/* clang-format on */

enum {
  OWN_KEY_COUNT = sizeof own_keys / sizeof own_keys[0],
  DEVICE_KEY_COUNT = sizeof device_keys / sizeof device_keys[0]
};
/* Where a function is defined. */
static const char *const place_keys[] = {"file", "line", "function", "frame"};

void prof_i_chrome_put_id(prof_i_chrome *w, uint64_t id) {
  char *to = prof_i_sink_reserve(w->sink, PROF_I_NUMBER_ROOM);
  if (id <= PROF_I_EXACT_MAX) {
    to = prof_i_put_u64(to, id);
  } else {
    *to++ = '"';
    to = prof_i_put_hex(to, id);
    *to++ = '"';
  }
  prof_i_sink_advance(w->sink, to);
}

/* ---- keys ---- */

static bool key_is_listed(const own_key *all, size_t count, const char *key, size_t bytes) {
  for (size_t i = 0; i < count; i++)
    if (all[i].bytes == bytes && memcmp(all[i].text, key, bytes) == 0) return true;
  return false;
}

static bool key_is_taken(const prof_i_chrome *w, const char *key, size_t bytes) {
  const prof_i_keys *const keys = &w->keys;
  const bool is_on_device = (w->event->flags & PROF_EVENT_ON_DEVICE) != 0;
  if (key_is_listed(own_keys, OWN_KEY_COUNT, key, bytes)) return true;
  if (is_on_device && key_is_listed(device_keys, DEVICE_KEY_COUNT, key, bytes)) return true;
  for (unsigned i = 0; i < keys->count; i++)
    if (keys->bytes[i] == bytes && memcmp(keys->text[i], key, bytes) == 0) return true;
  return false;
}

/* Escapes a user's key, cut at what fits (a recorded key always does), and adds '#' until no other
   key of this object reads the same. A backslash is written otherwise where it stands last: with a
   mark behind it, as any other, or two keys could read alike. */
static void put_user_key(prof_i_chrome *w, const prof_trace_arg *arg) {
  enum { INPUTS_ROOM = PROF_I_KEY_BYTES - PROF_ARGS_MAX - 4, LAST_BYTES = 6 /* \u005c */ };
  prof_i_keys *const keys = &w->keys;
  char *const key = keys->text[keys->count];
  const char *const from = arg->key != NULL ? arg->key : "value";
  const size_t from_bytes = arg->key != NULL ? arg->key_bytes : 5;
  size_t at = 0, bytes = prof_i_escape(key, INPUTS_ROOM, from, from_bytes, &at);
  const bool is_cut = at < from_bytes;
  if (is_cut) {
    memcpy(key + bytes, "...", 3);
    bytes += 3;
  } else if (bytes >= LAST_BYTES && from[from_bytes - 1] == '\\' && key_is_taken(w, key, bytes)) {
    bytes -= LAST_BYTES;
    memcpy(key + bytes, "\\\\#", 3);
    bytes += 3;
  }
  while (key_is_taken(w, key, bytes)) key[bytes++] = '#';
  keys->bytes[keys->count++] = (uint32_t)bytes;
  prof_i_sink_bytes(w->sink, "\"", 1);
  prof_i_sink_bytes(w->sink, key, bytes);
  prof_i_sink_text(w->sink, "\":");
}

/* ---- the four kinds of argument lists ---- */

static void put_separator(prof_i_chrome *w, bool *has_members) {
  if (*has_members) prof_i_sink_bytes(w->sink, ",", 1);
  *has_members = true;
}

/* ---- dimensions ---- */

enum { DIMS_INPUTS_MAX = 64, DIMS_TENSORS_SHOWN = 30 };
/* Depths: of the text itself, of an input, of a tensor in a list. */
enum { DIMS_LIST = 1, DIMS_INPUT = 2, DIMS_TENSOR = 3 };

/* Skips a number as JSON has it. Returns where it ends, or `end` if it is malformed. */
static const char *dims_skip_number(const char *at, const char *end) {
  const char *const first = at + (at < end && *at == '-');
  const char *last = first;
  while (last < end && prof_i_is_digit(*last)) last++;
  return last == first || (*first == '0' && last - first > 1) ? end : last;
}

/* Goes from element to element. An element begins with a bracket or a number. A comma or the end of
   the list follows it. */
bool prof_i_dims_check(const char *text, uint64_t bytes, uint32_t count, uint64_t *lists_out) {
  const char *at = text, *const end = text + bytes;
  uint32_t depth = 0, found = 0;
  bool is_behind = false, is_first = false;
  uint64_t lists = 0, numbers = 0; /* a bit for each input that has the one, or the other */
  while (at < end) {
    const uint64_t here = found > 0 ? UINT64_C(1) << (found - 1) : 0;
    if (*at == ']' && depth > 0 && (is_behind || is_first)) {
      is_behind = true, is_first = false, at++;
      if (--depth == 0) break;
    } else if (is_behind) {
      if (*at++ != ',') return false;
      is_behind = false;
    } else if (*at == '[' && depth < DIMS_TENSOR) {
      if (depth == 0 && found > 0) return false;
      if (depth == DIMS_LIST && found++ == DIMS_INPUTS_MAX) return false;
      if (depth == DIMS_INPUT) lists |= here;
      depth++, is_first = true, at++;
    } else if (depth >= DIMS_INPUT && (at = dims_skip_number(at, end)) < end) {
      if (depth == DIMS_INPUT) numbers |= here;
      is_behind = true, is_first = false;
    } else {
      return false;
    }
  }
  *lists_out = lists;
  return depth == 0 && at == end && bytes > 0 && found == count && (lists & numbers) == 0;
}

/* The bracket that ends the list that begins at `at`. *tensors_out: how many lists it holds. */
static const char *dims_find_end(const char *at, const char *end, uint32_t *tensors_out) {
  uint32_t depth = 0;
  *tensors_out = 0;
  for (; at < end; at++) {
    if (*at == '[' && ++depth == 2) ++*tensors_out;
    if (*at == ']' && --depth == 0) break;
  }
  return at;
}

/* Writes the text of dimensions, or of strides. As in torch.profiler's trace, a list of more than
   30 tensors is "[]". False, and nothing is written, of a text that is not of numbers in lists. */
static bool dims_put_json(prof_i_sink *sink, const char *text, uint64_t bytes) {
  const char *at = text, *const end = text + bytes;
  int depth = 0;
  for (const char *c = text; c < end; c++) {
    if (!prof_i_is_digit(*c) && !strchr("[],- ", *c)) return false;
    depth += (*c == '[') - (*c == ']');
    if (depth > DIMS_TENSOR) return false;
  }
  depth = 0;
  for (const char *c = text; c < end; c++) {
    uint32_t tensors = 0;
    depth += (*c == '[') - (*c == ']');
    if (*c != '[' || depth != DIMS_INPUT) continue;
    const char *const last = dims_find_end(c, end, &tensors);
    if (tensors <= DIMS_TENSORS_SHOWN || last == end) continue;
    prof_i_sink_bytes(sink, at, (size_t)(c + 1 - at));
    at = c = last; /* its bracket is written with what comes */
    depth--;
  }
  prof_i_sink_bytes(sink, at, (size_t)(end - at));
  return true;
}

/* ---- where a function is defined ---- */

typedef struct location_text {
  char *next, *limit;
  bool is_whole;
} location_text;

static void location_put_literal(location_text *p, const char *text) {
  const size_t bytes = strlen(text);
  p->is_whole = p->is_whole && (size_t)(p->limit - p->next) > bytes;
  if (!p->is_whole) return;
  memcpy(p->next, text, bytes);
  p->next += bytes;
}

/* ,"key":"text" */
static void location_put_member(location_text *p, const char *key, prof_i_text text) {
  size_t at = 0;
  location_put_literal(p, ",\"");
  location_put_literal(p, key);
  location_put_literal(p, "\":\"");
  if (!p->is_whole) return;
  p->next += prof_i_escape(p->next, (size_t)(p->limit - p->next), text.data, text.bytes, &at);
  p->is_whole = at == text.bytes;
  location_put_literal(p, "\"");
}

bool prof_i_chrome_location_text(const prof_i_site_info *site, prof_i_text name, char *to,
                                 size_t room, size_t *bytes_out) {
  location_text p = {to, to + room, true};
  *bytes_out = 0;
  if (site->file.bytes == 0 || !prof_i_is_named_by_function(site)) return true;
  if (prof_i_is_c_function_site(site)) {
    location_put_member(&p, "frame", site->file);
  } else {
    const prof_i_text called = prof_i_unqualified_name(site->function),
                      end = prof_i_unqualified_name(name);
    location_put_member(&p, "file", site->file);
    location_put_literal(&p, ",\"line\":");
    if (p.limit - p.next < PROF_I_NUMBER_ROOM) return false;
    p.next = prof_i_put_u64(p.next, site->line);
    if (called.bytes != end.bytes || memcmp(called.data, end.data, (size_t)called.bytes) != 0)
      location_put_member(&p, "function", called);
  }
  if (p.is_whole) *bytes_out = (size_t)(p.next - to);
  return p.is_whole;
}

/* ---- call stacks ---- */

static size_t skip_folder(const prof_i_stack_folders *all, const char *frame, size_t bytes) {
  size_t longest = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    const size_t folder_bytes = strlen(all->folders[i]);
    if (folder_bytes > longest && folder_bytes < bytes &&
        memcmp(all->folders[i], frame, folder_bytes) == 0)
      longest = folder_bytes;
  }
  return longest;
}

void prof_i_chrome_put_stack(prof_i_chrome *w, prof_i_text stack) {
  if (w->stack_folders.count == 0) {
    prof_i_sink_string(w->sink, stack.data, stack.bytes);
    return;
  }
  const char *frame = stack.data;
  const char *const end = stack.data + stack.bytes;
  prof_i_sink_bytes(w->sink, "\"", 1);
  while (frame < end) {
    const char *const mark = memchr(frame, ';', (size_t)(end - frame));
    const char *const last = mark ? mark : end;
    frame += skip_folder(&w->stack_folders, frame, (size_t)(last - frame));
    prof_i_sink_string_part(w->sink, frame, (size_t)(last - frame));
    prof_i_sink_bytes(w->sink, ";", 1);
    frame = last + 1;
  }
  prof_i_sink_bytes(w->sink, "\"", 1);
}

/* ---- pairs ---- */

/* What torch.profiler writes as an array, and prof import keeps as its text; anything else under
   that key is a text. */
static bool arg_is_array(prof_i_chrome *w, const prof_trace_arg *arg) {
  static const char *const keys[] = {"Input Strides", "Concrete Inputs"};
  bool is_known = false;
  size_t at;
  if (arg->type != PROF_ARG_STRING || arg->value.text.bytes == 0 ||
      arg->value.text.bytes >= sizeof w->json_text || arg->value.text.data[0] != '[')
    return false;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    is_known |= arg->key_bytes == strlen(keys[i]) && memcmp(arg->key, keys[i], arg->key_bytes) == 0;
  const bool is_list = prof_i_value_is_text_list(arg);
  is_known |= is_list;
  if (!is_known || memchr(arg->value.text.data, '\0', arg->value.text.bytes)) return false;
  memcpy(w->json_text, arg->value.text.data, arg->value.text.bytes);
  w->json_text[arg->value.text.bytes] = '\0';
  if (is_list) w->json_text[1] = ' ';
  return prof_i_json_is_value(w->json_text, &at);
}

static prof_i_text arg_text(const prof_trace_arg *arg) {
  return (prof_i_text){arg->value.text.data, arg->value.text.bytes};
}

static bool arg_is_stack(const prof_trace_arg *arg) {
  static const own_key stack_key = KEY(PROF_STACK_KEY);
  return arg->type == PROF_ARG_STRING && arg->key &&
         key_is_listed(&stack_key, 1, arg->key, arg->key_bytes);
}

static void put_array(prof_i_chrome *w) {
  if (!dims_put_json(w->sink, w->json_text, strlen(w->json_text)))
    prof_i_json_put(w->sink, w->json_text);
}

/* Numbers of calls that the record has are of one observe() alone, or of another file:
   chrome_numbers.c has given others. */
static bool arg_is_known(const prof_i_chrome *w, const prof_trace_arg *arg) {
  static const own_key number_keys[] = {KEY("Python id"), KEY("Python parent id")};
  const size_t count = sizeof number_keys / sizeof number_keys[0];
  return w->has_python_id && arg->key &&
         key_is_listed(number_keys, count, arg->key, arg->key_bytes);
}

static void put_pairs(prof_i_chrome *w, uint32_t first, bool *has_members) {
  for (uint32_t i = first; i < w->event->arg_count; i++) {
    if (arg_is_known(w, &w->event->args[i])) continue;
    put_separator(w, has_members);
    put_user_key(w, &w->event->args[i]);
    if (arg_is_array(w, &w->event->args[i]))
      put_array(w);
    else if (arg_is_stack(&w->event->args[i]))
      prof_i_chrome_put_stack(w, arg_text(&w->event->args[i]));
    else
      prof_i_value_json(w->sink, &w->event->args[i]);
  }
}

static void put_formatted_args(prof_i_chrome *w, bool *has_members) {
  const size_t wanted = prof_i_format_args(w->event, w->format_text, sizeof w->format_text);
  put_separator(w, has_members);
  prof_i_sink_text(w->sink, "\"text\":");
  prof_i_sink_string(w->sink, w->format_text,
                     wanted < sizeof w->format_text ? wanted : sizeof w->format_text);
  if (wanted > sizeof w->format_text) w->event->flags |= PROF_EVENT_CUT;
}

static void put_list(prof_i_chrome *w, bool *has_members) {
  put_separator(w, has_members);
  prof_i_sink_text(w->sink, "\"args_string\":[");
  for (uint32_t i = 0; i < w->event->arg_count; i++) {
    if (i > 0) prof_i_sink_bytes(w->sink, ",", 1);
    prof_i_value_json(w->sink, &w->event->args[i]);
  }
  prof_i_sink_bytes(w->sink, "]", 1);
}

static void keep_key(prof_i_keys *keys, const char *key) {
  keys->bytes[keys->count] = (uint32_t)strlen(key);
  memcpy(keys->text[keys->count], key, keys->bytes[keys->count]);
  keys->count++;
}

static void put_dims(prof_i_chrome *w, uint32_t count) {
  prof_i_sink_bytes(w->sink, "[", 1);
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) prof_i_sink_text(w->sink, ", ");
    prof_i_value_dims(w->sink, &w->event->args[i]);
  }
  prof_i_sink_bytes(w->sink, "]", 1);
}

/* "[[[2,10],[3,10]],[],[4]]": what prof import keeps of inputs with lists of tensors. It replaces
   the shapes if it is well-formed and has `inputs` elements. Else it is a text of the user's, and
   the result is NULL. lists_out: a bit for each element that is a list. */
static const prof_trace_arg *find_lists(const prof_event *event, uint32_t count, uint32_t inputs,
                                        uint64_t *lists_out) {
  static const char key[] = "Tensor lists"; /* of tools/import/args.c */
  if (count == event->arg_count) return NULL;
  const prof_trace_arg *const arg = &event->args[count];
  if (arg->type != PROF_ARG_STRING || arg->key_bytes != sizeof key - 1 ||
      memcmp(arg->key, key, sizeof key - 1) != 0)
    return NULL;
  return prof_i_dims_check(arg->value.text.data, arg->value.text.bytes, inputs, lists_out) ? arg
                                                                                           : NULL;
}

/* What torch.profiler calls an input that is no tensor, by its text in "Concrete Inputs": the next
   of those from *at on. "" where there is none. */
static const char *next_input_scalar(const prof_trace_arg *inputs, size_t *at) {
  const char *const text = inputs->value.text.data;
  const size_t bytes = inputs->value.text.bytes;
  while (*at < bytes && text[*at] != '"') ++*at;
  const size_t first = ++*at;
  for (; *at < bytes && text[*at] != '"'; ++*at)
    if (text[*at] == '\\') ++*at;
  const bool is_there = *at<bytes && * at> first;
  ++*at;
  return !is_there ? "" : text[first] == '[' ? "ScalarList" : "Scalar";
}

static const prof_trace_arg *find_inputs(const prof_event *event, uint32_t count) {
  static const char key[] = "Concrete Inputs";
  for (uint32_t i = count; i < event->arg_count; i++) {
    const prof_trace_arg *const arg = &event->args[i];
    if (arg->type == PROF_ARG_STRING && arg->key_bytes == sizeof key - 1 &&
        memcmp(arg->key, key, sizeof key - 1) == 0)
      return arg;
  }
  return NULL;
}

/* Where inputs stand in texts instead. types: "[544,0]", prof_dtype of each. NULL: they do not. */
typedef struct input_texts {
  const prof_trace_arg *lists, *types;
  uint64_t is_list; /* a bit each */
} input_texts;

static uint32_t type_count(const prof_trace_arg *types) {
  uint32_t count = 1;
  for (uint32_t i = 0; i < types->value.text.bytes; i++) count += types->value.text.data[i] == ',';
  return count;
}

/* The next number from *at on, as a tensor of that type. */
static prof_trace_arg next_input_type(const prof_trace_arg *types, size_t *at) {
  const char *const text = types->value.text.data;
  const size_t bytes = types->value.text.bytes;
  uint32_t dtype = 0;
  while (*at < bytes && (text[*at] < '0' || text[*at] > '9')) ++*at;
  for (; *at < bytes && text[*at] >= '0' && text[*at] <= '9'; ++*at)
    dtype = dtype * 10 + (uint32_t)(text[*at] - '0');
  return (prof_trace_arg){.type = PROF_ARG_TENSOR, .value.tensor.dtype = dtype};
}

static void put_input_shapes(prof_i_chrome *w, uint32_t count, const input_texts *texts,
                             bool *has_members) {
  keep_key(&w->keys, "Input Dims");
  keep_key(&w->keys, "Input type");
  put_separator(w, has_members);
  prof_i_sink_text(w->sink, "\"Input Dims\":");
  if (texts->lists)
    dims_put_json(w->sink, texts->lists->value.text.data, texts->lists->value.text.bytes);
  else
    put_dims(w, count);
  prof_i_sink_text(w->sink, ",\"Input type\":[");
  const prof_trace_arg *const inputs = find_inputs(w->event, prof_i_shape_count(w->event));
  size_t at = 0, type_at = 0;
  for (uint32_t i = 0; i < count; i++) {
    const prof_trace_arg typed =
        texts->types ? next_input_type(texts->types, &type_at) : (prof_trace_arg){0};
    const prof_trace_arg *const arg = texts->types ? &typed : &w->event->args[i];
    const char *const scalar = inputs ? next_input_scalar(inputs, &at) : "";
    const bool is_tensor =
        arg->type == PROF_ARG_TENSOR && (arg->value.tensor.rank || arg->value.tensor.dtype);
    prof_i_sink_text(w->sink, i > 0 ? ", \"" : "\"");
    prof_i_sink_text(w->sink, texts->is_list >> i & 1 ? "TensorList"
                              : is_tensor || !*scalar ? prof_i_value_dtype(arg)
                                                      : scalar);
    prof_i_sink_bytes(w->sink, "\"", 1);
  }
  prof_i_sink_bytes(w->sink, "]", 1);
}

static void put_inputs(prof_i_chrome *w, uint32_t count, bool *has_members) {
  input_texts texts = {NULL, NULL, 0};
  if (prof_i_shape_has_texts(w->event)) texts.types = &w->event->args[count + 1];
  uint32_t inputs = texts.types ? type_count(texts.types) : count;
  if (count > 0) texts.lists = find_lists(w->event, count, inputs, &texts.is_list);
  if (!texts.lists) texts = (input_texts){NULL, NULL, 0}, inputs = count;
  if (count > 0) put_input_shapes(w, inputs, &texts, has_members);
  put_pairs(w, count + (texts.lists != NULL) + (texts.types != NULL), has_members);
}

static bool event_has_device(const prof_event *event) {
  const bool is_host = prof_i_device_is_host(event->device);
  return !is_host || (event->flags & PROF_EVENT_ON_STREAM) != 0;
}

/* The device that the scope's work went to. The keys differ from Kineto's "device" and "stream"
   on purpose: readers take a row that has those for a kernel, and this is the host's side of a
   launch. */
static void put_device_args(prof_i_chrome *w, bool *has_members) {
  const prof_event *const event = w->event;
  if (!event_has_device(event)) return;
  char name[PROF_I_DEVICE_NAME_BYTES];
  prof_i_device_name(event->device, name);
  put_separator(w, has_members);
  prof_i_sink_text(w->sink, "\"Device\":\"");
  prof_i_sink_text(w->sink, name);
  prof_i_sink_bytes(w->sink, "\"", 1);
  if ((event->flags & PROF_EVENT_ON_STREAM) == 0) return;
  prof_i_sink_text(w->sink, ",\"Stream\":");
  prof_i_chrome_put_id(w, event->stream);
}

static void put_flag_args(prof_i_chrome *w, uint32_t flag, const char *text, bool *has_members) {
  if ((w->event->flags & flag) == 0) return;
  put_separator(w, has_members);
  prof_i_sink_text(w->sink, text);
}

bool prof_i_chrome_has_args(const prof_event *event) {
  const uint32_t shown_flags = PROF_EVENT_CUT | PROF_EVENT_NO_DETAILS | PROF_EVENT_ASYNC |
                               PROF_EVENT_SKIPPED | PROF_EVENT_OTHER_THREAD;
  return event->arg_count > 0 || (event->flags & shown_flags) != 0 || event_has_device(event) ||
         (event->args_kind == PROF_ARGS_FORMAT && event->format_bytes > 0);
}

void prof_i_chrome_put_args(prof_i_chrome *w, bool has_members) {
  const uint32_t shape_count = prof_i_shape_count(w->event);
  w->keys.count = 0;
  for (size_t i = 0; w->has_location && i < sizeof place_keys / sizeof *place_keys; i++)
    keep_key(&w->keys, place_keys[i]);
  put_device_args(w, &has_members);
  if (w->event->arg_count > 0 ||
      (w->event->args_kind == PROF_ARGS_FORMAT && w->event->format_bytes > 0)) {
    switch ((prof_args_kind)w->event->args_kind) {
      case PROF_ARGS_PAIRS:
        put_pairs(w, 0, &has_members);
        break;
      case PROF_ARGS_FORMAT:
        put_formatted_args(w, &has_members);
        break;
      case PROF_ARGS_SHAPES:
        put_inputs(w, shape_count, &has_members);
        break;
      case PROF_ARGS_LIST:
        put_list(w, &has_members);
        break;
    }
  }
  put_flag_args(w, PROF_EVENT_CUT, "\"cut\":true", &has_members);
  put_flag_args(w, PROF_EVENT_NO_DETAILS, "\"details lost\":true", &has_members);
  put_flag_args(w, PROF_EVENT_ASYNC, "\"asynchronous\":true", &has_members);
  put_flag_args(w, PROF_EVENT_SKIPPED, "\"skipped\":true", &has_members);
  put_flag_args(w, PROF_EVENT_OTHER_THREAD, "\"ended on another thread\":true", &has_members);
}
