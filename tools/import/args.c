/* Arguments of events as values of records, and where functions are defined. See record.h. */
#include "record.h"

#include <prof/args.h>
#include <prof/trace.h>
#include <stdio.h>

#include "../../src/export/dtype_names.h"

enum { DIMS_MAX = 16, KEY_BYTES_MAX = 256, INPUTS_MAX = 64, CODES_BYTES_MAX = 11 * INPUTS_MAX + 3 };

static const import_text no_key = {"", 0};

/* ---- where a function is defined ---- */

static bool value_is_text(const import_event *event, const import_value *value) {
  return value->type == IMPORT_TEXT && import_text_of(event, value).bytes > 0;
}

static bool text_arg(const import_event *event, const char *key, import_text *out) {
  const import_value *const value = import_event_arg(event, key);
  if (!value || !value_is_text(event, value)) return false;
  *out = import_text_of(event, value);
  return true;
}

static bool line_arg(const import_event *event, uint32_t *out) {
  const import_value *const value = import_event_arg(event, "line");
  int64_t line;
  if (!value || value->type != IMPORT_NUMBER ||
      !import_number_i64(import_text_of(event, value), &line) || line < 0 || line > UINT32_MAX)
    return false;
  *out = (uint32_t)line;
  return true;
}

bool import_source_location_of(const import_event *event, import_text category, import_text name,
                               import_source_location *place_out) {
  import_source_location place = {.function = name};
  *place_out = (import_source_location){.file = {"", 0}, .function = {"", 0}};
  if (import_text_is(category, "c_function")) {
    if (!text_arg(event, "frame", &place.file)) return false;
    place.is_frame = true;
  } else if (import_text_is(category, "python_function") || import_text_is(category, "function")) {
    if (!text_arg(event, "file", &place.file) || !line_arg(event, &place.line)) return false;
    text_arg(event, "function", &place.function);
  } else {
    return false;
  }
  *place_out = place;
  return true;
}

/* True: the place was made of this argument. */
static bool location_has_arg(const import_source_location *place, const import_event *event,
                             const import_arg *arg) {
  const import_text key = {event->text + arg->key_at, arg->key_bytes};
  if (place->file.bytes == 0) return false;
  if (place->is_frame) return import_text_is(key, "frame");
  return import_text_is(key, "file") || import_text_is(key, "line") ||
         (import_text_is(key, "function") && value_is_text(event, &arg->value));
}

/* ---- one value ---- */

/* False: there is no room for one more of that many words. */
static bool args_put_item(import_record_args *v, import_text key, uint32_t type,
                          const uint64_t *words, uint32_t count) {
  if (v->schema.count == PROF_ARGS_MAX || v->count + count > IMPORT_VALUE_WORDS_MAX) {
    v->is_cut = true;
    return false;
  }
  v->schema.types[v->schema.count] = type;
  v->schema.keys[v->schema.count++] = import_text_cut(key, KEY_BYTES_MAX);
  memcpy(v->words + v->count, words, count * sizeof *words);
  v->count += count;
  return true;
}

/* As much of it as there is room for. */
static void args_put_text(import_record_args *v, import_text key, import_text text) {
  const size_t left = IMPORT_VALUE_WORDS_MAX - v->count;
  if (v->schema.count == PROF_ARGS_MAX || left < 2) {
    v->is_cut = true;
    return;
  }
  const import_text kept = import_text_cut(text, (left - 1) * 8);
  v->is_cut |= kept.bytes < text.bytes;
  v->schema.types[v->schema.count] = PROF_ARG_STRING;
  v->schema.keys[v->schema.count++] = import_text_cut(key, KEY_BYTES_MAX);
  v->count += import_put_text(v->words + v->count, kept);
}

static void args_put_number(import_record_args *v, import_text key, import_text digits) {
  int64_t i64;
  uint64_t word;
  double f64;
  if (import_number_i64(digits, &i64)) {
    word = (uint64_t)i64;
    args_put_item(v, key, PROF_ARG_I64, &word, 1);
  } else if (import_number_u64(digits, &word)) {
    args_put_item(v, key, PROF_ARG_U64, &word, 1);
  } else if (import_number_double(digits, &f64)) {
    memcpy(&word, &f64, sizeof word);
    args_put_item(v, key, PROF_ARG_F64, &word, 1);
  } else {
    args_put_text(v, key, digits);
  }
}

static void args_put_value(import_record_args *v, import_text key, const import_event *event,
                           const import_value *value) {
  const import_text text = import_text_of(event, value);
  const uint64_t is_true = value->is_true;
  switch (value->type) {
    case IMPORT_NONE:
    case IMPORT_NULL:
      return;
    case IMPORT_BOOL:
      args_put_item(v, key, PROF_ARG_BOOL, &is_true, 1);
      return;
    case IMPORT_NUMBER:
      args_put_number(v, key, text);
      return;
    case IMPORT_TEXT:
    case IMPORT_JSON:
      args_put_text(v, key, text);
      return;
  }
}

