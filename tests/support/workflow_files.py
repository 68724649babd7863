"""A folder of workflows, for tests of the API and the page."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "note": """\
version: 1
about: Note that a core is to be worked at
categories: [upkeep]
at: switches --select tier=core
steps:
  - {name: note, do: "label add {at.dpid} work=planned"}
  - {name: ports, for_each: "ports --select dpid={at.dpid}", do: "label add {item.dpid}:{item.port_no} work=planned"}
""",
    "spare": """\
version: 1
about: Take a switch out
categories: [upkeep]
at: switches
steps:
  - {name: drain, do: "drain {at.dpid}"}
""",
    "watch": """\
version: 1
about: Have a port get the lobby's camera
categories: [cameras]
at: ports --select state=edge
steps:
  - {name: member, do: "static-member add 239.1.1.1 {at.dpid}:{at.port_no}"}
""",
    "anew": """\
version: 1
about: Build the tree anew
at: groups
steps:
  - {name: anew, do: "rebuild {at.group}"}
""",
    "host": """\
version: 1
about: Label the port of a host
at: hosts
steps:
  - {name: port, do: "label add {at.dpid}:{at.port_no} seen=yes"}
""",
    "all-tors": """\
version: 1
about: Label all ToRs
steps:
  - {name: all, for_each: switches --select tier=tor, do: "label add {item.dpid} work=night"}
""",
    "drain-all": """\
version: 1
about: Drain all cores at once
steps:
  - {name: all, for_each: switches --select tier=core, do: "drain {item.dpid}"}
""",
    "broken": "version: 1\nsteps: [{name: a}]\n",
}


def write_workflows(folder: Path) -> Path:
    """Write them, and one that is none; return the folder."""
    folder.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder
