# A plug-in with the static library inside is closed while a thread that recorded still runs, with a
# helper thread or without. Linked as pkg-config says it stays where it is, and what it records goes
# on in the same capture when it is opened again. Linked by hand it goes, and its capture with it;
# nobody calls it any more: neither the thread when it ends, nor the helper, nor a fork.
. "$(dirname "$0")/../harness.sh"

cat >plugin.c <<'C'
#include <prof/profiler.h>
PROF_API int begin(int helper);
PROF_API void work(void);
PROF_API int dump(const char *path);
int begin(int helper) {
  const prof_options options = {.size = sizeof options, .helper_thread = (uint32_t)helper};
  const int status = prof_start_with(&options);
  return status == PROF_E_RUNNING ? PROF_OK : status;
}
void work(void) {
  WITH_BASE_PROFILER(PROF_HOST, "plugin work", "op", PROF_NO_ARGS, {});
}
int dump(const char *path) { return prof_dump(path); }
C
cat >host.c <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void (*work)(void);
static pthread_barrier_t barrier;
static void *run(void *unused) {
  work();
  pthread_barrier_wait(&barrier); /* the plug-in is closed between these */
  pthread_barrier_wait(&barrier);
  return unused;
}
int main(int argc, char **argv) {
  if (argc != 5) return 2;
  const int rounds = atoi(argv[3]);
  pthread_barrier_init(&barrier, NULL, 2);
  for (int round = 1; round <= rounds; round++) {
    pthread_t thread;
    void *const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library || ((int (*)(int))dlsym(library, "begin"))(atoi(argv[2])) != 0) return 1;
    work = (void (*)(void))dlsym(library, "work");
    if (pthread_create(&thread, NULL, run, NULL) != 0) return 1;
    pthread_barrier_wait(&barrier);
    if (round == rounds && ((int (*)(const char *))dlsym(library, "dump"))(argv[4]) != 0) return 1;
    dlclose(library);
    const struct timespec moment = {0, 10000000}; /* the helper thread wakes meanwhile */
    nanosleep(&moment, NULL);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
  }
  const pid_t child = fork(); /* its handlers are prof's, too */
  if (child == 0) _exit(0);
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
C
quietly "$CC" -O2 -o host host.c -ldl -pthread
export PKG_CONFIG_PATH=$LIBDIR/pkgconfig

# runs SCOPE...: these are in the capture after three rounds.
runs() {
  for helper in 0 1; do
    ./host ./plugin.so $helper 3 trace.json || fail "host with helper=$helper: status $?"
    expect_scopes trace.json "$@"
  done
}

quietly "$CC" -O2 -fPIC -shared -o plugin.so plugin.c \
  $(pkg-config --static --cflags --libs prof | sed "s:-lprof:$LIBDIR/libprof.a:")
runs "plugin work" "plugin work" "plugin work"
quietly "$CC" -O2 -fPIC -shared -o plugin.so plugin.c $(pkg-config --cflags prof) \
  "$LIBDIR/libprof.a" -pthread \
  $(pkg-config --static --libs-only-l prof | sed 's/-lprof//')
runs "plugin work"
