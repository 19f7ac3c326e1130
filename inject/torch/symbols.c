/* What torch exports, in the libraries that the process has loaded. */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <string.h>

prof_i_torch_symbols prof_i_torch;

/* These have no function that gives their number. c10/core/ScalarType.h counts them for good: files
   of models have the numbers. 30 to 43: integers of 1 to 7 bits. */
uint16_t prof_i_torch_dtypes[PROF_I_TORCH_DTYPES] = {
    [8] = PROF_C32,
    [12] = PROF_QI8,
    [13] = PROF_QU8,
    [14] = PROF_QI32,
    [16] = PROF_QU4X2,
    [17] = PROF_QU2X4,
    [18] = PROF_BITS1X8,
    [19] = PROF_BITS2X4,
    [20] = PROF_BITS4X2,
    [21] = PROF_BITS8,
    [22] = PROF_BITS16,
    [23] = PROF_F8_E5M2,
    [24] = PROF_F8_E4M3FN,
    [25] = PROF_F8_E5M2FNUZ,
    [26] = PROF_F8_E4M3FNUZ,
    [44] = PROF_F8_E8M0FNU,
    [45] = PROF_F4_E2M1FN_X2,
    [30] = 0x0101,
    [31] = 0x0102,
    [32] = 0x0103,
    [33] = 0x0104,
    [34] = 0x0105,
    [35] = 0x0106,
    [36] = 0x0107,
    [37] = 0x0001,
    [38] = 0x0002,
    [39] = 0x0003,
    [40] = 0x0004,
    [41] = 0x0005,
    [42] = 0x0006,
    [43] = 0x0007,
};

static void *find_symbol(void *cpu, void *c10, const char *symbol) {
  void *const found = dlsym(cpu, symbol);
  return found ? found : dlsym(c10, symbol);
}

static void take_dtype(void *cpu, const char *symbol, prof_dtype dtype) {
  int32_t (*code)(void);
  void *const found = dlsym(cpu, symbol);
  if (!found) return; /* of a type that this torch has not */
  memcpy(&code, &found, sizeof code);
  const int32_t number = code();
  if (number >= 0 && number < PROF_I_TORCH_DTYPES) prof_i_torch_dtypes[number] = (uint16_t)dtype;
}

const char *prof_i_torch_missing(void) {
  static const struct {
    const char *symbol;
    prof_dtype dtype;
  } dtypes[] = {
      {"aoti_torch_dtype_int8", PROF_I8},       {"aoti_torch_dtype_int16", PROF_I16},
      {"aoti_torch_dtype_int32", PROF_I32},     {"aoti_torch_dtype_int64", PROF_I64},
      {"aoti_torch_dtype_uint8", PROF_U8},      {"aoti_torch_dtype_uint16", PROF_U16},
      {"aoti_torch_dtype_uint32", PROF_U32},    {"aoti_torch_dtype_uint64", PROF_U64},
      {"aoti_torch_dtype_float16", PROF_F16},   {"aoti_torch_dtype_float32", PROF_F32},
      {"aoti_torch_dtype_float64", PROF_F64},   {"aoti_torch_dtype_bfloat16", PROF_BF16},
      {"aoti_torch_dtype_complex64", PROF_C64}, {"aoti_torch_dtype_complex128", PROF_C128},
      {"aoti_torch_dtype_bool", PROF_BOOL},
  };
  void *const cpu = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_NOW), *const c10 = dlopen(
                                                                           "libc10.so",
                                                                           RTLD_NOLOAD | RTLD_NOW);
  /* a handle is kept: torch is never unloaded */
  if (!cpu || !c10) return cpu ? "libc10.so" : "libtorch_cpu.so";
  void *found;
#define TAKE(name, type, symbol_name)         \
  found = find_symbol(cpu, c10, symbol_name); \
  memcpy(&prof_i_torch.name, &found, sizeof found);
#define FIND(name, type, symbol_name) \
  TAKE(name, type, symbol_name)       \
  if (!found) return symbol_name;
  PROF_I_TORCH_SYMBOLS(FIND)
  PROF_I_TORCH_EITHER(TAKE)
#undef FIND
#undef TAKE
  if (!prof_i_torch.before && !prof_i_torch.before_text) return "at::RecordFunction::before()";
  found = find_symbol(cpu, c10, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
  memcpy(&prof_i_torch.add_global, &found, sizeof found);
  found = find_symbol(cpu, c10, "aoti_torch_get_strides");
  memcpy(&prof_i_torch.strides, &found, sizeof found);
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    take_dtype(cpu, dtypes[i].symbol, dtypes[i].dtype);
  return NULL;
}
