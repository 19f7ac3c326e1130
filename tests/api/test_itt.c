/* libprof_itt.so as a program's part of ITT meets it: opened by its path, told of the part by
   __itt_api_init(), called by the pointers that it has set. No PyTorch: tests/python/test_torch.py
   has the real one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../inject/annotation/itt.h"
#include "events.h"

enum { THREADS = 4, NAMES = 300, MANY = 70000, DEEP = 1000 };

typedef prof_i_itt_domain *domain_create(const char *name);
typedef prof_i_itt_string *string_handle_create(const char *text);
typedef void task_begin(const prof_i_itt_domain *domain, prof_i_itt_id id, prof_i_itt_id parent,
                        prof_i_itt_string *name);
typedef void task_end(const prof_i_itt_domain *domain);
typedef void thread_set_name(const char *name);

static struct {
  void (*init)(prof_i_itt_part *part, int groups);
  int (*seen)(void);
  /* Set by the collector. */
  domain_create *domain;
  string_handle_create *string;
  task_begin *begin;
  task_end *end;
  thread_set_name *name_thread;
  void (*unknown)(void);
  prof_i_itt_domain *torch;
} itt;

static void null_function(void) {}
static void init_function(void) {}

static prof_i_itt_function functions[] = {
    {"__itt_domain_create", (void **)&itt.domain, (void *)init_function, NULL, 0},
    {"__itt_string_handle_create", (void **)&itt.string, (void *)init_function, NULL, 0},
    {"__itt_task_begin", (void **)&itt.begin, (void *)init_function, NULL, 0},
    {"__itt_task_end", (void **)&itt.end, (void *)init_function, NULL, 0},
    {"__itt_thread_set_name", (void **)&itt.name_thread, (void *)init_function, NULL, 0},
    {"__itt_not_known", (void **)&itt.unknown, (void *)init_function, (void *)null_function, 0},
    {NULL, NULL, NULL, NULL, 0},
};

static prof_i_itt_part part_of_version(unsigned long major) {
  return (prof_i_itt_part){.magic = PROF_I_ITT_MAGIC, .major = major, .functions = functions};
}

/* As ittnotify does it: by the variable's path. */
static int open_collector(void **state) {
  char path[4096];
  (void)state;
  const char *const folder = getenv("PROF_TEST_BUILD_DIR");
  snprintf(path, sizeof path, "%s/libprof_itt.so", folder ? folder : "build/dev");
  void *const library = dlopen(path, RTLD_LAZY);
  if (!library) print_error("%s\n", dlerror());
  if (!library) return 1;
  itt.init = (void (*)(prof_i_itt_part *, int))dlsym(library, "__itt_api_init");
  itt.seen = (int (*)(void))dlsym(library, "prof_i_itt_seen_1");
  prof_i_itt_part another = part_of_version(4), broken = part_of_version(3),
                  part = part_of_version(3);
  itt.unknown = init_function;
  broken.magic[3]++;
  itt.init(NULL, 0);
  itt.init(&another, 0);
  itt.init(&broken, 0);
  if (itt.begin || itt.unknown != init_function) return 1;
  itt.init(&part, -1);
  if (!itt.domain || !itt.string || !itt.begin || !itt.end || itt.unknown != null_function)
    return 1;
  itt.torch = itt.domain("PyTorch");
  return itt.torch ? 0 : 1;
}

static void begin(const prof_i_itt_domain *domain, const char *name) {
  itt.begin(domain, (prof_i_itt_id){0}, (prof_i_itt_id){0}, itt.string(name));
}

static void test_tasks_are_scopes_nested_as_they_were_begun(void **state) {
  (void)state;
  events_record(1);
  for (int i = 0; i < 3; i++) {
    begin(itt.torch, "aten::linear");
    begin(itt.torch, "aten::addmm");
    itt.end(itt.torch);
    itt.end(itt.torch);
  }
  events_stop_and_read();
  assert_events("aten::linear", 3);
  assert_events("aten::addmm", 3);
  assert_event_total(6);
  for (size_t i = 0; i < events.count; i++) {
    assert_string_equal(events.items[i].category, "cpu_op");
    assert_int_equal(events.items[i].e.level, 1);
    assert_int_equal(events.items[i].e.depth, strcmp(events.items[i].name, "aten::addmm") == 0);
  }
}

