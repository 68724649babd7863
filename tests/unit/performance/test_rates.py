from __future__ import annotations

import numpy as np
import pytest

from controller.performance.batch import Discontinuity, SampleRates, Samples
from controller.performance.counters import COUNTERS, UNSUPPORTED, Counter, CounterKind, Unit, counters_of
from controller.performance.ports import PortRows
from controller.performance.rates import RateTable
from port_samples import GIGABIT, counters_row, one_port, one_sample

RX = Counter.RX_BYTES.column
TOP_32, TOP_64 = (1 << 32) - 1, (1 << 64) - 2


def after(table: RateTable, *samples: Samples) -> SampleRates:
    """What the last of several samples says."""
    return [table.update(sample) for sample in samples][-1]


def code(rates: SampleRates) -> Discontinuity:
    return Discontinuity(int(rates.discontinuity[0]))


def test_the_counters_are_those_of_the_wire_in_its_order():
    assert [str(counter) for counter in COUNTERS][:6] == [
        "rx_packets",
        "tx_packets",
        "rx_bytes",
        "tx_bytes",
        "rx_dropped",
        "tx_dropped",
    ]
    assert [counter.unit for counter in COUNTERS[:6]] == [*[Unit.PACKETS] * 2, *[Unit.BYTES] * 2, *[Unit.PACKETS] * 2]
    assert {counter.unit for counter in COUNTERS[6:]} == {Unit.ERRORS}
    assert [counter for counter in COUNTERS if counter.kind is CounterKind.DATA] == list(COUNTERS[:4])
    assert counters_of(0b101) == (COUNTERS[0], COUNTERS[2])


def test_a_rate_is_the_difference_over_the_time_and_utilisation_is_of_the_capacity():
    rates = after(one_port(), one_sample(0, rx_bytes=1000), one_sample(10, rx_bytes=125_001_000, tx_bytes=25_000_000))
    assert rates.per_s[0, RX] == 12_500_000
    assert rates.utilisation_pct.tolist() == [[10.0, 2.0]]
    assert rates.busier_pct.tolist() == [10.0] and not rates.transmit_busier[0]
    assert rates.interval_s[0] == 10 and code(rates) is Discontinuity.NONE and not rates.gap[0]


def test_the_first_sample_has_no_rate():
    rates = one_port().update(one_sample(0, rx_bytes=1000))
    assert code(rates) is Discontinuity.FIRST and rates.gap[0]
    assert np.isnan(rates.per_s).all() and np.isnan(rates.utilisation_pct).all()


def test_without_capacity_there_is_no_utilisation():
    rates = after(one_port(0.0), one_sample(0), one_sample(10, rx_bytes=1000))
    assert rates.per_s[0, RX] == 100 and np.isnan(rates.busier_pct[0])


def test_the_time_is_that_of_the_switch_where_it_tells_it():
    rates = after(one_port(), one_sample(0, 100.0), one_sample(12, 110.0, rx_bytes=1000))
    assert rates.interval_s[0] == 10 and rates.per_s[0, RX] == 100


@pytest.mark.parametrize("stuck", [0.0, 77.0, 4294967295.0])
def test_a_duration_that_stands_still_is_not_believed(stuck: float):
    rates = after(one_port(), one_sample(0, stuck), one_sample(10, stuck, rx_bytes=1000))
    assert rates.per_s[0, RX] == 100 and code(rates) is Discontinuity.NONE


@pytest.mark.parametrize(
    ("top", "kind"), [(TOP_32, Discontinuity.WRAP_32), (TOP_64, Discontinuity.WRAP_64)], ids=["32", "64"]
)
def test_a_wrap_is_put_right(top: int, kind: Discontinuity):
    step = 1000 + (top == TOP_64)
    rates = after(
        one_port(),
        one_sample(0, rx_bytes=top - 499, tx_bytes=7, rx_packets=1),
        one_sample(10, rx_bytes=500, tx_bytes=7, rx_packets=11),
    )
    assert code(rates) is kind
    assert rates.per_s[0, RX] == pytest.approx(step / 10, abs=0.2)
    assert counters_of(int(rates.wrapped[0])) == (Counter.RX_BYTES,) and not rates.gap[0]


