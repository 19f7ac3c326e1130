/* The scope macros in C++17. Texts are anything with data() and size(). Devices are anything with
   device_id() and device_type(). Arguments may be RAF's braced lists. Of the standard library it
   uses only <initializer_list>, <type_traits> and <utility>. scope.h includes it.
   SPDX-License-Identifier: MIT */
#ifndef PROF_SCOPE_CXX_H
#define PROF_SCOPE_CXX_H

#include <prof/scope.h>

#if __cplusplus < 201703L
#error "prof's scope macros need C++17 or later: compile with -std=c++17"
#endif

#include <initializer_list>
#include <type_traits>
#include <utility>

/* For the functions of each call site: clang would not inline them, because a recorded scope is the
   unlikely case. */
#define PROF_I_INLINED __attribute__((always_inline))

namespace prof_i {

/* A view of a string, valid while its source exists. */
struct text {
  const char *data;
  uint32_t bytes;
  PROF_I_INLINED text(const char *s) noexcept : data(s), bytes(PROF_NUL_TERMINATED) {}
  template <class S, class = decltype(static_cast<const char *>(std::declval<const S &>().data())),
            class = decltype(std::declval<const S &>().size())>
  PROF_I_INLINED text(const S &s) noexcept
      : data(s.data()),
        bytes(s.size() < PROF_NUL_TERMINATED ? static_cast<uint32_t>(s.size())
                                             : PROF_NUL_TERMINATED - 1) {}
};

inline prof_arg make(const char *key, bool v) noexcept {
  prof_arg a{key, PROF_ARG_BOOL, 0, {}};
  a.value.u64 = v;
  return a;
}
inline prof_arg make(const char *key, const char *v) noexcept {
  prof_arg a{key, PROF_ARG_STRING, PROF_NUL_TERMINATED, {}};
  a.value.text = v;
  return a;
}
inline prof_arg make(const char *key, text v) noexcept {
  prof_arg a{key, PROF_ARG_STRING, v.bytes, {}};
  a.value.text = v.data;
  return a;
}
inline prof_arg make_tensor(const prof_tensor &v) noexcept {
  prof_arg a{nullptr, PROF_ARG_TENSOR, 0, {}};
  a.value.tensor = &v;
  return a;
}
template <class T,
          std::enable_if_t<std::is_arithmetic<T>::value || std::is_enum<T>::value, int> = 0>
inline prof_arg make(const char *key, T v) noexcept {
  prof_arg a{key, PROF_ARG_I64, 0, {}};
  if constexpr (std::is_floating_point<T>::value) {
    a.type = PROF_ARG_F64;
    a.value.f64 = static_cast<double>(v);
  } else if constexpr (std::is_enum<T>::value || std::is_signed<T>::value) {
    a.value.i64 = static_cast<int64_t>(v);
  } else {
    a.type = PROF_ARG_U64;
    a.value.u64 = static_cast<uint64_t>(v);
  }
  return a;
}
template <class T, std::enable_if_t<!std::is_same<std::remove_cv_t<T>, char>::value, int> = 0>
inline prof_arg make(const char *key, T *v) noexcept {
  prof_arg a{key, PROF_ARG_POINTER, 0, {}};
  a.value.pointer = const_cast<const void *>(reinterpret_cast<const volatile void *>(v));
  return a;
}

/* As many arguments as the call has. Temporaries in them live until the scope has begun. */
template <std::size_t N>
struct list {
  prof_arg items[N];
  uint32_t kind;
  const char *format;
};

/* Up to PROF_ARGS_MAX arguments by value. Temporaries in them live until the scope has begun. */
struct args {
  prof_arg items[PROF_ARGS_MAX];
  uint32_t count = 0;
  uint32_t kind = PROF_ARGS_PAIRS;
  const char *format = nullptr;

