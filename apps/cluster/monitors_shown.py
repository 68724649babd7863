"""What operators see of monitors that share the switches: a document for each."""

from __future__ import annotations

from collections.abc import Mapping

from apps.cluster.attendance import Attendance
from controller.cluster.monitor_states import MonitorState
from controller.snapshot.log import Document, DocumentLog


class MonitorsSection:
    """The section `monitors`: those that are there, and since when others are not."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.section: DocumentLog[str] = DocumentLog(
            lambda: tuple(self.documents), lambda name: self.documents.get(name)
        )
        self._attendance = Attendance()

    def see(self, states: Mapping[str, MonitorState], unowned: int, now_s: float) -> None:
        """Have readers told what is otherwise.

        `unowned` is how many switches that a monitor is connected to are polled by none, `now_s` is in seconds since
        1970.
        """
        self._attendance.see(states, now_s)
        documents: dict[str, Document] = {
            name: {"monitor": name, "is_there": False, "gone_s": round(at_s, 1)}
            for name, at_s in self._attendance.gone_s.items()
        }
        for name, state in states.items():
            document: Document = {"monitor": name, "is_there": True, **state._asdict()}
            if state.divides:
                document["unowned"] = unowned
            documents[name] = document
        former, self.documents = self.documents, documents
        for name in former.keys() | documents.keys():
            if former.get(name) != documents.get(name):
                self.section.touch(name)
