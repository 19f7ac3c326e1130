/* What the conformance program needs of a vendor beside its back end: queues, and work to put on
   them. A vendor writes one of these, as a shared library that exports conformance_stage_get(),
   and runs: conformance STAGE.so. (conformance PLUG-IN.so goes without, and looks at the table
   alone.) */
#ifndef TESTS_DEVICE_CONFORMANCE_STAGE_H
#define TESTS_DEVICE_CONFORMANCE_STAGE_H

#include <prof/backend.h>

typedef struct conformance_stage {
  const char *name;
  const prof_backend *table;    /* the back end; NULL: device_type's own, which comes with prof */
  prof_device device;           /* of all its streams */
  const char *(*why_not)(void); /* NULL: it can be tested here; else why not. May be NULL */
  /* as WITH_GPU_PROFILER() is given it; NULL: the back end has no streams */
  uint64_t (*stream_create)(void);
  void (*stream_destroy)(uint64_t stream);
  /* puts work on it that takes so long, or longer; returns at once */
  void (*work)(uint64_t stream, uint64_t least_us);
  void (*wait)(uint64_t stream); /* for all that is on it */
  int is_synchronous;            /* 1: work() does the work */
  /* what no stream of the vendor's is: 0, unless that one is its default stream */
  uint64_t no_stream;
  /* How long the device took for this call of work(), the first is 0, by its own clock; after
     wait(). Only the first 50 are queried. NULL: not known, but at least what work() was told. */
  uint64_t (*worked_ns)(int call);
} conformance_stage;

#ifdef __cplusplus
extern "C"
#endif
    __attribute__((visibility("default"))) const conformance_stage *
    conformance_stage_get(void);

#endif
