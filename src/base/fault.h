/* Deliberate faults, one at a time, so that tests/fault/run-faults.sh sees the tests catch them: cc
   -DPROF_FAULT=PROF_I_FAULT_LOST. Without it, and in every build that is used, each
   PROF_I_FAULT(NAME) is the constant 0. The letters are rows of docs/explanation/reliability.md. */
#ifndef PROF_BASE_FAULT_H
#define PROF_BASE_FAULT_H

typedef enum prof_i_fault {
  PROF_I_FAULT_NONE,
  PROF_I_FAULT_PRIVATE_MAP, /* R1: the capture's pages are the process's own, and die with it */
  PROF_I_FAULT_LATE_COMMIT, /* R1: the commit before what it commits */
  /* R1: what a killed writer left of a meta record is taken for records */
  PROF_I_FAULT_HALF_READ,
  PROF_I_FAULT_RELAXED,        /* R1: the commit without release */
  PROF_I_FAULT_EARLY_CLEAR,    /* R1: a scope is not open any more, and not recorded yet */
  PROF_I_FAULT_UNMARKED_COPY,  /* R1: an entry that moves stands twice, and nothing says so */
  PROF_I_FAULT_EARLY_MOVE,     /* R1: an entry is gone before its scope has another */
  PROF_I_FAULT_GENERATION,     /* R1: a ring's chunk keeps its generation */
  PROF_I_FAULT_OPEN_ELSEWHERE, /* R2: open scopes are not in the capture */
  PROF_I_FAULT_DROP_COUNT,     /* R3: a loss is not counted */
  PROF_I_FAULT_OVER_CAP,       /* R4: the arena is a chunk larger than its cap */
  PROF_I_FAULT_HOT_CALL,       /* R4: a scope's end asks the kernel */
  PROF_I_FAULT_MALLOC,         /* R4: a call site's first scope allocates */
  PROF_I_FAULT_LEAK,           /* R5: a place that will not do keeps its descriptor open */
  PROF_I_FAULT_WRITE_IGNORED,  /* R5: a refused write counts as done */
  PROF_I_FAULT_LEFT_UNUSED,    /* R6: nobody takes over what a dead thread left of its chunk */
  PROF_I_FAULT_NEVER_FREE,     /* R6: a dead thread's state and slot are not used again */
  PROF_I_FAULT_NO_WIPE,        /* R7: a child without handlers goes on in its parent's arena */
  PROF_I_FAULT_NOT_KEPT,       /* R7: a child inherits a trace without its private memory */
  /* R8: an arena is replaced without awaiting who is in the slow path */
  PROF_I_FAULT_NO_GUARD,
  PROF_I_FAULT_NO_LOCK,      /* R8: control calls do not wait for each other */
  PROF_I_FAULT_NOBODY_READS, /* R8: a clear gives back the room of chunks that a trace looks at */
  PROF_I_FAULT_NEVER_BACK,   /* R8: what was cleared under a trace stays away when it is gone */
  PROF_I_FAULT_LET_GO,       /* R8: a replaced capture's blocks go while a trace shows them */
  PROF_I_FAULT_LOST,         /* R9: store, then advance: a handler in between is written over */
  /* R9: a full chunk goes to others while a handler's victim may still claim in it */
  PROF_I_FAULT_LEAVE_AT_ONCE,
  /* R9: the innermost scope that a jump skipped stays open for ever */
  PROF_I_FAULT_SKIPPED_STAYS,
  PROF_I_FAULT_DEPTH,         /* R9: an end leaves the depth as it is */
  PROF_I_FAULT_RAW_CONTROL,   /* R10: a table hands controls to the terminal */
  PROF_I_FAULT_RAW_SEPARATOR, /* R10: U+2028 stands in JSON as it is */
  PROF_I_FAULT_RAW_LESS_THAN, /* R10: so does </script> */
  PROF_I_FAULT_NO_BOUND,      /* R11: the reader believes the length of a text */
  PROF_I_FAULT_NO_END,        /* R11: the reader believes the length of an extent */
  PROF_I_FAULT_ONE_SEGMENT,   /* R12: all of the clock's pairs on one line, whatever happened */
  PROF_I_FAULT_BORROWED_KEYS, /* R13: keys are not copied, and go with the library */
  PROF_I_FAULT_GENERATION_0,  /* R14: generations wrap to 0, which is no generation */
  PROF_I_FAULT_NARROW_COUNT,  /* R14: what was overwritten is counted in 32 bits */
  /* R17: whatever has the descriptor's number is taken for the capture */
  PROF_I_FAULT_NO_FSTAT,
  PROF_I_FAULT_NOT_EXCLUSIVE, /* R18: a capture may be made over one that is there */
  PROF_I_FAULT_NOBODY_ELSE,   /* R18: no look whether another process has the output */
  /* M1: a pool's sum is loaded, changed and stored, not added to at once */
  PROF_I_FAULT_PLAIN_SUM,
  PROF_I_FAULT_PLAIN_PEAK, /* M1: a peak is raised by a store, not by compare-and-swap */
  PROF_I_FAULT_LATE_PEAK,  /* M1: an alloc's record comes before its peak */
  PROF_I_FAULT_LATE_WORDS, /* M1: a piece's record is committed before what it commits */
  PROF_I_FAULT_LATE_CLOCK, /* M1: the clock is read after the sum */
  /* M3: events during a start's query are in neither its answer nor the count */
  PROF_I_FAULT_ASKED_ONCE,
  /* M1: a ring's chunk that comes round keeps the words of its pieces */
  PROF_I_FAULT_UNSCRUBBED,
  /* M3: that a pool's number of events has come round is not counted */
  PROF_I_FAULT_NO_ROUND,
  PROF_I_FAULT_OLD_EPOCH, /* M3: an alloc raises the peak from before the resets */
  /* D1: a device's time is said to be as exact as its clock's last reading, however long ago that
     was */
  PROF_I_FAULT_SURE,
  PROF_I_FAULT_BEFORE_LAUNCH,  /* D1: what the clocks put before its launch stays there */
  PROF_I_FAULT_KEPT_PAIR,      /* D2: a pair of events is not given back to its thread */
  PROF_I_FAULT_NOT_COUNTED,    /* D3: what a device is not done with at the stop is not counted */
  PROF_I_FAULT_PARENTS_DEVICE, /* D3: a forked child goes on with the parent's back ends */
  PROF_I_FAULT_NOBODYS_KERNEL, /* D4: a record forgets which thread launched it */
  PROF_I_FAULT_NOT_ALONE,      /* P1: a call beside others becomes part of the one around it */
  PROF_I_FAULT_LOSES_SELF,     /* P1: the self time of such a call is lost */
  PROF_I_FAULT_STEP_HOLDS      /* P1: calls in a step's mark count as the mark's children */
} prof_i_fault;

#ifndef PROF_FAULT
#define PROF_FAULT PROF_I_FAULT_NONE
#endif
#define PROF_I_FAULT(name) (PROF_FAULT == PROF_I_FAULT_##name)

#endif
