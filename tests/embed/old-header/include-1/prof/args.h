/* Devices, typed arguments and input shapes of a scope: what stands in the `dev` and `args` places
   of the macros. Values are stored raw and formatted at export; strings are copied at once.
   SPDX-License-Identifier: MIT */
#ifndef PROF_ARGS_H
#define PROF_ARGS_H

#include <prof/status.h>

/* Device types carry DLPack's codes (DLDeviceType), as RAF, TVM and most frameworks do. */
typedef struct prof_device {
  int32_t type;  /* PROF_DEVICE_* */
  int32_t index; /* 0 is the first of its type */
} prof_device;

enum {
  PROF_DEVICE_CPU = 1,
  PROF_DEVICE_CUDA = 2,
  PROF_DEVICE_OPENCL = 4,
  PROF_DEVICE_VULKAN = 7,
  PROF_DEVICE_METAL = 8,
  PROF_DEVICE_ROCM = 10,
  PROF_DEVICE_ONEAPI = 14
};

/* Element types by DLPack's codes: class (int 0, uint 1, float 2, bfloat 4, complex 5, bool 6) << 8
   | bits. */
typedef enum prof_dtype {
  PROF_DTYPE_NONE = 0,
  PROF_I8 = 0x0008,
  PROF_I16 = 0x0010,
  PROF_I32 = 0x0020,
  PROF_I64 = 0x0040,
  PROF_U8 = 0x0108,
  PROF_U16 = 0x0110,
  PROF_U32 = 0x0120,
  PROF_U64 = 0x0140,
  PROF_F16 = 0x0210,
  PROF_F32 = 0x0220,
  PROF_F64 = 0x0240,
  PROF_BF16 = 0x0410,
  PROF_C64 = 0x0540,
  PROF_C128 = 0x0580,
  PROF_BOOL = 0x0608
} prof_dtype;

/* A tensor's shape as an operator's input has it; dims is read at once and not kept. At most 16
   dims are recorded. */
typedef struct prof_tensor {
  const int64_t *dims;
  uint32_t rank;
  uint32_t dtype; /* prof_dtype */
} prof_tensor;

typedef enum prof_arg_type {
  PROF_ARG_I64 = 1,
  PROF_ARG_U64 = 2,
  PROF_ARG_F64 = 3,
  PROF_ARG_BOOL = 4,
  /* value.text, `bytes` long, or to its NUL when bytes is PROF_NUL_TERMINATED */
  PROF_ARG_STRING = 5,
  PROF_ARG_POINTER = 6,
  PROF_ARG_TENSOR = 7 /* value.tensor */
} prof_arg_type;

#define PROF_NUL_TERMINATED UINT32_MAX

/* One argument. The key must live as long as the code that holds the call (a literal). */
typedef struct prof_arg {
  const char *key; /* NULL for formats, shapes and lists */
  uint32_t type;   /* prof_arg_type */
  uint32_t bytes;  /* of a string */
  union {
    int64_t i64;
    uint64_t u64;
    double f64;
    const char *text;
    const void *pointer;
    const prof_tensor *tensor;
  } value;
} prof_arg;

typedef enum prof_args_kind {
  PROF_ARGS_PAIRS = 0,  /* key: value */
  PROF_ARGS_FORMAT = 1, /* printf-like format, applied at export */
  /* input tensors: "Input Dims" and "Input type", as torch.profiler writes them */
  PROF_ARGS_SHAPES = 2,
  PROF_ARGS_LIST = 3    /* a list of strings: RAF's args_string */
} prof_args_kind;

/* The arguments of one scope: at most 16 items are recorded, and 16 KiB of text with the name. */
typedef struct prof_args {
  const prof_arg *items;
  uint32_t count;
  uint32_t kind;      /* prof_args_kind */
  const char *format; /* of PROF_ARGS_FORMAT; lives as long as the code */
} prof_args;

enum {
  PROF_ARGS_MAX = 16,
  PROF_I_KEYS_LITERAL = 0x100 /* in prof_args.kind: every key belongs to the call site */
};

#define PROF_I_CONCAT_(a, b) a##b
#define PROF_I_CONCAT(a, b) PROF_I_CONCAT_(a, b)
#define PROF_I_COUNT_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, n, ...) n
#define PROF_I_COUNT(...) PROF_I_COUNT_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

