/* prof doctor: what can be recorded on this machine, and what to do where something cannot. */
#include <prof/device.h>
#include <prof/profiler.h>
#include <stdbool.h>
#include <string.h>

#include "commands.h"

enum { WIDTH = 12 };

static void put_line(const char *title, const char *text) {
  if (!*text) return;
  printf("  %-*s ", WIDTH, title);
  print_text(stdout, text, strlen(text));
  putchar('\n');
}

static const char *device_word(int32_t type) {
  switch (type) {
    case PROF_DEVICE_CUDA: return "cuda";
    case PROF_DEVICE_OPENCL: return "opencl";
    case PROF_DEVICE_VULKAN: return "vulkan";
    case PROF_DEVICE_METAL: return "metal";
    case PROF_DEVICE_ROCM: return "rocm";
    case PROF_DEVICE_ONEAPI: return "oneapi";
    default: return NULL;
  }
}

static void put_device(const prof_backend_state *state) {
  const char *const word = device_word(state->device_type);
  if (word) printf("  %-*s %s (type %d)\n", WIDTH, "devices", word, state->device_type);
  else if (state->device_type) printf("  %-*s of type %d\n", WIDTH, "devices", state->device_type);
}

static void put_back_end(const prof_backend_state *state) {
  const char *const name = state->name[0] ? state->name : state->path;
  print_text(stdout, name, strlen(name));
  if (state->version[0]) putchar(' ');
  print_text(stdout, state->version, strlen(state->version));
  printf(": %s%s\n", state->result == PROF_BACKEND_OK ? "works" : "does not work", state->is_emulated ? " (emulated: no device is behind it)" : "");
  put_device(state);
  if (state->name[0]) put_line("file", state->path);
  if (state->result == PROF_BACKEND_OK) {
    put_line("can", state->abilities & PROF_CAN_CLOCKS ? "scopes on streams by the device's own times; reads its clock" : "scopes on streams by the device's own times");
    return;
  }
  put_line("why", state->reason);
  put_line("what to do", state->advice);
}

int command_doctor(int argc, char **argv) {
  if (argc > 1) return bad_words("doctor", "it takes no words:", argv[1]);
  prof_backend_state state = {.size = sizeof state};
  uint32_t count = 0, working = 0;
  int status;
  printf("prof %s\n", prof_version());
  putchar('\n');
  for (; (status = prof_backend_status(count, &state)) == PROF_OK; count++) {
    put_back_end(&state);
    working += state.result == PROF_BACKEND_OK;
  }
  if (status != PROF_E_NOT_FOUND) {
    say("prof doctor: %s", prof_last_error());
    return EXIT_FAILED;
  }
  if (count) putchar('\n');
  printf("%u of %u back ends of devices can work here.\n", working, count);
  if (!working) puts("WITH_GPU_PROFILER() records its host side alone. PROF_BACKENDS=/whole/path names plug-ins, files or folders.");
  return EXIT_OK;
}