  args() noexcept {}
  template <std::size_t N>
  args(const list<N> &l) noexcept
      : kind(l.kind & ~uint32_t{PROF_I_KEYS_LITERAL}), format(l.format) {
    for (const prof_arg &a : l.items) items[count++] = a;
  }
  /* RAF's list: {"Count: " + std::to_string(n)}. */
  args(std::initializer_list<text> list) noexcept : kind(PROF_ARGS_LIST) {
    for (const text &t : list)
      if (count < PROF_ARGS_MAX) items[count++] = make(nullptr, t);
  }
  /* RAF's range of strings, such as std::vector<std::string>. PROF_ARGS_MAX are recorded. */
  template <class Range, class = decltype(text(*std::declval<const Range &>().begin())),
            class = decltype(std::declval<const Range &>().end())>
  args(const Range &range) noexcept : kind(PROF_ARGS_LIST) {
    for (const auto &one : range)
      if (count < PROF_ARGS_MAX) items[count++] = make(nullptr, text(one));
  }
  args(const prof_args &a) noexcept : kind(a.kind), format(a.format) {
    for (uint32_t i = 0; i < a.count && i < PROF_ARGS_MAX; i++) items[count++] = a.items[i];
  }
};

inline prof_device device_of(const prof_device &d) noexcept { return d; }
template <class D>
inline auto device_of(const D &d) noexcept
    -> decltype(d.device_id(), d.device_type(), prof_device{}) {
  return prof_device{static_cast<int32_t>(d.device_type()), static_cast<int32_t>(d.device_id())};
}

template <class T, std::enable_if_t<std::is_integral<T>::value || std::is_enum<T>::value ||
                                        std::is_pointer<T>::value || std::is_null_pointer<T>::value,
                                    int> = 0>
inline uint64_t stream_of(T stream) noexcept {
  if constexpr (std::is_null_pointer<T>::value)
    return 0;
  else if constexpr (std::is_pointer<T>::value)
    return reinterpret_cast<uint64_t>(stream);
  else
    return static_cast<uint64_t>(stream);
}

/* Is the type an array of const char? Then a quoted text of that type is a literal. */
template <class T>
struct is_char_array : std::false_type {};
template <std::size_t N>
struct is_char_array<const char (&)[N]> : std::true_type {};

/* Not from {}: in RAF an empty braced list means no arguments, and gives args(). */
struct no_args {
  explicit no_args(int) noexcept {}
  operator args() const noexcept { return args(); }
};

PROF_I_INLINED inline bool is_host(prof_device device) noexcept {
  return device.type == PROF_DEVICE_CPU && device.index == 0;
}
template <std::size_t N>
PROF_I_INLINED inline bool is_value(const list<N> &a, std::size_t i) noexcept {
  return i >= N ||
         (a.items[i].type != PROF_ARG_TENSOR &&
          (a.items[i].type != PROF_ARG_STRING || a.items[i].bytes == PROF_NUL_TERMINATED));
}
template <std::size_t N>
PROF_I_INLINED inline uint64_t value_of(const list<N> &a, std::size_t i) noexcept {
  return i < N ? a.items[i].value.u64 : 0;
}

PROF_I_INLINED inline uint64_t enter(prof_site *site, prof_device device, const text &name,
                                     const text &category, uint32_t flags, uint64_t stream, bool,
                                     const args &a) noexcept {
  const prof_details details = {name.data,
                                category.data,
                                name.bytes,
                                category.bytes,
                                flags,
                                device,
                                0,
                                stream,
                                {a.items, a.count, a.kind, a.format}};
  return flags & PROF_I_ON_STREAM ? prof_i_gpu_begin_1(site, &details)
                                  : prof_i_begin_details_1(site, &details);
}
template <std::size_t N>
PROF_I_INLINED inline uint64_t enter(prof_site *site, prof_device device, const text &name,
                                     const text &category, uint32_t flags, uint64_t stream,
                                     bool is_in_place, const list<N> &a) noexcept {
  const uint32_t kind = is_in_place ? a.kind : a.kind & ~uint32_t{PROF_I_KEYS_LITERAL};
  const bool is_short = flags == (PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL) &&
                        is_host(device) &&
                        kind == (PROF_ARGS_PAIRS | uint32_t{PROF_I_KEYS_LITERAL});
  if constexpr (N == 1) {
    if (is_short && a.items[0].type == PROF_ARG_STRING) {
      const uint64_t start = prof_i_begin_text_1(site, a.items[0].value.text, a.items[0].bytes);
      if (__builtin_expect(start != PROF_I_NOT_SHORT, 1)) return start;
    }
  }
  if constexpr (N <= PROF_I_VALUES_MAX) {
    if (is_short && (N > 1 || a.items[0].type != PROF_ARG_STRING) && is_value(a, 0) &&
        is_value(a, 1) && is_value(a, 2) && is_value(a, 3)) {
      const uint64_t start = prof_i_begin_values_1(site, value_of(a, 0), value_of(a, 1),
                                                   value_of(a, 2), value_of(a, 3));
      if (__builtin_expect(start != PROF_I_NOT_SHORT, 1)) return start;
    }
  }
  const prof_details details = {name.data,
                                category.data,
                                name.bytes,
                                category.bytes,
                                flags,
                                device,
                                0,
                                stream,
                                {a.items, static_cast<uint32_t>(N), kind, a.format}};
  return flags & PROF_I_ON_STREAM ? prof_i_gpu_begin_1(site, &details)
                                  : prof_i_begin_details_1(site, &details);
}
PROF_I_INLINED inline uint64_t enter(prof_site *site, prof_device device, const text &name,
                                     const text &category, uint32_t flags, uint64_t stream, bool,
                                     const no_args &) noexcept {
  if (flags == (PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL) && is_host(device))
    return prof_i_begin_1(site, name.data, category.data);
  if (flags == PROF_I_CATEGORY_LITERAL && is_host(device)) {
    const uint64_t start = prof_i_begin_name_1(site, name.data, name.bytes);
    if (__builtin_expect(start != PROF_I_NOT_SHORT, 1)) return start;
  }
  const prof_details details = {name.data,
                                category.data,
                                name.bytes,
                                category.bytes,
                                flags,
                                device,
                                0,
                                stream,
                                {nullptr, 0, PROF_ARGS_PAIRS, nullptr}};
  return flags & PROF_I_ON_STREAM ? prof_i_gpu_begin_1(site, &details)
                                  : prof_i_begin_details_1(site, &details);
}

inline void mark(prof_site *site, const text &name, const text &category, uint32_t flags,
                 const args &a) noexcept {
  const prof_details details = {name.data,
                                category.data,
                                name.bytes,
                                category.bytes,
                                flags,
                                prof_device{PROF_DEVICE_CPU, 0},
                                0,
                                0,
                                {a.items, a.count, a.kind, a.format}};
  prof_i_instant_1(site, &details);
}

struct scope {
  uint64_t start = 0;
  scope() noexcept {}
  PROF_I_INLINED ~scope() {
    if (__builtin_expect(start != 0, 0)) prof_i_end_1(start);
  }
  scope(const scope &) = delete;
  scope &operator=(const scope &) = delete;
};

struct stream_scope {
  uint64_t start = 0;
  stream_scope() noexcept {}
  PROF_I_INLINED ~stream_scope() {
    if (__builtin_expect(start != 0, 0)) prof_i_gpu_end_1(start);
  }
  stream_scope(const stream_scope &) = delete;
  stream_scope &operator=(const stream_scope &) = delete;
};

}  // namespace prof_i