def test_a_fall_that_the_port_cannot_have_carried_is_a_reset_and_its_time_is_kept():
    table = one_port()
    rates = after(table, one_sample(0, rx_bytes=10**9, tx_bytes=5), one_sample(10, rx_bytes=500, tx_bytes=9))
    assert code(rates) is Discontinuity.RESET and rates.gap[0]
    assert np.isnan(rates.per_s).all(), "what rose is not known either"
    assert table.reset_s[0] == 10
    assert table.update(one_sample(20, rx_bytes=1500, tx_bytes=9)).per_s[0, RX] == 100


def test_all_counters_falling_together_far_from_their_maximum_are_a_reset():
    fast = one_port(3e9)
    rates = after(fast, one_sample(0, rx_bytes=10**9), one_sample(10, rx_bytes=500))
    assert code(rates) is Discontinuity.RESET


def test_a_wrap_of_a_port_whose_speed_is_not_known_is_put_right():
    rates = after(
        one_port(0), one_sample(0, rx_bytes=TOP_32 - 99, rx_packets=5), one_sample(10, rx_bytes=900, rx_packets=6)
    )
    assert code(rates) is Discontinuity.WRAP_32 and rates.per_s[0, RX] == 100


def test_a_32_bit_counter_that_may_have_wrapped_twice_is_unknown_alone():
    fast = one_port(1e11)
    before, later = {"rx_bytes": TOP_32, "rx_packets": 0}, {"rx_bytes": 900, "rx_packets": 10**7, "tx_bytes": 50}
    rates = after(fast, one_sample(0, **before), one_sample(10, **later))
    assert code(rates) is Discontinuity.WRAPS_UNKNOWN
    assert np.isnan(rates.per_s[0, RX]) and rates.per_s[0, Counter.TX_BYTES.column] == 5
    rates = fast.update(one_sample(20, rx_bytes=2000, rx_packets=2 * 10**7, tx_bytes=50))
    assert np.isnan(rates.per_s[0, RX]), "it is known to have 32 bits, and may have wrapped though it did not fall"


def test_one_more_wrap_than_seen_is_enough_to_make_a_rate_unknown():
    for speed_bps, known in ((2.5e9, True), (4e9, False)):
        rates = after(
            one_port(speed_bps), one_sample(0, rx_bytes=TOP_32), one_sample(10, rx_bytes=999, rx_packets=10**6)
        )
        assert np.isnan(rates.per_s[0, RX]) != known


def test_few_packets_show_that_a_fast_port_wrapped_once():
    rates = after(
        one_port(1e11), one_sample(0, rx_bytes=TOP_32, rx_packets=0), one_sample(10, rx_bytes=999, rx_packets=10)
    )
    assert code(rates) is Discontinuity.WRAP_32 and rates.per_s[0, RX] == 100


def test_a_counter_that_leaps_is_unknown_alone_and_never_a_spike():
    rates = after(one_port(), one_sample(0), one_sample(10, rx_bytes=1 << 60, tx_bytes=1000))
    assert code(rates) is Discontinuity.JUMP and not rates.gap[0]
    assert np.isnan(rates.per_s[0, RX]) and rates.per_s[0, Counter.TX_BYTES.column] == 100


def test_a_software_port_may_be_faster_than_it_says():
    rates = after(one_port(), one_sample(0), one_sample(10, rx_bytes=10**10))
    assert rates.per_s[0, RX] == 1e9 and rates.busier_pct[0] == 800


