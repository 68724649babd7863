"""Until when revocation lists are good: as OpenSSL's own command says it, and nothing raises but ValueError."""

from __future__ import annotations

import base64
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.revocation_lists import next_update_s
from certificates import Authority

JANUARY_2049_S, JANUARY_2050_S = 2493072000.0, 2524608000.0


def pem(der: bytes) -> str:
    return f"-----BEGIN X509 CRL-----\n{base64.encodebytes(der).decode()}-----END X509 CRL-----\n"


def der_of(text: str) -> bytes:
    return base64.b64decode("".join(line for line in text.splitlines() if "-----" not in line))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("lists"))


@pytest.fixture(scope="module")
def text(authority: Authority) -> str:
    return authority.revocations(authority.issue("gone"), until="20490101000000Z").read_text()


def test_years_have_two_digits_or_four(authority: Authority, text: str) -> None:
    assert next_update_s(text) == JANUARY_2049_S
    assert next_update_s(authority.revocations(until="20500101000000Z").read_text()) == JANUARY_2050_S


def test_the_first_of_several_that_is_out_of_date_counts(authority: Authority, text: str) -> None:
    other = authority.revocations(until="20500101000000Z").read_text()
    assert next_update_s(other + text) == JANUARY_2049_S


def test_one_that_says_no_time_is_good_for_ever() -> None:
    name = algorithm = b"\x30\0"
    issued = b"\x17\x0d" + b"200101000000Z"
    inner = algorithm + name + issued
    body = b"\x30" + bytes((len(inner),)) + inner
    assert next_update_s(pem(b"\x30" + bytes((len(body),)) + body)) == inf


def test_what_is_cut_short_or_no_list_at_all_is_said(text: str, authority: Authority) -> None:
    der = der_of(text)
    for size in range(100):
        with pytest.raises(ValueError, match="cannot be read"):
            next_update_s(pem(der[:size] or b"\0"))
    with pytest.raises(ValueError, match="no revocation list"):
        next_update_s(Path(authority.certificate).read_text())


@given(st.binary(min_size=1, max_size=200))
def test_nothing_else_is_raised(der: bytes) -> None:
    try:
        next_update_s(pem(der))
    except ValueError:
        return
