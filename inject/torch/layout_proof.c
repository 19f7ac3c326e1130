/* Finds where torch keeps what its headers inline, and proves it by calls whose contents are known.
   Each offset that does not hold the known value is excluded, and exactly one of each kind must be
   left. Reads only a RecordFunction, whose size is found first, and what process_vm_readv() can
   read. Called by bindings/python/prof/_torch_calls.py, which makes the known calls; one thread at
   a time. */
#define _GNU_SOURCE
#include "internal.h"

#include "../../src/export/dtype_names.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
  CALL_MAX = 1024, /* bytes; a RecordFunction of torch 2.15 has 344 */
  IMPL_WORDS = 32  /* of a TensorImpl: 24 or so */
};

prof_i_torch_layout prof_i_torch_layout_proven;

/* One byte an offset: 1, it may be there. */
typedef struct offset_candidates {
  uint8_t is_candidate[CALL_MAX];
} offset_candidates;

static struct {
  offset_candidates scope, sequence, forward, inputs;
  uint8_t key_set[IMPL_WORDS];
  /* bits that are set in all tensors whose sizes come from code, and in no others */
  uint64_t custom[IMPL_WORDS];
  bool has_custom;
  uint64_t handle;
  prof_i_torch_known known;
  uint32_t tensor_tag;
  bool is_seen, is_proven;
  char problem[256];
} layout_search;

/* ---- what a place holds ---- */

bool prof_i_torch_read(const void *from, void *to, size_t bytes) {
  const struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

static uint64_t word_at(const void *call, uint32_t offset) {
  uint64_t word;
  memcpy(&word, prof_i_torch_at(call, offset), sizeof word);
  return word;
}

static void keep_words(offset_candidates *p, const void *call, uint64_t word) {
  for (uint32_t at = 0; at < CALL_MAX; at++)
    if (p->is_candidate[at] && word_at(call, at) != word) p->is_candidate[at] = 0;
}

static void keep_scope(offset_candidates *p, const void *call, uint8_t scope) {
  for (uint32_t at = 0; at < CALL_MAX; at++)
    if (p->is_candidate[at] && *(const uint8_t *)prof_i_torch_at(call, at) != scope)
      p->is_candidate[at] = 0;
}

/* A pointer to the known inputs, and how many they are. */
static bool are_inputs(const prof_i_torch_known *known, uint64_t pointer, uint64_t count) {
  uint64_t values[PROF_I_TORCH_INPUTS_MAX * PROF_I_TORCH_IVALUE_WORDS];
  if (count != known->count ||
      !prof_i_torch_read((const void *)(uintptr_t)pointer, values,
                         count * PROF_I_TORCH_IVALUE_WORDS * sizeof *values))
    return false;
  uint32_t tensor_tag = layout_search.tensor_tag;
  for (uint64_t i = 0; i < count; i++) {
    const uint32_t tag = (uint32_t)values[i * PROF_I_TORCH_IVALUE_WORDS + 1];
    if (known->inputs[i].impl) {
      if (tensor_tag == UINT32_MAX) tensor_tag = tag;
      if (values[i * PROF_I_TORCH_IVALUE_WORDS] != (uintptr_t)known->inputs[i].impl ||
          tag != tensor_tag)
        return false;
    } else if (tag == tensor_tag) {
      return false;
    }
  }
  layout_search.tensor_tag = tensor_tag;
  return true;
}

static void keep_inputs(offset_candidates *p, const void *call, const prof_i_torch_known *known) {
  for (uint32_t at = 0; at < CALL_MAX; at++)
    if (p->is_candidate[at] &&
        !are_inputs(known, word_at(call, at), word_at(call, at + sizeof(uint64_t))))
      p->is_candidate[at] = 0;
}

/* Exactly one; else 0, and what is wrong. */
static bool take_offset(const offset_candidates *p, uint32_t *offset_out, const char *what) {
  uint32_t count = 0;
  for (uint32_t at = 0; at < CALL_MAX; at++) {
    if (!p->is_candidate[at]) continue;
    if (!count++) *offset_out = at;
  }
  if (count == 1) return true;
  snprintf(layout_search.problem, sizeof layout_search.problem,
           "a call's %s may stand in %u places", what, count);
  return false;
}

/* ---- calls that prof makes itself: the size, the scope, the number ---- */

static void *empty_begin(void **context_out, const void *call) {
  (void)call;
  *context_out = NULL;
  return context_out;
}

static void empty_end(const void *call, void *context) {
  (void)call;
  (void)context;
}

typedef union call_buffer {
  uint8_t bytes[CALL_MAX];
  uint64_t words[CALL_MAX / sizeof(uint64_t)];
  long double aligned;
} call_buffer;

static void make_call(call_buffer *call, call_buffer *copy_out, uint8_t fill, uint8_t scope,
                      int64_t sequence) {
  static const char name[] = "prof";
  memset(call, fill, sizeof *call);
  prof_i_torch.construct(call, scope);
  if (prof_i_torch.before)
    prof_i_torch.before(call, (prof_i_torch_descriptor){sizeof name - 1, name, 0}, sequence);
  else
    prof_i_torch.before_text(call, name, sequence);
  *copy_out = *call;
  prof_i_torch.destroy(call);
}

/* Bytes up to the last one that the constructor writes, whatever stood there. */
static uint32_t written_bytes_of(const call_buffer *a, const call_buffer *b) {
  uint32_t bytes = CALL_MAX;
  while (bytes && a->bytes[bytes - 1] == 0xa5 && b->bytes[bytes - 1] == 0x5a) bytes--;
  return bytes;
}

/* The callback's own layout: asked for inputs, exactly one byte behind the scope says so. */
static bool is_inputs_flag_proven(const call_buffer *without, const call_buffer *with,
                                  uint32_t scope) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < prof_i_torch_layout_proven.call_bytes; i++)
    count += without->bytes[i] != with->bytes[i];
  if (count == 1 && without->bytes[scope + 1] == 0 && with->bytes[scope + 1] == 1 &&
      with->bytes[scope + 2] == 0 && with->bytes[scope + 3] == 0)
    return true;
  snprintf(layout_search.problem, sizeof layout_search.problem,
           "a callback that asks for inputs changes %u bytes of a call", count);
  return false;
}

