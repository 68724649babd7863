"""The app `allocator`, and how its core is made of the policy."""

from __future__ import annotations

from controller.app_spec import AppSpec, CoreSpec


def _core() -> CoreSpec:
    from controller.allocation.events import AllocationChanged
    from controller.allocation.live import AllocatorCore

    return CoreSpec(
        lambda policy, _at_s: {"settings": policy.allocation},
        lambda start, _now, _datapath: AllocatorCore(start["settings"]),
        lambda policy: AllocationChanged(policy.allocation),
    )


APP = AppSpec("allocator", "proposes ports", _core, needs=("discovery",), is_usual=True, rank=50)