/* ---- shapes ---- */

/* Takes "[1,2]" off the front, dims behind words[0]. False: it is something else. */
static bool parse_dims(import_text *at, uint64_t *words, uint32_t *rank_out) {
  uint32_t rank = 0;
  if (at->bytes < 2 || at->data[0] != '[') return false;
  at->data++, at->bytes--;
  while (at->bytes > 0 && at->data[0] != ']') {
    size_t digits = 0;
    int64_t dim;
    if (rank > 0 && at->data[0] == ',') at->data++, at->bytes--;
    while (digits < at->bytes && at->data[digits] != ',' && at->data[digits] != ']') digits++;
    if (rank == DIMS_MAX || !import_number_i64((import_text){at->data, digits}, &dim)) return false;
    words[++rank] = (uint64_t)dim;
    at->data += digits, at->bytes -= digits;
  }
  if (at->bytes == 0) return false;
  at->data++, at->bytes--;
  *rank_out = rank;
  return true;
}

static uint64_t dtype_code(import_text name) {
  static const struct {
    const char *name;
    prof_dtype type;
  } types[] = {
#define NAMED(dtype, name) {name, (prof_dtype)(dtype)},
      PROF_I_DTYPE_NAMES(NAMED)
#undef NAMED
          {"short", PROF_I16},
      {"long", PROF_I64}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (import_text_is(name, types[i].name)) return types[i].type;
  return PROF_DTYPE_NONE;
}

/* The next of ["float","","Scalar"]; where there is none, an empty one. */
static import_text parse_type(import_text *at) {
  size_t begin = 0, end;
  while (begin < at->bytes && at->data[begin] != '"') begin++;
  end = begin + 1;
  while (end < at->bytes && at->data[end] != '"') end++;
  if (end >= at->bytes) return no_key;
  const import_text type = {at->data + begin + 1, end - begin - 1};
  at->data += end + 1, at->bytes -= end + 1;
  return type;
}

/* Takes "[[1,2],[3]]" off the front: a list of tensors. False: it is something else. */
static bool parse_list(import_text *at) {
  import_text left = *at;
  uint64_t words[1 + DIMS_MAX];
  uint32_t rank;
  if (left.bytes < 3 || left.data[0] != '[' || left.data[1] != '[') return false;
  do {
    left.data++, left.bytes--;
    if (!parse_dims(&left, words, &rank) || left.bytes == 0) return false;
  } while (left.data[0] == ',');
  if (left.data[0] != ']') return false;
  *at = (import_text){left.data + 1, left.bytes - 1};
  return true;
}

/* An operator's inputs. */
typedef struct inputs {
  import_text dims, types;
  uint32_t count;
  bool has_lists; /* of tensors */
  bool is_found;  /* false: they are something else, or too many */
} inputs;

/* Takes the next input off the front. False: it is something else. */
static bool take_input(inputs *left, uint64_t *words, uint32_t *rank_out) {
  *rank_out = 0;
  if (left->count > 0 && left->dims.data[0] == ',') left->dims.data++, left->dims.bytes--;
  const bool is_list = parse_list(&left->dims);
  if (!is_list && !parse_dims(&left->dims, words, rank_out)) return false;
  words[0] = *rank_out | dtype_code(parse_type(&left->types)) << 32;
  left->has_lists |= is_list;
  left->count++;
  return true;
}

static bool has_input(const inputs *left) {
  return left->dims.bytes > 0 && left->dims.data[0] != ']';
}

static inputs first_input(const inputs *all) {
  return (inputs){{all->dims.data + 1, all->dims.bytes - 1}, all->types, 0, false, false};
}

static inputs find_inputs(import_text dims, import_text types) {
  inputs all = {dims, types, 0, false, false};
  uint64_t words[1 + DIMS_MAX];
  uint32_t rank;
  if (dims.bytes < 2 || dims.data[0] != '[') return all;
  inputs left = first_input(&all);
  while (has_input(&left))
    if (left.count == INPUTS_MAX || !take_input(&left, words, &rank)) return all;
  all.count = left.count;
  all.has_lists = left.has_lists;
  all.is_found = true;
  return all;
}

/* Inputs as tensors; what is no tensor, or a list of them, has no dims, as in torch's tables.
   others: how many arguments come behind. If there is no room for all, texts have all of them, as
   where an operator is recorded (inject/torch/calls.c). */
static void put_inputs(import_record_args *v, const inputs *all, uint32_t others) {
  const uint32_t room = others + 3 < PROF_ARGS_MAX ? PROF_ARGS_MAX - others : 3;
  const bool is_long = all->count + all->has_lists > room;
  const uint32_t kept = is_long ? room - 2 : all->count;
  char codes[CODES_BYTES_MAX] = "[";
  size_t at = 1;
  inputs left = first_input(all);
  while (has_input(&left)) {
    uint64_t words[1 + DIMS_MAX];
    uint32_t rank;
    take_input(&left, words, &rank);
    if (left.count <= kept) args_put_item(v, no_key, PROF_ARG_TENSOR, words, 1 + rank);
    at += (size_t)snprintf(codes + at, sizeof codes - at, left.count > 1 ? ",%u" : "%u",
                           (unsigned)(words[0] >> 32));
  }
  codes[at++] = ']';
  v->schema.kind = PROF_ARGS_SHAPES;
  if (is_long || all->has_lists) import_args_text(v, "Tensor lists", all->dims);
  if (is_long) import_args_text(v, "Tensor types", (import_text){codes, at});
}

/* ---- the lists ---- */

typedef enum key_action {
  ACTION_KEEP,
  ACTION_DROP,
  ACTION_DROP_ZERO,
  ACTION_DIMS,
  ACTION_STACK,
  ACTION_FLAG,
  ACTION_ASYNC,
  ACTION_SKIPPED
} key_action;

typedef struct key_rule {
  const char *key;
  key_action key_action;
  uint32_t flag;
} key_rule;

static const key_rule host_rules[] = {
    {"External id", ACTION_DROP, 0},
    {"external id", ACTION_DROP, 0},
    {"correlation", ACTION_DROP, 0},
    {"Ev Idx", ACTION_DROP, 0},
    {"Record function id", ACTION_DROP, 0},
    {PROF_STACK_KEY, ACTION_STACK, 0},
    {"asynchronous", ACTION_ASYNC, 0},
    {"skipped", ACTION_SKIPPED, 0},
    {"cut", ACTION_FLAG, PROF_I_FLAG_CUT},
    {"details lost", ACTION_FLAG, PROF_I_FLAG_NO_DETAILS},
    {"ended on another thread", ACTION_FLAG, PROF_I_FLAG_OTHER_THREAD},
    {NULL, ACTION_KEEP, 0}}; /* flags: of src/export/chrome_args.c */
static const key_rule device_rules[] = {{"External id", ACTION_DROP, 0},
                                        {"external id", ACTION_DROP, 0},
                                        {"device", ACTION_DROP, 0},
                                        {"stream", ACTION_DROP, 0},
                                        {"correlation", ACTION_DROP, 0},
                                        {"queued", ACTION_DROP_ZERO, 0},
                                        {"graph id", ACTION_DROP_ZERO, 0},
                                        {"graph node id", ACTION_DROP_ZERO, 0},
                                        {"priority", ACTION_DROP_ZERO, 0},
                                        {"channel", ACTION_DROP_ZERO, 0},
                                        {"grid", ACTION_DIMS, 0},
                                        {"block", ACTION_DIMS, 0},
                                        {NULL, ACTION_KEEP, 0}};

static const key_rule *find_key_rule(const key_rule *rules, import_text key) {
  while (rules->key && !import_text_is(key, rules->key)) rules++;
  return rules;
}

static void args_put_arg(import_record_args *v, const import_event *event, const import_arg *arg,
                         const key_rule *rules, bool may_be_marked) {
  const import_text key = {event->text + arg->key_at, arg->key_bytes},
                    text = import_text_of(event, &arg->value);
  uint64_t words[1 + DIMS_MAX];
  uint32_t rank;
  import_text left = text;
  const key_rule *const found = find_key_rule(rules, key);
  switch (found->key_action) {
    case ACTION_DROP:
      return;
    case ACTION_DROP_ZERO:
      if (import_text_is(text, "0")) return;
      break;
    case ACTION_DIMS:
      if (arg->value.type != IMPORT_JSON || !parse_dims(&left, words, &rank)) break;
      words[0] = rank;
      args_put_item(v, key, PROF_ARG_TENSOR, words, 1 + rank);
      return;
    case ACTION_STACK: /* torch ends it with a separator, behind which no frame stands */
      if (arg->value.type != IMPORT_TEXT) break;
      while (left.bytes > 0 && left.data[left.bytes - 1] == ';') left.bytes--;
      args_put_text(v, key, left);
      return;
    case ACTION_FLAG:
      if (arg->value.type != IMPORT_BOOL || !arg->value.is_true) break;
      v->flags |= found->flag;
      return;
    case ACTION_ASYNC:
    case ACTION_SKIPPED:
      if (!may_be_marked || arg->value.type != IMPORT_BOOL || !arg->value.is_true) break;
      v->is_async |= found->key_action == ACTION_ASYNC;
      v->is_skipped |= found->key_action == ACTION_SKIPPED;
      return;
    case ACTION_KEEP:
      break;
  }
  args_put_value(v, key, event, &arg->value);
}

void import_args_begin(import_record_args *values) {
  values->schema.kind = PROF_ARGS_PAIRS;
  values->schema.count = values->count = 0;
  values->is_cut = values->is_async = values->is_skipped = false;
  values->flags = 0;
}

void import_args_text(import_record_args *values, const char *key, import_text text) {
  args_put_text(values, (import_text){key, strlen(key)}, text);
}

/* Each export numbers the calls of functions anew (src/export/chrome_numbers.c). A module's call
   keeps the numbers that it has where it was recorded. */
static bool arg_is_function_number(const import_event *event, const import_arg *arg) {
  const import_text category = import_text_of(event, &event->members[IMPORT_CAT]);
  const import_text name = import_text_of(event, &event->members[IMPORT_NAME]);
  const import_text key = {event->text + arg->key_at, arg->key_bytes};
  if (arg->value.type != IMPORT_NUMBER && arg->value.type != IMPORT_NULL) return false;
  if (!import_text_is(key, "Python id") && !import_text_is(key, "Python parent id")) return false;
  if (import_text_is(category, "c_function")) return true;
  return import_text_is(category, "python_function") &&
         !prof_i_name_is_torch_module(name.data, name.bytes);
}

static bool is_argument(const import_event *event, const import_arg *arg) {
  const import_text key = {event->text + arg->key_at, arg->key_bytes};
  const key_action found = find_key_rule(host_rules, key)->key_action;
  return found == ACTION_KEEP || found == ACTION_STACK;
}

void import_args_of_host(import_record_args *values, const import_event *event,
                         const import_source_location *place, bool may_be_marked, bool is_open) {
  const import_value *const dims = import_event_arg(event, "Input Dims"), *const types =
                                                                              import_event_arg(
                                                                                  event,
                                                                                  "Input type");
  inputs all = {no_key, no_key, 0, false, false};
  uint32_t others = 0;
  if (dims && dims->type == IMPORT_JSON)
    all = find_inputs(import_text_of(event, dims),
                      types && types->type == IMPORT_JSON ? import_text_of(event, types) : no_key);
  uint8_t is_kept[IMPORT_ARGS_MAX] = {0};
  for (uint32_t i = 0; i < event->arg_count; i++) {
    const import_value *const value = &event->args[i].value;
    is_kept[i] = !(all.is_found && (value == dims || value == types)) &&
                 !(place && location_has_arg(place, event, &event->args[i])) &&
                 !arg_is_function_number(event, &event->args[i]) &&
                 !(is_open && value == import_event_arg(event, IMPORT_OPEN_KEY));
    others += is_kept[i] && is_argument(event, &event->args[i]);
  }
  import_args_begin(values);
  if (all.is_found) put_inputs(values, &all, others);
  for (uint32_t i = 0; i < event->arg_count; i++)
    if (is_kept[i]) args_put_arg(values, event, &event->args[i], host_rules, may_be_marked);
  values->is_cut |= event->is_cut;
}

/* By which an export of prof's tells such a stretch from the device's side of a scope. */
static bool arg_is_annotation(const import_event *event, const import_arg *arg) {
  return arg->value.is_true &&
         import_text_is((import_text){event->text + arg->key_at, arg->key_bytes}, "annotation");
}

/* The vendor's number stays, as prof itself keeps it; a trace that prof wrote has it under that
   name. */
void import_args_of_device(import_record_args *values, const import_event *event,
                           const uint64_t hidden[IMPORT_HIDDEN_VALUES]) {
  static const char *const keys[IMPORT_HIDDEN_VALUES] = {
      "launch thread", "launch ticks", "device start ns", "device end ns", "record kind"};
  static const char vendors[] = "vendor's correlation";
  const import_value *const correlation = import_event_arg(event, "correlation");
  import_args_begin(values);
  for (int i = 0; i < IMPORT_HIDDEN_VALUES; i++)
    args_put_item(values, (import_text){keys[i], strlen(keys[i])}, PROF_ARG_U64, &hidden[i], 1);
  if (correlation && !import_event_arg(event, vendors))
    args_put_value(values, (import_text){vendors, sizeof vendors - 1}, event, correlation);
  for (uint32_t i = 0; i < event->arg_count; i++)
    if (hidden[4] != PROF_RECORD_ANNOTATION || !arg_is_annotation(event, &event->args[i]))
      args_put_arg(values, event, &event->args[i], device_rules, false);
  values->is_cut |= event->is_cut;
}
