/* host.c: a Lua 5.4 with prof in it, as a runtime would have it, without a patch of Lua. Functions
   by the debug hook and scopes by calls (level 2), pieces of work by block macros (level 1), memory
   by lua_Alloc. It counts its calls of prof, and ends with the counts, which check.py compares.

   usage: host WORKLOAD FOLDER HOW COROUTINES [THREADS]

   HOW "bare": no hook, nothing of prof. "counts": hooks and counts alone. "0": prof stays off.
   "1", "2": its level.

   COROUTINES "nest": a coroutine's scopes end when it yields and begin again when it is resumed.
   "cross": they stay open in between, so that scopes of several coroutines overlap.

   PARTS="[NAME][NAME]": these parts of the workload alone.

   PROGRESS=FILE: the counts of begins and ends go there while it runs, for a process that kills it.

   A block that an error leaves is left by longjmp(): prof is to record it as skipped. */
#include <fcntl.h>
#include <inttypes.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <prof/memory.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../book.h"

enum { LINES_MAX = 1024, QUIET_MAX = 64, COUNT_STEP = 1000, PIECES = 1 << 20 };

/* A function that runs, by its call information: Lua's, which stays its own as long as the call
 * runs. */
typedef struct frame {
  const void *call;
  book_line *line;
  uint64_t start; /* what prof_scope_begin() returned */
} frame;

/* The calls of one coroutine, as far as the hook was told. */
typedef struct stack {
  lua_State *state;
  frame *frames;
  size_t count, room;
  bool is_suspended; /* COROUTINES is nest: its scopes have ended, and begin again */
} stack;

/* Shared with whoever kills the process. */
typedef struct progress {
  uint64_t begun, ending, ended;
} progress;

typedef struct runner {
  pthread_t thread;
  int index;
  lua_State *main;
  book own;
  book_account account;
  char pool_name[32];
  prof_pool *pool;
  uint64_t limit_bytes; /* of used; more is refused. 0: no limit */
  stack *stacks;
  size_t stack_count;
  size_t current;                    /* in stacks: where the hook was last */
  uint64_t calls_at[LINES_MAX];      /* of Lua functions, by the line where they begin */
  uint64_t called_by_lua[LINES_MAX]; /* the same as the script counted it; UINT64_MAX: it did not */
  uint64_t count_events;
  uint64_t ns; /* that the script took */
  uint64_t quiet_count, quiet_bad;
  char result[64];
  bool has_failed;
} runner;

static bool has_hooks, uses_prof, is_nested;
static const char *workload;
static progress *shared;

/* Each lua_State has the runner before it (LUA_EXTRASPACE), and coroutines inherit that. */
static runner *runner_of(lua_State *state) { return *(runner **)lua_getextraspace(state); }

static void note(uint64_t *number) { __atomic_fetch_add(number, 1, __ATOMIC_RELEASE); }

/* ---- functions: the hook ---- */

static void begin(frame *f) {
  f->line->begun++;
  if (!uses_prof) return;
  if (shared) note(&shared->begun);
  f->start = prof_scope_begin(2, f->line->name, f->line->category, NULL);
}

static void end(frame *f) {
  f->line->ended++;
  if (!uses_prof) return;
  if (shared) note(&shared->ending);
  prof_scope_end(f->start);
  if (shared) note(&shared->ended);
}

static stack *stack_of(runner *r, lua_State *state) {
  for (size_t i = r->stack_count; i-- > 0;)
    if (r->stacks[i].state == state) return &r->stacks[i];
  if ((r->stack_count & (r->stack_count + 1)) == 0) /* 2^n - 1 are there: room for as many again */
    r->stacks = realloc(r->stacks, (r->stack_count + 1) * 2 * sizeof *r->stacks);
  r->stacks[r->stack_count] = (stack){.state = state};
  return &r->stacks[r->stack_count++];
}

static void suspend(stack *s) {
  for (size_t i = s->count; i-- > 0;) end(&s->frames[i]);
  s->is_suspended = true;
}

static void resume(stack *s) {
  for (size_t i = 0; i < s->count; i++) begin(&s->frames[i]);
  s->is_suspended = false;
}

/* Another coroutine runs than at the last event. One that is resumed runs inside of those that wait
   for it: they stay as they are. One that yielded, ended or failed is suspended: it comes back only
   where it is resumed. */
static stack *switch_to(runner *r, lua_State *state) {
  stack *const to = stack_of(r, state);
  stack *const from = &r->stacks[r->current];
  const size_t index = (size_t)(to - r->stacks);
  if (index == r->current) return to;
  if (is_nested) {
    const bool is_return = !to->is_suspended && to->count > 0; /* it waited in coroutine.resume() */
    if (is_return) {
      if (!from->is_suspended) suspend(from);
    } else if (to->is_suspended) {
      resume(to);
    }
  }
  r->current = index;
  return to;
}

