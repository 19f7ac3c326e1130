// Two types of functions that say the same to the linker: as many arguments, each as wide, a
// pointer where the other has one. For declarations whose handles are void pointers.
#ifndef TESTS_DEVICE_HEADERS_ALIKE_H
#define TESTS_DEVICE_HEADERS_ALIKE_H

#include <type_traits>

template <typename A, typename B>
constexpr bool are_alike = sizeof(A) == sizeof(B) && std::is_pointer<A>::value
                                                         == std::is_pointer<B>::value;
template <typename F, typename G>
struct compared : std::false_type {};
template <typename R, typename S, typename... A, typename... B>
struct compared<R(A...), S(B...)> {
  template <bool is_as_long, typename = void>
  struct each : std::false_type {};
  template <typename unused>
  struct each<true, unused> : std::bool_constant<(are_alike<A, B> && ...)> {};
  static constexpr bool value = sizeof(R) == sizeof(S) && each<sizeof...(A) == sizeof...(B)>::value;
};

#endif
