/* What a call's inputs hold: shapes, element types and values. Their texts are torch.profiler's, so
   that readers of its traces can read prof's. A value that is no tensor has no shape and no type. A
   list of tensors has only a type. Of torch only a tensor's sizes and strides are queried, if it
   has some. */
#include "internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/export/dtype_names.h"

/* ---- shapes and element types ---- */

/* False if code that may throw computes the tensor's sizes. Such tensors are nested ones, symbolic
   sizes, and classes that answer in Python. torch.profiler has no sizes for the first two. For the
   third it calls Python. */
bool prof_i_torch_has_sizes(const void *impl) {
  const prof_i_torch_layout *const layout = &prof_i_torch_layout_proven;
  if (!impl || impl == prof_i_torch.undefined) return false;
  const uint64_t *const keys = prof_i_torch_at(impl, layout->key_set);
  return !(keys[0] & layout->avoided) && !(keys[-1] & layout->custom);
}

prof_tensor prof_i_torch_shape_read(const void *value) {
  prof_tensor shape = {NULL, 0, PROF_DTYPE_NONE};
  int64_t rank = 0, *dims = NULL;
  int32_t dtype = -1;
  if (*(const uint32_t *)prof_i_torch_at(value, PROF_I_TORCH_TAG_OFFSET) !=
      prof_i_torch_layout_proven.tensor_tag) {
    if (prof_i_torch_is_tensors(value)) shape.dtype = PROF_I_DTYPE_TENSORS;
    return shape;
  }
  if (!prof_i_torch_has_sizes(*(const void *const *)value)) return shape;
  /* torch's stable interface for C takes the address of a Tensor, which a payload is; it catches
     what is thrown */
  if (prof_i_torch.dim(value, &rank) || prof_i_torch.sizes(value, &dims) ||
      prof_i_torch.dtype(value, &dtype))
    return shape;
  shape = (prof_tensor){
      dims, (uint32_t)rank,
      dtype >= 0 && dtype < PROF_I_TORCH_DTYPES ? prof_i_torch_dtypes[dtype] : PROF_DTYPE_NONE};
  return shape;
}

uint64_t prof_i_torch_input_count(const void *call) {
  const char *const *const list = prof_i_torch_at(call, prof_i_torch_layout_proven.inputs);
  return list[0] ? (uint64_t)(uintptr_t)list[1] : 0;
}

uint32_t prof_i_torch_inputs(const void *call, prof_tensor *tensors, uint32_t room) {
  const char *const *const list = prof_i_torch_at(call, prof_i_torch_layout_proven.inputs);
  const char *const values = list[0];
  const uint64_t count = prof_i_torch_input_count(call), taken = count < room ? count : room;
  for (uint64_t i = 0; i < taken; i++)
    tensors[i] = prof_i_torch_shape_read(values + i * PROF_I_TORCH_IVALUE_BYTES);
  return (uint32_t)taken;
}

/* ---- texts ---- */

prof_i_torch_values_layout prof_i_torch_values_proven;

enum {
  LIST_MAX = 30, /* torch.profiler leaves out longer lists */
  NUMBER_ROOM = 32,
  DOUBLES_BITS = 8
};

/* A text that is put together. `at` is beyond `end` where it did not fit. */
typedef struct value_text {
  char *at, *end;
} value_text;

static inline bool has_text_room(const value_text *l, ptrdiff_t bytes) {
  return l->end - l->at >= bytes;
}

static inline void put_char(value_text *l, char c) {
  if (has_text_room(l, 1))
    *l->at++ = c;
  else
    l->end = l->at - 1; /* from now on nothing fits */
}

static inline __attribute__((always_inline)) void put_chars(value_text *l, const char *text,
                                                            size_t bytes) {
  if (has_text_room(l, (ptrdiff_t)bytes)) {
    memcpy(l->at, text, bytes);
    l->at += bytes;
  } else {
    l->end = l->at - 1;
  }
}

static __attribute__((noinline)) void put_digits(value_text *l, int64_t number) {
  char digits[NUMBER_ROOM], *at = digits + sizeof digits;
  uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do {
    *--at = (char)('0' + left % 10);
    left /= 10;
  } while (left);
  if (number < 0) *--at = '-';
  put_chars(l, at, (size_t)(digits + sizeof digits - at));
}

/* Most strides and numbers have one digit. */
static inline void put_int_value(value_text *l, int64_t number) {
  if ((uint64_t)number < 10)
    put_char(l, (char)('0' + number));
  else
    put_digits(l, number);
}

/* ---- doubles ---- */

/* Formatting one takes longer than all else here, and operators have few different ones. The first
   one of its place stays for good. */
