/* The smallest program under prof: three scopes, written as a trace.

       first_scope [trace.json]          open it in ui.perfetto.dev or chrome://tracing */
#include <prof/profiler.h>
#include <stdio.h>

static double sum_of_squares(int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += (double)i * i;
  return sum;
}

int main(int argc, char **argv) {
  const char *const path = argc > 1 ? argv[1] : "first_scope.json";
  double sum = 0;
  prof_start(1); /* level 1: kernels and operators */

  /* A statement with a name, a category and arguments. What is in the braces runs as it stands. */
  for (int n = 1; n <= 3; n++)
    WITH_BASE_PROFILER(PROF_HOST, "sum_of_squares", "operator", PROF_ARGS("n", n * 100000),
                       { sum += sum_of_squares(n * 100000); });

  { /* Or from here to the end of the block. */
    PROF_SCOPE("print");
    printf("the sum is %g\n", sum);
  }

  prof_stop();
  const int status = prof_dump(path);
  if (status != PROF_OK) {
    fprintf(stderr, "first_scope: %s: %s\n", prof_status_text(status), prof_last_error());
    return 1;
  }
  printf("the trace is %s\n", path);
  return 0;
}