/* f(x) for each of up to 16 items, with commas between. */
#define PROF_I_MAP1(f, a) f(a)
#define PROF_I_MAP2(f, a, ...) f(a), PROF_I_MAP1(f, __VA_ARGS__)
#define PROF_I_MAP3(f, a, ...) f(a), PROF_I_MAP2(f, __VA_ARGS__)
#define PROF_I_MAP4(f, a, ...) f(a), PROF_I_MAP3(f, __VA_ARGS__)
#define PROF_I_MAP5(f, a, ...) f(a), PROF_I_MAP4(f, __VA_ARGS__)
#define PROF_I_MAP6(f, a, ...) f(a), PROF_I_MAP5(f, __VA_ARGS__)
#define PROF_I_MAP7(f, a, ...) f(a), PROF_I_MAP6(f, __VA_ARGS__)
#define PROF_I_MAP8(f, a, ...) f(a), PROF_I_MAP7(f, __VA_ARGS__)
#define PROF_I_MAP9(f, a, ...) f(a), PROF_I_MAP8(f, __VA_ARGS__)
#define PROF_I_MAP10(f, a, ...) f(a), PROF_I_MAP9(f, __VA_ARGS__)
#define PROF_I_MAP11(f, a, ...) f(a), PROF_I_MAP10(f, __VA_ARGS__)
#define PROF_I_MAP12(f, a, ...) f(a), PROF_I_MAP11(f, __VA_ARGS__)
#define PROF_I_MAP13(f, a, ...) f(a), PROF_I_MAP12(f, __VA_ARGS__)
#define PROF_I_MAP14(f, a, ...) f(a), PROF_I_MAP13(f, __VA_ARGS__)
#define PROF_I_MAP15(f, a, ...) f(a), PROF_I_MAP14(f, __VA_ARGS__)
#define PROF_I_MAP16(f, a, ...) f(a), PROF_I_MAP15(f, __VA_ARGS__)
#define PROF_I_MAP(f, ...) PROF_I_CONCAT(PROF_I_MAP, PROF_I_COUNT(__VA_ARGS__))(f, __VA_ARGS__)

/* f(key, value) for each of up to eight pairs. */
#define PROF_I_PAIR2(f, k, v) f(k, v)
#define PROF_I_PAIR4(f, k, v, ...) f(k, v), PROF_I_PAIR2(f, __VA_ARGS__)
#define PROF_I_PAIR6(f, k, v, ...) f(k, v), PROF_I_PAIR4(f, __VA_ARGS__)
#define PROF_I_PAIR8(f, k, v, ...) f(k, v), PROF_I_PAIR6(f, __VA_ARGS__)
#define PROF_I_PAIR10(f, k, v, ...) f(k, v), PROF_I_PAIR8(f, __VA_ARGS__)
#define PROF_I_PAIR12(f, k, v, ...) f(k, v), PROF_I_PAIR10(f, __VA_ARGS__)
#define PROF_I_PAIR14(f, k, v, ...) f(k, v), PROF_I_PAIR12(f, __VA_ARGS__)
#define PROF_I_PAIR16(f, k, v, ...) f(k, v), PROF_I_PAIR14(f, __VA_ARGS__)
#define PROF_I_PAIRS(f, ...) PROF_I_CONCAT(PROF_I_PAIR, PROF_I_COUNT(__VA_ARGS__))(f, __VA_ARGS__)

/* f(key) for each of up to eight pairs, all of which must hold. */
#define PROF_I_ALL2(f, k, v) f(k)
#define PROF_I_ALL4(f, k, v, ...) f(k) && PROF_I_ALL2(f, __VA_ARGS__)
#define PROF_I_ALL6(f, k, v, ...) f(k) && PROF_I_ALL4(f, __VA_ARGS__)
#define PROF_I_ALL8(f, k, v, ...) f(k) && PROF_I_ALL6(f, __VA_ARGS__)
#define PROF_I_ALL10(f, k, v, ...) f(k) && PROF_I_ALL8(f, __VA_ARGS__)
#define PROF_I_ALL12(f, k, v, ...) f(k) && PROF_I_ALL10(f, __VA_ARGS__)
#define PROF_I_ALL14(f, k, v, ...) f(k) && PROF_I_ALL12(f, __VA_ARGS__)
#define PROF_I_ALL16(f, k, v, ...) f(k) && PROF_I_ALL14(f, __VA_ARGS__)
#define PROF_I_ALL(f, ...) (PROF_I_CONCAT(PROF_I_ALL, PROF_I_COUNT(__VA_ARGS__))(f, __VA_ARGS__))

#ifndef __cplusplus

