"""The metrics that Prometheus is offered, by name."""

from __future__ import annotations

from apps.exporters.exposition import MetricFamily, counter, gauge
from controller.performance.counters import Counter

PORT_COUNTERS: dict[Counter, MetricFamily] = {
    Counter.RX_PACKETS: counter("vsrt_port_receive_packets_total", "Packets received by the port."),
    Counter.TX_PACKETS: counter("vsrt_port_transmit_packets_total", "Packets transmitted by the port."),
    Counter.RX_BYTES: counter("vsrt_port_receive_bytes_total", "Octets received by the port."),
    Counter.TX_BYTES: counter("vsrt_port_transmit_bytes_total", "Octets transmitted by the port."),
    Counter.RX_DROPPED: counter("vsrt_port_receive_dropped_packets_total", "Packets dropped on receipt."),
    Counter.TX_DROPPED: counter("vsrt_port_transmit_dropped_packets_total", "Packets dropped before transmission."),
    Counter.RX_ERRORS: counter("vsrt_port_receive_errors_total", "Receive errors of every sort."),
    Counter.TX_ERRORS: counter("vsrt_port_transmit_errors_total", "Transmit errors of every sort."),
    Counter.RX_FRAME_ERR: counter("vsrt_port_receive_frame_errors_total", "Frame alignment errors."),
    Counter.RX_OVER_ERR: counter("vsrt_port_receive_overrun_errors_total", "Packets lost to a receive overrun."),
    Counter.RX_CRC_ERR: counter("vsrt_port_receive_crc_errors_total", "CRC errors."),
    Counter.COLLISIONS: counter("vsrt_port_collisions_total", "Collisions."),
}
"""A counter that the switch has not, or of a port without a recent sample, has no series."""

UTILISATION: tuple[MetricFamily, MetricFamily] = (
    gauge(
        "vsrt_port_receive_utilisation_ratio",
        "Received octets x 8 / capacity over the last interval; absent in a gap.",
    ),
    gauge(
        "vsrt_port_transmit_utilisation_ratio",
        "Transmitted octets x 8 / capacity over the last interval; absent in a gap.",
    ),
)

PORT_UP = gauge("vsrt_port_up", "1 where the port's link is up, 0 where it is down, as the switch last told.")

SWITCH_UP = gauge("vsrt_switch_up", "1 where the switch answers polls, 0 where it is silent.")
SAMPLE_AGE = gauge(
    "vsrt_switch_sample_age_seconds", "Time since the switch's last answer; absent where it gave none."
)
SWITCH_CPU = gauge("vsrt_switch_cpu_utilisation_ratio", "Share of the switch's processors in use, where it tells.")
SWITCH_MEMORY = gauge("vsrt_switch_memory_utilisation_ratio", "Share of the switch's memory in use, where it tells.")
PORTS = gauge("vsrt_ports", "Ports with a recent sample.")
POLLS = counter("vsrt_polls_total", "Polls by how they ended.")
SAMPLES = counter("vsrt_port_samples_total", "Samples of ports taken in.")
SHARE_SWITCHES = gauge("vsrt_share_switches", "Switches that this monitor polls, where monitors share them.")
SHARE_PORTS = gauge("vsrt_share_ports", "Ports of these switches.")
SHARE_MOVES = counter("vsrt_share_moves_total", "Switches given to another monitor, by the one that divides them.")
SHARE_UNOWNED = gauge("vsrt_share_unowned", "Connected switches without a monitor, as the one that divides sees it.")
SCALING_ADVISED = gauge("vsrt_scaling_advised", "Monitors that there should be, where that is advised.")
SCALING_SLO_MET = gauge(
    "vsrt_scaling_slo_met_ratio",
    "Part of the latest intervals in which polls were in time, as the monitor that advises sees it.",
)
SCALING_ACTIONS = counter("vsrt_scaling_actions_total", "What was done about the number of monitors, by this one.")
EVENTS = counter("vsrt_events_total", "Events raised or cleared, by severity.")
OUTPUT_FAULTY = gauge("vsrt_output_faulty", "1 where an output cannot be written at present.")
OUTPUT_FAILURES = counter("vsrt_output_failures_total", "Writes that failed, by output.")
OUTPUT_ITEMS = counter(
    "vsrt_output_items_total", "What outputs did with rows, events or requests, by output and result."
)

FAMILIES: tuple[MetricFamily, ...] = (
    *PORT_COUNTERS.values(),
    *UTILISATION,
    PORT_UP,
    SWITCH_UP,
    SAMPLE_AGE,
    SWITCH_CPU,
    SWITCH_MEMORY,
    PORTS,
    POLLS,
    SAMPLES,
    SHARE_SWITCHES,
    SHARE_PORTS,
    SHARE_MOVES,
    SHARE_UNOWNED,
    SCALING_ADVISED,
    SCALING_SLO_MET,
    SCALING_ACTIONS,
    EVENTS,
    OUTPUT_FAULTY,
    OUTPUT_FAILURES,
    OUTPUT_ITEMS,
)
"""All of them."""
