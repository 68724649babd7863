"""The Unix socket that the apps of one controller share."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from apps.status_server import QuestionRefused, StatusServer
from controller.snapshot.log import DocumentLog

LOGGER = logging.getLogger("status")


def ask(path: Path, *questions: str) -> list[Any]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(path))
        with connection.makefile("rwb") as file:
            answers = []
            for question in questions:
                file.write(question.encode() + b"\n")
                file.flush()
                answers.append(json.loads(file.readline()))
            return answers


def run(answer: Callable[[], Any]) -> Any:
    return answer()


def double(arguments: Mapping[str, Any]) -> Any:
    if "number" not in arguments:
        raise QuestionRefused("number is missing")
    if arguments["number"] == 0:
        raise QuestionRefused("number: 0 is no number to double", "number")
    return {"number": 2 * arguments["number"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "status.sock"


def server(path: Path, name: str, actions: Mapping[str, Any] | None = None) -> StatusServer:
    return StatusServer(path, {name: lambda: {"app": name}}, run, LOGGER, actions or {})


def test_apps_share_one_socket_and_the_last_one_closes_it(path: Path):
    one, other = server(path, "one"), server(path, "other", {"double": double})
    one.start()
    other.start()
    assert ask(path, '{"show": "one"}', '{"show": "other"}') == [{"app": "one"}, {"app": "other"}]
    one.stop()
    assert ask(path, '{"show": "other"}') == [{"app": "other"}]
    assert "error" in ask(path, '{"show": "one"}')[0]
    server(path, "never started").stop()
    assert ask(path, '{"show": "other"}') == [{"app": "other"}]
    other.stop()
    other.stop()
    assert not path.exists()


def test_actions_take_the_fields_of_the_question(path: Path):
    app = server(path, "app", {"double": double})
    app.start()
    answers = ask(path, '{"do": "double", "number": 21}', '{"do": "double"}', '{"do": "double", "number": {}}')
    assert answers[0] == {"number": 42}
    assert answers[1] == {"error": "number is missing", "refused": True}
    assert answers[2]["error"].startswith("TypeError")
    (answer,) = ask(path, '{"do": "double", "number": 0}')
    assert answer == {"error": "number: 0 is no number to double", "refused": True, "field": "number"}
    app.stop()


@pytest.mark.parametrize(
    "question", ["", "nonsense", "[1]", "7", '{"show": []}', '{"show": "app", "do": "double"}', "{}", "[" * 60000]
)
def test_a_question_that_nobody_answers_gets_a_list_of_those_that_are(path: Path, question: str):
    app = server(path, "app", {"double": double})
    app.start()
    (answer,) = ask(path, question)
    assert "app" in answer["error"]
    assert "double" in answer["error"]
    app.stop()


def test_an_answer_that_is_no_json_is_an_error(path: Path):
    app = StatusServer(path, {"set": lambda: {1, 2}, "nan": lambda: float("nan")}, run, LOGGER)
    app.start()
    assert [answer["error"] for answer in ask(path, '{"show": "set"}', '{"show": "nan"}')] == [
        "the answer is no JSON"
    ] * 2
    app.stop()


def feed(path: Path, name: str, section: str, world: dict[str, int]) -> StatusServer:
    sections = {section: DocumentLog(lambda: list(world), lambda key: {"n": world[key]} if key in world else None)}
    return StatusServer(path, {}, run, LOGGER, app=name, sections=sections)


def test_changes_are_told_by_section_and_app(path: Path):
    world, other_world = {"a": 1}, {"a": 2, "b": 3}
    apps = [feed(path, "one", "things", world), feed(path, "other", "things", other_world)]
    apps.append(feed(path, "third", "rest", {"r": 0}))
    for app in apps:
        app.start()
    (first,) = ask(path, '{"changes": {"things": 0, "nothing": 0}}')
    assert first["names"] == ["things", "rest"]
    assert first["sections"]["nothing"] == {}
    things = first["sections"]["things"]
    assert things["one"]["put"] == {"a": {"n": 1}}
    assert things["other"]["put"] == {"a": {"n": 2}, "b": {"n": 3}}
    world["a"] = 9
    apps[0].sections["things"].touch("a")
    seen = {name: delta["version"] for name, delta in things.items()}
    question = {"changes": {"things": seen}, "epoch": first["epoch"]}
    (second,) = ask(path, json.dumps(question))
    assert second["sections"]["things"]["one"]["put"] == {"a": {"n": 9}}
    assert second["sections"]["things"]["other"]["put"] == {}
    (anew,) = ask(path, json.dumps({**question, "epoch": "another"}))
    assert anew["sections"]["things"]["other"]["whole"]
    for app in apps:
        app.stop()


def test_an_app_that_fails_spoils_no_other_s_changes(path: Path):
    def broken() -> list[str]:
        raise OSError("gone")

    good = feed(path, "good", "things", {"a": 1})
    bad = StatusServer(path, {}, run, LOGGER, app="bad", sections={"things": DocumentLog(broken, lambda _key: {})})
    good.start()
    bad.start()
    (answer,) = ask(path, '{"changes": {"things": 0}}')
    assert answer["errors"] == {"bad": "OSError: gone"}
    assert answer["sections"]["things"].keys() == {"good"}
    assert answer["sections"]["things"]["good"]["put"] == {"a": {"n": 1}}
    good.stop()
    bad.stop()


def test_an_app_is_asked_for_its_own_sections_alone(path: Path):
    def unanswered(_answer: Callable[[], Any]) -> Any:
        raise TimeoutError("busy")

    good = feed(path, "good", "things", {"a": 1})
    busy = StatusServer(
        path, {}, unanswered, LOGGER, app="busy", sections={"rest": DocumentLog(list, lambda _key: {})}
    )
    good.start()
    busy.start()
    things, rest = ask(path, '{"changes": {"things": 0}}', '{"changes": {"rest": 0}}')
    assert (things["names"], "errors" in things) == (["things", "rest"], False)
    assert rest["errors"] == {"busy": "TimeoutError: busy"}
    good.stop()
    busy.stop()


def test_documents_are_made_anew_before_their_changes_are_told(path: Path):
    world = {"a": 1}
    things = DocumentLog(lambda: list(world), lambda key: {"n": world[key]})

    def refresh() -> None:
        world["a"] += 1
        things.touch("a")

    app = StatusServer(path, {}, run, LOGGER, app="app", sections={"things": things}, refresh=refresh)
    app.start()
    (first,) = ask(path, '{"changes": {"things": 0}}')
    seen = first["sections"]["things"]["app"]["version"]
    (second,) = ask(path, json.dumps({"changes": {"things": {"app": seen}}}))
    assert second["sections"]["things"]["app"]["put"] == {"a": {"n": 3}}
    app.stop()


def test_no_more_documents_are_told_than_asked_for(path: Path):
    app = feed(path, "app", "things", {str(n): n for n in range(3000)})
    app.start()
    for limit, count in ((', "limit": 1', 1), (', "limit": 2000', 2000), ("", 500)):
        (answer,) = ask(path, f'{{"changes": {{"things": 0}}{limit}}}')
        delta = answer["sections"]["things"]["app"]
        assert (len(delta["put"]), delta["more"]) == (count, True)
    app.stop()


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ('{"changes": 1}', "changes: must be an object of sections"),
        ('{"changes": {"things": "x"}}', "changes: things: 'x' is no version"),
        ('{"changes": {"things": {"app": -1}}}', "changes: things: -1 is no version"),
        ('{"changes": {"things": {"app": true}}}', "changes: things: True is no version"),
        ('{"changes": {}, "limit": 0}', "limit: 0 is no whole number from 1 to 2000"),
        ('{"changes": {}, "limit": 2001}', "limit: 2001 is no whole number from 1 to 2000"),
        ('{"changes": {}, "limit": 7.0}', "limit: 7.0 is no whole number from 1 to 2000"),
        ('{"changes": {}, "limit": "7"}', "limit: '7' is no whole number from 1 to 2000"),
    ],
)
def test_a_wrong_question_about_changes_names_the_field(path: Path, question: str, error: str):
    app = feed(path, "app", "things", {"a": 1})
    app.start()
    (answer,) = ask(path, question)
    assert answer == {"error": error, "refused": True, "field": error.partition(":")[0]}
    app.stop()
