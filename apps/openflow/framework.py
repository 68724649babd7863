"""The OpenFlow framework behind the apps: Ryu where ryu-manager runs it, os-ken elsewhere.

Nothing outside this package names either of them.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from apps.end_signals import EndSignals
from apps.environment import environment_path
from apps.openflow.collector import without_collections
from apps.openflow.connection import Connection
from apps.openflow.datapaths import Datapaths
from apps.openflow.errors import use_harmless_errors
from apps.openflow.listening import CannotListen, try_to_listen
from apps.openflow.reactor import Reactor
from apps.openflow.southbound import Southbound
from apps.openflow.statistics import use_light_statistics
from apps.openflow.switch_listener import SwitchListener
from apps.system import system_threading
from apps.tls_files import ServerTls, SettingsInvalid, TlsFiles

if "ryu.base.app_manager" in sys.modules:
    from ryu import cfg
    from ryu.base import app_manager
    from ryu.controller import controller, event, handler, ofp_event, ofp_handler
    from ryu.lib import hub
    from ryu.ofproto import ofproto_common, ofproto_parser, ofproto_v1_0_parser, ofproto_v1_3_parser

    NAME = "ryu"
    _FrameworkApp: Any = app_manager.RyuApp
else:
    from os_ken import cfg
    from os_ken.base import app_manager
    from os_ken.controller import controller, event, handler, ofp_event, ofp_handler
    from os_ken.lib import hub
    from os_ken.ofproto import ofproto_common, ofproto_parser, ofproto_v1_0_parser, ofproto_v1_3_parser

    NAME = "os-ken"
    _FrameworkApp = app_manager.OSKenApp

__all__ = [
    "DATAPATHS",
    "DEAD_DISPATCHER",
    "MAIN_DISPATCHER",
    "NAME",
    "SOUTHBOUND",
    "SWITCHES",
    "BaseApp",
    "Event",
    "EventBase",
    "apps_of_process",
    "configure",
    "hub",
    "listening",
    "new_reactor",
    "ofp_event",
    "run_apps",
    "run_aside",
    "running_apps",
    "set_ev_cls",
    "switch_tls",
    "watch_connections",
]

use_light_statistics(ofproto_v1_0_parser, ofproto_v1_0_parser.OFPStatsReply)
use_light_statistics(ofproto_v1_3_parser, ofproto_v1_3_parser.OFPMultipartReply)

MAIN_DISPATCHER = handler.MAIN_DISPATCHER
DEAD_DISPATCHER = handler.DEAD_DISPATCHER
EventBase: Any = event.EventBase
set_ev_cls = handler.set_ev_cls


OPENFLOW_SERVER = "ofp_event"
"""The name of the framework's own app, which listens for switches."""

SIGNALS_INTERVAL_S = 0.1
END_S = 8.0
"""How long apps may take to end; the dashboard's server alone may need 3 s."""

ECHO_INTERVAL_S = 4.0
UNANSWERED_ECHOES = 3
"""Switches that are silent for 16 s are given up. Discovery finds out sooner what does not forward."""

LOGGER = logging.getLogger("vsrt")

OTHERS_INTERVAL_S = 0.002
"""How long a loop that is busy keeps the only thread from others, under eventlet."""

SWITCH_INTERVAL_S = 0.0002
"""How long a busy thread keeps the interpreter from others that ask for it, where threads are the system's. Each loop
is one: with the 5 ms that Python begins with, a turn of 0.2 ms took up to 80 ms where two other loops were busy."""

_watched: list[float] = []

_NATIVE = getattr(hub, "HUB_TYPE", "eventlet") == "native"

Event: Any = threading.Event if _NATIVE else hub.Event


class BaseApp(_FrameworkApp):  # type: ignore[misc]
    """An app of the framework's; logs, recordings and documents call it by its class, without ``App`` behind."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.name = type(self).__name__.removesuffix("App")
        self.logger = logging.getLogger(self.name)


"""An event to wait for with a timeout; that of os-ken's hub of native threads never times out."""


