/* HIP's two back ends, for the list of those that are built in. Below, by file, what the files of
   this folder share. */
#ifndef PROF_HIP_INTERNAL_H
#define PROF_HIP_INTERNAL_H

#include <prof/backend.h>
#include <stdbool.h>
#include <stdint.h>

#include "../device/vendor.h"
#include "api.h"
#include "tracer_api.h"

/* backend.c: scopes by events on the program's streams, and rocprofiler's records. */
extern const prof_backend prof_i_hip_backend;

/* meters.c: AMD's meters, as the kernel's driver (amdgpu) shows them in sysfs: power, memory,
   utilisation, clocks, temperature. A back end of its own that needs no library, because a program
   that samples need not use HIP. */
extern const prof_backend prof_i_amdgpu_backend;

/* ---- backend.c ---- */

/* Their number. Any thread, as all below. */
uint32_t prof_i_hip_devices_count(void);

/* Describes it, except for the size. */
void prof_i_hip_device_describe(uint32_t number, prof_backend_device *out);

/* ---- tracer_library.c ---- */

typedef struct prof_i_rocp_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define PROF_I_ROCP_MEMBER(need, name, arguments) int32_t(*name) arguments;
/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define PROF_I_ROCP_TEXT(name, arguments) const char *(*name)arguments;
  PROF_I_ROCP_FUNCTIONS(PROF_I_ROCP_MEMBER)
  PROF_I_ROCP_TEXTS(PROF_I_ROCP_TEXT)
#undef PROF_I_ROCP_TEXT
#undef PROF_I_ROCP_MEMBER
} prof_i_rocp_functions;
extern prof_i_rocp_functions prof_i_rocp;

/* Takes a loaded copy, or the file of the option ROCPROFILER (PROF_BACKEND_ROCPROFILER), or the one
   that the system finds, or that of ROCm's own folder. ABSENT, VERSION. Calls nothing of it. One
   thread at a time. */
int prof_i_rocp_library_open(const prof_backend_host *host);

/* Keeps a text of its error, and returns the result that fits. */
int prof_i_rocp_fail_call(const char *function, int32_t status);

/* ---- activity.c: names ---- */

/* A kernel that was loaded. */
typedef struct prof_i_rocp_name {
  uint64_t kernel;
  uint32_t bytes, is_there; /* is_there: release */
  char text[];
} prof_i_rocp_name;

/* Returns the next name after position *at, and moves *at. The first call has *at = 0. NULL: no
   more names yet. Only the collector calls it. */
const prof_i_rocp_name *prof_i_rocp_name_next(size_t *at);

/* ---- records.c ---- */

/* The collector alone. */

/* A GPU as rocprofiler numbers it, and where it is. */
typedef struct prof_i_hip_agent {
  uint64_t id;
  uint32_t location, domain; /* PCI */
} prof_i_hip_agent;
enum { PROF_I_HIP_AGENTS = 64 };

/* kinds: the wanted ones, as bits of prof_backend_kind. Calls may be recorded only to find
   launches. is_last: work without an end is not done, and lost. */
void prof_i_hip_records_begin(const prof_backend_host *host, const prof_i_hip_agent *agents,
                              uint32_t agent_count, uint32_t kinds, bool is_last);

/* Adds one record. Other kinds are ignored. */
void prof_i_hip_record_add(const prof_i_rocp_record *record);

/* Hands over records that wait for their call: those that waited at the last flush already, or
   (are_all) all. */
void prof_i_hip_records_flush(bool are_all);

/* The number of records that were not done, since the last call. */
uint64_t prof_i_hip_records_unfinished(void);

/* ---- activity.c ---- */

/* Starts and stops rocprofiler-sdk's records of kernels, copies and calls, and fetches them. */

/* Configures rocprofiler: must come before HIP begins. start() reports the result. One thread at a
   time. */
void prof_i_hip_activity_prepare(const prof_backend_host *host);

/* The same if rocprofiler itself asks a tool that ROCP_TOOL_LIBRARIES names, while HIP begins.
   Returns what rocprofiler_configure() returns. The kinds are recorded from HIP's first call on.
   is_ready: called when all is configured; it must not call HIP. NULL: this release is too old, or
   prof has configured it before. Any thread. */
void *prof_i_hip_activity_get_tool(const prof_backend_host *host, uint32_t kinds,
                                   void (*is_ready)(void));

/* Ends what was recorded from HIP's first call on. True: start() has taken it over, or, if not
   is_waiting, it has been stopped. One thread. */
bool prof_i_hip_activity_end_preinit(bool is_waiting);

/* True if HIP has begun, or if rocprofiler does not report it. False while HIP is being configured.
   Any thread. */
bool prof_i_hip_activity_has_begun(void);

/* As in prof_backend. The collector. */
int prof_i_hip_activity_start(const prof_backend_host *host, uint32_t kinds, uint32_t *kinds_out);
int prof_i_hip_activity_stop(void);
int prof_i_hip_activity_drain(const prof_backend_host *host, uint32_t how, uint64_t *lost_out);
int prof_i_hip_activity_clock(const prof_backend_host *host, prof_backend_pair *out);

#endif
