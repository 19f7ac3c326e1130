/* Devices, typed arguments and input shapes of a scope: the `dev` and `args` parameters of the
   macros. Values are stored as they are and formatted at export. Strings are copied at once.
   SPDX-License-Identifier: MIT */
#ifndef PROF_ARGS_H
#define PROF_ARGS_H

#include <prof/status.h>

/* ---- devices and types ---- */

/* A device. Types are DLPack's codes (DLDeviceType), as in RAF, TVM and most frameworks. */
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
  PROF_DEVICE_ROCM = 10,    /* HIP; its name in texts is "hip" */
  PROF_DEVICE_EXT_DEV = 12, /* an accelerator of no other type: an NPU, torch's PrivateUse1 */
  PROF_DEVICE_ONEAPI = 14
};

/* Element types: DLPack's class << 8 | bits. Classes are int 0, uint 1, float 2, bfloat 4, complex
   5, bool 6, float8 types from 10 on, and float4 17. Classes from 32 on are PyTorch's, and not in
   DLPack. Integers of 1 to 7 bits have no name here. */
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
  PROF_BOOL = 0x0608,
  PROF_C32 = 0x0520,
  PROF_F8_E4M3FN = 0x0a08,
  PROF_F8_E4M3FNUZ = 0x0b08,
  PROF_F8_E5M2 = 0x0c08,
  PROF_F8_E5M2FNUZ = 0x0d08,
  PROF_F8_E8M0FNU = 0x0e08,
  PROF_F4_E2M1FN_X2 = 0x1108,
  PROF_QI8 = 0x2008,
  PROF_QI32 = 0x2020,
  PROF_QU8 = 0x2108,
  PROF_QU4X2 = 0x2104,
  PROF_QU2X4 = 0x2102,
  PROF_BITS1X8 = 0x2201,
  PROF_BITS2X4 = 0x2202,
  PROF_BITS4X2 = 0x2204,
  PROF_BITS8 = 0x2208,
  PROF_BITS16 = 0x2210
} prof_dtype;

/* The shape of a tensor that an operator takes. dims is read at once. At most 16 dims are
   recorded. */
typedef struct prof_tensor {
  const int64_t *dims;
  uint32_t rank;
  uint32_t dtype; /* prof_dtype */
} prof_tensor;

/* ---- arguments ---- */

/* Type of an argument: the member of prof_arg.value that it uses. */
typedef enum prof_arg_type {
  PROF_ARG_I64 = 1,
  PROF_ARG_U64 = 2,
  PROF_ARG_F64 = 3,
  PROF_ARG_BOOL = 4,
  /* value.text, `bytes` long; PROF_NUL_TERMINATED: up to its NUL */
  PROF_ARG_STRING = 5,
  PROF_ARG_POINTER = 6,
  PROF_ARG_TENSOR = 7 /* value.tensor */
} prof_arg_type;

/* As a text's length in bytes: the text ends with a NUL. */
#define PROF_NUL_TERMINATED UINT32_MAX

/* One argument. The key must live as long as the code of the call, as a literal does. */
typedef struct prof_arg {
  const char *key; /* NULL in formats, shapes and lists */
  uint32_t type;   /* prof_arg_type */
  uint32_t bytes;  /* length of a string */
  union {
    int64_t i64;
    uint64_t u64;
    double f64;
    const char *text;
    const void *pointer;
    const prof_tensor *tensor;
  } value;
} prof_arg;

/* How the arguments of a scope are shown. */
typedef enum prof_args_kind {
  PROF_ARGS_PAIRS = 0,  /* key: value */
  PROF_ARGS_FORMAT = 1, /* printf() format, applied at export */
  /* Input tensors: "Input Dims" and "Input type", as in torch.profiler. Items with a key follow
     them as pairs. */
  PROF_ARGS_SHAPES = 2,
  PROF_ARGS_LIST = 3 /* a list of strings, as RAF's args_string */
} prof_args_kind;

/* The arguments of one scope. At most 16 items are recorded, and 16 KiB of text with the name. */
typedef struct prof_args {
  const prof_arg *items;
  uint32_t count;
  uint32_t kind;      /* prof_args_kind */
  const char *format; /* of PROF_ARGS_FORMAT; must live as long as the code */
} prof_args;

enum {
  PROF_ARGS_MAX = 16,
  PROF_I_KEYS_LITERAL = 0x100 /* in prof_args.kind: all keys are literals of the call site */
};

/* ---- internal macros ---- */

#define PROF_I_CONCAT_(a, b) a##b
#define PROF_I_CONCAT(a, b) PROF_I_CONCAT_(a, b)
#define PROF_I_COUNT_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, n, \
                      ...)                                                                      \
  n
#define PROF_I_COUNT(...) \
  PROF_I_COUNT_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