typedef struct known_double {
  uint64_t bits;
  uint32_t bytes;
  char text[NUMBER_ROOM];
} known_double;

static known_double *known_doubles[1 << DOUBLES_BITS];

/* 17 digits, whatever locale the program has. */
static uint32_t format_double(double number, char *text) {
  char raw[NUMBER_ROOM * 2];
  uint32_t bytes = 0;
  snprintf(raw, sizeof raw, "%.17g", number);
  for (const char *c = raw; *c && bytes < NUMBER_ROOM; c++) {
    const bool is_plain = (*c >= '0' && *c <= '9') || strchr("+-einfa", *c) != NULL;
    if (is_plain)
      text[bytes++] = *c;
    else if (!bytes || text[bytes - 1] != '.')
      text[bytes++] = '.';
  }
  return bytes;
}

static __attribute__((noinline)) void put_new_double(value_text *l, double number,
                                                     known_double **place) {
  const int before = errno;
  known_double made = {0}, *none = NULL;
  memcpy(&made.bits, &number, sizeof made.bits);
  made.bytes = format_double(number, made.text);
  put_chars(l, made.text, made.bytes);
  known_double *const kept = *place ? NULL : malloc(sizeof *kept);
  if (kept) {
    *kept = made;
    if (!__atomic_compare_exchange_n(place, &none, kept, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
      free(kept);
  }
  errno = before;
}

/* As torch writes one: a whole number with a point behind it, where 64 bits have it. */
static void put_double_value(value_text *l, double number) {
  if (fabs(number) < 0x1p63 && (double)(int64_t)number == number) {
    if (number == 0 && signbit(number)) put_char(l, '-');
    put_int_value(l, (int64_t)number);
    put_char(l, '.');
    return;
  }
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  known_double **const place =
      &known_doubles[bits * UINT64_C(0x9e3779b97f4a7c15) >> (64 - DOUBLES_BITS)];
  /* pairs with the release in put_new_double() */
  const known_double *const known = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (known && known->bits == bits)
    put_chars(l, known->text, known->bytes);
  else
    put_new_double(l, number, place);
}

/* ---- scalars and lists of them ---- */

static inline uint32_t tag_of(const void *value) {
  return *(const uint32_t *)prof_i_torch_at(value, PROF_I_TORCH_TAG_OFFSET);
}

/* False: its type is not known. */
static bool put_scalar(value_text *l, const void *value) {
  const prof_i_torch_values_layout *const layout = &prof_i_torch_values_proven;
  const uint32_t tag = tag_of(value);
  if (tag == layout->int_tag) {
    put_int_value(l, *(const int64_t *)value);
  } else if (tag == layout->double_tag) {
    put_double_value(l, *(const double *)value);
  } else if (tag == layout->bool_tag) {
    if (*(const uint8_t *)value)
      put_chars(l, "True", 4);
    else
      put_chars(l, "False", 5);
  } else {
    return false;
  }
  return true;
}

/* torch writes each empty list but those of tensors. Where the type of these is not known, only
   lists of int are sure. */
static bool is_empty_text(uint64_t type) {
  const prof_i_torch_values_layout *const layout = &prof_i_torch_values_proven;
  const bool is_known = layout->tensor_type != UINT64_MAX;
  return is_known ? type != layout->tensor_type : type == layout->int_type;
}

/* Nothing of a list that has something else in it. */
static void put_value_list(value_text *l, const void *list) {
  const prof_i_torch_values_layout *const layout = &prof_i_torch_values_proven;
  const uint64_t *const words = prof_i_torch_at(list, layout->elements);
  const char *const first = (const char *)(uintptr_t)words[0];
  const uint64_t count = (words[1] - words[0]) / PROF_I_TORCH_IVALUE_BYTES;
  const value_text before = *l;
  if (count > LIST_MAX || (!count && !is_empty_text(words[3]))) return;
  put_char(l, '[');
  for (uint64_t i = 0; i < count; i++) {
    if (i) put_chars(l, ", ", 2);
    if (put_scalar(l, first + i * PROF_I_TORCH_IVALUE_BYTES)) continue;
    *l = before;
    return;
  }
  put_char(l, ']');
}

static inline void put_ivalue(value_text *l, const void *value) {
  if (tag_of(value) == prof_i_torch_layout_proven.tensor_tag) {
    put_chars(l, "\"\"", 2);
    return;
  }
  put_char(l, '"');
  if (tag_of(value) == prof_i_torch_values_proven.list_tag)
    put_value_list(l, *(const void *const *)value);
  else
    put_scalar(l, value);
  put_char(l, '"');
}

/* ---- strides and dimensions ---- */

/* How many elements a list of tensors has, which are no optional ones; 0 of anything else. */
static uint64_t tensors_of(const void *value, const char **first_out) {
  const prof_i_torch_values_layout *const layout = &prof_i_torch_values_proven;
  if (tag_of(value) != layout->list_tag) return 0;
  const uint64_t *const words = prof_i_torch_at(*(const void *const *)value, layout->elements);
  *first_out = (const char *)(uintptr_t)words[0];
  return words[3] == layout->tensor_type ? (words[1] - words[0]) / PROF_I_TORCH_IVALUE_BYTES : 0;
}

bool prof_i_torch_is_tensors(const void *value) {
  const prof_i_torch_values_layout *const layout = &prof_i_torch_values_proven;
  if (!layout->is_proven || tag_of(value) != layout->list_tag) return false;
  const uint64_t *const words = prof_i_torch_at(*(const void *const *)value, layout->elements);
  return words[3] == layout->tensor_type;
}

static inline bool has_strides(const void *impl) {
  if (!prof_i_torch_has_sizes(impl)) return false;
  const uint64_t *const keys = prof_i_torch_at(impl, prof_i_torch_layout_proven.key_set);
  return !(*keys & prof_i_torch_values_proven.unstrided);
}

static void put_number_list(value_text *l, const int64_t *numbers, int64_t count) {
  put_char(l, '[');
  for (int64_t i = 0; i < count; i++) {
    if (i) put_char(l, ',');
    put_int_value(l, numbers[i]);
  }
  put_char(l, ']');
}

static inline void put_tensor_value(value_text *l, const void *value, bool (*has)(const void *impl),
                                    int32_t (*ask)(const void *, int64_t **)) {
  int64_t rank = 0, *numbers = NULL;
  const bool is_tensor = tag_of(value) == prof_i_torch_layout_proven.tensor_tag;
  if (!is_tensor || !has(*(const void *const *)value) || prof_i_torch.dim(value, &rank) ||
      rank <= 0 || ask(value, &numbers))
    rank = 0;
  put_number_list(l, numbers, rank);
}

static inline __attribute__((always_inline)) void put_one_or_list(value_text *l, const void *value,
                                                                  bool (*has)(const void *impl),
                                                                  int32_t (*ask)(const void *,
                                                                                 int64_t **)) {
  const char *first = NULL;
  const uint64_t count = tensors_of(value, &first);
  if (!count) {
    put_tensor_value(l, value, has, ask);
    return;
  }
  put_char(l, '[');
  for (uint64_t i = 0; i < count && l->at <= l->end; i++) {
    if (i) put_char(l, ',');
    put_tensor_value(l, first + i * PROF_I_TORCH_IVALUE_BYTES, has, ask);
  }
  put_char(l, ']');
}

static inline void put_strides(value_text *l, const void *value) {
  put_one_or_list(l, value, has_strides, prof_i_torch.strides);
}

static void put_tensor_dims(value_text *l, const void *value) {
  put_one_or_list(l, value, prof_i_torch_has_sizes, prof_i_torch.sizes);
}

/* ---- all of them ---- */

static inline __attribute__((always_inline)) uint32_t make_value_text(
    char *text, const char *values, uint32_t count, void (*put_one)(value_text *, const void *)) {
  value_text l = {text, text + PROF_I_TORCH_TEXT_BYTES};
  put_char(&l, '[');
  for (uint32_t i = 0; i < count; i++) {
    if (i) put_char(&l, ',');
    put_one(&l, values + (size_t)i * PROF_I_TORCH_IVALUE_BYTES);
  }
  put_char(&l, ']');
  return l.at <= l.end ? (uint32_t)(l.at - text) : 0;
}

static bool has_lists(const char *values, uint32_t count) {
  const char *first = NULL;
  for (uint32_t i = 0; i < count; i++)
    if (tensors_of(values + (size_t)i * PROF_I_TORCH_IVALUE_BYTES, &first)) return true;
  return false;
}

static void put_value_type(value_text *l, const void *value) {
  put_int_value(l, prof_i_torch_shape_read(value).dtype);
}

void prof_i_torch_texts_make(const void *call, uint32_t count, bool has_all,
                             prof_i_torch_texts *texts) {
  const char *const *const list = prof_i_torch_at(call, prof_i_torch_layout_proven.inputs);
  texts->concrete_bytes = make_value_text(texts->concrete, list[0], count, put_ivalue);
  texts->strides_bytes =
      prof_i_torch.strides ? make_value_text(texts->strides, list[0], count, put_strides) : 0;
  texts->lists_bytes = has_all || has_lists(list[0], count)
                           ? make_value_text(texts->lists, list[0], count, put_tensor_dims)
                           : 0;
  texts->types_bytes = has_all ? make_value_text(texts->types, list[0], count, put_value_type) : 0;
}
