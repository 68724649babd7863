"""What `vsrt run`, recordings, checks, the demonstration and packages know of an OpenFlow app.

Each package here whose core is that of an app has a module `app`, whose `APP` is the app's row; a core is loaded when
it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from controller.config.policy import Policy
    from controller.datapath.core import DatapathCore

Start: TypeAlias = Mapping[str, Any]
"""What a core is made of, by name: that is what a recording starts with."""


class CoreSpec(NamedTuple):
    """How the core of an app is made, live or from a recording, and what it is told of another policy.

    Attributes
    ----------
    start
        Takes the policy and the time in seconds since 1970, and returns what the core is made of.
    make
        Takes that, the time in seconds of the clock that the core's events have, and what apps share of switches.
    changed
        Returns the event that tells the core of another policy.
    records
        The types, or modules of types, of its events and of what it is made of that no other app has. None where the
        app is not recorded: its events hold more than a line of text should.
    secret_bytes
        How many bytes nobody can guess the core is made of besides, as `secret`; none for 0.
    core
        The class of a core that is recorded: the return type of its `handle` says what it asks for.
    """

    start: Callable[[Policy, float], Start]
    make: Callable[[Start, float, DatapathCore | None], Any]
    changed: Callable[[Policy], Any]
    records: tuple[ModuleType | type, ...] | None = None
    secret_bytes: int = 0
    core: type[Any] | None = None


class AppSpec(NamedTuple):
    """One app.

    Attributes
    ----------
    name
        What it is called on command lines, in documents and recordings; its class is ``<Name>App``.
    says
        What it is for, in a few words.
    core
        Loads and returns how its core is made; None for an app without one.
    module
        The module that the framework loads, where it is not ``apps.<name>``.
    needs
        Apps that are loaded with it.
    keeps_entries
        Whether it keeps flow entries on switches: it then shares switches with the others of its kind.
    is_shown
        Whether operators see its notices, so that it may tell what befell a connection; the first such app does.
    is_usual
        Whether packages and containers run it.
    rank
        Where it stands among all, the lowest first; those of one rank stand by name.
    """

    name: str
    says: str
    core: Callable[[], CoreSpec] | None
    module: str = ""
    needs: tuple[str, ...] = ()
    keeps_entries: bool = False
    is_shown: bool = False
    is_usual: bool = False
    rank: int = 100

    @property
    def module_name(self) -> str:
        """The module that the framework loads."""
        return self.module or f"apps.{self.name}"

    @property
    def file(self) -> str:
        """Its file, which ``ryu-manager`` is given."""
        return f"{self.module_name.replace('.', '/')}.py"
