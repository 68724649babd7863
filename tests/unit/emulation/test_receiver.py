from __future__ import annotations

from apps.emulation.receiver import GAP_S, StreamTally

MS = 1_000_000


def test_tally_counts_losses_duplicates_and_gaps() -> None:
    tally = StreamTally()
    for sequence, at_ms in [(2, 100), (3, 101), (3, 102), (5, 103), (9, 103 + 2000 * GAP_S), (7, 150)]:
        tally.count(sequence, int(at_ms * MS), 100)
    report = tally.report(since_ns=90 * MS)
    assert (report["received"], report["duplicates"], report["missing_count"]) == (5, 1, 3)
    assert (report["lowest_sequence"], report["highest_sequence"]) == (2, 9)
    assert report["first_packet_ms"] == 10.0
    assert report["payload_bytes"] == 500
    assert report["max_gap_s"] == 2 * GAP_S
    assert report["gaps"] == [{"after": 5, "before": 9, "gap_s": 2 * GAP_S}]


def test_tally_takes_sequence_numbers_far_ahead() -> None:
    tally = StreamTally()
    for sequence in (0, 100_000):
        tally.count(sequence, sequence + 1, 100)
    assert tally.report(0)["missing_count"] == 99_999
