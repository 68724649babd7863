"""Files of samples with anything in them: read, or refused with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.cli.allocate_samples import Options, feed
from apps.cli.common import InputError
from controller.allocation.book import PortBook
from controller.config.settings import Allocation

FIELDS = {
    "vmax": ("sampleTime", "port", "portSpeedGbitPerSec", "kbytesTransferred", "cpu", "ticks", "idle", "volumes"),
    "vplex": ("Time", "director", "director.busy", "fe-prt.read A0 (KB/s)", "fe-prt.write A0 (KB/s)", "port"),
}
TIMES = ("20260101000000.000000+000", "20260101010000.000000+000", "2026-01-01 00:00:00", "99991231235959.999999-999")
CELLS = st.sampled_from(
    ["", "0", "7", "-1", "1e999", "nan", "9" * 19, "9" * 5000, "ü", "٣", "p", '"', "\0", *TIMES],
)
OPTIONS = Options(8.0, 300.0)


@given(st.data(), st.sampled_from(sorted(FIELDS)))
def test_csv_with_anything_in_it(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, family: str):
    header = data.draw(st.lists(st.sampled_from(FIELDS[family]), min_size=1, unique=True))
    lines = data.draw(st.lists(st.lists(CELLS, min_size=len(header), max_size=len(header)), max_size=4))
    path = tmp_path_factory.mktemp("samples") / "any.csv"
    path.write_text("\n".join([",".join(header), *(",".join(line) for line in lines)]), encoding="utf-8")
    book = PortBook(Allocation())
    try:
        fed = feed(book, family, path, OPTIONS)
    except InputError as error:
        assert str(path) in str(error)
    else:
        json.dumps(book.state(), allow_nan=False)
        book.reports(fed.now_ms)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"{}\n", b"[1]\n", b"{\n", b'{"sampleTime": 5}\n'])
def test_json_lines_that_are_none(tmp_path: Path, content: bytes):
    path = tmp_path / "any.jsonl"
    path.write_bytes(content)
    if not content:
        assert feed(PortBook(Allocation()), "vmax", path, OPTIONS).outcomes == {}
        return
    with pytest.raises(InputError, match=r"any\.jsonl"):
        feed(PortBook(Allocation()), "vmax", path, OPTIONS)
