// What each macro does in C++: RAF's own call unchanged, texts and devices of any type, exceptions,
// lambdas, templates.
#include <array>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "events.h"
#include "plugin.h"
// by the name the plug-in has for it: __FILE__ is part of a site
#include "plugins/../inline_scopes.h"

namespace {

int calls = 0;  // how often something was evaluated

std::string name_once(const char *name) {
  calls++;
  return name;
}
template <class T>
T value_once(T value) {
  calls++;
  return value;
}

// RAF's classes, as far as its profiler calls see them.
class DevType {
 public:
  explicit DevType(int code) : code_(code) {}
  operator int() const { return code_; }

 private:
  int code_;
};
class Device {
 public:
  Device(int type, int id) : type_(type), id_(id) {}
  DevType device_type() const { return type_; }
  int device_id() const { return id_; }

 private:
  DevType type_;
  int id_;
};
struct Op {
  std::string name;
};
struct Call {
  Device dev{PROF_DEVICE_CUDA, 1};
  std::unique_ptr<Op> op = std::make_unique<Op>(Op{"conv2d"});
};

// ---- RAF ----

void rafs_own_calls_compile_unchanged(void **) {
  const auto call = std::make_unique<Call>();
  const auto *op = call->op.get();
  const int n = 3;
  int ran = 0;
  events_record(2);
  WITH_BASE_PROFILER(call->dev, op->name, "MemoryRequest", {"Count: " + std::to_string(n)},
                     { ran += n; });
  WITH_BASE_PROFILER(call->dev, op->name, "ComputationOperator", {}, { ran += n; });
  WITH_BASE_PROFILER_LEVEL(2, call->dev, "InferType", "VMInstruction", {}, { ran += n; });
  WITH_CUDA_PROFILER(call->dev, nullptr, op->name + "_fwd", "SchedulingCommunication", {},
                     { ran += n; });
  events_stop_and_read();
  assert_event_total(4);
  assert_int_equal(ran, 12);
  assert_events("conv2d", 2);
  for (size_t i = 0; i < events.count; i++) {
    assert_int_equal(events.items[i].e.device.type, PROF_DEVICE_CUDA);
    assert_int_equal(events.items[i].e.device.index, 1);
    if (strcmp(events.items[i].category, "MemoryRequest") == 0) {
      assert_int_equal(events.items[i].e.args_kind, PROF_ARGS_LIST);
      assert_string_equal(events.items[i].args, "s:Count: 3");
    }
    if (strcmp(events.items[i].category, "ComputationOperator") == 0)
      assert_int_equal(events.items[i].e.arg_count, 0);
  }
  assert_true(only_event("conv2d_fwd")->e.flags & PROF_EVENT_ON_STREAM);
}

// RAF's ARGS are a std::vector<std::string>: a variable is taken as the braced list is.
void rafs_arguments_may_be_a_vector_of_strings(void **) {
  const std::vector<std::string> two{"Count: 3", std::string("a\0b", 3)}, none;
  std::vector<std::string_view> views{"view"};
  const std::vector<std::string> many(PROF_ARGS_MAX + 1, "x");
  const auto make = [&two] { return std::vector<std::string>(two); };
  events_record(2);
  WITH_BASE_PROFILER(PROF_HOST, "two", "x", two, { calls++; });
  WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "braced", "x", {two}, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, "temporary", "x", make(), { calls++; });
  WITH_CUDA_PROFILER(Device(PROF_DEVICE_CUDA, 1), nullptr, "views", "x", views, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, "none", "x", none, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, "many", "x", many, { calls++; });
  PROF_INSTANT("instant", "x", two);
  events_stop_and_read();
  for (const char *const name : {"two", "braced", "temporary", "instant"}) {
    assert_int_equal(only_event(name)->e.args_kind, PROF_ARGS_LIST);
    assert_int_equal(only_event(name)->e.arg_count, 2);
    assert_int_equal(only_event(name)->e.args[1].value.text.bytes, 3);
  }
  assert_string_equal(only_event("two")->args, only_event("instant")->args);
  assert_string_equal(only_event("views")->args, "s:view");
  assert_int_equal(only_event("none")->e.arg_count, 0);
  assert_int_equal(only_event("many")->e.arg_count, PROF_ARGS_MAX);
}

// ---- names ----

