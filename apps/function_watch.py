"""Looking at functions: while somebody looks at one its code is exchanged, and afterwards it is its own again.

The code object is what is exchanged, and not the function, since methods are kept in tables by those who call them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from apps.system import system_threading
from controller.probes.functions import ENTER, FunctionFields, LoadedFunctions

HOOK = "_hook_"
"""What is called in the place of a function; no parameter of any is called so."""


class Looker(NamedTuple):
    """Who looks: `watcher` is called with a record where `is_here` says that the caller is on the right loop."""

    is_here: Callable[[], bool]
    watcher: Callable[[Any], None]


class _Watched:
    """A function at which somebody looks."""

    def __init__(self, function: FunctionType, fields: FunctionFields, clock: Callable[[], int]) -> None:
        self.entering: tuple[Looker, ...] = ()
        self.leaving: tuple[Looker, ...] = ()
        self.code = function.__code__
        self._fields = fields
        self._clock = clock
        self._plain = FunctionType(
            *(self.code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        )
        self._plain.__kwdefaults__ = function.__kwdefaults__
        self.stand_in = _stand_in(self.code, fields.parameters, self._call)

    def _call(self, seen: tuple[Any, ...], /, *arguments: Any, **named: Any) -> Any:
        here = [each.watcher for each in self.entering if each.is_here()]
        if here:
            record = self._fields.entered(*seen)
            for watcher in here:
                watcher(record)
        if not self.leaving:
            return self._plain(*arguments, **named)
        began_ns = self._clock()
        result = None
        try:
            result = self._plain(*arguments, **named)
        finally:
            self._leave(result, self._clock() - began_ns)
        return result

    def _leave(self, result: Any, took_ns: int) -> None:
        here = [each.watcher for each in self.leaving if each.is_here()]
        if here:
            left = self._fields.left
            record = left(result, took_ns) if self._fields.has_result else left(took_ns)
            for watcher in here:
                watcher(record)


class FunctionWatch:
    """Who looks at functions; on any thread.

    Parameters
    ----------
    functions
        The functions that there are.
    clock
        Returns the time in nanoseconds, by which it is told how long functions took.
    """

    def __init__(self, functions: LoadedFunctions, clock: Callable[[], int]) -> None:
        self._functions = functions
        self._clock = clock
        self._watched: dict[FunctionType, _Watched] = {}
        self._lock = system_threading.Lock()

    def prepare(self, name: str) -> None:
        """Make what is exchanged for a function's code, which takes longer than to exchange it; KeyError for none."""
        self._watched_of(name)

    def watch(self, what: str, name: str, looker: Looker) -> Callable[[], None]:
        """Have somebody called when a function is entered (``enter``) or left (``exit``); what is returned ends that.

        A function that raises is left without a result; one that makes a generator is left when it has made it.
        KeyError where no function has the name.
        """
        function, watched = self._watched_of(name)
        with self._lock:
            if what == ENTER:
                watched.entering += (looker,)
            else:
                watched.leaving += (looker,)
            function.__code__ = watched.stand_in
        return lambda: self._unwatch(function, looker)

    def _watched_of(self, name: str) -> tuple[FunctionType, _Watched]:
        function = self._functions.find(name)
        if function is None:
            raise KeyError(name)
        with self._lock:
            if function not in self._watched:
                self._watched[function] = _Watched(function, self._functions.fields(name), self._clock)
            return function, self._watched[function]

    def _unwatch(self, function: FunctionType, looker: Looker) -> None:
        with self._lock:
            watched = self._watched[function]
            watched.entering = tuple(each for each in watched.entering if each is not looker)
            watched.leaving = tuple(each for each in watched.leaving if each is not looker)
            if not watched.entering and not watched.leaving:
                function.__code__ = watched.code


def _stand_in(code: CodeType, shown: tuple[str, ...], hook: Callable[..., Any]) -> CodeType:
    """Return code with the parameters, and the variables of the function around it, that `code` has.

    It calls a hook with the tuple of what is shown, and then with all that the function was called with.
    """
    names = list(code.co_varnames)
    positional, named = names[: code.co_argcount], names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = iter(names[code.co_argcount + code.co_kwonlyargcount :])
    more = next(rest) if code.co_flags & CO_VARARGS else None
    others = next(rest) if code.co_flags & CO_VARKEYWORDS else None
    parameters = ast.arguments(
        posonlyargs=[ast.arg(name) for name in positional[: code.co_posonlyargcount]],
        args=[ast.arg(name) for name in positional[code.co_posonlyargcount :]],
        vararg=ast.arg(more) if more is not None else None,
        kwonlyargs=[ast.arg(name) for name in named],
        kw_defaults=[None] * len(named),
        kwarg=ast.arg(others) if others is not None else None,
        defaults=[],
    )
    arguments: list[ast.expr] = [_tuple(shown), *(_name(each) for each in positional)]
    if more is not None:
        arguments.append(ast.Starred(_name(more), ast.Load()))
    keywords = [ast.keyword(each, _name(each)) for each in named]
    if others is not None:
        keywords.append(ast.keyword(None, _name(others)))
    body: list[ast.stmt] = [
        ast.Assign([ast.Name(HOOK, ast.Store())], ast.Constant(HOOK)),
        ast.If(ast.Constant(value=False), [ast.Expr(_tuple(code.co_freevars))], []),
        ast.Return(ast.Call(_name(HOOK), arguments, keywords)),
    ]
    inner = ast.FunctionDef(code.co_name, parameters, body, [], None)
    around = ast.arguments([], [ast.arg(name) for name in code.co_freevars], None, [], [], None, [])
    outer = ast.FunctionDef("around", around, [inner], [], None)
    module = compile(ast.fix_missing_locations(ast.Module([outer], [])), code.co_filename, "exec")
    made = _code_in(_code_in(module))
    constants = tuple(hook if each == HOOK else each for each in made.co_consts)
    place = {"co_name": code.co_name, "co_qualname": code.co_qualname, "co_firstlineno": code.co_firstlineno}
    return made.replace(co_consts=constants, **place)  # type: ignore[arg-type]


def _code_in(code: CodeType) -> CodeType:
    return next(each for each in code.co_consts if isinstance(each, CodeType))


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _tuple(names: tuple[str, ...]) -> ast.Tuple:
    return ast.Tuple([_name(each) for each in names], ast.Load())