if _NATIVE:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    _current: Callable[[], Any] = threading.get_ident
    _new_epoll: Callable[[], Any] = select.epoll
    _new_socket: Callable[[int, int], Any] = socket.socket

    def _spawn(work: Callable[[], None]) -> None:
        threading.Thread(target=work, daemon=True).start()

    def _poll(epoll: Any, timeout_s: float | None, at_most: int) -> list[tuple[int, int]]:
        ready: list[tuple[int, int]] = epoll.poll(timeout_s, at_most)
        return ready

    def run_aside(work: Callable[[], None]) -> None:
        """Do work that waits for a disk or a server, on a thread that `hub.spawn` made; no loop waits with it."""
        work()

else:
    import eventlet
    from eventlet import hubs, patcher, tpool

    _current = eventlet.getcurrent
    _new_epoll, _spawn = patcher.original("select").epoll, hub.spawn
    _new_socket = patcher.original("socket").socket
    _let_others_s = [0.0]

    def _poll(epoll: Any, timeout_s: float | None, at_most: int) -> list[tuple[int, int]]:
        """Wait as the framework's threads do, of which one runs until it waits: the others get their turn."""
        ready: list[tuple[int, int]] = epoll.poll(0, at_most)
        if ready or timeout_s == 0:
            if time.monotonic() - _let_others_s[0] > OTHERS_INTERVAL_S:
                eventlet.sleep(0)
                _let_others_s[0] = time.monotonic()
            return ready
        with suppress(eventlet.Timeout):
            hubs.trampoline(epoll.fileno(), read=True, timeout=timeout_s)
        _let_others_s[0] = time.monotonic()
        return list(epoll.poll(0, at_most))

    def run_aside(work: Callable[[], None]) -> None:
        """Do work that waits for a disk or a server on a thread of the system's; all loops, in one, go on."""
        tpool.execute(work)


def new_reactor(name: str) -> Reactor:
    """Return a loop of its own, which has not begun."""
    return Reactor(name, _new_epoll(), _poll, _spawn, _current)


def _observed(name: str) -> bool:
    """Tell whether an app of somebody else's observes an event of OpenFlow."""
    server = app_manager.SERVICE_BRICKS.get(OPENFLOW_SERVER)
    return server is not None and bool(server.observers.get(_event_class(name)))


@cache
def _event_class(name: str) -> Any:
    return getattr(ofp_event, name, None)


SWITCHES = new_reactor("switches")
"""The loop on which all connections of switches are, and the apps that program them."""

SOUTHBOUND = Southbound(SWITCHES, _observed)

DATAPATHS = Datapaths(SWITCHES, SOUTHBOUND)
"""What the apps that program switches share of each."""


def _give(datapath: Any, version: int, kind: int, length: int, xid: int, data: bytes) -> None:
    """Have the framework parse a message, and hand it to those who observe it before the next one is read."""
    message = ofproto_parser.msg(datapath, version, kind, length, xid, data)
    server = datapath.ofp_brick
    if not message or server is None:
        return
    event = ofp_event.ofp_msg_to_ev(message)
    server.send_event_to_observers(event, datapath.state)
    for handle in list(server.get_handlers(event)):
        if datapath.state in handle.callers[event.__class__].dispatchers:
            handle(event)
    SWITCHES.drain()


def _use_connections(datapath_class: Any) -> None:
    """Have the framework's class of connections leave reading, sending and echo requests to `Connection`."""
    make, set_state = datapath_class.__init__, datapath_class.set_state

    def make_connection(self: Any, stream: Any, address: Any) -> None:
        self.connection = None
        make(self, stream, address)
        self.ended = Event()
        timeout_s = cfg.CONF.socket_timeout
        taken = SOUTHBOUND.take, SOUTHBOUND.take_packets, SOUTHBOUND.hand_over
        self.connection = Connection(self, SWITCHES, *taken, _give, ended, SOUTHBOUND.refused, timeout_s)

    def serve(self: Any) -> None:
        self.send_msg(self.ofproto_parser.OFPHello(self))
        SWITCHES.start()
        SWITCHES.call(SOUTHBOUND.connected, self.connection)
        SWITCHES.call(self.connection.begin)
        self.ended.wait()
        self.is_active = False

    def send(self: Any, message: Any, close_socket: bool = False) -> bool:
        """Leave a message to be sent; never waits. False where it will not be, since the connection ends."""
        return bool(self.connection.send(bytes(message), close_socket))

    def enter_state(self: Any, state: str) -> None:
        if self.connection is not None:
            self.connection.is_up = state == handler.MAIN_DISPATCHER
        set_state(self, state)

    def close(self: Any) -> None:
        SWITCHES.call(self.connection.end)

    def ended(connection: Connection) -> None:
        datapath = connection.datapath
        SOUTHBOUND.ended(connection)
        datapath.set_state(handler.DEAD_DISPATCHER)
        datapath.ended.set()

    datapath_class.__init__ = make_connection
    datapath_class.serve = serve
    datapath_class.send = send
    datapath_class.set_state = enter_state
    datapath_class.close = close