void names_come_from_any_string(void **) {
  const std::string with_nul("zero\0inside", 11), empty;
  const std::string_view view = std::string_view("a view of much more").substr(0, 6);
  const std::vector<char> characters{'v', 'e', 'c'};
  const char *const pointer = "pointer", *const none = nullptr;
  const char fixed[] = "fixed array";
  char changing[] = "changing";
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, with_nul, "x", PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, view, view, PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, characters, "x", PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, pointer, "x", PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, none, none, PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, nullptr, "null", PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, empty, "x", PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, std::string_view(), "x", PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, fixed, "x", PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, changing, std::string("of ") + changing, PROF_NO_ARGS,
                     { changing[0] = 'X'; });
  WITH_BASE_PROFILER(PROF_HOST, u8"literal \u00e9", "x", PROF_NO_ARGS, { calls++; });
  {
    PROF_SCOPE(std::string("block of ") + fixed);
    PROF_INSTANT(std::string("instant"), view, PROF_ARGS("v", view));
  }
  events_stop_and_read();
  assert_event_total(13);
  assert_string_equal(only_event("a view")->category, "a view");
  only_event("vec");
  only_event("pointer");
  only_event("fixed array");
  only_event("block of fixed array");
  only_event(u8"literal \u00e9");
  assert_events("", 4);
  assert_string_equal(only_event("changing")->category, "of changing");
  assert_string_equal(only_event("instant")->args, "v=s:a view");
  const seen_event *const nul = only_event("zero");  // as a C string it ends at the NUL
  assert_int_equal(nul->e.name_bytes, 11);
  assert_memory_equal(nul->e.name, "zero\0inside", 11);
}

void an_inlined_function_keeps_the_names_of_its_callers_apart(void **) {
  events_record(1);
  for (int i = 0; i < 2; i++) {
    inline_named_scope("first literal");
    inline_named_scope("second literal");
  }
  events_stop_and_read();
  assert_events("first literal", 2);
  assert_events("second literal", 2);
  assert_event_total(4);
}

void inline_functions_of_two_units_are_one_site(void **) {
  void *const found = plugin_function("second_unit_cxx", "second_unit_run");
  assert_non_null(found);
  void (*second_unit)();
  memcpy(&second_unit, &found, sizeof second_unit);
  events_record(1);
  inline_literal_scope();
  inline_block_scope();
  template_scope(7);
  template_scope(7.5);
  second_unit();
  events_stop_and_read();
  assert_event_total(10);
  assert_events("in a header", 2);
  assert_events("in a template", 3);
  uint32_t sites[2] = {0, 0}, count = 0;
  for (size_t i = 0; i < events.count; i++)
    if (strcmp(events.items[i].name, "in a header") == 0) sites[count++] = events.items[i].e.site;
  assert_int_equal(sites[0], sites[1]);
}

// ---- arguments ----

enum class Colour { red = 5 };
enum Plain : uint8_t { PLAIN = 200 };

void arguments_of_every_type_come_back(void **) {
  const std::string text = "string";
  const std::string_view view = "view";
  char buffer[] = "buffer";
  const void *const pointer = buffer;
  const volatile int watched = 0;
  const int &reference = calls;
  calls = 9;
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, "numbers", "x",
                     PROF_ARGS("i", -1, "u", 2u, "l", -3L, "ull", 4ull, "c", 'A', "r", reference,
                               "e", Colour::red, "p", PLAIN),
                     {});
  WITH_BASE_PROFILER(
      PROF_HOST, "others", "x",
      PROF_ARGS("b", true, "f", 0.5f, "d", -2.25, "ld", 1.5L, "null", nullptr, "vp", &watched), {});
  WITH_BASE_PROFILER(PROF_HOST, "texts", "x",
                     PROF_ARGS("lit", "literal", "s", text, "v", view, "buf", buffer, "tmp",
                               text + "!", "p", pointer),
                     { buffer[0] = 'X'; });
  events_stop_and_read();
  assert_event_total(3);
  assert_string_equal(only_event("numbers")->args,
                      "i=i:-1 u=u:2 l=i:-3 ull=u:4 c=i:65 r=i:9 e=i:5 p=i:200");
  char wanted[256];
  snprintf(wanted, sizeof wanted, "b=b:1 f=f:0.5 d=f:-2.25 ld=f:1.5 null=s: vp=p:%" PRIxPTR,
           reinterpret_cast<uintptr_t>(&watched));
  assert_string_equal(only_event("others")->args, wanted);
  snprintf(wanted, sizeof wanted,
           "lit=s:literal s=s:string v=s:view buf=s:buffer tmp=s:string! p=p:%" PRIxPTR,
           reinterpret_cast<uintptr_t>(pointer));
  assert_string_equal(only_event("texts")->args, wanted);
}

