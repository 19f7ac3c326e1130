/* A worker: one thread that does a job while its caller does something else. Without that thread
   the caller does the job itself, so the results are the same. */
#ifndef PROF_BASE_WORKER_H
#define PROF_BASE_WORKER_H

#include <stdbool.h>

typedef struct prof_i_worker prof_i_worker;

/* From now on workers have threads. The command calls it. In a host's process prof starts no thread
   for a dump or for opening a file: the host's threads, its signals and its exit stay as they are.
   Call it before any worker is created. */
void prof_i_worker_allow_threads(void);

/* The name has at most 15 bytes. Starts no thread if they were not allowed, if the caller may run
   on one processor only, or if the system refuses the thread. Returns NULL if there is no memory.
   One thread at a time uses the object. */
prof_i_worker *prof_i_worker_create(const char *name);

/* Waits for the job as prof_i_worker_wait() does, and returns the same. False: what the job uses
   must not be freed. NULL is ignored. */
bool prof_i_worker_destroy(prof_i_worker *worker);

/* False: prof_i_worker_begin() does the job itself. */
bool prof_i_worker_has_thread(const prof_i_worker *worker);

/* Begins a job. No other one may be in progress. A job sets no error text: it is per thread. */
void prof_i_worker_begin(prof_i_worker *worker, void (*job)(void *), void *argument);

/* Waits for the job, if one was begun. False: the process forked during the job, and this is the
   child, which has no such thread. The job's result is then incomplete. */
bool prof_i_worker_wait(prof_i_worker *worker);

#endif
