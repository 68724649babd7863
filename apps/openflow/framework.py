"""The OpenFlow framework behind the apps: Ryu where ryu-manager runs it, os-ken elsewhere.

Nothing outside this package names either of them.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from apps.end_signals import EndSignals
from apps.openflow.ending import use_prompt_ends
from apps.openflow.listening import CannotListen, try_to_listen
from apps.openflow.outbox import use_outboxes
from apps.openflow.packet_in import use_light_packet_ins
from apps.openflow.reading import use_wide_reads
from apps.openflow.statistics import use_light_statistics

if "ryu.base.app_manager" in sys.modules:
    from ryu import cfg
    from ryu.base import app_manager
    from ryu.controller import controller, event, handler, ofp_event
    from ryu.lib import hub
    from ryu.ofproto import ofproto_common, ofproto_v1_0_parser, ofproto_v1_3_parser

    NAME = "ryu"
    BaseApp: Any = app_manager.RyuApp
else:
    from os_ken import cfg
    from os_ken.base import app_manager
    from os_ken.controller import controller, event, handler, ofp_event
    from os_ken.lib import hub
    from os_ken.ofproto import ofproto_common, ofproto_v1_0_parser, ofproto_v1_3_parser

    NAME = "os-ken"
    BaseApp = app_manager.OSKenApp

__all__ = [
    "DEAD_DISPATCHER",
    "MAIN_DISPATCHER",
    "NAME",
    "BaseApp",
    "Event",
    "EventBase",
    "configure",
    "hub",
    "listening",
    "ofp_event",
    "run_apps",
    "run_aside",
    "running_apps",
    "set_ev_cls",
    "watch_connections",
]

use_light_packet_ins(ofproto_v1_3_parser)
use_light_statistics(ofproto_v1_0_parser, ofproto_v1_0_parser.OFPStatsReply)
use_light_statistics(ofproto_v1_3_parser, ofproto_v1_3_parser.OFPMultipartReply)
use_wide_reads(controller.Datapath)
use_outboxes(controller.Datapath, hub, handler.DEAD_DISPATCHER)
use_prompt_ends(controller.Datapath, handler.DEAD_DISPATCHER)

MAIN_DISPATCHER = handler.MAIN_DISPATCHER
DEAD_DISPATCHER = handler.DEAD_DISPATCHER
EventBase: Any = event.EventBase
set_ev_cls = handler.set_ev_cls


OPENFLOW_SERVER = "ofp_event"
"""The name of the framework's own app, which listens for switches."""

SIGNALS_INTERVAL_S = 0.1
END_S = 8.0
"""How long apps may take to end; the dashboard's server alone may need 3 s."""

ECHO_INTERVAL_S = 1.0
UNANSWERED_ECHOES = 15

LOGGER = logging.getLogger("vsrt")

_watched: list[float] = []

_NATIVE = getattr(hub, "HUB_TYPE", "eventlet") == "native"

Event: Any = threading.Event if _NATIVE else hub.Event
"""An event to wait for with a timeout; that of os-ken's hub of native threads never times out."""


if _NATIVE:

    def run_aside(work: Callable[[], None]) -> None:
        """Do work that waits for a disk, on a thread that `hub.spawn` made; no loop waits with it."""
        work()

else:
    from eventlet import tpool

    def run_aside(work: Callable[[], None]) -> None:
        """Do work that waits for a disk on a thread of the system's, where all loops share one; they go on."""
        tpool.execute(work)


def configure(listen_host: str, listen_port: int) -> None:
    """Say where to listen for switches."""
    arguments = ["--ofp-tcp-listen-port", str(listen_port)]
    if listen_host:
        arguments += ["--ofp-listen-host", listen_host]
    cfg.CONF(args=arguments, project="vsrt", default_config_files=[])


def listening() -> tuple[str, int, bool]:
    """Return address (empty for all) and port on which switches are listened for, and whether by TLS."""
    conf = cfg.CONF
    encrypted = conf.ctl_privkey is not None and conf.ctl_cert is not None
    given = (conf.ofp_tcp_listen_port, conf.ofp_ssl_listen_port)
    port = given[encrypted] if any(given) else ofproto_common.OFP_TCP_PORT
    return conf.ofp_listen_host, port or 0, encrypted


def _require_listening() -> None:
    """End the process, and say why, where the framework would run on without a port for switches."""
    host, port, _ = listening()
    if port:
        try:
            try_to_listen(host, port)
        except CannotListen as error:
            raise SystemExit(f"vsrt: {error}") from error


def watch_connections(echo_interval_s: float = ECHO_INTERVAL_S, unanswered: int = UNANSWERED_ECHOES) -> None:
    """Make sure that switches can connect, and have those that leave echo requests unanswered dropped.

    The operator's own word about echo requests is left as it is; of several apps the one that asks most often counts.
    SystemExit, saying why, where the port for switches cannot be listened on.
    """
    _require_listening()
    conf = cfg.CONF
    if not conf.maximum_unreplied_echo_requests or (_watched and echo_interval_s < min(_watched)):
        conf.set_override("echo_request_interval", echo_interval_s)
        conf.set_override("maximum_unreplied_echo_requests", unanswered)
        _watched.append(echo_interval_s)


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
    overdue = threading.Timer(END_S, _end_process, [1, f"the apps did not end within {END_S:g} s"])
    overdue.daemon = True
    overdue.start()
    for name, app in manager.applications.items():
        if name != OPENFLOW_SERVER:
            try:
                app.stop()
            except Exception:
                status = 1
                LOGGER.exception("%s did not end as it should", name)
    _end_process(status)


def _end_process(status: int, reason: str | None = None) -> NoReturn:
    """End the process: the server's threads, which wait for switches for ever, would not let it end by itself."""
    if reason is not None:
        LOGGER.error("%s: the process ends without them", reason)
    logging.shutdown()
    sys.stderr.flush()
    os._exit(status)
