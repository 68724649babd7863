"""All keys of a fabric as one text, for a store that was lost: written, and taken again only where it is whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from controller.cluster.engine import OPERATIONS_BOUND, Delete, KeyValue, PutKey, Transaction, size_bytes
from controller.cluster.journal import BUNDLE_BYTES
from controller.cluster.keys import Keys, read_epoch, read_object
from controller.cluster.versions import RECORDS, is_readable

FORMAT = "vsrt-cluster-archive"


class ArchiveInvalid(ValueError):  # noqa: N818 - it says what the archive is
    """An archive that cannot be taken; the text says why."""


class Archive(NamedTuple):
    """The keys of a fabric that end with no lease, without what all of them begin with.

    `records` is the latest version of the records in it.
    """

    fabric: str
    revision: int
    keys: Mapping[str, str]
    records: int = RECORDS

    def text(self) -> str:
        """Return this as the text of a file."""
        document = {"format": FORMAT, **self._asdict(), "digest": self.digest()}
        return json.dumps(document, indent=1, sort_keys=True) + "\n"

    def digest(self) -> str:
        """Return the SHA-256 of all that counts, in hexadecimal digits."""
        said = [self.records, self.fabric, sorted(self.keys.items())]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def archive_of(fabric: str, revision: int, held: Iterable[KeyValue]) -> Archive:
    """Return the archive of keys as of a revision; who is there at the time, by a lease, is no part of it."""
    root = Keys(fabric).root
    return Archive(fabric, revision, {each.key.removeprefix(root): each.value for each in held if not each.lease})


def read_archive(text: str) -> Archive:
    """Return the archive in a file's text; ArchiveInvalid where it is none, of an unknown version, or damaged."""
    try:
        found: dict[str, Any] = read_object(text)
        if found["format"] != FORMAT:
            raise KeyError(found["format"])
        records = found["records"]
        archive = Archive(str(found["fabric"]), int(found["revision"]), dict(found["keys"]), records)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArchiveInvalid("it is no archive of a fabric's keys") from error
    if type(records) is not int or not is_readable(records):
        raise ArchiveInvalid(
            f"its records are of version {records}, and this program reads versions {RECORDS - 1} and {RECORDS}"
        )
    if not all(type(value) is str and _is_text(value) for pair in archive.keys.items() for value in pair):
        raise ArchiveInvalid("its keys or values are no texts")
    if found.get("digest") != archive.digest():
        raise ArchiveInvalid("its digest is not that of its keys: it is damaged, or was edited")
    return archive


def _is_text(value: str) -> bool:
    """Tell whether a store can keep a text: not what has halves of characters."""
    try:
        return bool(value.encode()) or not value
    except UnicodeEncodeError:
        return False


def why_not(archive: Archive, fabric: str, held: Iterable[KeyValue]) -> str | None:
    """Return why an archive is not put into a store that has these keys, None where it may be."""
    keys, there = Keys(fabric), {each.key: each for each in held}
    if keys.leader in there:
        return f"a controller leads fabric {fabric}: end all controllers first"
    if archive.fabric != fabric:
        return f"it is of fabric {archive.fabric}, not of {fabric}"
    if there:
        return f"fabric {fabric} has {len(there)} keys already"
    return None


def restoring(archive: Archive, fabric: str, held: Iterable[KeyValue]) -> Iterator[Transaction]:
    """Yield what makes a fabric's keys those of an archive, and removes the others; each may be done twice.

    The epoch comes first and never falls: what leads by an older one writes nothing from then on.
    """
    keys, there = Keys(fabric), {each.key: each for each in held}
    wanted = {keys.root + name: value for name, value in archive.keys.items()}
    present = there.get(keys.epoch)
    epoch = max(read_epoch(wanted.get(keys.epoch, "")), 0 if present is None else read_epoch(present.value))
    if epoch:
        wanted[keys.epoch] = str(epoch + 1)
    edits: list[PutKey | Delete] = [Delete(key) for key in there if key not in wanted]
    edits += [PutKey(key, value) for key, value in wanted.items()]
    edits.sort(key=lambda edit: edit.key != keys.epoch)
    bundle: list[PutKey | Delete] = []
    size = 0
    for edit in edits:
        if bundle and (len(bundle) == OPERATIONS_BOUND or size + size_bytes(edit) > BUNDLE_BYTES):
            yield Transaction((), tuple(bundle), True)
            bundle, size = [], 0
        bundle.append(edit)
        size += size_bytes(edit)
    if bundle:
        yield Transaction((), tuple(bundle), True)
