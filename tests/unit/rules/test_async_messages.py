"""Messages that say what a slave is told, as Open vSwitch reads them (see tests/emulation/test_cluster_live.py)."""

from __future__ import annotations

from controller.rules.async_messages import encode_async


def test_the_message_of_openflow_1_3():
    message = encode_async(4, 0xA5000000)
    assert message[:8] == bytes.fromhex("041c0020a5000000")
    assert [int.from_bytes(message[at : at + 4], "big") for at in range(8, 32, 4)] == [7, 2, 7, 7, 15, 0]


def test_the_message_of_openflow_1_0():
    message = encode_async(1, 7)
    assert message[:16] == bytes.fromhex("01040028 00000007 00002320 00000013")
    assert [int.from_bytes(message[at : at + 4], "big") for at in range(16, 40, 4)] == [7, 2, 7, 7, 7, 0]
