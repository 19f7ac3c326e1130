"""``prof diff``, ``prof flame`` and ``prof report`` read two large captures by two threads: the
output is that of one thread."""

import json
import os

from known_capture import Recorded, device_events, events
from preload import environment

# The command sees PROCESSORS processors. It names each thread that it starts. FAILS: what fails:
# "threads", or no memory for "base" or "new" while both are read, or for "merge" afterwards.
SOURCE = """
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

extern void *__libc_calloc(size_t count, size_t bytes);
static int reads_both, merge_fails;

static int fails(const char *what) {
  const char *const wanted = getenv("FAILS");
  return is_prof() && wanted && strcmp(wanted, what) == 0;
}

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set) {
  memset(set, 0, bytes);
  for (int i = 0; i < atoi(getenv("PROCESSORS")); i++) CPU_SET_S(i, bytes, set);
  return 0;
}

void *calloc(size_t count, size_t bytes) {
  const int is_main = syscall(SYS_gettid) == getpid();
  if (__atomic_load_n(&reads_both, __ATOMIC_ACQUIRE) && fails(is_main ? "base" : "new"))
    return NULL;
  if (merge_fails && is_main) {
    merge_fails = 0;
    return NULL;
  }
  return __libc_calloc(count, bytes);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *with, void *(*work)(void *), void *of) {
  int (*const next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
      dlsym(RTLD_NEXT, "pthread_create");
  if (fails("threads")) return EAGAIN;
  if (write(2, "a thread\\n", 9) != 9) return EAGAIN;
  /* The new side begins with memory. That of the base is counted from here on. */
  __atomic_store_n(&reads_both, fails("new"), __ATOMIC_RELEASE);
  const int status = next(thread, with, work, of);
  __atomic_store_n(&reads_both, 1, __ATOMIC_RELEASE);
  return status;
}

int pthread_join(pthread_t thread, void **result) {
  int (*const next)(pthread_t, void **) = dlsym(RTLD_NEXT, "pthread_join");
  const int status = next(thread, result);
  __atomic_store_n(&reads_both, 0, __ATOMIC_RELEASE);
  merge_fails = fails("merge");
  return status;
}
"""
THREAD = "a thread\n"
LARGE_BYTES = 5 << 20  # more than LARGE_SIDE_BYTES in tools/prof/sides.c
WAYS = (
    (),
    ("--tree",),
    ("--json",),
    ("--csv",),
    ("--tree", "--json"),
    ("--by", "line"),
    ("--json", "--by", "thread,name,device,category"),
)