#define PROF_HOST ((prof_device){PROF_DEVICE_CPU, 0})
#define PROF_TENSOR(dims, rank, dtype) ((prof_tensor){(dims), (uint32_t)(rank), (uint32_t)(dtype)})
#define PROF_NO_ARGS ((prof_args){0, 0, PROF_ARGS_PAIRS, 0})

static inline __attribute__((unused)) prof_arg prof_i_arg_i64(const char *key, int64_t value) {
  return (prof_arg){key, PROF_ARG_I64, 0, {.i64 = value}};
}
static inline __attribute__((unused)) prof_arg prof_i_arg_u64(const char *key, uint64_t value) {
  return (prof_arg){key, PROF_ARG_U64, 0, {.u64 = value}};
}
static inline __attribute__((unused)) prof_arg prof_i_arg_f64(const char *key, double value) {
  return (prof_arg){key, PROF_ARG_F64, 0, {.f64 = value}};
}
static inline __attribute__((unused)) prof_arg prof_i_arg_bool(const char *key, _Bool value) {
  return (prof_arg){key, PROF_ARG_BOOL, 0, {.u64 = value}};
}
static inline __attribute__((unused)) prof_arg prof_i_arg_text(const char *key, const char *value) {
  return (prof_arg){key, PROF_ARG_STRING, PROF_NUL_TERMINATED, {.text = value}};
}
static inline __attribute__((unused)) prof_arg prof_i_arg_pointer(const char *key, const void *value) {
  return (prof_arg){key, PROF_ARG_POINTER, 0, {.pointer = value}};
}
static inline __attribute__((unused)) prof_arg prof_i_arg_tensor(const prof_tensor *value) {
  return (prof_arg){0, PROF_ARG_TENSOR, 0, {.tensor = value}};
}

#define PROF_I_ARG(k, v)                                                                                     \
  _Generic((v), _Bool: prof_i_arg_bool, signed char: prof_i_arg_i64, short: prof_i_arg_i64, int: prof_i_arg_i64, \
           long: prof_i_arg_i64, long long: prof_i_arg_i64, char: prof_i_arg_i64, unsigned char: prof_i_arg_u64, \
           unsigned short: prof_i_arg_u64, unsigned int: prof_i_arg_u64, unsigned long: prof_i_arg_u64,        \
           unsigned long long: prof_i_arg_u64, float: prof_i_arg_f64, double: prof_i_arg_f64,                  \
           char *: prof_i_arg_text, const char *: prof_i_arg_text, default: prof_i_arg_pointer)((k), (v))
#define PROF_I_ARG_BARE(v) PROF_I_ARG(0, v)
#define PROF_I_ARG_TENSOR(v) prof_i_arg_tensor(&(v))
#define PROF_I_ITEMS(count, kind, format, ...) ((prof_args){(const prof_arg[]){__VA_ARGS__}, (count), (kind), (format)})

/* PROF_ARGS("count", n, "shape", text): up to eight keys and values; integers, doubles, bools,
   strings and pointers. */
#define PROF_ARGS(...)                                                                                                 \
  PROF_I_ITEMS(PROF_I_COUNT(__VA_ARGS__) / 2,                                                                          \
               PROF_ARGS_PAIRS | (PROF_I_ALL(PROF_I_IS_LITERAL, __VA_ARGS__) ? PROF_I_KEYS_LITERAL : 0), 0,            \
               PROF_I_PAIRS(PROF_I_ARG, __VA_ARGS__))
/* PROF_FMT("%d of %s", i, name): stored raw, formatted at export; the compiler checks the format. 1
   to 15 values. */
#define PROF_FMT(fmt, ...)                                                                                   \
  PROF_I_ITEMS(PROF_I_COUNT(__VA_ARGS__), PROF_ARGS_FORMAT, ((void)sizeof(prof_i_format_check(fmt, __VA_ARGS__)), (fmt)), \
               PROF_I_MAP(PROF_I_ARG_BARE, __VA_ARGS__))
/* PROF_SHAPES(PROF_TENSOR(dims, rank, PROF_F32), ...): the shapes of an operator's inputs, up to
   16. */
#define PROF_SHAPES(...) \
  PROF_I_ITEMS(PROF_I_COUNT(__VA_ARGS__), PROF_ARGS_SHAPES, 0, PROF_I_MAP(PROF_I_ARG_TENSOR, __VA_ARGS__))

#endif /* !__cplusplus */

/* Never defined: only its attribute is used, by sizeof. */
#ifdef __cplusplus
extern "C"
#endif
    int
    prof_i_format_check(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
