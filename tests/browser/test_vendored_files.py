from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

STATIC = Path(__file__).parents[2] / "apps" / "dashboard" / "static"
VENDOR = STATIC / "vendor"
MODULE_LINES = 500


def manifest() -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = json.loads((VENDOR / "vendor.json").read_text())
    return found


def test_vendored_files_are_as_the_manifest_says() -> None:
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.iterdir() if path.is_file()}
    del sums["vendor.json"]
    assert sums == {name: file["sha256"] for name, file in manifest()["files"].items()}


def test_each_package_is_pinned_and_has_its_licence() -> None:
    packages = manifest()["packages"]
    for name, package in packages.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"]), name
        assert package["integrity"].startswith("sha512-"), name
    licences = {path.stem for path in (VENDOR / "licences").iterdir()}
    assert licences == {name.removeprefix("@").replace("/", "-") for name in packages}


def test_the_page_needs_nothing_inline_and_nothing_from_elsewhere() -> None:
    for path in [*STATIC.glob("*.html"), *STATIC.glob("css/*"), *STATIC.glob("js/**/*.js")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"https?://(?!www\.w3\.org/)|<style|<script(?![^>]* src=)| on\w+=\"|style=\"", text), (
            path
        )
        assert not re.search(r"innerHTML|dangerouslySetInnerHTML|eval\(|new Function", text), path


def test_no_script_of_the_page_is_longer_than_its_limit() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in STATIC.glob("js/**/*.js")}
    assert {name: length for name, length in lengths.items() if length > MODULE_LINES} == {}
