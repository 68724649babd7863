"""Keys of the store as a member last heard them, and what those say of who leads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controller.cluster.engine import Delete, KeyChange, KeyCondition, KeyValue, PutKey
from controller.cluster.keys import Keys, Leader, Present, read_epoch, read_leader, read_present


class KeyView:
    """Keys that a member reads and follows.

    Parts of it come by answers and by the watch, which may be behind these: a change that is older than what is known
    of its key says nothing.

    Attributes
    ----------
    version
        Rises with what is known.
    """

    def __init__(self) -> None:
        self.version = 0
        self._held: dict[str, KeyValue] = {}

    def replace(self, held: Iterable[KeyValue]) -> None:
        """Know these keys and no others."""
        self.version += 1
        self._held = {entry.key: entry for entry in held}

    def see(self, held: Iterable[KeyValue], asked: Iterable[str] = ()) -> None:
        """Know these keys, and that others of those `asked` for are absent."""
        self.version += 1
        for key in asked:
            self._held.pop(key, None)
        self._held |= {entry.key: entry for entry in held}

    def done(self, edits: Iterable[PutKey | Delete], revision: int) -> None:
        """Know what was put and deleted in `revision`, but of keys of which the watch has told something later."""
        edits = tuple(edits)
        puts = (KeyValue(edit.key, edit.value, revision, edit.lease) for edit in edits if type(edit) is PutKey)
        self.told(puts, [edit.key for edit in edits], revision)

    def told(self, held: Iterable[KeyValue], asked: Iterable[str], revision: int) -> None:
        """Know what there was in `revision` of keys `asked` for, but of those of which the watch has told later."""
        latest = [entry for entry in held if self.revision(entry.key) <= revision]
        self.see(latest, [key for key in asked if self.revision(key) <= revision])

    def follow(self, changes: Iterable[KeyChange]) -> None:
        """Take what a watch told."""
        self.version += 1
        for change in changes:
            held = self._held.get(change.key)
            if held is not None and held.revision > change.revision:
                continue
            if change.value is None:
                self._held.pop(change.key, None)
            else:
                self._held[change.key] = KeyValue(change.key, change.value, change.revision, change.lease)

    def condition(self, key: str) -> KeyCondition:
        """Return the condition that a key is as it is known."""
        held = self._held.get(key)
        return KeyCondition(key, 0) if held is None else KeyCondition(key, held.revision, held.value)

    def revision(self, key: str) -> int:
        """Return when a key was last put, 0 where it is absent."""
        held = self._held.get(key)
        return 0 if held is None else held.revision

    def held(self, key: str) -> KeyValue | None:
        """Return a key, None where it is absent."""
        return self._held.get(key)

    def below(self, prefix: str) -> Iterator[KeyValue]:
        """Yield the keys that begin with a prefix."""
        return (held for key, held in self._held.items() if key.startswith(prefix))


class LeadView(KeyView):
    """The keys below `lead` of a fabric."""

    def __init__(self, keys: Keys) -> None:
        super().__init__()
        self._keys = keys
        self._present: dict[str, Present] = {}
        self._present_version = -1

    @property
    def leader(self) -> Leader | None:
        """Who leads."""
        held = self._held.get(self._keys.leader)
        return None if held is None else read_leader(held.value)

    @property
    def epoch(self) -> int:
        """The last epoch, 0 where there was none."""
        held = self._held.get(self._keys.epoch)
        return 0 if held is None else read_epoch(held.value)

    @property
    def successor(self) -> str | None:
        """Who shall lead next, where somebody was named."""
        held = self._held.get(self._keys.successor)
        return None if held is None else held.value

    @property
    def is_challenged(self) -> bool:
        """Whether the leader was challenged since it last said that it is there."""
        return self.revision(self._keys.challenge) > self.revision(self._keys.leader) > 0

    def present(self) -> dict[str, Present]:
        """Return the members that are there, by name in their order; of a key that makes no sense the name alone."""
        if self._present_version != self.version:
            self._present, self._present_version = {}, self.version
            for name in self.members():
                present = read_present(self._held[f"{self._keys.members}{name}"].value)
                self._present[name] = Present(name, "", "", 0, 1) if present is None else present
        return self._present

    def members(self) -> tuple[str, ...]:
        """Return the names of the members, in their order."""
        prefix = self._keys.members
        return tuple(sorted(held.key.removeprefix(prefix) for held in self.below(prefix)))