def test_an_unsupported_counter_is_neither_zero_nor_spike():
    table = one_port()
    rates = after(
        table,
        one_sample(0, rx_bytes=0, rx_crc_err=UNSUPPORTED),
        one_sample(10, rx_bytes=1000, rx_crc_err=UNSUPPORTED),
    )
    assert code(rates) is Discontinuity.NONE
    assert np.isnan(rates.per_s[0, Counter.RX_CRC_ERR.column]) and rates.per_s[0, RX] == 100
    assert counters_of(int(rates.unsupported[0])) == (Counter.RX_CRC_ERR,)
    lost = table.update(one_sample(20, rx_bytes=UNSUPPORTED, rx_crc_err=UNSUPPORTED))
    assert code(lost) is Discontinuity.UNSUPPORTED and np.isnan(lost.per_s[0, RX])
    back = table.update(one_sample(30, rx_bytes=5000, rx_crc_err=7))
    assert np.isnan(back.per_s[0, [RX, Counter.RX_CRC_ERR.column]]).all(), "there is nothing to compare it with"
    assert back.per_s[0, Counter.TX_BYTES.column] == 0


def test_a_port_that_was_created_again_begins_anew():
    table = one_port()
    table.update(one_sample(0, 100.0, rx_bytes=1000))
    rates = table.update(one_sample(10, 4.0, rx_bytes=5000))
    assert code(rates) is Discontinuity.RECREATED and rates.gap[0] and table.reset_s[0] == 10
    assert table.update(one_sample(20, 14.0, rx_bytes=6000)).per_s[0, RX] == 100


def test_a_port_that_is_no_second_old_was_created_again_and_its_time_goes_on_from_there():
    table = one_port()
    table.update(one_sample(0, 100.0, rx_bytes=1000))
    assert code(table.update(one_sample(10, 0.0, rx_bytes=5000))) is Discontinuity.RECREATED
    assert table.update(one_sample(21, 10.0, rx_bytes=6000)).per_s[0, RX] == 100


def test_a_new_generation_begins_anew_whatever_the_counters_say():
    ports = PortRows(4)
    ports.add(1, 1, "", GIGABIT)
    table = RateTable(ports)
    table.update(one_sample(0, rx_bytes=1000))
    ports.remove(1, 1)
    assert ports.add(1, 1, "", GIGABIT) == (0, False)
    assert code(table.update(one_sample(10, rx_bytes=5000))) is Discontinuity.RECREATED


def test_the_same_sample_twice_changes_nothing():
    table = one_port()
    table.update(one_sample(0, 50.0, rx_bytes=0))
    table.update(one_sample(10, 60.0, rx_bytes=1000))
    again = table.update(one_sample(10.3, 60.0, rx_bytes=1000))
    assert code(again) is Discontinuity.DUPLICATE and not again.gap[0] and np.isnan(again.per_s).all()
    assert table.update(one_sample(20, 70.0, rx_bytes=2000)).interval_s[0] == 10
    assert table.totals[0, RX] == 2000


def test_a_sample_at_almost_the_same_time_is_put_aside_and_what_it_counted_comes_later():
    table = one_port()
    table.update(one_sample(0))
    soon = table.update(one_sample(0.01, rx_bytes=1000))
    assert code(soon) is Discontinuity.DUPLICATE and np.isnan(soon.per_s).all()
    assert table.update(one_sample(10, rx_bytes=2000)).per_s[0, RX] == 200


def test_a_late_sample_is_put_aside_and_nothing_is_counted_twice():
    table = one_port()
    after(table, one_sample(0, 50.0), one_sample(20, 70.0, rx_bytes=2000))
    late = table.update(one_sample(21, 60.0, rx_bytes=1000))
    assert code(late) is Discontinuity.LATE and not late.gap[0]
    rates = table.update(one_sample(30, 80.0, rx_bytes=3000))
    assert rates.per_s[0, RX] == 100 and table.totals[0, RX] == 3000


def test_a_port_whose_age_stays_behind_is_given_up_as_late_in_the_end():
    table = one_port()
    table.update(one_sample(0, 1e6, rx_bytes=10**9))
    codes = [code(table.update(one_sample(10.0 * k, 100.0 + 10 * k, rx_bytes=1000 * k))) for k in range(1, 12)]
    assert codes[0] is Discontinuity.LATE and Discontinuity.RECREATED in codes and codes[-1] is Discontinuity.NONE


