// Torch's own headers against the places that inject/torch/layout_proof.c found, which
// tests/python/test_observe.py gives as -DSCOPE=96 and so on: it compiles, or they differ. Nothing
// is linked.
#include <bits/stdc++.h>
#define private public    // the standard library stands before them
#define protected public  // a TensorImpl's
#include <ATen/record_function.h>

using Call = at::RecordFunction;
using Callback = at::RecordFunctionCallback;

static_assert(offsetof(Call, step_callbacks_) + offsetof(at::StepCallbacks, scope_) == SCOPE);
static_assert(offsetof(Call, sequence_nr_) == SEQUENCE);
static_assert(offsetof(Call, fwd_thread_id_) == FORWARD);
static_assert(offsetof(Call, inputs_) == INPUTS);
static_assert(sizeof(Call) >= CALL_BYTES &&
              sizeof(Call) < CALL_BYTES + 8);  // what is written, without the padding at its end
static_assert(static_cast<unsigned>(c10::IValue::Tag::Tensor) == TENSOR_TAG);
static_assert(offsetof(c10::TensorImpl, key_set_) == KEY_SET);

// the places that values_proof.c found
static_assert(static_cast<unsigned>(c10::IValue::Tag::Int) == INT_TAG);
static_assert(static_cast<unsigned>(c10::IValue::Tag::Double) == DOUBLE_TAG);
static_assert(static_cast<unsigned>(c10::IValue::Tag::Bool) == BOOL_TAG);
static_assert(static_cast<unsigned>(c10::IValue::Tag::GenericList) == LIST_TAG);
static_assert(offsetof(c10::detail::ListImpl, list) == ELEMENTS);  // first, last, room
static_assert(offsetof(c10::detail::ListImpl, elementType) == ELEMENTS + 24);

// what internal.h and values.c say themselves
static_assert(sizeof(c10::IValue) == 16 && offsetof(c10::IValue, payload) == 0 &&
              offsetof(c10::IValue, tag) == 8);
static_assert(sizeof(Callback) == 40 && offsetof(Callback, sampling_prob_) == 16 &&
              offsetof(Callback, scopes_) == 24 && offsetof(Callback, needs_inputs_) == 34 &&
              offsetof(Callback, needs_ids_) == 36);
template <class C>
constexpr bool is_descriptor_as_told() {
  if constexpr (requires { typename C::FunctionDescriptor; })
    return sizeof(typename C::FunctionDescriptor) == 24 &&
           std::is_trivially_copyable_v<typename C::FunctionDescriptor>;
  else
    return true;  // before 2.7 a name is taken as a text
}
static_assert(is_descriptor_as_told<Call>());
static_assert(static_cast<int>(at::RecordScope::BACKWARD_FUNCTION) == 1 &&
              static_cast<int>(at::RecordScope::USER_SCOPE) == 7);
