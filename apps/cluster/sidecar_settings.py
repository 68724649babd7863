"""What the process beside a controller is told when it is started."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from apps.cluster.etcd import Access, needs_tls, tls_context
from apps.tls_files import SettingsInvalid, check_private
from controller.cluster.member_settings import MemberSettings


class SidecarSettings(NamedTuple):
    """What it is made of; paths are absolute, '' for none.

    Attributes
    ----------
    member
        Who it is for, and how long who may be silent.
    endpoints
        Addresses of etcd's servers.
    """

    member: MemberSettings
    endpoints: tuple[str, ...]
    ca: str = ""
    certificate: str = ""
    key: str = ""
    password_file: str = ""


def access(settings: SidecarSettings) -> Access:
    """Return how etcd is reached; SettingsInvalid, naming the setting, where a file is no good."""
    tls = None
    if needs_tls(settings.endpoints):
        for name, file in (("ca", settings.ca), ("certificate", settings.certificate), ("key", settings.key)):
            try:
                if file:
                    Path(file).open("rb").close()
            except OSError as error:
                raise SettingsInvalid(f"cluster.{name}: {file}: {error.strerror or error}") from error
        try:
            tls = tls_context(settings.ca, settings.certificate, settings.key)
        except OSError as error:
            raise SettingsInvalid(f"cluster: the certificates for etcd cannot be used ({error})") from error
    user, password = "", ""
    if settings.password_file:
        path = Path(settings.password_file)
        check_private(path, "cluster.password_file")
        user, colon, password = path.read_text().strip().partition(":")
        if not colon or not user:
            raise SettingsInvalid(f"cluster.password_file: {path} has no line USER:PASSWORD")
    return Access(settings.endpoints, tls, user, password)
