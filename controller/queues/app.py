"""The app `queues`, and how its core is made of the policy."""

from __future__ import annotations

from controller.app_spec import AppSpec, CoreSpec


def _core() -> CoreSpec:
    from controller.queues.core import QueueCore
    from controller.queues.settings import QueuesChanged, of_policy

    return CoreSpec(
        lambda policy, _at_s: {"settings": of_policy(policy)},
        lambda start, now, _datapath: QueueCore(start["settings"], now),
        lambda policy: QueuesChanged(of_policy(policy)),
    )


APP = AppSpec("queues", "who waits at ports", _core, needs=("discovery",), is_usual=True, rank=60)
