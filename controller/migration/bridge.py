"""Linux bridges as a policy, by the files that describe them or by what they tell of themselves."""

from __future__ import annotations

from collections.abc import Sequence

from controller.migration.bridge_interfaces import read_interfaces
from controller.migration.bridge_json import read_bridge_json
from controller.migration.bridge_model import BridgeModel
from controller.migration.draft import PolicyDraft
from controller.migration.places import Places
from controller.migration.report import BadConfiguration, Fault, ImportReport, InputFile


def read_bridge(sources: Sequence[InputFile], places: Places) -> tuple[PolicyDraft, ImportReport]:
    """Return the policy that bridges come to, and what became of the lines.

    Each source is ``/etc/network/interfaces``, or JSON of ``ip -d -j link``, ``bridge -j vlan show`` or
    ``bridge -j mdb show``, which is told by its first sign. BadConfiguration is raised for files that are none of
    these, and for values that no bridge takes.
    """
    report = ImportReport()
    model = BridgeModel(report)
    faults: list[Fault] = []
    # Which interfaces are bridges is known from `ip link`, which is read first.
    for source in sorted(sources, key=lambda source: '"linkinfo"' not in source.text):
        if not source.text.strip():
            faults.append(Fault(source.name, 0, "the file is empty"))
        elif source.text.lstrip()[0] in "[{":
            read_bridge_json(source, model, faults)
        else:
            read_interfaces(source, model, faults)
    for source in sources:
        report.add(source)
    if not model.bridges and not model.ports and not faults:
        faults.append(Fault(sources[0].name, 0, "no bridge, and no port of one"))
    if faults:
        raise BadConfiguration(sorted(faults))
    return model.as_policy(places), report
