/* The emulated CUPTI beyond CUPTI's own functions: what a test asks of it, and what it has seen.
   Found by dlsym() in the library. */
#ifndef TESTS_DEVICE_VENDORS_CUPTI_H
#define TESTS_DEVICE_VENDORS_CUPTI_H

#include <stdint.h>

typedef struct emulated_cupti {
  /* What a test sets. */
  /* cuptiGetVersion(), and how long records are; 0: its own. It is looked at when something
     begins */
  uint32_t version;
  const char *holder;      /* another tool has subscribed; of that name */
  int32_t subscribe_error; /* cuptiSubscribe() returns it, as of another major than the driver's */
  int32_t enable_error;    /* cuptiActivityEnable() of kernels returns it */
  uint32_t no_times;       /* so many of the next records of work have none */
  /* so many of the next buffers have a record of no known kind at their end, behind which one more
     is */
  uint32_t unknown;
  uint32_t calls_last; /* 1: records of calls stand behind those of what they launched */
  uint32_t begins_ms;  /* so long takes a subscription */
  uint32_t hangs;      /* a flush takes until this is 0 again; atomic */
  /* so many of the next records of memory come with the flush after the next one, as those in a
     buffer with work that is not done */
  uint32_t late_pieces;
  /* so many buffers it asks for when it next wants one, as many threads together do, and keeps
     them, empty, until it is flushed by force */
  uint32_t hoards;
  /* What it has seen; atomic. */
  uint32_t subscribers;                          /* now */
  uint32_t kinds;                                /* that are enabled now */
  uint32_t flushes, requests, returned, refused; /* of buffers */
  uint32_t dropped;
  uint32_t calls; /* of CUPTI at all */
  /* of what nobody should call in another's process: cuptiFinalize(),
     cuptiActivityRegisterTimestampCallback() */
  uint32_t never;
} emulated_cupti;

emulated_cupti *emulated_cupti_state(void);

#endif