def _use_listeners(server_class: Any) -> None:
    """Have the framework's server leave listening to `SwitchListener`."""

    def serve(_server: Any, tcp_port: int | None, tls_port: int | None) -> None:
        tls = switch_tls()
        by_tls = [(tls_port, tls)] if tls is not None else []
        plain = [(tcp_port, None)] if tls is None or cfg.CONF.ofp_tcp_listen_port else []
        for port, by in (*by_tls, *plain):
            if port:
                listener = SwitchListener(SWITCHES, _new_socket, cfg.CONF.ofp_listen_host, port, by, connected)
                SWITCHES.call(SOUTHBOUND.when_open, listener.begin)
        SWITCHES.start()
        Event().wait()

    def connected(stream: Any, address: Any) -> None:
        hub.spawn(controller.datapath_connection_factory, stream, address)

    server_class.server_loop = serve


_use_connections(controller.Datapath)
_use_listeners(controller.OpenFlowController)
use_harmless_errors(ofp_handler.OFPHandler)


def configure(listen_host: str, listen_port: int | None, tls: TlsFiles | None = None, tls_port: int = 0) -> None:
    """Say where to listen for switches: plain on `listen_port`, where there is one, by TLS on `tls_port`."""
    arguments = [] if listen_port is None else ["--ofp-tcp-listen-port", str(listen_port)]
    if listen_host:
        arguments += ["--ofp-listen-host", listen_host]
    if tls is not None:
        arguments += ["--ofp-ssl-listen-port", str(tls_port)]
        arguments += ["--ctl-cert", str(tls.certificate), "--ctl-privkey", str(tls.key)]
        if tls.ca is not None:
            arguments += ["--ca-certs", str(tls.ca)]
        if tls.crl is not None:
            os.environ["VSRT_TLS_CRL"] = str(tls.crl)
        if tls.names is not None:
            os.environ["VSRT_TLS_NAMES"] = str(tls.names)
    cfg.CONF(args=arguments, project="vsrt", default_config_files=[])


@cache
def switch_tls() -> ServerTls | None:
    """Return what switches are spoken with by TLS, None without it; SettingsInvalid where that is no good."""
    conf = cfg.CONF
    if conf.ctl_cert is None and conf.ctl_privkey is None:
        if conf.ofp_ssl_listen_port or conf.ca_certs is not None:
            raise SettingsInvalid("TLS to switches takes --ctl-cert and --ctl-privkey")
        return None
    if conf.ctl_cert is None or conf.ctl_privkey is None:
        raise SettingsInvalid("--ctl-cert and --ctl-privkey: only one of them is given")
    ca = None if conf.ca_certs is None else Path(conf.ca_certs)
    crl, names = (
        None if path is None else Path(path)
        for path in (environment_path("VSRT_TLS_CRL"), environment_path("VSRT_TLS_NAMES"))
    )
    return ServerTls(TlsFiles(Path(conf.ctl_cert), Path(conf.ctl_privkey), ca, crl, names), conf.ciphers)


def listening() -> list[tuple[str, int, bool]]:
    """Return addresses (empty for all) and ports on which switches are listened for, and whether by TLS."""
    conf = cfg.CONF
    encrypted = conf.ctl_privkey is not None and conf.ctl_cert is not None
    tcp_port, tls_port = conf.ofp_tcp_listen_port, conf.ofp_ssl_listen_port
    if not tcp_port and not tls_port:
        tcp_port, tls_port = (0, ofproto_common.OFP_SSL_PORT) if encrypted else (ofproto_common.OFP_TCP_PORT, 0)
    ports = [(tls_port if encrypted else 0, True), (tcp_port, False)]
    return [(conf.ofp_listen_host, port, by_tls) for port, by_tls in ports if port]


