"""The response and interval codes of queries: plain below a threshold, a small floating-point form above it."""

from __future__ import annotations

MAX_CODE8_VALUE = 0x1F << 10
MAX_CODE16_VALUE = 0x1FFF << 10


def decode_code8(code: int) -> int:
    """Return the value of a Max Resp Code or QQIC of 8 bits (RFC 9776, 4.1.1 and 4.1.7), 0 to 31744."""
    if code < 0x80:
        return code
    return (code & 0x0F | 0x10) << ((code >> 4 & 0x07) + 3)


def encode_code8(value: int) -> int:
    """Return the 8-bit code of the largest value that can be said and is not above `value`.

    Raises
    ------
    ValueError
        Below 0 or above 31744.
    """
    if not 0 <= value <= MAX_CODE8_VALUE:
        raise ValueError(f"{value} is not within 0 and {MAX_CODE8_VALUE}")
    if value < 0x80:
        return value
    shift = value.bit_length() - 5
    return 0x80 | (shift - 3) << 4 | value >> shift & 0x0F


def decode_code16(code: int) -> int:
    """Return the value of an MLDv2 Maximum Response Code of 16 bits (RFC 9777, 5.1.3), 0 to 8387584."""
    if code < 0x8000:
        return code
    return (code & 0x0FFF | 0x1000) << ((code >> 12 & 0x07) + 3)


def encode_code16(value: int) -> int:
    """Return the 16-bit code of the largest value that can be said and is not above `value`.

    Raises
    ------
    ValueError
        Below 0 or above 8387584.
    """
    if not 0 <= value <= MAX_CODE16_VALUE:
        raise ValueError(f"{value} is not within 0 and {MAX_CODE16_VALUE}")
    if value < 0x8000:
        return value
    shift = value.bit_length() - 13
    return 0x8000 | (shift - 3) << 12 | value >> shift & 0x0FFF
