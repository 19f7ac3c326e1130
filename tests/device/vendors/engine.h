/* What stands for hardware in the emulated vendors: streams that are threads, work that takes its
   time, and events. One engine, a face for each vendor: cuda.c. No device is behind it. */
#ifndef TESTS_DEVICE_VENDORS_ENGINE_H
#define TESTS_DEVICE_VENDORS_ENGINE_H

#include <stdint.h>
#include <time.h>

typedef struct engine_stream engine_stream;
typedef struct engine_event engine_event;

engine_stream *engine_stream_create(clockid_t told_by); /* the clock of what it tells */
/* returns at once; what is on it is still done */
void engine_stream_destroy(engine_stream *stream);
void engine_stream_wait(engine_stream *stream);
void engine_work(engine_stream *stream, uint64_t ns); /* returns at once */
/* The same, and when it has ended the stream's thread says when it was. */
typedef void (*engine_told)(void *user, uint64_t start_ns, uint64_t end_ns);
void engine_work_told(engine_stream *stream, uint64_t ns, engine_told told, void *user);

engine_event *engine_event_create(void);
void engine_event_destroy(engine_event *event); /* also while it is on a stream */
/* of several, the last counts */
void engine_event_record(engine_event *event, engine_stream *stream);

typedef enum engine_event_state { ENGINE_NEVER, ENGINE_PENDING, ENGINE_PAST } engine_event_state;
/* when it was past, CLOCK_MONOTONIC_RAW: no caller learns which clock it is */
engine_event_state engine_event_look(engine_event *event, uint64_t *ns_out);

#endif
