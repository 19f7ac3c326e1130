/* The names of threads: what prof_thread_set_name() said, else what the kernel calls them. See
   thread.h. */
#define _GNU_SOURCE
#include <string.h>

#include "../../base/port.h"
#include "../../base/this_thread.h"
#include "thread.h"

/* What prof_thread_set_name() said; it may say so before the first scope, or between captures. The
   model again: gcc forgets the declaration's. */
static __thread _Alignas(8) char kept_name[PROF_I_NAME_BYTES]
    __attribute__((tls_model("initial-exec")));

void prof_i_thread_copy_name(char *to, const char *from) {
  uint64_t *const out = (uint64_t *)(void *)to;
  const uint64_t *const in = (const uint64_t *)(const void *)from;
  for (int i = 0; i < PROF_I_NAME_BYTES / 8; i++)
    __atomic_store_n(out + i, __atomic_load_n(in + i, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* Waits while a reader copies the kernel's name, which takes some ns. If the reader sleeps just
   there, that name may stay until the next chunk. */
void prof_i_thread_write_name(prof_i_thread *thread, prof_i_thread_slot *slot) {
  enum { TRIES = 1000 };
  _Alignas(8) char name[PROF_I_NAME_BYTES];
  const char *const kept =
      prof_i_this_flags.virtual_thread ? prof_i_this_flags.virtual_thread->name : kept_name;
  __atomic_store_n(&thread->is_named, kept[0] != '\0', __ATOMIC_SEQ_CST);
  for (int i = 0; i < TRIES && __atomic_load_n(&thread->is_being_named, __ATOMIC_SEQ_CST); i++) {
  }
  if (!kept[0]) prof_i_port_thread_name(name, sizeof name);
  prof_i_thread_copy_name(slot->name, kept[0] ? kept : name);
}

void prof_i_thread_refresh_name(prof_i_thread *thread) {
  prof_i_thread_write_name(thread, thread->slot);
}

/* Retries if the slot has gone to another thread meanwhile. */
static void refresh_name_of(prof_i_thread *thread) {
  _Alignas(8) char name[PROF_I_NAME_BYTES];
  prof_i_thread_slot *const slot = prof_i_thread_get_slot(thread);
  for (uint64_t serial = 0, now; slot; serial = now) {
    now = __atomic_load_n(&slot->serial, __ATOMIC_ACQUIRE);
    if (now == 0 || now == serial || __atomic_load_n(&thread->is_named, __ATOMIC_RELAXED)) return;
    const uint64_t tid = __atomic_load_n(&slot->tid, __ATOMIC_RELAXED);
    if (!prof_i_port_name_of_thread(tid, name, sizeof name)) return;
    __atomic_store_n(&thread->is_being_named, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&thread->is_named, __ATOMIC_SEQ_CST))
      prof_i_thread_copy_name(slot->name, name);
    __atomic_store_n(&thread->is_being_named, 0, __ATOMIC_SEQ_CST);
  }
}

void prof_i_thread_refresh_names(uint64_t arena) {
  prof_i_thread_slots_acquire();
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    if (__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) == PROF_I_ALIVE &&
        __atomic_load_n(&t->arena, __ATOMIC_RELAXED) == arena)
      refresh_name_of(t);
  prof_i_thread_slots_release();
}

void prof_i_thread_adopt_name(const char *name) { memcpy(kept_name, name, sizeof kept_name); }

void prof_i_thread_store_own_name(const char *name) {
  char fresh[PROF_I_NAME_BYTES] = {0};
  memcpy(fresh, name, strnlen(name, PROF_I_NAME_BYTES - 1));
  prof_i_virtual_thread *const virtual_thread = prof_i_this_flags.virtual_thread;
  memcpy(virtual_thread ? virtual_thread->name : kept_name, fresh, sizeof fresh);
  prof_i_thread *const thread = prof_i_this_thread;
  if (prof_i_is_attached(thread) && thread->slot) prof_i_thread_refresh_name(thread);
}
