"""`/healthz` and `/readyz`: a word for whoever asks, and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

CONTAINERFILE = Path(__file__).parents[3] / "packaging" / "container" / "Containerfile"
OK = (200, "ok\n")
AWAY = (503, "not ok: the controller does not answer\n")
NOT_READY = (503, "not ok: a switch is missing, or holds not yet what it should\n")


def asked(dashboard: Any, path: str) -> tuple[int, str]:
    answer = httpx.get(f"{dashboard.url}{path}", trust_env=False)
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["cache-control"] == "no-store"
    return answer.status_code, answer.text


def test_both_follow_controller_and_fabric(start: Callable[..., Any], controller: Any, cable: Any) -> None:
    dashboard = start(socket=str(cable.path))
    dashboard.wait_until(lambda: (asked(dashboard, "/healthz"), asked(dashboard, "/readyz")) == (OK, OK))
    status = dict(controller.documents["multicast", "status"]["status"])
    try:
        secret = {"ready": False, "not_ready_reason": "switch 7 in row 3 is missing"}
        controller.put("multicast", "status", "status", **status | secret)
        dashboard.wait_until(lambda: asked(dashboard, "/readyz") == NOT_READY)
        assert asked(dashboard, "/healthz") == OK
        cable.pull()
        dashboard.wait_until(lambda: asked(dashboard, "/healthz") == AWAY)
        assert asked(dashboard, "/readyz") == AWAY
        controller.put("multicast", "status", "status", **status)
        cable.plug()
        dashboard.wait_until(lambda: asked(dashboard, "/readyz") == OK)
    finally:
        controller.put("multicast", "status", "status", **status)


def test_before_the_first_answer_of_a_controller_nothing_is_well(start: Callable[..., Any], tmp_path: Path) -> None:
    dashboard = start(socket=str(tmp_path / "nobody.sock"))
    assert asked(dashboard, "/healthz") == asked(dashboard, "/readyz") == AWAY


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_load_balancer_needs_no_token_and_no_name(start: Callable[..., Any], tmp_path: Path, path: str) -> None:
    viewers = tmp_path / "viewers"
    viewers.touch(mode=0o600)
    viewers.write_text("balancer-has-none-of-it\n")
    dashboard = start(read_token_file=str(viewers))
    dashboard.wait_until(lambda: asked(dashboard, path) == OK)
    for head in (
        f"GET {path} HTTP/1.0\r\n\r\n",
        f"HEAD {path} HTTP/1.1\r\nHost: pool-7\r\nConnection: close\r\n\r\n",
    ):
        assert dashboard.raw(head.encode()).startswith(b"HTTP/1.1 200 ")
    answer = httpx.post(f"{dashboard.url}{path}", headers={"Host": "pool-7"}, trust_env=False)
    assert answer.status_code == 421


def test_the_container_is_healthy_while_the_controller_answers(start: Callable[..., Any], tmp_path: Path) -> None:
    text = CONTAINERFILE.read_text(encoding="utf-8")
    (command,) = re.findall(r"(?m)^HEALTHCHECK .*\\\n    CMD (\[.*\])$", text)
    (url,) = re.findall(r"VSRT_HEALTH_URL=(\S+)", text)
    words = json.loads(command)
    assert words.pop(0) == "python"

    def status(dashboard: Any) -> int:
        asked_url = url.replace("http://127.0.0.1:8181", dashboard.url)
        environment = {**os.environ, "VSRT_HEALTH_URL": asked_url, "no_proxy": "127.0.0.1"}
        done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, check=False)
        return done.returncode

    followed = start()
    followed.wait_until(lambda: asked(followed, "/healthz") == OK)
    assert status(followed) == 0
    assert status(start(socket=str(tmp_path / "nobody.sock"))) == 1
