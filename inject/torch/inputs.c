/* Shapes and element types of a call's inputs, as torch.profiler writes them. What is no tensor has
   neither. A list of tensors has a type alone. */
#include "../../src/export/dtype_names.h"
#include "torch.h"
#include "values.h"

/* Of a nested tensor, one whose sizes are symbols, one whose class is asked for them in Python: its
   sizes are whatever some code says, which may throw. torch.profiler has none of the first two, and
   calls Python for the third. */
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