/* What an error has unwound has no return: it is what stands above the caller of the function that
 * runs now. */
static void unwind_to(stack *s, const void *call) {
  while (s->count > 0 && s->frames[s->count - 1].call != call) end(&s->frames[--s->count]);
}

static const void *caller_of(lua_State *state) {
  lua_Debug caller;
  return lua_getstack(state, 1, &caller) ? (const void *)caller.i_ci : NULL;
}

static book_line *line_of(runner *r, lua_State *state, lua_Debug *ar) {
  char name[512];
  lua_getinfo(state, "nS", ar);
  const char *const called = ar->name ? ar->name : "?";
  if (*ar->what == 'C') {
    snprintf(name, sizeof name, "%s [C]", called);
  } else {
    snprintf(name, sizeof name, "%s %s:%d", called, ar->short_src, ar->linedefined);
    if (ar->linedefined >= 0 && ar->linedefined < LINES_MAX) r->calls_at[ar->linedefined]++;
  }
  return book_find(&r->own, name, "lua", 2);
}

static void hook(lua_State *state, lua_Debug *ar) {
  runner *const r = runner_of(state);
  if (ar->event == LUA_HOOKCOUNT) {
    r->count_events++;
    if (!uses_prof) return;
    book_find(&r->own, "instructions", "counter", 1)->marks++;
    PROF_COUNTER("instructions", r->count_events * (double)COUNT_STEP);
    return;
  }
  stack *const s = switch_to(r, state);
  const void *const call = ar->i_ci;
  if (ar->event == LUA_HOOKRET) {
    unwind_to(s, call);
    if (s->count > 0) end(&s->frames[--s->count]);
    return;
  }
  if (ar->event == LUA_HOOKTAILCALL) {
    unwind_to(s, call);
    if (s->count > 0) end(&s->frames[--s->count]);
  } else {
    unwind_to(s, caller_of(state));
  }
  if (s->count == s->room) {
    s->room = s->room ? s->room * 2 : 16;
    s->frames = realloc(s->frames, s->room * sizeof *s->frames);
  }
  s->frames[s->count] = (frame){.call = call, .line = line_of(r, state, ar)};
  begin(&s->frames[s->count++]);
}

/* What is left when the script is over: its own coroutine's by an error, others' because nobody
 * resumed them again. */
static void settle(runner *r) {
  for (size_t i = 0; i < r->stack_count; i++) {
    stack *const s = &r->stacks[i];
    if (s->state == r->main) {
      unwind_to(s, NULL);
    } else if (!s->is_suspended) {
      for (size_t j = 0; j < s->count; j++) s->frames[j].line->open++;
    }
    free(s->frames);
  }
  free(r->stacks);
}

/* ---- memory: lua_Alloc ---- */

static void *allocate(void *user, void *old, size_t old_bytes, size_t bytes) {
  runner *const r = user;
  if (!old) old_bytes = 0; /* then it is a kind of object */
  if (bytes > old_bytes && r->limit_bytes && r->account.used - old_bytes + bytes > r->limit_bytes) {
    r->account.failed_count++;
    return NULL;
  }
  if (old) {
    book_account_free(&r->account, old_bytes);
    if (uses_prof) prof_memory_free(r->pool, old, old_bytes);
  }
  if (bytes == 0) {
    free(old);
    return NULL;
  }
  void *const piece = realloc(old, bytes);
  if (!piece) abort();
  book_account_alloc(&r->account, bytes);
  if (uses_prof) prof_memory_alloc(r->pool, piece, bytes, 0);
  return piece;
}

/* ---- what the script may call ---- */

/* host.block(name, f, ...): f inside of a block of that name. An error in f leaves it by longjmp().
 */
static int block(lua_State *state) {
  const char *const name = luaL_checkstring(state, 1);
  const int count = lua_gettop(state) - 2;
  runner *const r = runner_of(state);
  book_line *const line = has_hooks ? book_find(&r->own, name, "block", 1) : NULL;
  if (line) line->begun++, line->jumped++;
  if (uses_prof)
    WITH_BASE_PROFILER(PROF_HOST, name, "block", PROF_ARGS("arguments", count, "name", name),
                       { lua_call(state, count, LUA_MULTRET); });
  else
    lua_call(state, count, LUA_MULTRET);
  if (line) line->ended++, line->jumped--;
  return lua_gettop(state) - 1;
}

/* host.loop(name, f): the same for a C function that may be left by a yield, and goes on in its
 * continuation. */