/* f(x) for each of up to 16 items, separated by commas. */
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

/* f(key, value) for each of up to eight pairs, separated by commas. */
#define PROF_I_PAIR2(f, k, v) f(k, v)
#define PROF_I_PAIR4(f, k, v, ...) f(k, v), PROF_I_PAIR2(f, __VA_ARGS__)
#define PROF_I_PAIR6(f, k, v, ...) f(k, v), PROF_I_PAIR4(f, __VA_ARGS__)
#define PROF_I_PAIR8(f, k, v, ...) f(k, v), PROF_I_PAIR6(f, __VA_ARGS__)
#define PROF_I_PAIR10(f, k, v, ...) f(k, v), PROF_I_PAIR8(f, __VA_ARGS__)
#define PROF_I_PAIR12(f, k, v, ...) f(k, v), PROF_I_PAIR10(f, __VA_ARGS__)
#define PROF_I_PAIR14(f, k, v, ...) f(k, v), PROF_I_PAIR12(f, __VA_ARGS__)
#define PROF_I_PAIR16(f, k, v, ...) f(k, v), PROF_I_PAIR14(f, __VA_ARGS__)
#define PROF_I_PAIRS(f, ...) PROF_I_CONCAT(PROF_I_PAIR, PROF_I_COUNT(__VA_ARGS__))(f, __VA_ARGS__)

/* Is f(key) true for each of up to eight pairs? */
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

/* ---- arguments of the macros, in C ---- */

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
static inline __attribute__((unused)) prof_arg prof_i_arg_pointer(const char *key,
                                                                  const void *value) {
  return (prof_arg){key, PROF_ARG_POINTER, 0, {.pointer = value}};
}
static inline __attribute__((unused)) prof_arg prof_i_arg_tensor(const prof_tensor *value) {
  return (prof_arg){0, PROF_ARG_TENSOR, 0, {.tensor = value}};
}

#define PROF_I_ARG(k, v) \
  _Generic((v), _Bool: prof_i_arg_bool, signed char: prof_i_arg_i64, short: prof_i_arg_i64, \
           int: prof_i_arg_i64, long: prof_i_arg_i64, long long: prof_i_arg_i64, \
           char: prof_i_arg_i64, unsigned char: prof_i_arg_u64, \
           unsigned short: prof_i_arg_u64, unsigned int: prof_i_arg_u64, \
           unsigned long: prof_i_arg_u64, unsigned long long: prof_i_arg_u64, \
           float: prof_i_arg_f64, double: prof_i_arg_f64, char *: prof_i_arg_text, \
           const char *: prof_i_arg_text, default: prof_i_arg_pointer)((k), (v))
#define PROF_I_ARG_BARE(v) PROF_I_ARG(0, v)
#define PROF_I_ARG_TENSOR(v) prof_i_arg_tensor(&(v))
#define PROF_I_ITEMS(count, kind, format, ...) \
  ((prof_args){(const prof_arg[]){__VA_ARGS__}, (count), (kind), (format)})

/* Pairs: PROF_ARGS("count", n, "shape", text). Up to eight keys and values: integers, floating
   point numbers, bools, strings and pointers. */
#define PROF_ARGS(...)                                                                             \
  PROF_I_ITEMS(                                                                                    \
      PROF_I_COUNT(__VA_ARGS__) / 2,                                                               \
      PROF_ARGS_PAIRS | (PROF_I_ALL(PROF_I_IS_LITERAL, __VA_ARGS__) ? PROF_I_KEYS_LITERAL : 0), 0, \
      PROF_I_PAIRS(PROF_I_ARG, __VA_ARGS__))
/* A format: PROF_FMT("%d of %s", i, name). 1 to 15 values. They are stored as they are, and
   formatted at export. The compiler checks the format. */
#define PROF_FMT(fmt, ...)                                                   \
  PROF_I_ITEMS(PROF_I_COUNT(__VA_ARGS__), PROF_ARGS_FORMAT,                  \
               ((void)sizeof(prof_i_format_check(fmt, __VA_ARGS__)), (fmt)), \
               PROF_I_MAP(PROF_I_ARG_BARE, __VA_ARGS__))
/* Shapes of an operator's inputs, up to 16: PROF_SHAPES(PROF_TENSOR(dims, rank, PROF_F32), ...). */
#define PROF_SHAPES(...)                                       \
  PROF_I_ITEMS(PROF_I_COUNT(__VA_ARGS__), PROF_ARGS_SHAPES, 0, \
               PROF_I_MAP(PROF_I_ARG_TENSOR, __VA_ARGS__))

#endif /* !__cplusplus */

/* Never defined: sizeof uses its attribute, by which the compiler checks formats. */
#ifdef __cplusplus
extern "C"
#endif
    int
    prof_i_format_check(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
