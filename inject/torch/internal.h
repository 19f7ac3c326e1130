/* libprof_torch.so: PyTorch's operators by its dispatcher's callbacks (at::RecordFunction), from C.
   Nothing of torch is linked, and none of its C++ is compiled here. Exported functions are found by
   their mangled names (symbols.c). Offsets of inlined members are found by known calls, and proven
   before they are used (layout_proof.c). Then each operator is a scope of libprof.so's (calls.c,
   names.c). What an input has beside its shape has its own proof (values_proof.c).
   bindings/python/prof/_torch_calls.py makes the known calls. The C++ ABI is Itanium's with
   libstdc++, as in all of torch's wheels for Linux. Names are those of ATen/record_function.h. A
   RecordFunction represents one running call. Its inputs are IValues of 16 bytes: 8 of payload, and
   a tag. */
#ifndef PROF_INJECT_TORCH_INTERNAL_H
#define PROF_INJECT_TORCH_INTERNAL_H

#include <prof/profiler.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROF_I_TORCH_EXPORT __attribute__((visibility("default")))

/* ---- what torch exports ---- */

/* std::string_view, and the alternative of std::variant<std::string_view, std::reference_wrapper<>>
   that holds it. It has more than 16 bytes and no constructor of its own, so it is passed in
   memory, as this struct is. */
typedef struct prof_i_torch_descriptor {
  size_t bytes;
  const char *text;
  uint8_t alternative; /* 0: the string_view */
} prof_i_torch_descriptor;

/* at::RecordFunctionCallback, passed by value: in memory. */
typedef struct prof_i_torch_callback {
  /* returns a std::unique_ptr: by an address that the caller gives, see calls.c */
  void *(*start)(void **context_out, const void *call);
  void (*end)(const void *call, void *context);
  double probability;
  uint8_t scopes[10]; /* by prof_i_torch_scope */
  uint8_t needs_inputs, needs_outputs, needs_ids;
} prof_i_torch_callback;

typedef enum prof_i_torch_scope {
  PROF_I_TORCH_FUNCTION = 0,
  PROF_I_TORCH_BACKWARD = 1,
  PROF_I_TORCH_USER = 7
} prof_i_torch_scope;

/* name, type, symbol */
#define PROF_I_TORCH_SYMBOLS(X)                                                         \
  X(add, uint64_t (*)(prof_i_torch_callback),                                           \
    "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE")                      \
  X(remove, void (*)(uint64_t), "_ZN2at14removeCallbackEm")                             \
  X(name, const char *(*)(const void *), "_ZNK2at14RecordFunction4nameEv")              \
  X(is_async, bool (*)(const void *), "_ZNK2at14RecordFunction7isAsyncEv")              \
  X(thread_id, uint64_t (*)(void), "_ZN2at14RecordFunction15currentThreadIdEv")         \
  X(construct, void (*)(void *, uint8_t), "_ZN2at14RecordFunctionC1ENS_11RecordScopeE") \
  X(destroy, void (*)(void *), "_ZN2at14RecordFunctionD1Ev")                            \
  X(undefined, const void *, "_ZN3c1019UndefinedTensorImpl10_singletonE")               \
  X(dim, int32_t (*)(const void *, int64_t *), "aoti_torch_get_dim")                    \
  X(sizes, int32_t (*)(const void *, int64_t **), "aoti_torch_get_sizes")               \
  X(dtype, int32_t (*)(const void *, int32_t *), "aoti_torch_get_dtype")

/* Of these one is there: torch has taken a name by std::string_view since 2.6 or so. */
#define PROF_I_TORCH_EITHER(X)                                                   \
  X(before, void (*)(void *, prof_i_torch_descriptor, int64_t),                  \
    "_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_" \
    "traitsIcEESt17reference_wrapperIKN3c1014FunctionSchemaEEEEl")               \
  X(before_text, void (*)(void *, const char *, int64_t), "_ZN2at14RecordFunction6beforeEPKcl")