void formats_shapes_and_lists_come_back(void **) {
  const std::vector<int64_t> dims{2, 3, 4};
  const prof_tensor kept = PROF_TENSOR(dims.data(), 1, PROF_I64);
  const std::string text = "ten";
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, "formatted", "x", PROF_FMT("%d of %s, %.1f", 3, text.c_str(), 0.5),
                     {});
  WITH_BASE_PROFILER(PROF_HOST, "shapes", "x",
                     PROF_SHAPES(PROF_TENSOR(dims.data(), dims.size(), PROF_F32), kept), {});
  WITH_BASE_PROFILER(PROF_HOST, "list of one", "x", {text}, {});
  WITH_BASE_PROFILER(PROF_HOST, "list of two", "x", (prof_i::args{"one", text}), {});
  events_stop_and_read();
  assert_event_total(4);
  assert_int_equal(only_event("formatted")->e.args_kind, PROF_ARGS_FORMAT);
  assert_string_equal(only_event("formatted")->args, "i:3 s:ten f:0.5");
  assert_int_equal(only_event("shapes")->e.args_kind, PROF_ARGS_SHAPES);
  assert_string_equal(only_event("shapes")->args, "t:220[2,3,4] t:40[2]");
  assert_string_equal(only_event("list of one")->args, "s:ten");
  assert_string_equal(only_event("list of two")->args, "s:one s:ten");
}

// ---- what is evaluated, and when ----

void everything_is_evaluated_once_when_on(void **) {
  events_record(2);
  calls = 0;
  WITH_GPU_PROFILER(value_once(Device(PROF_DEVICE_CUDA, 0)), value_once(1), name_once("n"),
                    name_once("c"), PROF_ARGS("v", value_once(2)), { calls += 100; });
  assert_int_equal(calls, 105);
  calls = 0;
  WITH_BASE_PROFILER(value_once(Device(PROF_DEVICE_CUDA, 0)), name_once("n"), "c", {name_once("a")},
                     { calls += 100; });
  assert_int_equal(calls, 103);
  calls = 0;
  {
    PROF_SCOPE(name_once("n"));
    PROF_INSTANT(name_once("n"), "c", {name_once("a")});
    PROF_COUNTER("counter", value_once(3));
  }
  assert_int_equal(calls, 4);
  events_stop_and_read();
  assert_event_total(5);
}

void nothing_is_evaluated_when_its_level_is_off(void **) {
  calls = 0;
  for (int level = 0; level <= 1; level++) {
    events_record(1);
    if (level == 0) assert_status(prof_stop(), PROF_OK);
    WITH_BASE_PROFILER_LEVEL(2, value_once(Device(1, 0)), name_once("n"), name_once("c"),
                             {name_once("a")}, {});
    WITH_GPU_PROFILER_LEVEL(2, value_once(PROF_HOST), value_once(1), name_once("n"), "c",
                            PROF_ARGS("v", value_once(2)), {});
    PROF_SCOPE_LEVEL(2, value_once(PROF_HOST), name_once("n"), "c", PROF_NO_ARGS);
    if (level == 1) continue;
    PROF_INSTANT(name_once("n"), "c", PROF_NO_ARGS);
    PROF_COUNTER("counter", value_once(2));
    PROF_SCOPE(name_once("n"));
  }
  assert_int_equal(calls, 0);
}

std::string name_with_a_mark() {
  PROF_INSTANT("name evaluated", "mark", PROF_NO_ARGS);
  return "marked";
}
int value_with_a_mark() {
  PROF_INSTANT("value evaluated", "mark", PROF_NO_ARGS);
  return 1;
}

void name_and_arguments_are_evaluated_before_the_start(void **) {
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, name_with_a_mark(), "x", PROF_ARGS("v", value_with_a_mark()), {});
  events_stop_and_read();
  assert_event_total(3);
  const uint64_t start = only_event("marked")->e.start_ns;
  assert_in_range(only_event("name evaluated")->e.start_ns, 0, start);
  assert_in_range(only_event("value evaluated")->e.start_ns, 0, start);
}

// ---- the code does what it does without the macro ----

void a_throw_closes_the_scopes_it_leaves(void **) {
  std::string caught;
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, "outer", "x", PROF_NO_ARGS, {
    try {
      WITH_BASE_PROFILER(PROF_HOST, "thrown out of", "x", PROF_NO_ARGS, {
        PROF_SCOPE("block");
        throw std::runtime_error("boo");
      });
      caught = "not thrown";
    } catch (const std::runtime_error &e) {
      PROF_INSTANT("caught", "x", PROF_NO_ARGS);
      caught = e.what();
    }
  });
  WITH_BASE_PROFILER(PROF_HOST, "after", "x", PROF_NO_ARGS, {});
  events_stop_and_read();
  assert_string_equal(caught.c_str(), "boo");
  assert_event_total(5);
  assert_int_equal(only_event("block")->e.depth, 2);
  assert_int_equal(only_event("after")->e.depth, 0);
  const seen_event *const left = only_event("thrown out of");
  assert_true(left->e.start_ns + left->e.duration_ns <= only_event("caught")->e.start_ns);
  assert_true(events_holds(only_event("outer"), only_event("caught")));
}

