/* An emulated vendor: streams are real threads that do what they are given one after the other, and
   the device has a clock of its own. Faults on demand. For tests; a device is not behind it, and
   its table says so. */
#ifndef TESTS_DEVICE_EMULATED_H
#define TESTS_DEVICE_EMULATED_H

#include <prof/backend.h>

enum { EMULATED_TYPE = 12 }; /* DLPack's extension device */

typedef struct emulated_stream emulated_stream;

/* What goes wrong, and how the clock runs. Zero: nothing does, and the clock is the host's
   CLOCK_MONOTONIC. Set while no stream is at work. */
typedef struct emulated_faults {
  int64_t clock_offset_ns; /* device less host, at the begin */
  double clock_drift;      /* 1e-4: gains 100 us a second */
  int64_t clock_step_ns;   /* added from now on */
  uint32_t has_clock;      /* 1: the table's clock() works */
  uint32_t lost_every;     /* of so many events one never gets past */
  uint32_t zero_every;     /* of so many one has the time 0 */
  uint32_t reversed_every; /* of so many events, one has a time before the previous one's */
  uint32_t refused_every;  /* of so many records one fails */
  uint32_t is_capturing;   /* all streams are being captured */
  uint32_t open_ms;        /* opening takes so long */
  uint32_t hangs;          /* event_query does not return, while it is 1 */
  /* work does not end, and what is behind it does not begin, while it is 1 */
  uint32_t holds;
  /* Of its own tracing: of so many records one ... */
  uint32_t record_unknown_every;  /* is of a kind that nobody knows */
  uint32_t record_larger_every;   /* is larger than prof knows */
  uint32_t record_broken_every;   /* has a size that cannot be */
  uint32_t record_no_times_every; /* has no times */
  uint32_t record_reversed_every; /* ends before it begins */
  uint32_t record_early_every;    /* begins before it was launched */
  uint32_t record_future_every;   /* ran an hour from now */
  uint32_t record_endless_every;  /* ends at the end of time, and was launched after it */
  /* is launched, begins and ends at the moment of its drain: all those of one drain at the same */
  uint32_t record_is_past;
  uint32_t is_busy;     /* start() says that another tool has it */
  uint32_t drain_hangs; /* drain() does not return, while it is 1 */
  uint64_t drain_loses; /* the next drain() says that so many were lost */
} emulated_faults;
extern emulated_faults emulated_fault;

/* What its meters say, by device. */
enum { EMULATED_DEVICES = 2 };
#define EMULATED_MEMORY_BYTES ((int64_t)1 << 30)
typedef struct emulated_meters {
  int64_t power_mw[EMULATED_DEVICES];     /* its energy grows by that */
  int64_t memory_bytes[EMULATED_DEVICES]; /* used */
  uint32_t unknown_device;                /* number + 1 of one that says nothing */
  uint32_t hangs;                         /* sample() does not return, while it is 1 */
  uint32_t is_hanging;                    /* it has been called, and does not return */
  uint32_t refuses;                       /* sample() fails */
  uint32_t finding_hangs;                 /* metric() does not return, while it is 1 */
  int64_t clock_mhz[EMULATED_DEVICES];    /* 0: 1500 and its number */
  uint32_t has_reasons;                   /* 1: it has a meter of throttle reasons, too */
  int64_t reasons[EMULATED_DEVICES];
  uint32_t samples; /* seen */
} emulated_meters;
extern emulated_meters emulated_meter;

extern const prof_backend emulated_backend;
/* the same, of another device type: its events tell how far they are apart, as a float of ms, and
   its clock cannot be read */
extern const prof_backend emulated_by_distance;
enum { EMULATED_BY_DISTANCE_TYPE = 13 };

emulated_stream *emulated_create(uint32_t device);
void emulated_destroy(emulated_stream *stream); /* when it has done what it has */
/* The same, a copy of so many bytes. */
uint64_t emulated_copy(emulated_stream *stream, uint64_t busy_ns, uint64_t bytes);
/* Work for so many ns. Returns its number on the stream, from 0. */
uint64_t emulated_launch(emulated_stream *stream, uint64_t busy_ns);
void emulated_wait(emulated_stream *stream);

/* The same, and an event of the program's own, with both its times; it is the caller's. */
typedef struct emulated_own emulated_own;
emulated_own *emulated_launch_with_own(emulated_stream *stream, uint64_t busy_ns);
void emulated_own_release(emulated_own *event);

/* When that work began and ended, by the host's CLOCK_MONOTONIC: the truth. After
   emulated_wait(). */
void emulated_truth(const emulated_stream *stream, uint64_t number, uint64_t *begin_ns_out,
                    uint64_t *end_ns_out);

/* How often its tracing was started and stopped. */
uint32_t emulated_tracing_starts(void);
uint32_t emulated_tracing_stops(void);

/* Events that are there now: made and not destroyed. */
uint64_t emulated_event_count(void);

#endif
