from __future__ import annotations

import pytest

from apps.cluster.host_log import HostLog, entry_of, records_of
from controller.effects import JournalPart, WriteJournal
from controller.log import LogEntry, LogEntryKind, WriteLog

HOST = {"mac": "02:00:00:00:00:01", "dpid": 1, "port_no": 2, "ips": ["10.0.0.1"]}
TRUNK = {"dpid": 1, "port_no": 3, "leads_to": 2}


@pytest.mark.parametrize(
    ("record", "key"),
    [(HOST, "host/0/02:00:00:00:00:01"), ({**HOST, "vlan": 7}, "host/7/02:00:00:00:00:01"), (TRUNK, "trunk/1:3")],
)
def test_a_record_is_an_entry_and_back(record: dict[str, object], key: str):
    entry = entry_of(record)
    assert (entry.kind, entry.key) == (LogEntryKind.OBSERVATION, key)
    assert records_of([entry]) == (record,)


@pytest.mark.parametrize("record", [{"mac": "02:00:00:00:00:01", "dpid": None}, {**TRUNK, "leads_to": None}])
def test_what_is_no_more_has_no_value(record: dict[str, object]):
    assert entry_of(record).text is None


@pytest.mark.parametrize(
    "record",
    [
        {"mac": "02:00:00:00:00:01", "vlan": 0, "dpid": None},
        {"mac": "02:00:00:00:00:01", "vlan": 7, "number": 2, "dpid": None},
        {**TRUNK, "leads_to": None},
    ],
)
def test_who_follows_is_told_that_something_is_no_more(record: dict[str, object]):
    assert records_of([entry_of(record)]) == (record,)


def test_fields_of_a_later_version_stay_where_this_one_writes_a_host():
    log = HostLog(None, None, list)
    later = LogEntry.of_record(LogEntryKind.OBSERVATION, entry_of(HOST).key, {**HOST, "os": "x"})
    assert log.follow([later, entry_of(TRUNK)]) == ({**HOST, "os": "x"}, TRUNK)
    (told,) = log.foreign_told()
    assert "(host: os)" in told.text
    written: list[WriteLog] = []
    log.write = written.append  # type: ignore[method-assign]
    log.take(WriteJournal(({**HOST, "port_no": 9}, TRUNK), JournalPart.APPEND))
    assert [entry.value for entry in written[0].entries] == [{**HOST, "port_no": 9, "os": "x"}, TRUNK]


def test_hosts_of_two_fabrics_with_one_address_have_an_entry_each():
    assert entry_of(HOST).key != entry_of({**HOST, "number": 2}).key