class Threads(Recorded):
    def setUp(self):
        super().setUp()
        self.environment = environment(self.folder, SOURCE)
        self.make("a.prof", events() + device_events())
        self.make("b.prof", device_events() + events(slower=2)[:70])

    def make(self, name, found, size=LARGE_BYTES):
        """A capture, and zeros behind it, as in a file that was made larger than needed."""
        trace = self.write(name + ".json", json.dumps({"traceEvents": found}))
        path = os.path.join(self.folder, name)
        self.prof("import", trace, "-o", path)
        if size:
            os.truncate(path, size)
        return path

    def diff(self, *words, processors=2, fails="", **options):
        env = {**self.environment, "PROCESSORS": str(processors), "FAILS": fails}
        return self.prof("diff", *words, env=env, **options)

    def compare(self, *words, thread=THREAD, fails="", **options):
        """Returns the output, which is that of one thread."""
        one = self.diff(*words, processors=1, **options)
        two = self.diff(*words, fails=fails, **options)
        self.assertNotIn(THREAD, one.stderr)
        self.assertEqual(two.stderr, thread + one.stderr)
        self.assertEqual(two.stdout, one.stdout)
        return one

    def test_two_threads_print_what_one_prints(self):
        for way in WAYS:
            with self.subTest(way=way):
                status = 3 if "line" in way else 0
                self.compare(*way, "a.prof", "b.prof", status=status)
                self.compare(*way, "b.prof", "a.prof", status=status)
        self.assertIn("kernel", self.compare("a.prof", "b.prof").stdout)

    def test_one_capture_may_be_both_sides(self):
        self.compare("a.prof", "a.prof")

    def test_what_fails_beside_the_other_side_is_done_after_it(self):
        for fails in ("threads", "base", "new", "merge"):
            with self.subTest(fails=fails):
                thread = "" if fails == "threads" else THREAD
                done = self.compare("a.prof", "b.prof", fails=fails, thread=thread)
                self.assertIn("convolution", done.stdout)

    def test_errors_of_each_side_are_said_once(self):
        path = self.make("bad.prof", events())
        with open(path, "r+b") as file:
            file.seek(8)
            file.write(b"\xff\xff\xff\x7f")  # the version
        for words in (("bad.prof", "b.prof"), ("a.prof", "bad.prof"), ("bad.prof", "bad.prof")):
            with self.subTest(words=words):
                self.assertEqual(self.compare(*words, status=1).stderr.count("bad.prof"), 1)

    def test_damage_of_each_side_is_said_in_order(self):
        for name in ("bad-1.prof", "bad-2.prof"):
            path = self.make(name, events())
            with open(path, "r+b") as file:
                file.seek(LARGE_BYTES - 65536)
                file.write(b"\xff" * 65536)
        for words in (
            ("bad-1.prof", "b.prof"),
            ("a.prof", "bad-2.prof"),
            ("bad-1.prof", "bad-2.prof"),
        ):
            with self.subTest(words=words):
                said = self.compare(*words).stderr
                self.assertEqual(
                    [word in said for word in ("'bad-1.prof' is dam", "'bad-2.prof' is dam")],
                    ["bad-1.prof" in words, "bad-2.prof" in words],
                )

    def test_small_sides_missing_ones_filters_and_runs_get_no_thread(self):
        self.make("small.prof", events(), size=0)
        for words, status in (
            (("a.prof", "small.prof"), 0),
            (("small.prof", "b.prof"), 0),
            (("a.prof", "missing.prof"), 1),
            (("missing.prof", "b.prof"), 1),
            (("--name", "load", "a.prof", "b.prof"), 0),
            (("--base", "a.prof", "small.prof", "--new", "b.prof"), 0),
        ):
            with self.subTest(words=words):
                self.compare(*words, thread="", status=status)

    def pictures(self, *words, processors=2, fails="", status=0):
        """Of flame graphs and reports: what is printed, and the file of the report."""
        env = {**self.environment, "PROCESSORS": str(processors), "FAILS": fails}
        flame = self.prof("flame", "--folded", *words, env=env, status=status)
        title = ("--title", "same", "-o", "report.html")
        report = self.prof("report", *title, *words, env=env, status=status)
        path = os.path.join(self.folder, "report.html")
        page = self.read("report.html") if os.path.exists(path) else None
        return flame, report, page

    def same_pictures(self, *words, thread=THREAD, fails="", status=0):
        flame, report, page = self.pictures(*words, processors=1, status=status)
        flame_of_two, report_of_two, page_of_two = self.pictures(*words, fails=fails, status=status)
        self.assertEqual(flame_of_two.stdout, flame.stdout)
        self.assertEqual(flame_of_two.stderr, thread + flame.stderr)
        self.assertEqual(report_of_two.stderr, thread + report.stderr)
        self.assertEqual(page_of_two, page)
        return flame.stdout

    def test_pictures_of_two_threads_are_those_of_one(self):
        for base, newer in (("a.prof", "b.prof"), ("b.prof", "a.prof"), ("a.prof", "a.prof")):
            with self.subTest(base=base, newer=newer):
                text = self.same_pictures("--base", base, "--new", newer)
                self.assertIn("inner", text)

    def test_pictures_are_made_by_one_thread_if_two_fail(self):
        for fails in ("threads", "base", "new", "merge"):
            with self.subTest(fails=fails):
                thread = "" if fails == "threads" else THREAD
                self.same_pictures(
                    "--base", "a.prof", "--new", "b.prof", fails=fails, thread=thread
                )

    def test_pictures_of_small_sides_and_with_filters_get_no_thread(self):
        self.make("small.prof", events(), size=0)
        self.same_pictures("--base", "a.prof", "--new", "small.prof", thread="")
        self.same_pictures("--name", "load", "--base", "a.prof", "--new", "b.prof", thread="")
