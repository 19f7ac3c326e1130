/* Finds what values.c needs, in the way of layout_proof.c: by calls whose inputs are known. Each
   place that does not hold the known value is excluded, and exactly one must be left. Then texts of
   further known calls are compared. Until everything is found, memory is read only by
   process_vm_readv(). Called by bindings/python/prof/_torch_calls.py; one thread at a time. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <string.h>

enum {
  LIST_WORDS = 12, /* of a list: virtual table, counts, three pointers, type */
  KINDS = PROF_I_TORCH_KNOWN_LIST + 1,
  NO_TAG = UINT32_MAX,
  NO_TYPE = 0
};

static struct {
  uint32_t tags[KINDS];
  uint8_t elements[LIST_WORDS]; /* 1: the list's pointers may be there */
  /* The word three behind, as long as all lists of int, or of tensors, have the same. */
  uint64_t int_types[LIST_WORDS], tensor_types[LIST_WORDS];
  bool is_found;
  char problem[256];
} values_search;

PROF_I_TORCH_EXPORT void prof_i_torch_values_open_1(uint64_t unstrided);
PROF_I_TORCH_EXPORT const char *prof_i_torch_values_prove_1(void);
PROF_I_TORCH_EXPORT const prof_i_torch_values_layout *prof_i_torch_values_layout_1(void);

static void set_problem(const char *what, const prof_i_torch_known *known) {
  if (values_search.problem[0] == '\0')
    snprintf(values_search.problem, sizeof values_search.problem,
             "%s of %s is not what it was given", what, known->name);
}

/* ---- looking ---- */

static bool are_elements(uint64_t first, const int64_t *known, uint32_t count, uint32_t tag) {
  uint64_t values[PROF_I_TORCH_RANK_MAX * PROF_I_TORCH_IVALUE_WORDS];
  const size_t bytes = count * PROF_I_TORCH_IVALUE_WORDS * sizeof *values;
  if (!prof_i_torch_read((const void *)(uintptr_t)first, values, bytes)) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (values[i * PROF_I_TORCH_IVALUE_WORDS] != (uint64_t)known[i]) return false;
    if ((uint32_t)values[i * PROF_I_TORCH_IVALUE_WORDS + 1] != tag) return false;
  }
  return true;
}

static void examine_list(uint64_t list, const int64_t *known, uint32_t count, uint32_t tag,
                         uint64_t *types) {
  uint64_t words[LIST_WORDS + 4] = {0};
  uint32_t readable = LIST_WORDS + 4;
  while (readable &&
         !prof_i_torch_read((const void *)(uintptr_t)list, words, readable * sizeof *words))
    readable--;
  for (uint32_t i = 0; i < LIST_WORDS; i++) {
    const uint64_t bytes = (uint64_t)count * PROF_I_TORCH_IVALUE_BYTES;
    if (!values_search.elements[i]) continue;
    values_search.elements[i] = i + 4 <= readable && words[i + 1] - words[i] == bytes &&
                                words[i + 2] >= words[i + 1] &&
                                are_elements(words[i], known, count, tag);
    if (types[i] == UINT64_MAX)
      types[i] = words[i + 3];
    else if (types[i] != words[i + 3])
      types[i] = NO_TYPE;
  }
}

static bool is_value(uint64_t payload, uint32_t kind, int64_t known) {
  switch (kind) {
    case PROF_I_TORCH_KNOWN_INT:
    case PROF_I_TORCH_KNOWN_DOUBLE:
      return payload == (uint64_t)known;
    case PROF_I_TORCH_KNOWN_BOOL:
      return (uint8_t)payload == (uint8_t)known;
    default:
      return true;
  }
}

static void examine_inputs(const uint64_t *values, const prof_i_torch_known *known) {
  for (uint32_t i = 0; i < known->count; i++) {
    const uint64_t payload = values[i * PROF_I_TORCH_IVALUE_WORDS];
    const uint32_t tag = (uint32_t)values[i * PROF_I_TORCH_IVALUE_WORDS + 1];
    const uint32_t what = known->inputs[i].kind, rank = known->inputs[i].rank;
    const int64_t *const dims = known->inputs[i].dims;
    const bool has_tensors = what == PROF_I_TORCH_KNOWN_TENSORS;
    const uint32_t kind = has_tensors ? PROF_I_TORCH_KNOWN_LIST : what;
    if (kind == PROF_I_TORCH_KNOWN_OTHER || kind >= KINDS) continue;
    if (values_search.tags[kind] == NO_TAG) values_search.tags[kind] = tag;
    if (values_search.tags[kind] != tag || !is_value(payload, kind, dims[0]))
      set_problem("a scalar", known);
    else if (has_tensors)
      examine_list(payload, dims, rank, prof_i_torch_layout_proven.tensor_tag,
                   values_search.tensor_types);
    else if (kind == PROF_I_TORCH_KNOWN_LIST)
      examine_list(payload, dims, rank, values_search.tags[PROF_I_TORCH_KNOWN_INT],
                   values_search.int_types);
  }
}

