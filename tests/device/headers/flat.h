// Types of functions, made comparable: whatever a vendor has as an enum is an int to us, and
// handles, structs and the device's addresses are pointers to nothing known. Who writes through a
// pointer is not compared.
#ifndef TESTS_DEVICE_HEADERS_FLAT_H
#define TESTS_DEVICE_HEADERS_FLAT_H

#include <type_traits>

template <typename T>
struct plain {
  using type = typename std::conditional<
      std::is_enum<T>::value, int,
      typename std::conditional<std::is_same<T, unsigned long long>::value, void *, T>::type>::type;
};
template <typename T>
struct plain<const T> : plain<T> {};
template <typename T>
struct plain<T *> {
  using type =
      typename std::conditional<std::is_class<T>::value, void, typename plain<T>::type>::type *;
};
template <typename F>
struct flat;
template <typename R, typename... A>
struct flat<R(A...)> {
  using type = typename plain<R>::type(typename plain<A>::type...);
};

#define CHECK_SAME(symbol, arguments)                                                           \
  static_assert(std::is_same<flat<int arguments>::type, flat<decltype(::symbol)>::type>::value, \
                #symbol);

#endif
