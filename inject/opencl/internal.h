/* What the files of the OpenCL layer share: layer.c (the layer, its back end) and commands.c. */
#ifndef PROF_INJECT_OPENCL_INTERNAL_H
#define PROF_INJECT_OPENCL_INTERNAL_H

#include <prof/backend.h>
#include <stdbool.h>

#include "../../src/opencl/internal.h"
#include "functions.h"

/* ---- layer.c ---- */

/* The next layer's, or the loader's own; by places. Not written any more once the program's first
   call returns. */
extern void *const *prof_i_layer_next_table;

/* ---- commands.c ---- */

/* Commands on the program's queues: kept from the enqueuing call until their times can be read,
   then handed to prof. */

enum { PROF_I_COMMANDS_MAX = 65536 }; /* on their way at once; more are not recorded, and counted */

/* What is known of a command when it is enqueued. Pointers are the program's, valid during the
   call. */
typedef struct prof_i_command_info {
  uint32_t kind;    /* prof_backend_kind */
  int32_t from, to; /* of a copy: PROF_DEVICE_ of prof/args.h */
  uint64_t bytes;   /* of a copy or fill; 0: not known */
  const char *name; /* NULL: the kernel's own */
  prof_i_cl_kernel kernel;
  const size_t *global, *local; /* of a kernel; NULL: not known */
  uint32_t dims;
  bool blocks; /* the call waits until it is done */
} prof_i_command_info;

typedef struct prof_i_command prof_i_command;

/* A command is about to be put on that queue by this thread. NULL: nothing is recorded, or there is
   no room. Any thread, as the next. */
prof_i_command *prof_i_command_begin(prof_i_cl_queue queue, const prof_i_command_info *about);
/* The call is over, of the same. error: the call's; event: the command's own, of which the program
   keeps a reference, or (is_ours) does not. */
void prof_i_command_end(prof_i_command *command, const prof_i_command_info *about, int32_t error,
                        prof_i_cl_event event, bool is_ours);

/* prof_backend's. */
void prof_i_commands_set_host(const prof_backend_host *host);
int prof_i_commands_start(prof_backend_self *self, uint32_t kinds, uint32_t *kinds_out);
int prof_i_commands_stop(prof_backend_self *self);
int prof_i_commands_drain(prof_backend_self *self, uint32_t how, uint64_t *lost_out);

/* A forked child: the driver's threads are the parent's. */
void prof_i_commands_forget(void);

#endif