void an_argument_that_throws_opens_no_scope(void **) {
  const auto thrower = []() -> std::string { throw std::runtime_error("no name"); };
  bool caught = false;
  events_record(1);
  try {
    WITH_BASE_PROFILER(PROF_HOST, thrower(), "x", PROF_NO_ARGS, { calls++; });
  } catch (const std::runtime_error &) {
    caught = true;
  }
  WITH_BASE_PROFILER(PROF_HOST, "after", "x", PROF_NO_ARGS, {});
  events_stop_and_read();
  assert_true(caught);
  assert_event_total(1);
  assert_int_equal(only_event("after")->e.depth, 0);
}

void break_and_continue_leave_the_scope(void **) {
  int seen = 0;
  events_record(1);
  for (const int i : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
    WITH_BASE_PROFILER(PROF_HOST, "loop", "x", PROF_NO_ARGS, {
      const std::string destroyed = "destroyed on the way out";
      if (i % 2) continue;
      if (i == 6) break;
      seen += i;
    });
    seen += 100;
  }
  events_stop_and_read();
  assert_int_equal(seen, 306);
  assert_event_total(7);
  for (size_t i = 0; i < events.count; i++) assert_int_equal(events.items[i].e.depth, 0);
}

std::string returns_from_inside(int value) {
  WITH_BASE_PROFILER(PROF_HOST, "returning", "x", PROF_ARGS("value", value), {
    if (value < 0) return "negative";
    WITH_BASE_PROFILER(PROF_HOST, "deeper", "x", PROF_NO_ARGS, { return std::to_string(value); });
  });
  return "not reached";
}

void return_leaves_all_scopes(void **) {
  events_record(1);
  assert_string_equal(returns_from_inside(-5).c_str(), "negative");
  assert_string_equal(returns_from_inside(5).c_str(), "5");
  events_stop_and_read();
  assert_events("returning", 2);
  assert_int_equal(only_event("deeper")->e.depth, 1);
}

void goto_leaves_the_scope(void **) {
  int rounds = 0;
  events_record(1);
again:
  WITH_BASE_PROFILER(PROF_HOST, "jumping", "x", PROF_NO_ARGS, {
    if (++rounds < 3) goto again;
  });
  events_stop_and_read();
  assert_int_equal(rounds, 3);
  assert_event_total(3);
}

int branch(int which) {
  int taken = 0;
  if (which == 0)
    WITH_BASE_PROFILER(PROF_HOST, "if", "x", PROF_NO_ARGS, { taken = 1; });
  else if (which == 1)
    WITH_GPU_PROFILER(PROF_HOST, 0, "else if", "x", {}, { taken = 2; });
  else if (which == 2)
    PROF_INSTANT("instant", "x", PROF_NO_ARGS);
  else if (which == 3)
    PROF_COUNTER("counter", 1);
  else
    switch (which) {
      case 4:
        WITH_BASE_PROFILER(PROF_HOST, "case", "x", PROF_NO_ARGS, { taken = 4; });
        break;
      default:
        WITH_BASE_PROFILER(PROF_HOST, "default", "x", PROF_NO_ARGS, { taken = 5; });
    }
  return taken;
}

void each_macro_is_one_statement(void **) {
  static const int wanted[] = {1, 2, 0, 0, 4, 5};
  events_record(1);
  for (int i = 0; i < 6; i++) assert_int_equal(branch(i), wanted[i]);
  events_stop_and_read();
  assert_event_total(6);
}

void commas_in_the_code_need_no_brackets(void **) {
  int sum = 0;
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, "commas", "x", PROF_NO_ARGS, {
    const std::map<int, std::pair<int, int>> table{{1, {2, 3}}, {4, {5, 6}}};
    for (const auto &[key, value] : table) sum += key + value.first * value.second;
    const auto add = [&sum](int a, int b) { sum += a + b; };
    add(100, 1), add(1000, 2);
  });
  events_stop_and_read();
  assert_int_equal(sum, 5 + 6 + 30 + 101 + 1002);
  assert_event_total(1);
}

