/* The emulated vendor's own tracing: what its streams were busy with, as records. Between
   tests/device/emulated/emulated.c and the back end's table; faults stand in emulated_fault. */
#ifndef TESTS_DEVICE_EMULATED_TRACING_H
#define TESTS_DEVICE_EMULATED_TRACING_H

#include <prof/backend.h>

/* Where something was launched. */
typedef struct emulated_launch_mark {
  uint64_t ticks, thread, call_begin_ns, number;
} emulated_launch_mark;

void emulated_tracing_open(const prof_backend_host *host);
emulated_launch_mark emulated_tracing_mark(void); /* the calling thread launches something */
/* It is done. Called on the stream's thread, which is not prof's. */
void emulated_tracing_done(const emulated_launch_mark *mark, uint64_t stream, uint32_t device,
                           uint64_t bytes, uint64_t begin_ns, uint64_t end_ns);

int emulated_tracing_start(prof_backend_self *self, uint32_t kinds, uint32_t *kinds_out);
int emulated_tracing_stop(prof_backend_self *self);
int emulated_tracing_drain(prof_backend_self *self, uint32_t how, uint64_t *lost_out);

/* The device's clock, which emulated.c has. */
uint64_t emulated_time_ns(void);

#endif
