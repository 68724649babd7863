"""The dashboard app: `ryu-manager apps/dashboard/app.py`, or `vsrt run dashboard`, beside the apps that it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from apps.alarm_reports import AlarmReports
from apps.dashboard.child import Child
from apps.dashboard.settings import ServerSettings, listen, tls_context
from apps.dashboard.tokens import read_tokens
from apps.dashboard.watchdog import Watchdog
from apps.openflow import start_line
from apps.openflow.app import TICK_S
from apps.openflow.bus import AlarmReported
from apps.openflow.framework import BaseApp, hub
from apps.policy_file import PolicyReading, follow_policy
from apps.state_dir import own_state_dir, socket_path
from apps.tls_files import SettingsInvalid
from controller.config.settings import Dashboard
from controller.wire.addresses import format_ip

DASHBOARD_FAILED = "dashboard-failed"


class DashboardApp(BaseApp):
    """Keeps the server's process running, by the policy's section `dashboard`; it sees no OpenFlow message itself."""

    _EVENTS: ClassVar[list[type]] = [AlarmReported]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.policy_file = follow_policy("dashboard")
        self.settings = server_settings(self.policy_file.reading.policy.dashboard)
        self._refused: ServerSettings | None = None
        self.child = Child(self.logger)
        self._watchdog = Watchdog(self.child)
        self._reports = AlarmReports("dashboard", lambda report: self.send_event_to_observers(AlarmReported(report)))
        try:
            check(self.settings)
        except SettingsInvalid as error:
            raise SystemExit(f"vsrt: dashboard.{error}") from error
        start_line.add(f"page: {page_address(self.settings)}")

    def start(self) -> Any:
        """Start the server, and watch over it."""
        start_line.announce()
        thread = super().start()
        self.child.start(self.settings)
        self.policy_file.start()
        self.threads.append(hub.spawn(self._watch))
        return thread

    def stop(self) -> None:
        """End the server."""
        self.is_active = False
        self.child.stop()
        super().stop()
        self.policy_file.leave()

    def _watch(self) -> None:
        while self.is_active:
            hub.sleep(TICK_S)
            self.policy_file.take(self._policy_was_read)
            if self.is_active:
                self.child.watch()
                self._watchdog.look()
                self._reports.look_at(DASHBOARD_FAILED, "dashboard", self._watchdog.fault)

    def _policy_was_read(self, reading: PolicyReading) -> None:
        if not reading.errors:
            self._change(server_settings(reading.policy.dashboard))

    def _change(self, settings: ServerSettings) -> None:
        """Go on with other settings; such as cannot be used are left aside."""
        if settings == self.settings:
            return
        try:
            read_tokens(settings)
            tls_context(settings)
        except SettingsInvalid as error:
            if settings != self._refused:
                self.logger.error(
                    "The running dashboard server stays, for its new settings are faulty: dashboard.%s", error
                )
            self._refused = settings
            return
        self.settings, self._refused = settings, None
        self.child.stop()
        self.child.start(settings)


def server_settings(dashboard: Dashboard) -> ServerSettings:
    """Return what the server is told, of the policy's section."""

    def absolute(path: str) -> str:
        return str(Path(path).absolute()) if path else ""

    return ServerSettings(
        socket=str(socket_path().absolute()),
        host=format_ip(dashboard.host),
        port=dashboard.port,
        token_file=absolute(dashboard.token_file),
        read_token_file=absolute(dashboard.read_token_file),
        tokens_over_plain_http=dashboard.tokens_over_plain_http,
        certificate=absolute(dashboard.certificate),
        key=absolute(dashboard.key),
        names=dashboard.names,
        workflows=absolute(dashboard.workflows),
        workflow_runs=str((own_state_dir() / "workflow-runs").absolute()),
        history=str((own_state_dir() / "history").absolute()),
    )


def page_address(settings: ServerSettings) -> str:
    """Return where the page is asked for; which port is taken where any will do, its server says."""
    scheme = "https" if settings.certificate else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{scheme}://{host}:{settings.port}/" if settings.port else f"{scheme}://{host}/, on any free port"


def check(settings: ServerSettings) -> None:
    """Raise SettingsInvalid where the server could not start."""
    read_tokens(settings)
    tls_context(settings)
    listen(settings).close()
