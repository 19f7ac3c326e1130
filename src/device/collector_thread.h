/* The collector's thread: created when first needed, woken, asked for a round, stopped. collector.c
   says what a round does. */
#ifndef PROF_DEVICE_COLLECTOR_THREAD_H
#define PROF_DEVICE_COLLECTOR_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* What a round found. */
enum {
  PROF_I_ROUND_WAITING = 1, /* devices are not done yet: poll them */
  PROF_I_ROUND_HAD_WORK = 2
};

/* Called by the thread, without a lock, except where noted. */
typedef struct prof_i_collector_work {
  /* Reads what devices have done; returns PROF_I_ROUND_*. is_requested: a caller waits for this
     round, and wants all that has ended by now. */
  uint32_t (*round)(bool is_requested);
  /* A scope has ended since the last round. */
  bool (*has_new_pairs)(void);
  /* Recording ends. */
  void (*end_recording)(void);
  /* Vendors' records are wanted. Any thread. */
  bool (*wants_records)(void);
  /* The longest sleep without work; UINT64_MAX: no limit of its own. */
  uint64_t (*max_sleep_ns)(void);
  /* How long a stop waits for the last round. Any thread, under the collector's lock. */
  uint32_t (*stop_patience_ms)(void);
} prof_i_collector_work;

/* Once, when the library is loaded. No thread can be created before that. */
void prof_i_collector_thread_set_work(const prof_i_collector_work *work);

/* True: the thread exists, or was created now, so scopes may use their devices. Any thread. */
bool prof_i_collector_ensure(void);

/* There is something to ask about. Any thread. Signal-safe. */
void prof_i_collector_wake(void);

/* The same of what back ends have to hand over. Any thread. Signal-safe. */
void prof_i_collector_wake_for_records(void);

/* Waits for a round that begins from now on. False: there was none in time. Any other thread. */
bool prof_i_collector_request_round(uint32_t patience_ms);

/* Asks for a round only if the thread exists. */
void prof_i_collector_flush(uint32_t patience_ms);

/* Ends the thread. Without the control lock: a vendor may take its time. */
void prof_i_collector_stop(void);

/* A vendor's library is loaded now: at exit the collector stops before that library's handlers
   that exist so far. Any thread. */
void prof_i_collector_register_exit(void);

/* Counts a loss of the calling thread's device times. Any thread. */
void prof_i_collector_count_loss(int loss);

/* In a forked child. */
void prof_i_collector_thread_forget(void);

#endif
