"""The section `scaling`: what it may say, and every fault with its line."""

from __future__ import annotations

import pytest

from controller.config import PolicyInvalid, load_policy
from controller.config.policy import Policy
from controller.config.scaling_settings import ScalingSettings

SHARED = ("monitor: {share: cluster}", 'cluster: {engine: etcd, endpoints: "http://127.0.0.1:2379"}')


def loaded(*lines: str) -> Policy:
    return load_policy("version: 1\n" + "".join(f"{line}\n" for line in lines))


def faults_of(*lines: str) -> list[tuple[int, str, str]]:
    with pytest.raises(PolicyInvalid) as caught:
        loaded(*lines)
    return [tuple(error) for error in caught.value.errors]


def test_without_the_section_nothing_is_advised() -> None:
    assert loaded().scaling == ScalingSettings()
    assert loaded().scaling.mode == "off"


def test_a_command_is_a_list_of_words() -> None:
    policy = loaded(*SHARED, "scaling: {mode: apply, least: 3, limit: 8, command: [/usr/bin/scale, --fabric, a b]}")
    assert policy.scaling.command == ("/usr/bin/scale", "--fabric", "a b")
    assert (policy.scaling.least, policy.scaling.limit, policy.warnings) == (3, 8, ())


def test_a_command_that_nothing_runs_is_warned_of() -> None:
    (warning,) = loaded(*SHARED, "scaling:", "  mode: advise", "  command: [scale]").warnings
    assert tuple(warning) == (6, "scaling.command", "nothing runs it while mode is advise")


def test_faults_have_their_lines() -> None:
    assert faults_of(
        *SHARED,
        "scaling:",
        "  mode: advice",
        "  learner: tomorrow",
        "  slo_lateness: 0",
        "  least: 9",
        "  limit: 8",
        "  command: scale",
    ) == [
        (5, "scaling.mode", "expected one of off, advise, apply, found 'advice'; did you mean 'advise'?"),
        (6, "scaling.learner", faults_of(*SHARED, "scaling: {learner: tomorrow}")[0][2]),
        (7, "scaling.slo_lateness", "0 is not within 0.001 and 8"),
        (8, "scaling.least", "9 is above the limit, 8 monitors"),
        (10, "scaling.command", "expected a list of words, found the text 'scale'"),
    ]


def test_advice_is_about_monitors_that_share_the_switches() -> None:
    assert faults_of("scaling:", "  mode: advise") == [
        (
            3,
            "monitor.share",
            "missing, while scaling.mode is advise: it is about monitors that share the switches",
        )
    ]
    assert loaded("scaling: {mode: off, least: 4}").scaling.least == 4
