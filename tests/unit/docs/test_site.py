"""The documents as a site: built without a warning, nothing taken from the network, every link leads somewhere."""

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from apps.cli.main import COMMANDS
from apps.exporters.metrics import FAMILIES
from controller.config.json_schema import policy_schema

ROOT = Path(__file__).parents[3]
LOADING = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}
NOT_LOADED = {"canonical", "prev", "next", "alternate"}


class Page(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.anchors.update(given[name] or "" for name in ("id", "name") if name in given)
        for name, value in attributes:
            if (tag, name) in LOADING and given.get("rel") not in NOT_LOADED:
                self.loads.append(value or "")
            elif tag == "a" and name == "href":
                self.links.append(value or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", target],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return target


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_nothing_is_taken_from_the_network(site: Path, pages: dict[Path, Page]):
    loaded = {url for page in pages.values() for url in page.loads}
    assert loaded, "no page loads anything"
    assert {url for url in loaded if urlsplit(url).netloc} == set()
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text(encoding="utf-8"), style


def test_every_link_leads_somewhere(site: Path, pages: dict[Path, Page]):
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchors = pages[target].anchors if target in pages else set()
            if not target.exists() or (parts.fragment and unquote(parts.fragment) not in anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_reference_pages_have_all_that_the_code_has(site: Path):
    commands = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f">vsrt {name}<" not in commands] == []
    metrics = (site / "reference" / "metrics.html").read_text(encoding="utf-8")
    assert [family.name for family in FAMILIES if f"<code>{family.name}</code>" not in metrics] == []
    requests = (site / "reference" / "api.html").read_text(encoding="utf-8")
    described = json.loads((site / "reference" / "openapi.json").read_text(encoding="utf-8"))["paths"]
    assert "/api/v1/status" in described
    assert [path for path in described if path not in requests] == []
    assert json.loads((site / "reference" / "policy.schema.json").read_text(encoding="utf-8")) == policy_schema()