static void compare_texts(const void *call, const prof_i_torch_known *known) {
  static prof_i_torch_texts texts;
  prof_i_torch_texts_make(call, known->count, false, &texts);
  if (texts.concrete_bytes != strlen(known->concrete) ||
      memcmp(texts.concrete, known->concrete, texts.concrete_bytes) != 0)
    set_problem("an input", known);
  if (prof_i_torch.strides && (texts.strides_bytes != strlen(known->strides) ||
                               memcmp(texts.strides, known->strides, texts.strides_bytes) != 0))
    set_problem("a stride", known);
}

void prof_i_torch_values_examine(const void *call, const prof_i_torch_known *known) {
  uint64_t values[PROF_I_TORCH_INPUTS_MAX * PROF_I_TORCH_IVALUE_WORDS];
  const uint64_t *const list = prof_i_torch_at(call, prof_i_torch_layout_proven.inputs);
  const size_t bytes = known->count * PROF_I_TORCH_IVALUE_WORDS * sizeof *values;
  if (!known->count || values_search.problem[0]) return;
  if (values_search.is_found && known->concrete) compare_texts(call, known);
  if (values_search.is_found) return;
  if (list[1] != known->count ||
      !prof_i_torch_read((const void *)(uintptr_t)list[0], values, bytes))
    set_problem("an input", known);
  else
    examine_inputs(values, known);
}

/* ---- found ---- */

static bool are_tags_apart(void) {
  for (uint32_t i = PROF_I_TORCH_KNOWN_NONE; i < KINDS; i++) {
    bool is_apart = values_search.tags[i] != NO_TAG &&
                    values_search.tags[i] != prof_i_torch_layout_proven.tensor_tag;
    for (uint32_t k = PROF_I_TORCH_KNOWN_NONE; k < i; k++)
      is_apart &= values_search.tags[i] != values_search.tags[k];
    if (!is_apart) {
      snprintf(values_search.problem, sizeof values_search.problem,
               "scalars' tag %u is not apart from others", i);
      return false;
    }
  }
  return true;
}

/* Neither is known where lists of one kind have several, or both kinds have the same. */
static void take_types(prof_i_torch_values_layout *layout, size_t at) {
  const uint64_t ints = values_search.int_types[at], tensors = values_search.tensor_types[at];
  const bool is_apart = ints != tensors;
  layout->int_type = is_apart && ints != NO_TYPE ? ints : UINT64_MAX;
  layout->tensor_type = is_apart && tensors != NO_TYPE ? tensors : UINT64_MAX;
}

static bool take_elements(prof_i_torch_values_layout *layout) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < LIST_WORDS; i++) {
    if (!values_search.elements[i]) continue;
    if (!count++) layout->elements = i * (uint32_t)sizeof(uint64_t);
  }
  if (count != 1)
    snprintf(values_search.problem, sizeof values_search.problem,
             "a list's elements may stand in %u places", count);
  else
    take_types(layout, layout->elements / sizeof(uint64_t));
  return count == 1;
}

/* Begins anew, after prof_i_torch_prove_1() has found its own. */
void prof_i_torch_values_open_1(uint64_t unstrided) {
  memset(&values_search, 0, sizeof values_search);
  memset(values_search.tags, 0xff, sizeof values_search.tags);
  memset(values_search.elements, 1, sizeof values_search.elements);
  memset(values_search.int_types, 0xff, sizeof values_search.int_types);
  memset(values_search.tensor_types, 0xff, sizeof values_search.tensor_types);
  prof_i_torch_values_proven = (prof_i_torch_values_layout){.unstrided = unstrided};
}

/* After the first known calls, and again after further ones, whose texts are compared. NULL, or
   what is wrong: then no texts are made. */
const char *prof_i_torch_values_prove_1(void) {
  prof_i_torch_values_layout *const layout = &prof_i_torch_values_proven;
  if (!values_search.problem[0] && !values_search.is_found && are_tags_apart() &&
      take_elements(layout)) {
    layout->int_tag = values_search.tags[PROF_I_TORCH_KNOWN_INT];
    layout->double_tag = values_search.tags[PROF_I_TORCH_KNOWN_DOUBLE];
    layout->bool_tag = values_search.tags[PROF_I_TORCH_KNOWN_BOOL];
    layout->list_tag = values_search.tags[PROF_I_TORCH_KNOWN_LIST];
    values_search.is_found = true;
  }
  layout->is_proven = !values_search.problem[0];
  return values_search.problem[0] ? values_search.problem : NULL;
}

/* For a test that knows the headers. */
const prof_i_torch_values_layout *prof_i_torch_values_layout_1(void) {
  return &prof_i_torch_values_proven;
}
