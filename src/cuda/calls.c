/* CUDA's functions by CUPTI's numbers, which never change: their names, and which of them put work
   on a device.
   Calls that launch work are recognised by their names, because each release has new ones. */
#define _GNU_SOURCE
#include "internal.h"

#include <string.h>

enum { CALLS_MAX = 2048, DOMAINS = 2, NAME_MAX_BYTES = 256, UNKNOWN_IN_A_ROW = 64 };

static struct { uint32_t names[DOMAINS][CALLS_MAX]; /* interned; 0: not asked yet */ } call_names;

static const char *cuda_call_text(int32_t domain, uint32_t number) {
  const char *text = NULL;
  return prof_i_cupti.cuptiGetCallbackName(domain, number, &text) == 0 && text && *text ? text
                                                                                        : NULL;
}

/* Of "cudaLaunchKernel_v7000" so many bytes that the release is left out. The driver's _v2 is part
   of the name. */
static size_t bytes_without_release(const char *text) {
  enum { DIGITS = 4 };
  const size_t bytes = strnlen(text, NAME_MAX_BYTES);
  size_t at = bytes;
  while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') at--;
  return bytes - at >= DIGITS && at >= 2 && text[at - 1] == 'v' && text[at - 2] == '_' ? at - 2
                                                                                       : bytes;
}

uint32_t prof_i_cuda_call_name(const prof_backend_host *host, int32_t domain, uint32_t number) {
  const char *text;
  if (domain < 1 || domain > DOMAINS || number >= CALLS_MAX) return 0;
  uint32_t *const name = &call_names.names[domain - 1][number];
  if (!*name && (text = cuda_call_text(domain, number)) != NULL)
    *name = host->intern(text, bytes_without_release(text));
  return *name;
}

static bool is_cuda_work_call(const char *text) {
  static const char *const begins[] = {
      "cuLaunch",     "cuGraphLaunch",   "cuMemcpy",   "cuMemset",   "cuMemPrefetch",  "cudaLaunch",
      "__cudaLaunch", "cudaGraphLaunch", "cudaMemcpy", "cudaMemset", "cudaMemPrefetch"};
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
    if (strncmp(text, begins[i], strlen(begins[i])) == 0) return true;
  return false;
}

static void enable_work_calls(int32_t domain,
                              int32_t (*choose_one)(uint32_t number, uint8_t enable), bool enable) {
  for (uint32_t number = 1, unknown = 0; number < CALLS_MAX && unknown < UNKNOWN_IN_A_ROW;
       number++) {
    const char *const text = cuda_call_text(domain, number);
    unknown = text ? 0 : unknown + 1;
    if (text && is_cuda_work_call(text)) choose_one(number, enable);
  }
}

bool prof_i_cuda_calls_enable_work(bool enable) {
  if (!prof_i_cupti.cuptiActivityEnableDriverApi || !prof_i_cupti.cuptiActivityEnableRuntimeApi)
    return false;
  enable_work_calls(PROF_I_CUPTI_CB_DOMAIN_DRIVER_API, prof_i_cupti.cuptiActivityEnableDriverApi,
                    enable);
  enable_work_calls(PROF_I_CUPTI_CB_DOMAIN_RUNTIME_API, prof_i_cupti.cuptiActivityEnableRuntimeApi,
                    enable);
  return true;
}
