"""Captures as commands read them: pcap and pcapng files, compressed by gzip or not, with progress."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from apps.cli.common import InputError
from apps.cli.progress import ProgressBar
from controller.captures.capture_file import CaptureDamaged, CapturedFrame, CaptureReader

GZIP_MAGIC = b"\x1f\x8b"
DRAWN_EVERY_FRAMES = 4096


class CaptureInput:
    """One capture, whose frames are read as they are asked for.

    Attributes
    ----------
    damage
        Where and why the file could be read no further, None while all was well.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damage: CaptureDamaged | None = None
        self.shortened_count = 0

    def frames(self) -> Iterator[CapturedFrame]:
        """Yield the frames up to the end, or to where the file is cut or damaged, which `damage` tells then.

        InputError where the file cannot be opened, or is no capture.
        """
        bar = ProgressBar()
        try:
            with self.path.open("rb") as file:
                size_bytes = self.path.stat().st_size
                is_compressed = file.read(2) == GZIP_MAGIC
                file.seek(0)
                yield from self._read(file, is_compressed, size_bytes, bar)
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror or error}") from None
        finally:
            bar.clear()

    def _read(
        self, file: BinaryIO, is_compressed: bool, size_bytes: int, bar: ProgressBar
    ) -> Iterator[CapturedFrame]:
        source = _Unpacked(file) if is_compressed else file
        reader = CaptureReader(source.read)
        try:
            for frame in reader.frames():
                if not frame.number % DRAWN_EVERY_FRAMES:
                    bar.draw(f"bytes of {self.path.name}", file.tell(), size_bytes)
                yield frame
        except CaptureDamaged as damage:
            if not reader.frame_count and damage.offset_bytes == 0:
                raise InputError(f"{self.path}: {damage.reason}") from None
            self.damage = damage
        except _UnpackingFailed as error:
            place = f"{error}, {reader.offset_bytes:,} bytes into what it holds"
            self.damage = CaptureDamaged(place, reader.offset_bytes, reader.frame_count + 1)
        self.shortened_count = reader.shortened_count


class _UnpackingFailed(Exception):  # noqa: N818 - it names what happened
    pass


class _Unpacked:
    """What a file compressed by gzip holds."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = gzip.GzipFile(fileobj=file)

    def read(self, size: int) -> bytes:
        """Return up to so many bytes, none at the end."""
        try:
            return self._file.read1(size)
        except EOFError:
            raise _UnpackingFailed("the file, compressed by gzip, is cut") from None
        except (OSError, zlib.error) as error:
            raise _UnpackingFailed(f"the file, compressed by gzip, is damaged ({error})") from None


def whole_frames(capture: CaptureInput) -> Iterator[CapturedFrame]:
    """Yield the frames of a capture that is to be read whole; InputError where it is cut or damaged."""
    yield from capture.frames()
    if capture.damage is not None:
        raise InputError(f"{capture.path}: {capture.damage}")