def _require_listening() -> None:
    """End the process, and say why, where the framework would run on without a port for switches."""
    try:
        switch_tls()
        for host, port, _ in listening():
            try_to_listen(host, port)
    except (CannotListen, SettingsInvalid) as error:
        raise SystemExit(f"vsrt: {error}") from error


def watch_connections(echo_interval_s: float = ECHO_INTERVAL_S, unanswered: int = UNANSWERED_ECHOES) -> None:
    """Make sure that switches can connect, and have those that leave echo requests unanswered dropped.

    The operator's own word about echo requests is left as it is; of several apps the one that asks most often counts.
    SystemExit, saying why, where switches cannot be listened for as the settings say. Under ryu-manager SIGINT
    and SIGTERM end the apps in order from here on, as they do without it.
    """
    _require_listening()
    if NAME == "ryu" and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        _end_by_signals()
    conf = cfg.CONF
    if not conf.maximum_unreplied_echo_requests or (_watched and echo_interval_s < min(_watched)):
        conf.set_override("echo_request_interval", echo_interval_s)
        conf.set_override("maximum_unreplied_echo_requests", unanswered)
        _watched.append(echo_interval_s)
    SOUTHBOUND.ask_silent(float(conf.echo_request_interval), conf.maximum_unreplied_echo_requests)


def apps_of_process() -> list[Any]:
    """Return the apps of this process that the framework has made, its own too."""
    return list(app_manager.AppManager.get_instance().applications.values())


def running_apps() -> list[str]:
    """Return the names of the apps of this process, in lower case."""
    applications = app_manager.AppManager.get_instance().applications
    return sorted(name.lower() for name in list(applications) if name != OPENFLOW_SERVER)


def run_apps(modules: list[str], signals: EndSignals) -> NoReturn:
    """Load, start and serve the apps in `modules` until a signal asks for the end, then end the process.

    Its exit status is 0 where the apps ended as asked, 1 where one refused to start (it says why on standard error),
    failed, or did not end within `END_S`.
    """
    manager = app_manager.AppManager.get_instance()
    status = 0
    try:
        with without_collections():
            manager.load_apps(modules)
        contexts = manager.create_contexts()
        manager.instantiate_apps(**contexts)
        while not signals.asked:
            hub.sleep(SIGNALS_INTERVAL_S)
    except SystemExit as refusal:
        status = 1
        print(refusal.code, file=sys.stderr)
    except Exception:
        status = 1
        LOGGER.exception("the controller cannot go on")
    _begin_to_end()
    for name, app in manager.applications.items():
        if name != OPENFLOW_SERVER:
            try:
                app.stop()
            except Exception:
                status = 1
                LOGGER.exception("%s did not end as it should", name)
    _end_process(status)


def _end_by_signals() -> None:
    """Have ryu-manager, which waits on this thread by then, end the apps and the process when a signal has come.

    Raised by the signal itself KeyboardInterrupt would end whatever thread runs then, and nothing else.
    """
    from eventlet import kill

    waiting = _current()

    def look() -> None:
        with EndSignals() as signals:
            while not signals.asked:
                hub.sleep(SIGNALS_INTERVAL_S)
        _begin_to_end()
        kill(waiting, KeyboardInterrupt)

    hub.spawn(look)


def _begin_to_end() -> None:
    """End the process after `END_S` where the apps have not ended by then."""
    overdue = system_threading.Timer(END_S, _end_process, [1, f"the apps did not end within {END_S:g} s"])
    overdue.daemon = True
    overdue.start()


def _end_process(status: int, reason: str | None = None) -> NoReturn:
    """End the process: the server's threads, which wait for switches for ever, would not let it end by itself."""
    if reason is not None:
        LOGGER.error("%s: the process ends without them", reason)
    logging.shutdown()
    sys.stderr.flush()
    os._exit(status)