typedef struct prof_i_torch_symbols {
  /* at::addGlobalCallback(): for all threads. NULL: it is not there, which prof_i_torch_missing()
     lets pass */
  uint64_t (*add_global)(prof_i_torch_callback);
  int32_t (*strides)(const void *, int64_t **); /* as add_global: NULL, it is not there */
#define PROF_I_TORCH_FIELD(name, type, symbol) __typeof__(type)(name);
  PROF_I_TORCH_SYMBOLS(PROF_I_TORCH_FIELD)
  PROF_I_TORCH_EITHER(PROF_I_TORCH_FIELD)
#undef PROF_I_TORCH_FIELD
} prof_i_torch_symbols;

/* All of them are there, and one of either, or the name of one that is not. Filled once, before
   anything else here is called. */
extern prof_i_torch_symbols prof_i_torch;
const char *prof_i_torch_missing(void);

/* prof_dtype of each of torch's own codes; symbols.c fills it, from aoti_torch_dtype_*() where it
   can. */
enum { PROF_I_TORCH_DTYPES = 64 };
extern uint16_t prof_i_torch_dtypes[PROF_I_TORCH_DTYPES];

/* ---- what is proven ---- */

/* Offsets in bytes, of a RecordFunction but for the last. Written before the first callback is
   added, constant from then on. */
typedef struct prof_i_torch_layout {
  uint32_t call_bytes; /* at least the last of its bytes that its constructor writes */
  uint32_t scope;      /* uint8_t */
  uint32_t sequence;   /* int64_t, -1: none */
  /* uint64_t: of a backward call, the number of the thread that ran the forward one; else 0 */
  uint32_t forward;
  uint32_t inputs;     /* IValue *, size_t */
  uint32_t tensor_tag; /* an IValue's, of a Tensor */
  uint32_t key_set;    /* uint64_t, of a TensorImpl */
  /* keys of tensors whose sizes are not queried: a query throws, or may call Python in a torch
     whose bits below were not seen with Python's classes */
  uint64_t avoided;
  /* bits of the word before the keys; one is set if sizes come from code. A tensor with symbolic
     sizes has no key that says so, and a query would fix them */
  uint64_t custom;
} prof_i_torch_layout;

extern prof_i_torch_layout prof_i_torch_layout_proven;

/* ---- silence ---- */

/* If it is not 0, prof itself makes this thread's calls and allocations, and they are not recorded.
   It counts nested requests. */
extern __thread uint32_t prof_i_torch_silence
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- one call ---- */

/* What calls of one name are recorded by, where their arguments are alike: a call site's arguments
   are quick to record when they are as they were the last time. */
typedef struct prof_i_torch_name {
  struct prof_i_torch_name *next;
  prof_site site;
  uint32_t kind;
  char text[];
} prof_i_torch_name;

/* A kind distinguishes calls with the same text. args: their count, as the caller encodes it. */
enum { PROF_I_TORCH_KIND_SCOPE_BITS = 4, PROF_I_TORCH_KIND_FOR_BITS = 8 };
static inline uint32_t prof_i_torch_kind(uint32_t scope, uint32_t for_whom, uint32_t args) {
  return args << (PROF_I_TORCH_KIND_SCOPE_BITS + PROF_I_TORCH_KIND_FOR_BITS) |
         for_whom << PROF_I_TORCH_KIND_SCOPE_BITS | scope;
}

/* Kept for good, one a text and kind; NULL: there is no memory, or there are too many. Any
   thread. */
prof_i_torch_name *prof_i_torch_name_of(const char *text, uint32_t kind);

/* The inputs' shapes, as many as there is room for; returns how many. Their dims are torch's, while
   the call begins. */
uint32_t prof_i_torch_inputs(const void *call, prof_tensor *tensors, uint32_t room);

/* How many inputs it has. */
uint64_t prof_i_torch_input_count(const void *call);

/* Of one input; without dims and type where it is no tensor. */
prof_tensor prof_i_torch_shape_read(const void *value);

static inline const void *prof_i_torch_at(const void *object, uint32_t offset) {
  return (const char *)object + offset;
}

/* ---- values.c: a call's inputs beside their shapes ---- */

/* Scalars, lists of scalars, strides. As texts, in the form in which prof import keeps "Concrete
   Inputs" and "Input Strides" of torch's own traces. What is needed for it is found and proven
   apart from the rest (values_proof.c), for shapes are recorded without it, too. Read only where a
   callback asks for inputs. */

