/* Which tables watch the recorder. See ../core/buffer/observer.h and
   ../core/session/control.h. */
#include <stddef.h>

#include "../core/record/change_log.h"
#include "../core/record/compact.h"
#include "../core/record/cost_sample.h"
#include "../core/session/control.h"
#include "../memory/pool_state.h"

const prof_i_observer *const prof_i_observers[] = {
    &prof_i_compact_observer, &prof_i_cost_sample_observer, &prof_i_change_observer,
    &prof_i_budget_observer,  &prof_i_pool_observer,        NULL};

const prof_i_memory_hooks *const prof_i_the_memory_hooks = &prof_i_pool_hooks;
