"""A DataLoader with two workers, for test_observe_workers.py: loader_of_two.py fork|spawn WHAT.
Prints what was found as JSON."""

import json
import sys

from beside_torch import bits, calls, calls_of, seen_by_prof, seen_by_torch, torch

import prof

EPOCHS = 2


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, at):
        return torch.full((4,), float(at)).square()


def observe_in_worker(_):
    prof.torch.observe().start()  # for as long as the worker runs


def rows(context, is_persistent, **options):
    loader = torch.utils.data.DataLoader(
        Squares(),
        batch_size=4,
        num_workers=2,
        multiprocessing_context=context,
        persistent_workers=is_persistent,
        pin_memory=False,
        **options,
    )
    return [torch.cat([batch.mul(batch) for batch in loader]) for _ in range(EPOCHS)], loader


def compare(context):
    """Of workers that stay, and of those that end with each epoch; a worker that is spawned takes
    seconds to import torch."""
    found = {}
    for is_persistent in (True, False) if context == "fork" else (True,):
        results = [rows(context, is_persistent)[0]]

        def work():
            results.append(rows(context, is_persistent)[0])

        mine, theirs = seen_by_prof(work), seen_by_torch(work)
        found[f"persistent {is_persistent}"] = {
            "calls": calls(mine),
            "theirs": calls_of(theirs),
            "same bits": len({str(bits(r)) for r in results}) == 1,
        }
    return found


def never_stopped(context):
    """The program ends with its workers alive, observed and recorded."""
    global kept
    prof.torch.observe().start()
    prof.profile().start()
    kept = rows(context, True)
    return {}


def in_workers(context):
    rows(context, True, worker_init_fn=observe_in_worker)
    return {}


def observed(context):
    with prof.torch.observe():
        rows(context, True)
    return {}


if __name__ == "__main__":
    print(
        json.dumps(
            {
                "compare": compare,
                "never-stopped": never_stopped,
                "in-workers": in_workers,
                "observed": observed,
            }[sys.argv[2]](sys.argv[1])
        )
    )