static void test_other_domains_are_level_2_and_their_own_category(void **state) {
  (void)state;
  prof_i_itt_domain *const other = itt.domain("oneDNN");
  for (int level = 1; level <= 2; level++) {
    events_record(level);
    begin(itt.torch, "execute");
    begin(other, "execute"); /* one string, two domains */
    itt.end(other);
    itt.end(itt.torch);
    events_stop_and_read();
    assert_event_total((size_t)level);
    assert_string_equal(events.items[0].category, "cpu_op");
    if (level == 2) assert_string_equal(events.items[1].category, "oneDNN");
  }
}

static void test_a_text_has_one_string_and_a_name_one_domain(void **state) {
  char text[] = "aten::relu", again[] = "aten::relu";
  (void)state;
  prof_i_itt_string *const relu = itt.string(text);
  assert_non_null(relu);
  assert_string_equal(relu->text, text);
  assert_ptr_equal(itt.string(text), relu);
  assert_ptr_equal(itt.string(again), relu);
  memcpy(text, "aten::gelu", sizeof text); /* the address comes again with another text */
  assert_string_equal(itt.string(text)->text, "aten::gelu");
  assert_ptr_equal(itt.domain("PyTorch"), itt.torch);
  assert_true(itt.torch->flags != 0);
  assert_null(itt.string(NULL));
  assert_null(itt.domain(NULL));
}

/* What the program's part made before the collector was there it keeps, and hands over. */
static void test_strings_and_domains_of_the_program_are_taken(void **state) {
  static prof_i_itt_string string = {.text = "made before"};
  static prof_i_itt_domain domain = {.flags = 1, .name = "PyTorch"}, nameless = {.flags = 1};
  (void)state;
  events_record(2);
  for (int i = 0; i < 2; i++) {
    itt.begin(&domain, (prof_i_itt_id){0}, (prof_i_itt_id){0}, &string);
    itt.end(&domain);
  }
  itt.begin(&nameless, (prof_i_itt_id){0}, (prof_i_itt_id){0}, &string);
  itt.end(&nameless);
  events_stop_and_read();
  assert_events("made before", 3);
  assert_string_equal(events.items[1].category, "cpu_op");
  assert_string_equal(events.items[2].category, "itt");
}

static void test_ends_and_begins_that_do_not_fit_do_no_harm(void **state) {
  (void)state;
  prof_i_itt_domain *const other = itt.domain("another");
  events_record(2);
  itt.end(itt.torch);
  itt.end(NULL);
  itt.begin(NULL, (prof_i_itt_id){0}, (prof_i_itt_id){0}, itt.string("x"));
  itt.begin(itt.torch, (prof_i_itt_id){0}, (prof_i_itt_id){0}, NULL);
  begin(itt.torch, "first");
  begin(other, "second");
  itt.end(itt.torch); /* each domain its own */
  begin(itt.torch, "third");
  itt.end(itt.torch);
  itt.end(other);
  itt.end(other);
  events_stop_and_read();
  assert_event_total(3);
  assert_events("first", 1);
  assert_events("second", 1);
  assert_events("third", 1);
}

static void test_nothing_is_recorded_that_nobody_asked_for(void **state) {
  (void)state;
  events_record(1);
  assert_status(prof_stop(), PROF_OK);
  begin(itt.torch, "before the start");
  assert_status(prof_start(1), PROF_OK);
  itt.end(itt.torch);
  events_stop_and_read();
  assert_event_total(0);
}

static void test_the_question_of_prof_itself_is_answered_and_not_recorded(void **state) {
  (void)state;
  events_record(1);
  assert_int_equal(itt.seen(), 0);
  begin(itt.torch, "prof.torch.observe()");
  itt.end(itt.torch);
  assert_int_equal(itt.seen(), 1);
  events_stop_and_read();
  assert_event_total(0);
}

static void test_any_depth(void **state) {
  (void)state;
  events_record(1);
  for (int i = 0; i < DEEP; i++) begin(itt.torch, "deep");
  for (int i = 0; i < DEEP; i++) itt.end(itt.torch);
  events_stop_and_read();
  assert_events("deep", DEEP);
  assert_event_total(DEEP);
}

static void name_of(char to[32], int i) { snprintf(to, 32, "operator %d", i); }

