/* The convention between a program's part of ITT (Intel's Instrumentation and Tracing Technology)
   and its collector. In our own words, what the collector uses of version 3. Its source is
   github.com/intel/ittapi: src/ittnotify/ittnotify_static.c is the program's part. It opens the
   library that INTEL_LIBITTNOTIFY64 names, and calls __itt_api_init(). ittnotify_config.h has the
   structs, which only grow at their ends. */
#ifndef PROF_INJECT_ANNOTATION_ITT_H
#define PROF_INJECT_ANNOTATION_ITT_H

#include <pthread.h>
#include <stdint.h>

/* __itt_domain. The program calls nothing of a domain whose flags are 0. */
typedef struct prof_i_itt_domain {
  int flags;
  const char *name;
  void *wide_name;
  int extra1;
  void *extra2;
  struct prof_i_itt_domain *next;
} prof_i_itt_domain;

/* __itt_string_handle; never freed. The two extra fields are the collector's. */
typedef struct prof_i_itt_string {
  const char *text;
  void *wide_text;
  int extra1;
  void *extra2;
  struct prof_i_itt_string *next;
} prof_i_itt_string;

/* __itt_id: passed by value. */
typedef struct prof_i_itt_id {
  uint64_t d1, d2, d3;
} prof_i_itt_id;

/* __itt_api_info: one function. What the collector has not is set to null_func. */
typedef struct prof_i_itt_function {
  const char *name;
  void **address;
  void *init_func;
  void *null_func;
  int group;
} prof_i_itt_function;

/* __itt_global: the members that the collector reads. */
typedef struct prof_i_itt_part {
  uint8_t magic[8];
  unsigned long major, minor, build;
  volatile long is_ready, has_mutex, counter;
  pthread_mutex_t mutex; /* recursive; held while it calls __itt_api_init() */
  void *library;
  void *error_handler;
  const char **library_path;
  prof_i_itt_function *functions; /* up to one without a name */
} prof_i_itt_part;

#define PROF_I_ITT_MAGIC \
  { 0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30 }
#define PROF_I_ITT_MAJOR 3

#endif