// ---- where scopes may stand ----

void scopes_stand_in_lambdas(void **) {
  events_record(1);
  int sum = 0;
  const auto outer = [&](auto value) {
    PROF_FUNCTION();
    const auto inner = [](int x) {
      WITH_BASE_PROFILER(PROF_HOST, "inner lambda", "x", PROF_ARGS("x", x), { return x * 2; });
      return 0;
    };
    WITH_BASE_PROFILER(PROF_HOST, "generic lambda", "x", {},
                       { sum += inner(static_cast<int>(value)); });
  };
  outer(2);
  outer(3.5);
  WITH_BASE_PROFILER(PROF_HOST, "around", "x", PROF_NO_ARGS, {
    [&] { WITH_BASE_PROFILER(PROF_HOST, "called at once", "x", PROF_NO_ARGS, { sum += 100; }); }();
  });
  events_stop_and_read();
  assert_int_equal(sum, 110);
  assert_events("inner lambda", 2);
  assert_events("generic lambda", 2);
  assert_events("operator()", 2);
  assert_true(events_holds(only_event("around"), only_event("called at once")));
  assert_event_total(8);
}

template <class T>
struct Layer {
  std::string name;
  explicit Layer(std::string n) : name(std::move(n)) {
    PROF_INSTANT("constructed", "layer", PROF_ARGS("name", name));
  }
  ~Layer() {
    WITH_BASE_PROFILER(PROF_HOST, "destructor", "layer", {}, { calls++; });
  }
  Layer(const Layer &) = delete;
  Layer &operator=(const Layer &) = delete;
  template <class... Values>
  T forward(Values... values) const noexcept {
    PROF_FUNCTION();
    T sum{};
    WITH_BASE_PROFILER(PROF_HOST, name, "layer", PROF_ARGS("count", sizeof...(values)), {
      if constexpr (sizeof...(values) > 0) sum = (values + ... + sum);
    });
    return sum;
  }
  static int count(int depth) {
    PROF_FUNCTION();
    return depth > 0 ? count(depth - 1) + 1 : 0;
  }
};

void scopes_stand_in_templates_and_members(void **) {
  events_record(1);
  {
    const Layer<int> integers("integers");
    const Layer<double> doubles("doubles");
    assert_int_equal(integers.forward(1, 2, 3), 6);
    assert_true(doubles.forward(0.5, 1.5) == 2.0);
    assert_int_equal(integers.forward(), 0);
    assert_int_equal(Layer<int>::count(4), 4);
  }
  events_stop_and_read();
  assert_events("forward", 3);
  assert_events("integers", 2);
  assert_events("doubles", 1);
  assert_events("count", 5);
  assert_events("constructed", 2);
  assert_events("destructor", 2);
  assert_event_total(15);
}

int at_static_initialisation = [] {
  WITH_BASE_PROFILER(PROF_HOST, "before main", "x", PROF_NO_ARGS, { return 1; });
  return 0;
}();

void a_scope_may_stand_before_main(void **) { assert_int_equal(at_static_initialisation, 1); }

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(rafs_own_calls_compile_unchanged),
      cmocka_unit_test(rafs_arguments_may_be_a_vector_of_strings),
      cmocka_unit_test(names_come_from_any_string),
      cmocka_unit_test(an_inlined_function_keeps_the_names_of_its_callers_apart),
      cmocka_unit_test(inline_functions_of_two_units_are_one_site),
      cmocka_unit_test(arguments_of_every_type_come_back),
      cmocka_unit_test(formats_shapes_and_lists_come_back),
      cmocka_unit_test(everything_is_evaluated_once_when_on),
      cmocka_unit_test(nothing_is_evaluated_when_its_level_is_off),
      cmocka_unit_test(name_and_arguments_are_evaluated_before_the_start),
      cmocka_unit_test(a_throw_closes_the_scopes_it_leaves),
      cmocka_unit_test(an_argument_that_throws_opens_no_scope),
      cmocka_unit_test(break_and_continue_leave_the_scope),
      cmocka_unit_test(return_leaves_all_scopes),
      cmocka_unit_test(goto_leaves_the_scope),
      cmocka_unit_test(each_macro_is_one_statement),
      cmocka_unit_test(commas_in_the_code_need_no_brackets),
      cmocka_unit_test(scopes_stand_in_lambdas),
      cmocka_unit_test(scopes_stand_in_templates_and_members),
      cmocka_unit_test(a_scope_may_stand_before_main),
  };
  return cmocka_run_group_tests_name("the macros in C++", tests, nullptr, nullptr);
}