static void *use_all_names(void *leaves_open) {
  char name[32];
  for (int i = 0; i < NAMES; i++) {
    name_of(name, i);
    begin(itt.torch, name);
    itt.end(itt.torch);
  }
  if (leaves_open) begin(itt.torch, "left open");
  return NULL;
}

static void test_threads_make_the_same_names_at_once(void **state) {
  pthread_t threads[THREADS];
  char name[32];
  (void)state;
  events_record(1);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, use_all_names, i % 2 ? "yes" : NULL), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  events_stop_and_read();
  for (int i = 0; i < NAMES; i++) {
    name_of(name, i);
    assert_events(name, THREADS);
  }
  prof_health health = {.size = sizeof health};
  assert_status(prof_health_get(&health), PROF_OK);
  assert_int_equal(health.lost_count[PROF_LOSS_THREAD_ENDED], THREADS / 2);
}

static void test_a_child_goes_on_for_itself(void **state) {
  (void)state;
  events_record(1);
  begin(itt.torch, "outer");
  const pid_t child = fork();
  if (child == 0) {
    uint64_t count = 0;
    begin(itt.torch, "in the child");
    itt.end(itt.torch);
    itt.end(itt.torch);
    _exit(prof_get_duration("in the child", "cpu_op", NULL, &count) == PROF_OK && count == 1 ? 0
                                                                                             : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  itt.end(itt.torch);
  events_stop_and_read();
  assert_events("outer", 1);
  assert_int_equal(events.count, 1);
}

static void test_a_thread_is_named(void **state) {
  (void)state;
  events_record(1);
  itt.name_thread("from ITT");
  itt.name_thread(NULL);
  begin(itt.torch, "named");
  itt.end(itt.torch);
  events_stop_and_read();
  prof_trace_thread thread = {.size = sizeof thread};
  assert_status(prof_trace_thread_get(events.trace, only_event("named")->e.thread, &thread),
                PROF_OK);
  assert_string_equal(thread.name, "from ITT");
}

/* Last: they stay for good. */
static void test_names_without_end_take_memory_with_an_end(void **state) {
  char name[32];
  uint64_t known = 0, past = 0;
  (void)state;
  events_record(1);
  errno = 12345;
  for (int i = 0; i < MANY; i++) {
    name_of(name, i);
    begin(itt.torch, name);
    itt.end(itt.torch);
  }
  assert_int_equal(errno, 12345);
  assert_status(prof_stop(), PROF_OK);
  for (int i = 5000; i < 5003; i++) {
    uint64_t count = 0;
    name_of(name, i);
    assert_status(prof_get_duration(name, "cpu_op", NULL, &count), PROF_OK);
    known += count;
  }
  assert_status(prof_get_duration("(names past the 65536th)", "cpu_op", NULL, &past), PROF_OK);
  assert_int_equal(known, 3);
  assert_in_range(past, MANY - 65536, MANY - 65536 + 100); /* the other tests have made some */
  prof_health health = {.size = sizeof health};
  assert_status(prof_health(&health), PROF_OK);
  /* What threads have made at once counts twice there and is one site, and a number that the faster
     one's made useless counts, too. */
  assert_in_range(health.sites_count, 4096 - NAMES * (THREADS - 1), 4200 + NAMES * (THREADS - 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tasks_are_scopes_nested_as_they_were_begun),
      cmocka_unit_test(test_other_domains_are_level_2_and_their_own_category),
      cmocka_unit_test(test_a_text_has_one_string_and_a_name_one_domain),
      cmocka_unit_test(test_strings_and_domains_of_the_program_are_taken),
      cmocka_unit_test(test_ends_and_begins_that_do_not_fit_do_no_harm),
      cmocka_unit_test(test_nothing_is_recorded_that_nobody_asked_for),
      cmocka_unit_test(test_the_question_of_prof_itself_is_answered_and_not_recorded),
      cmocka_unit_test(test_any_depth),
      cmocka_unit_test(test_threads_make_the_same_names_at_once),
      cmocka_unit_test(test_a_child_goes_on_for_itself),
      cmocka_unit_test(test_a_thread_is_named),
      cmocka_unit_test(test_names_without_end_take_memory_with_an_end),
  };
  return cmocka_run_group_tests(tests, open_collector, NULL);
}