static uint64_t add_probe(bool needs_inputs, void *(*begin)(void **, const void *)) {
  return prof_i_torch.add((prof_i_torch_callback){.start = begin,
                                                  .end = empty_end,
                                                  .probability = 1,
                                                  .scopes = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                                  .needs_inputs = needs_inputs});
}

#if defined(__aarch64__)
#define BEGIN(name)                                                                        \
  void *name(void **context_out, const void *call) __attribute__((visibility("hidden")));  \
  __asm__(".text\n.hidden " #name "\n.global " #name "\n.type " #name ",%function\n" #name \
          ":\n  mov x1, x0\n  mov x0, x8\n  b " #name "_in_c\n.size " #name ",.-" #name "\n");
#else
#define BEGIN(name) \
  static void *name(void **context_out, const void *call) { return name##_in_c(context_out, call); }
#endif

static __attribute__((used)) void *probe_nothing_in_c(void **context_out, const void *call) {
  return empty_begin(context_out, call);
}
BEGIN(probe_nothing)

static bool find_by_made_calls(void) {
  static const uint8_t scopes[] = {PROF_I_TORCH_USER, PROF_I_TORCH_FUNCTION, PROF_I_TORCH_BACKWARD,
                                   5, 3};
  static call_buffer call, copies[2];
  prof_i_torch_layout *const layout = &prof_i_torch_layout_proven;
  uint64_t handle = add_probe(false, probe_nothing);
  make_call(&call, &copies[0], 0xa5, PROF_I_TORCH_FUNCTION, 0);
  make_call(&call, &copies[1], 0x5a, PROF_I_TORCH_FUNCTION, 0);
  layout->call_bytes = written_bytes_of(&copies[0], &copies[1]);
  const uint32_t last = layout->call_bytes > 2 * sizeof(uint64_t)
                            ? layout->call_bytes - 2 * (uint32_t)sizeof(uint64_t)
                            : 0;
  for (uint32_t at = 0; at <= last; at++) {
    layout_search.scope.is_candidate[at] = 1;
    layout_search.sequence.is_candidate[at] = layout_search.forward.is_candidate[at] =
        layout_search.inputs.is_candidate[at] = at % sizeof(uint64_t) == 0;
  }
  for (size_t i = 0; i < sizeof scopes; i++) {
    const int64_t sequence = INT64_C(0x5eed00000000) * (int64_t)(i + 1);
    make_call(&call, &copies[0], 0, scopes[i], sequence);
    keep_scope(&layout_search.scope, &copies[0], scopes[i]);
    keep_words(&layout_search.sequence, &copies[0], (uint64_t)sequence);
  }
  make_call(&call, &copies[0], 0, PROF_I_TORCH_FUNCTION, 0);
  prof_i_torch.remove(handle);
  handle = add_probe(true, probe_nothing);
  make_call(&call, &copies[1], 0, PROF_I_TORCH_FUNCTION, 0);
  prof_i_torch.remove(handle);
  return take_offset(&layout_search.scope, &layout->scope, "scope") &&
         take_offset(&layout_search.sequence, &layout->sequence, "sequence number") &&
         is_inputs_flag_proven(&copies[0], &copies[1], layout->scope);
}

/* ---- calls that Python makes ---- */

static bool are_shapes(const void *call, const prof_i_torch_known *known) {
  prof_tensor found[PROF_I_TORCH_INPUTS_MAX];
  if (prof_i_torch_inputs(call, found, PROF_I_TORCH_INPUTS_MAX) != known->count) return false;
  for (uint32_t i = 0; i < known->count; i++) {
    const bool is_list = found[i].dtype == PROF_I_DTYPE_TENSORS; /* known only later */
    if (found[i].rank != known->inputs[i].rank ||
        (is_list ? PROF_DTYPE_NONE : found[i].dtype) != known->inputs[i].dtype)
      return false;
    for (uint32_t d = 0; d < found[i].rank; d++)
      if (found[i].dims[d] != known->inputs[i].dims[d]) return false;
  }
  return true;
}

static void examine_call(const void *call) {
  const prof_i_torch_known *const known = &layout_search.known;
  const uint64_t forward =
      known->forward == PROF_I_TORCH_THIS_THREAD ? prof_i_torch.thread_id() : known->forward;
  keep_scope(&layout_search.scope, call, (uint8_t)known->scope);
  keep_words(&layout_search.sequence, call, (uint64_t)known->sequence);
  keep_words(&layout_search.forward, call, forward);
  if (known->count) keep_inputs(&layout_search.inputs, call, known);
  if (layout_search.is_proven && !are_shapes(call, known))
    snprintf(layout_search.problem, sizeof layout_search.problem,
             "the inputs of %s are not those that it was given", known->name);
  if (layout_search.is_proven) prof_i_torch_values_examine(call, known);
  layout_search.is_seen = true;
}

static __attribute__((used)) void *call_probe_in_c(void **context_out, const void *call) {
  *context_out = NULL;
  if (!layout_search.is_seen && strcmp(prof_i_torch.name(call), layout_search.known.name) == 0)
    examine_call(call);
  return context_out;
}
BEGIN(call_probe)

PROF_I_TORCH_EXPORT const char *prof_i_torch_open_1(void);
PROF_I_TORCH_EXPORT void prof_i_torch_expect_1(const prof_i_torch_known *known);
PROF_I_TORCH_EXPORT int prof_i_torch_met_1(void);
PROF_I_TORCH_EXPORT void prof_i_torch_keys_1(const void *impl, uint64_t keys, int is_custom);
PROF_I_TORCH_EXPORT const char *prof_i_torch_prove_1(uint64_t avoided);
PROF_I_TORCH_EXPORT const prof_i_torch_layout *prof_i_torch_layout_1(void);

/* Begins anew. NULL, or what is missing or wrong; valid until the next call. */
const char *prof_i_torch_open_1(void) {
  memset(&layout_search, 0, sizeof layout_search);
  memset(layout_search.key_set, 1, sizeof layout_search.key_set);
  memset(layout_search.custom, 0xff, sizeof layout_search.custom);
  layout_search.tensor_tag = UINT32_MAX;
  const char *const missing = prof_i_torch_missing();
  if (missing)
    snprintf(layout_search.problem, sizeof layout_search.problem, "%s is not there", missing);
  return !missing && find_by_made_calls() ? NULL : layout_search.problem;
}

/* The next call of that name, on this thread, is known. known->name must live until
   prof_i_torch_met_1(). */
void prof_i_torch_expect_1(const prof_i_torch_known *known) {
  layout_search.known = *known;
  layout_search.is_seen = false;
  layout_search.handle = add_probe(true, call_probe);
}

/* 1: it arrived. */
int prof_i_torch_met_1(void) {
  prof_i_torch.remove(layout_search.handle);
  return layout_search.is_seen;
}

/* Examines a tensor whose keys are known, and whether its sizes come from code. */
void prof_i_torch_keys_1(const void *impl, uint64_t keys, int is_custom) {
  uint64_t words[IMPL_WORDS] = {0};
  uint32_t readable = IMPL_WORDS;
  while (readable && !prof_i_torch_read(impl, words, readable * sizeof *words)) readable--;
  for (uint32_t i = 0; i < IMPL_WORDS; i++) {
    if (i >= readable || words[i] != keys) layout_search.key_set[i] = 0;
    layout_search.custom[i] &= i >= readable ? 0 : is_custom ? words[i] : ~words[i];
  }
  layout_search.has_custom |= is_custom != 0;
}

static bool take_key_set(uint32_t *offset_out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < IMPL_WORDS; i++) {
    if (!layout_search.key_set[i]) continue;
    if (!count++) *offset_out = i * (uint32_t)sizeof(uint64_t);
  }
  if (count != 1)
    snprintf(layout_search.problem, sizeof layout_search.problem,
             "a tensor's keys may stand in %u places", count);
  return count == 1;
}

static bool take_custom(uint32_t key_set, uint64_t *bits_out) {
  *bits_out = layout_search.has_custom && key_set
                  ? layout_search.custom[key_set / sizeof(uint64_t) - 1]
                  : 0;
  if (!*bits_out)
    snprintf(layout_search.problem, sizeof layout_search.problem,
             "no bit before a tensor's keys says whether its sizes are symbols");
  return *bits_out != 0;
}

/* After the first known calls: checks that exactly one place of each kind is left. The next known
   calls have their shapes read at these places. Call it once more after those. NULL, or what is
   wrong. */
const char *prof_i_torch_prove_1(uint64_t avoided) {
  prof_i_torch_layout *const layout = &prof_i_torch_layout_proven;
  layout->avoided = avoided;
  layout->tensor_tag = layout_search.tensor_tag;
  if (layout_search.problem[0]) return layout_search.problem;
  layout_search.is_proven =
      take_offset(&layout_search.scope, &layout->scope, "scope") &&
      take_offset(&layout_search.sequence, &layout->sequence, "sequence number") &&
      take_offset(&layout_search.forward, &layout->forward, "forward thread") &&
      take_offset(&layout_search.inputs, &layout->inputs, "inputs") &&
      take_key_set(&layout->key_set) && take_custom(layout->key_set, &layout->custom);
  return layout_search.is_proven ? NULL : layout_search.problem;
}

/* For a test that knows the headers. */
const prof_i_torch_layout *prof_i_torch_layout_1(void) { return &prof_i_torch_layout_proven; }
