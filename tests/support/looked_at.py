"""Functions at which scripts of the tests look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from controller.config.policy import Policy

built_in = len


class Point(NamedTuple):
    x: int
    y: int


def every_kind(first: int, /, second: str = "b", *rest: int, named: int = 3, **others: int) -> str:
    return f"{first}{second}{rest}{named}{sorted(others.items())}"


def factorial(of: int) -> int:
    return 1 if of < 2 else of * factorial(of - 1)


def fails(number: int) -> int:
    raise KeyError(number)


def generates(count: int) -> Iterator[int]:
    yield from range(count)


def makes_closure(by: int) -> Callable[[int], int]:
    def add(to: int) -> int:
        return to + by

    return add


def hides(secret: bytes, policy: Policy, _inner: int, untold, point: Point) -> None:  # type: ignore[no-untyped-def]
    """Nothing but the point is seen."""


@cache
def is_cached(number: int) -> int:
    return number


@contextmanager
def opens() -> Iterator[int]:
    yield 1


class Base:
    def __init__(self, size: int) -> None:
        self.size = size

    def grow(self, by: int) -> int:
        self.size += by
        return self.size

    @property
    def doubled(self) -> int:
        return 2 * self.size


class Derived(Base):
    def grow(self, by: int) -> int:
        return super().grow(2 * by)

    @classmethod
    def of(cls, size: int) -> Derived:
        return cls(size)

    @staticmethod
    def halved(size: int) -> int:
        return size // 2


@dataclass
class Made:
    number: int