#define PROF_HOST (prof_device{PROF_DEVICE_CPU, 0})
#define PROF_TENSOR(dims, rank, dtype) \
  (prof_tensor{(dims), static_cast<uint32_t>(rank), static_cast<uint32_t>(dtype)})
#define PROF_NO_ARGS (::prof_i::no_args(0))
#define PROF_I_ARG(k, v) ::prof_i::make((k), (v))
#define PROF_I_ARG_BARE(v) ::prof_i::make(nullptr, (v))
#define PROF_ARGS(...)                                                                       \
  (::prof_i::list<PROF_I_COUNT(__VA_ARGS__) / 2>{                                            \
      {PROF_I_PAIRS(PROF_I_ARG, __VA_ARGS__)},                                               \
      PROF_ARGS_PAIRS |                                                                      \
          (PROF_I_ALL(PROF_I_IS_LITERAL, __VA_ARGS__) ? uint32_t{PROF_I_KEYS_LITERAL} : 0u), \
      nullptr})
#define PROF_FMT(fmt, ...)                        \
  (::prof_i::list<PROF_I_COUNT(__VA_ARGS__)>{     \
      {PROF_I_MAP(PROF_I_ARG_BARE, __VA_ARGS__)}, \
      PROF_ARGS_FORMAT,                           \
      (static_cast<void>(sizeof(prof_i_format_check(fmt, __VA_ARGS__))), (fmt))})