static int block_goes_on(lua_State *state, int status, lua_KContext context) {
  (void)status, (void)context;
  return lua_gettop(state) - 1;
}
static int yielding_block(lua_State *state) {
  const char *const name = luaL_checkstring(state, 1);
  runner *const r = runner_of(state);
  book_line *const line = has_hooks ? book_find(&r->own, name, "yielding", 1) : NULL;
  if (line) line->begun++, line->jumped++;
  if (uses_prof)
    WITH_BASE_PROFILER(PROF_HOST, name, "yielding", PROF_NO_ARGS,
                       { lua_callk(state, 0, LUA_MULTRET, 0, block_goes_on); });
  else
    lua_callk(state, 0, LUA_MULTRET, 0, block_goes_on);
  if (line) line->ended++, line->jumped--;
  return block_goes_on(state, LUA_OK, 0);
}

static int instant(lua_State *state) {
  const char *const name = luaL_checkstring(state, 1);
  if (has_hooks) book_find(&runner_of(state)->own, name, "mark", 1)->marks++;
  if (uses_prof) PROF_INSTANT(name, "mark", PROF_ARGS("depth", lua_gettop(state)));
  return 0;
}

/* host.quiet(): no buffer of the auxiliary library lives, so what Lua counts is what the allocator
 * counts. */
static int quiet(lua_State *state) {
  runner *const r = runner_of(state);
  const uint64_t by_lua =
      (uint64_t)lua_gc(state, LUA_GCCOUNT) * 1024 + (uint64_t)lua_gc(state, LUA_GCCOUNTB);
  r->quiet_count++;
  if (by_lua == r->account.used) return 0;
  r->quiet_bad++;
  fprintf(stderr, "Lua counts %" PRIu64 " bytes, its allocator %" PRIu64 "\n", by_lua,
          r->account.used);
  return 0;
}

/* host.limit(bytes): beyond what is used now; 0: none. */
static int limit(lua_State *state) {
  runner *const r = runner_of(state);
  const uint64_t more = (uint64_t)luaL_checkinteger(state, 1);
  r->limit_bytes = more ? r->account.used + more : 0;
  return 0;
}

/* host.counted(f, n): the script says that f was called n times. */
static int counted(lua_State *state) {
  lua_Debug ar;
  const uint64_t calls = (uint64_t)luaL_checkinteger(state, 2);
  lua_settop(state, 1);
  lua_getinfo(state, ">S", &ar);
  if (ar.linedefined > 0 && ar.linedefined < LINES_MAX)
    runner_of(state)->called_by_lua[ar.linedefined] = calls;
  return 0;
}

static const luaL_Reg host_functions[] = {{"block", block},     {"yielding_block", yielding_block},
                                          {"instant", instant}, {"quiet", quiet},
                                          {"limit", limit},     {"counted", counted},
                                          {NULL, NULL}};

/* ---- a run ---- */

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void run_script(runner *r) {
  lua_State *const state = r->main;
  luaL_openlibs(state);
  luaL_newlib(state, host_functions);
  lua_setglobal(state, "host");
  lua_pushinteger(state, r->index);
  lua_setglobal(state, "index");
  lua_pushboolean(state, shared != NULL);
  lua_setglobal(state, "endless");
  if (getenv("PARTS")) {
    lua_pushstring(state, getenv("PARTS"));
    lua_setglobal(state, "parts");
  }
  if (luaL_loadfile(state, workload) != LUA_OK) {
    fprintf(stderr, "failed: %s\n", lua_tostring(state, -1));
    r->has_failed = true;
    return;
  }
  r->stacks = calloc(1, sizeof *r->stacks);
  r->stacks[r->stack_count++] = (stack){.state = state};
  if (has_hooks) lua_sethook(state, hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, COUNT_STEP);
  const uint64_t begun = now_ns();
  const int status = lua_pcall(state, 0, 1, 0);
  r->ns = now_ns() - begun;
  lua_sethook(state, NULL, 0, 0);
  if (status != LUA_OK) fprintf(stderr, "failed: %s\n", lua_tostring(state, -1));
  r->has_failed = status != LUA_OK;
  snprintf(r->result, sizeof r->result, "%s", luaL_tolstring(state, -1, NULL));
  lua_settop(state, 0);
  settle(r);
}

static void *run(void *user) {
  runner *const r = user;
  memset(r->called_by_lua, 0xff, sizeof r->called_by_lua);
#if LUA_VERSION_NUM >= 505
  r->main = lua_newstate(allocate, r, 1);
#else
  r->main = lua_newstate(allocate, r);
#endif
  *(runner **)lua_getextraspace(r->main) = r;
  if (uses_prof) {
    char name[32];
    snprintf(name, sizeof name, "interpreter %d", r->index);
    prof_thread_set_name(name);
    book_line *const line = book_find(&r->own, "script", "thread", 1);
    line->begun++;
    WITH_BASE_PROFILER(PROF_HOST, "script", "thread", PROF_NO_ARGS, { run_script(r); });
    line->ended++;
  } else {
    run_script(r);
  }
  lua_close(r->main);
  return NULL;
}