def test_late_samples_between_good_ones_never_add_up():
    table = one_port()
    table.update(one_sample(0, 1e6, rx_bytes=10**9))
    for k in range(1, 30):
        assert table.update(one_sample(10 * k, 1e6 + 10 * k, rx_bytes=10**9 + k)).per_s[0, RX] == 0.1
        assert code(table.update(one_sample(10 * k + 1, 1e6 - 10 * k, rx_bytes=10**9 - k))) is Discontinuity.LATE


def test_a_clock_set_back_is_a_gap_without_the_time_of_the_switch():
    table = one_port()
    rates = after(table, one_sample(3600, rx_bytes=1000), one_sample(10, rx_bytes=2000))
    assert code(rates) is Discontinuity.TIME_BACKWARDS and rates.gap[0]
    assert table.update(one_sample(20, rx_bytes=3000)).per_s[0, RX] == 100


def test_a_clock_set_back_is_seen_and_does_no_harm_with_the_time_of_the_switch():
    for later_s in (10, 3599):
        rates = after(one_port(), one_sample(3600, 50.0, rx_bytes=1000), one_sample(later_s, 60.0, rx_bytes=2000))
        assert code(rates) is Discontinuity.TIME_BACKWARDS and rates.per_s[0, RX] == 100


def test_clocks_that_disagree_are_a_gap_once():
    table = one_port()
    rates = after(table, one_sample(0, 50.0), one_sample(3610, 60.0, rx_bytes=1000))
    assert code(rates) is Discontinuity.CLOCK_STEP and rates.gap[0]
    assert code(table.update(one_sample(3620, 70.0, rx_bytes=2000))) is Discontinuity.NONE


def test_missed_polls_make_the_interval_longer():
    rates = after(one_port(interval_s=10), one_sample(0), one_sample(40, rx_bytes=4000))
    assert code(rates) is Discontinuity.MISSED and rates.per_s[0, RX] == 100


def test_a_counter_stuck_at_its_maximum_is_unknown():
    table = one_port(sticky_bits=32)
    rates = after(table, one_sample(0, rx_bytes=TOP_32), one_sample(10, rx_bytes=TOP_32))
    assert code(rates) is Discontinuity.STUCK and np.isnan(rates.per_s[0, RX])
    assert code(table.update(one_sample(20, rx_bytes=500))) is Discontinuity.RESET


def test_a_batch_with_a_port_many_times_says_what_one_by_one_says():
    rng = np.random.default_rng(7)
    n, ports = 3000, 5
    rows = rng.integers(0, ports, n).astype(np.int32)
    at_s = np.sort(rng.uniform(0, 5000, n)).round(1)
    swapped = rng.integers(1, n, 60)
    counters = np.zeros((n, len(COUNTERS)), np.uint64)
    for row in range(ports):
        own = rows == row
        counters[own, RX] = (np.cumsum(rng.integers(0, 10**6, own.sum())) + (TOP_32 - 10**7)) % (1 << 32)
        counters[own, 0] = np.cumsum(rng.integers(0, 900, own.sum()))
    order = np.arange(n)
    order[swapped], order[swapped - 1] = order[swapped - 1], order[swapped].copy()
    samples = Samples(rows, at_s, at_s + 100, counters).take(order)

    def table() -> RateTable:
        names = PortRows(ports)
        for row in range(ports):
            names.add(1, row, "", GIGABIT)
        return RateTable(names)

    whole, single = table(), table()
    together = whole.update(samples)
    alone = SampleRates.concatenate([single.update(samples.take(slice(i, i + 1))) for i in range(n)])
    for name in SampleRates.__slots__:
        np.testing.assert_array_equal(getattr(together, name), getattr(alone, name), err_msg=name)
    assert {Discontinuity.LATE, Discontinuity.WRAP_32} <= set(together.discontinuity.tolist())
    np.testing.assert_array_equal(whole.totals, single.totals)


def test_a_sample_of_a_row_that_is_none_is_refused():
    for row in (-1, 1):
        with pytest.raises(IndexError):
            one_port().update(one_sample(0, row=row))


def test_columns_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match="differ"):
        Samples(np.zeros(2, np.int32), np.zeros(2), np.zeros(1), np.stack([counters_row()] * 2))