#define PROF_SHAPES(...)                      \
  (::prof_i::list<PROF_I_COUNT(__VA_ARGS__)>{ \
      {PROF_I_MAP(::prof_i::make_tensor, __VA_ARGS__)}, PROF_ARGS_SHAPES, nullptr})

#define PROF_I_IS_LITERAL(...) \
  (PROF_I_STARTS_QUOTED(__VA_ARGS__) && ::prof_i::is_char_array<decltype((__VA_ARGS__))>::value)
#define PROF_I_FLAGS(name, cat)                                     \
  ((PROF_I_IS_LITERAL(name) ? uint32_t{PROF_I_NAME_LITERAL} : 0u) | \
   (PROF_I_IS_LITERAL(cat) ? uint32_t{PROF_I_CATEGORY_LITERAL} : 0u))

/* args has no parentheses, so that a braced list initialises the parameter. It uses if, not ?:,
   whose temporaries live until the scope is made. With these, gcc kept the start in memory, also
   with the level off. */
#define PROF_I_OPEN(id, level_, dev, name, cat, flags, stream, args) \
  PROF_I_OPEN_AS(scope, id, level_, dev, name, cat, flags, stream, args)
#define PROF_I_OPEN_ON_STREAM(id, level_, dev, name, cat, flags, stream, args) \
  PROF_I_OPEN_AS(stream_scope, id, level_, dev, name, cat, flags, stream, args)
#define PROF_I_OPEN_AS(kind, id, level_, dev, name, cat, flags, stream, args)                    \
  PROF_I_LEVEL_CHECK(level_);                                                                    \
  static prof_site PROF_I_CONCAT(prof_i_site_, id) = PROF_I_SITE(level_);                        \
  ::prof_i::kind PROF_I_CONCAT(prof_i_scope_, id);                                               \
  if (PROF_I_IS_ON(level_))                                                                      \
  PROF_I_CONCAT(prof_i_scope_, id).start =                                                       \
      ::prof_i::enter(&PROF_I_CONCAT(prof_i_site_, id), ::prof_i::device_of(dev), (name), (cat), \
                      PROF_I_FLAGS(name, cat) | (flags), ::prof_i::stream_of(stream),            \
                      PROF_I_STARTS("(::prof_i::list<", args), args)
#define PROF_I_TYPE_CHECK(dev, name, cat, stream, args)                                         \
  static_cast<void>(sizeof(::prof_i::enter(nullptr, ::prof_i::device_of(dev), (name), (cat), 0, \
                                           ::prof_i::stream_of(stream), false, args)))
#define prof_i_mark(site, name, cat, args) \
  ::prof_i::mark(site, (name), (cat), PROF_I_FLAGS(name, cat), args)

#endif
