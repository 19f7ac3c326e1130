/* Names of element types, as torch's compiler spells the C++ types. */
#ifndef PROF_EXPORT_DTYPE_NAMES_H
#define PROF_EXPORT_DTYPE_NAMES_H

#include <prof/args.h>

/* In the place of an element type: a list of tensors. An empty one differs from a text by it. */
enum { PROF_I_DTYPE_TENSORS = 0x3000 };

/* clang-format off */
#define PROF_I_DTYPE_NAMES(X)                  \
  X(PROF_I8, "signed char") \
  X(PROF_I16, "short int") \
  X(PROF_I32, "int") \
  X(PROF_I64, "long int") \
  X(PROF_U8, "unsigned char") \
  X(PROF_U16, "short unsigned int") \
  X(PROF_U32, "unsigned int") \
  X(PROF_U64, "long unsigned int") \
  X(PROF_F16, "c10::Half") \
  X(PROF_F32, "float") \
  X(PROF_F64, "double") \
  X(PROF_BF16, "c10::BFloat16") \
  X(PROF_C64, "c10::complex<float>") \
  X(PROF_C128, "c10::complex<double>") \
  X(PROF_BOOL, "bool") \
  X(PROF_C32, "c10::complex<c10::Half>") \
  X(PROF_F8_E4M3FN, "c10::Float8_e4m3fn") \
  X(PROF_F8_E4M3FNUZ, "c10::Float8_e4m3fnuz") \
  X(PROF_F8_E5M2, "c10::Float8_e5m2") \
  X(PROF_F8_E5M2FNUZ, "c10::Float8_e5m2fnuz") \
  X(PROF_F8_E8M0FNU, "c10::Float8_e8m0fnu") \
  X(PROF_F4_E2M1FN_X2, "c10::Float4_e2m1fn_x2") \
  X(PROF_QI8, "c10::qint8") \
  X(PROF_QI32, "c10::qint32") \
  X(PROF_QU8, "c10::quint8") \
  X(PROF_QU4X2, "c10::quint4x2") \
  X(PROF_QU2X4, "c10::quint2x4") \
  X(PROF_BITS1X8, "c10::bits1x8") \
  X(PROF_BITS2X4, "c10::bits2x4") \
  X(PROF_BITS4X2, "c10::bits4x2") \
  X(PROF_BITS8, "c10::bits8") \
  X(PROF_BITS16, "c10::bits16") \
  X(0x0101, "c10::dummy_uint1_7_t<1>") \
  X(0x0102, "c10::dummy_uint1_7_t<2>") \
  X(0x0103, "c10::dummy_uint1_7_t<3>") \
  X(0x0104, "c10::dummy_uint1_7_t<4>") \
  X(0x0105, "c10::dummy_uint1_7_t<5>") \
  X(0x0106, "c10::dummy_uint1_7_t<6>") \
  X(0x0107, "c10::dummy_uint1_7_t<7>") \
  X(0x0001, "c10::dummy_int1_7_t<1>") \
  X(0x0002, "c10::dummy_int1_7_t<2>") \
  X(0x0003, "c10::dummy_int1_7_t<3>") \
  X(0x0004, "c10::dummy_int1_7_t<4>") \
  X(0x0005, "c10::dummy_int1_7_t<5>") \
  X(0x0006, "c10::dummy_int1_7_t<6>") \
  X(0x0007, "c10::dummy_int1_7_t<7>") \
  X(PROF_I_DTYPE_TENSORS, "TensorList")
/* clang-format on */

#endif