enum {
  PROF_I_TORCH_IVALUE_BYTES = 16, /* payload, tag */
  PROF_I_TORCH_TAG_OFFSET = 8,
  PROF_I_TORCH_TEXT_BYTES = 4096,   /* of one text; one that would be longer is left out */
  PROF_I_TORCH_TEXT_INPUTS_MAX = 64 /* those of texts; the rest is left out, and counted */
};

/* Written before the first callback is added, constant from then on. */
typedef struct prof_i_torch_values_layout {
  uint32_t int_tag, double_tag, bool_tag, list_tag; /* an IValue's */
  uint32_t elements;                                /* offset in a list: IValue *begin, *end */
  uint32_t is_proven;                               /* 0: no texts are made */
  uint64_t int_type;    /* the word three behind `elements`, of each list of int */
  uint64_t tensor_type; /* the same of each list of tensors */
  uint64_t unstrided;   /* keys of tensors that have no strides */
} prof_i_torch_values_layout;

extern prof_i_torch_values_layout prof_i_torch_values_proven;

/* lists: all inputs' dimensions, if one is a list of tensors or all are wanted. types: all inputs'
   prof_dtype, if all are wanted. */
typedef struct prof_i_torch_texts {
  uint32_t concrete_bytes, strides_bytes, lists_bytes, types_bytes; /* 0: none */
  char concrete[PROF_I_TORCH_TEXT_BYTES], strides[PROF_I_TORCH_TEXT_BYTES];
  char lists[PROF_I_TORCH_TEXT_BYTES], types[PROF_I_TORCH_TEXT_BYTES];
} prof_i_torch_texts;

/* Of the first `count` inputs of a call, which has that many. has_all: also what tensors have in
   the record, dimensions and types. Any thread, while the call begins. */
void prof_i_torch_texts_make(const void *call, uint32_t count, bool has_all,
                             prof_i_torch_texts *texts);

/* Whether it is a list of tensors, also an empty one. False while that is not proven. */
bool prof_i_torch_is_tensors(const void *value);

/* True if this tensor's sizes may be queried. False for an undefined one. */
bool prof_i_torch_has_sizes(const void *impl);

/* ---- layout_proof.c: what both proofs share: the known calls ---- */

/* Used by layout_proof.c and values_proof.c alone. */

enum {
  PROF_I_TORCH_INPUTS_MAX = 4,
  PROF_I_TORCH_RANK_MAX = 4,
  PROF_I_TORCH_IVALUE_WORDS = 2 /* payload, tag */
};

/* What an input is that is no tensor. */
typedef enum prof_i_torch_known_kind {
  PROF_I_TORCH_KNOWN_OTHER = 0, /* nothing is known of it */
  PROF_I_TORCH_KNOWN_NONE = 1,
  PROF_I_TORCH_KNOWN_INT = 2,    /* dims[0] */
  PROF_I_TORCH_KNOWN_DOUBLE = 3, /* the bits of dims[0] */
  PROF_I_TORCH_KNOWN_BOOL = 4,   /* dims[0] */
  PROF_I_TORCH_KNOWN_LIST = 5,   /* of ints: the first `rank` of dims */
  PROF_I_TORCH_KNOWN_TENSORS = 6 /* a list of them: dims are addresses, as impl */
} prof_i_torch_known_kind;

/* A known call. bindings/python/prof/_torch_calls.py has the same. */
typedef struct prof_i_torch_known {
  const char *name;
  int64_t sequence;
  uint64_t forward; /* PROF_I_TORCH_THIS_THREAD: torch's number of this one */
  uint32_t scope;
  uint32_t count; /* of inputs */
  struct {
    const void *impl; /* of a Tensor; NULL: something else */
    uint32_t rank, dtype;
    int64_t dims[PROF_I_TORCH_RANK_MAX];
    uint32_t kind, reserved; /* prof_i_torch_known_kind */
  } inputs[PROF_I_TORCH_INPUTS_MAX];
  const char *concrete, *strides; /* the texts that it has; NULL: they are not compared */
} prof_i_torch_known;

#define PROF_I_TORCH_THIS_THREAD UINT64_MAX

/* Copies what can be read. False: not all of it. */
bool prof_i_torch_read(const void *from, void *to, size_t bytes);

/* ---- values_proof.c ---- */

/* A known call has come, after prof_i_torch_layout_proven was found. */
void prof_i_torch_values_examine(const void *call, const prof_i_torch_known *known);

#endif
