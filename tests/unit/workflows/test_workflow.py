"""Workflows: what their files may say, what words stand for, and how many switches they may drain."""

import pytest

from controller.config.faults import PolicyInvalid
from controller.workflows.workflow import InputMissing, filled, read_workflow, too_many_drained


def of(steps, more=""):
    return read_workflow(f"version: 1\n{more}steps:\n{steps}".encode(), "w.yaml")


def test_a_workflow_is_read_with_its_lines():
    text = "  - {name: a, do: address take video --name cam7}\n"
    text += "  - {name: b, for_each: switches --select tier=core, do: 'drain {item.dpid}'}\n"
    found = of(text, "about: x\nmin_ready_pct: 50\ncategories: [cameras, night-work]\n")
    assert (found.about, found.categories, found.min_ready_pct) == ("x", ("cameras", "night-work"), 50)
    assert [(step.name, step.words, step.for_each, step.line) for step in found.steps] == [
        ("a", ("address", "take", "video", "--name", "cam7"), (), 6),
        ("b", ("drain", "{item.dpid}"), ("switches", "--select", "tier=core"), 7),
    ]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("  - {name: a}\n", "do"),
        ("  - {name: item, do: reload}\n", "is no name"),
        ("  - {name: a, do: reload}\n  - {name: a, do: reload}\n", "one that is taken"),
        ("  - {name: a, do: 'drain {item.dpid}'}\n", "no item"),
        ("  - {name: a, do: 'drain {b.dpid}'}\n  - {name: b, do: reload}\n", "no step 'b' before"),
        ("  - {name: a, for_each: switches, do: reload}\n  - {name: b, do: 'drain {a.dpid}'}\n", "no answer"),
        ("  - {name: a, do: reload}\n  - {name: b, for_each: '{a.x}', do: reload}\n", "before anything is done"),
        ("  - {name: a, for_each: switches, do: '{item.name} 3'}\n", "said by the workflow"),
        ('  - {name: a, do: "reload \'x"}\n', "No closing quotation"),
        ("  - {name: a, do: ' '}\n", "no words"),
        ("  []\n", "0 steps"),
        ("  - {name: a, do: 'drain {at.dpid}'}\n", "the workflow has no `at`"),
        ("  - {name: a, for_each: 'ports --switch {at.dpid}', do: reload}\n", "the workflow has no `at`"),
        ("  - {name: at, do: reload}\n", "is no name"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(steps, message):
    with pytest.raises(PolicyInvalid) as refused:
        of(steps)
    assert [
        error for error in refused.value.errors if message in f"{error.field}: {error.message}" and error.line > 1
    ]


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        ("[a b]", "no name"),
        ("['-']", "no name"),
        ("7", "a list"),
        (f"[{', '.join('abcdefghijklmnopq')}]", "17 categ"),
    ],
)
def test_categories_are_names(categories, message):
    with pytest.raises(PolicyInvalid) as refused:
        of("  - {name: a, do: reload}\n", f"categories: {categories}\n")
    assert [error.line for error in refused.value.errors if message in error.message] == [2]


def test_a_workflow_is_begun_at_something():
    step = "  - {name: a, for_each: 'ports --switch {at.dpid}', do: 'label add {at.dpid} x=y'}\n"
    found = of(step, "at: switches --select tier=core\n")
    assert found.at == ("switches", "--select", "tier=core")
    assert filled(found.steps[0].for_each, None, {"at": {"dpid": 3}}) == ["ports", "--switch", "3"]
    with pytest.raises(PolicyInvalid, match="nothing can be put in"):
        of(step, "at: 'switches --search {at.name}'\n")


def test_what_stands_for_something_stays_one_word_and_becomes_no_option():
    assert filled(["a", "{item.name}:{item.port_no}"], {"name": "x y; rm", "port_no": 7}, {}) == ["a", "x y; rm:7"]
    assert filled(["{take.address}"], None, {"take": {"address": "239.1.1.1"}}) == ["239.1.1.1"]
    for item, message in (({"name": "--url=http://x"}, "option"), ({}, "nothing"), ({"name": None}, "nothing")):
        with pytest.raises(InputMissing, match=message):
            filled(["{item.name}"], item, {})


TIERS = {**dict.fromkeys(range(1, 9), "tor"), **dict.fromkeys(range(11, 13), "core"), 21: "edge"}


@pytest.mark.parametrize(
    ("drained", "steps", "pct", "refused"),
    [
        ([], [("a", 1, True), ("a", 2, True)], 75, False),
        ([], [("a", 1, True), ("a", 2, True), ("a", 3, True)], 75, True),
        ([1], [("a", 2, True), ("a", 3, True)], 75, True),
        ([1], [("a", 1, False), ("a", 2, True), ("a", 3, True)], 75, False),
        ([], [("a", dpid, True) for dpid in range(1, 9)], 0, True),  # all of a tier, whatever is said
        ([], [("a", dpid, True) for dpid in range(1, 8)], 0, False),
        ([], [("a", 11, True)], 75, False),
        ([], [("a", 11, True), ("b", 12, True)], 0, True),
        ([], [("a", 11, True), ("a", 11, False), ("b", 12, True)], 75, False),
        ([], [("a", 21, True)], 0, True),  # the only one of its tier
        ([], [("a", 99, True)], 75, False),  # nobody knows it: the controller refuses it
    ],
)
def test_no_more_of_a_tier_is_drained_than_may_be(drained, steps, pct, refused):
    assert bool(too_many_drained(TIERS, drained, steps, pct)) is refused


def test_a_refusal_says_which_step_and_how_many():
    assert too_many_drained(TIERS, [], [("cores", 11, True), ("cores", 12, True)], 50) == (
        "step cores: 2 of the 2 switches of core would be drained, and 1 must stay in use (min_ready_pct: 50, one at "
        "least)"
    )