/* ---- counts ---- */

static uint64_t compare_with_lua(const runner *r) {
  uint64_t bad = 0;
  for (int i = 0; i < LINES_MAX; i++)
    if (r->called_by_lua[i] != UINT64_MAX && r->called_by_lua[i] != r->calls_at[i]) {
      fprintf(stderr,
              "the function at line %d: the script counts %" PRIu64 " calls, the hook %" PRIu64
              "\n",
              i, r->called_by_lua[i], r->calls_at[i]);
      bad++;
    }
  return bad;
}

static int write_counts(const char *folder, runner *runners, int count) {
  char path[4096];
  book all = {0};
  book_account accounts[64];
  uint64_t quiet_count = 0, bad = 0, counted_count = 0, refused = 0, events = 0, ns = 0;
  snprintf(path, sizeof path, "%s/own.json", folder);
  FILE *const to = fopen(path, "w");
  if (!to) return 1;
  fputs("{", to);
  for (int i = 0; i < count; i++) {
    book_add(&all, &runners[i].own);
    accounts[i] = runners[i].account;
    quiet_count += runners[i].quiet_count;
    bad += runners[i].quiet_bad + (has_hooks ? compare_with_lua(&runners[i]) : 0);
    refused += runners[i].account.failed_count;
    events += runners[i].count_events;
    ns += runners[i].ns;
    for (int j = 0; j < LINES_MAX; j++) counted_count += runners[i].called_by_lua[j] != UINT64_MAX;
    if (runners[i].has_failed) bad++;
  }
  book_write(to, &all, accounts, (size_t)count);
  fprintf(to, ",\n\"result\": \"");
  for (int i = 0; i < count; i++) fprintf(to, "%s%s", i ? " " : "", runners[i].result);
  fprintf(to,
          "\",\n\"instruments\": {\"functions the script counted, too\": %" PRIu64
          ", \"looks at Lua's own count of bytes\": %" PRIu64 ", \"refused allocations\": %" PRIu64
          ", \"thousands of instructions\": %" PRIu64 "},\n\"disagreements\": %" PRIu64
          ",\n\"threads_ended\": %d, \"ns\": %" PRIu64 "}\n",
          counted_count, quiet_count, refused, events, bad, count > 1, ns);
  book_destroy(&all);
  return fclose(to) || bad;
}

static bool set_up(const char *folder, const char *how) {
  static char output[4096];
  has_hooks = strcmp(how, "bare") != 0;
  uses_prof = has_hooks && strcmp(how, "counts") != 0;
  if (!book_progress(sizeof *shared, (void **)&shared)) return false;
  if (!uses_prof || *how == '0') return true;
  snprintf(output, sizeof output, "%s/run.json", folder);
  const prof_options options = {
      .size = sizeof options, .level = (uint32_t)(*how - '0'), .path = output, .keep_capture = 1};
  if (prof_start_with(&options) == PROF_OK) return true;
  fprintf(stderr, "failed: prof_start_with: %s\n", prof_last_error());
  return false;
}

int main(int count, char **words) {
  if (count < 5) return 2;
  workload = words[1];
  const char *const folder = words[2], *const how = words[3];
  is_nested = !strcmp(words[4], "nest");
  const int thread_count = count > 5 ? atoi(words[5]) : 1;
  if (thread_count < 1 || thread_count > 64 || !set_up(folder, how)) return 2;
  runner *const runners = calloc((size_t)thread_count, sizeof *runners);
  for (int i = 0; i < thread_count; i++) {
    runner *const r = &runners[i];
    r->index = i;
    snprintf(r->pool_name, sizeof r->pool_name, "lua %d", i);
    r->account.name = r->pool_name;
    if (uses_prof && prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options),
                                                           .name = r->pool_name},
                                      &r->pool))
      return 2;
  }
  /* One alone runs on the main thread: what it leaves open is open at the end. What a thread leaves
   * is lost with it. */
  if (thread_count == 1) run(&runners[0]);
  for (int i = 0; i < thread_count && thread_count > 1; i++)
    if (pthread_create(&runners[i].thread, NULL, run, &runners[i])) return 2;
  for (int i = 0; i < thread_count && thread_count > 1; i++) pthread_join(runners[i].thread, NULL);
  int status = write_counts(folder, runners, thread_count);
  if (uses_prof && *how != '0') {
    char path[4096];
    prof_stop();
    snprintf(path, sizeof path, "%s/prof.json", folder);
    status |= book_write_prof(path);
  }
  for (int i = 0; i < thread_count; i++) {
    prof_pool_destroy(runners[i].pool);
    book_destroy(&runners[i].own);
  }
  free(runners);
  return status != 0;
}
