# Sourced by script/test and script/demo: installs what is missing on Debian or Ubuntu, and nothing twice.
# Sets ROOT (the repository), VENV (its virtual environment), AS_ROOT (a prefix that gives root's rights) and
# HAS_ROOT (whether they are to be had).

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
VENV="$ROOT/.venv"
AS_ROOT=() HAS_ROOT=true
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
if [ "$(id -u)" -ne 0 ]; then
    if [ -x "$(command -v sudo)" ]; then
        AS_ROOT=(sudo --preserve-env=CI,TMPDIR,VSRT_RUN,VSRT_REQUIRE_EMULATION)
    else
        HAS_ROOT=false
    fi
fi

say() { printf '%s\n' "$*" >&2; }

# Prints the first Python of at least 3.11, the distribution's own before others.
find_python() {
    local candidate
    for candidate in /usr/bin/python3.11 /usr/bin/python3 python3.11 python3; do
        if command -v "$candidate" >/dev/null &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

install_packages() {
    local tool packages=() pairs=(
        ovs-vswitchd:openvswitch-switch mnexec:mininet iperf:iperf ethtool:ethtool tcpdump:tcpdump
        ip:iproute2 tc:iproute2 ping:iputils-ping sysctl:procps ifconfig:net-tools setpriv:util-linux
        promtool:prometheus chromium:chromium openssl:openssl sadf:sysstat zsh:zsh fish:fish mandoc:mandoc
        systemd-analyze:systemd
    )
    "$HAS_ROOT" || pairs=()
    for tool in "${pairs[@]}"; do
        command -v "${tool%%:*}" >/dev/null || packages+=("${tool#*:}")
    done
    if [ ! -x "$VENV/bin/python" ]; then
        local python
        if ! python=$(find_python) || ! "$python" -c 'import ensurepip' 2>/dev/null; then
            packages+=(python3 python3-venv)
        fi
    fi
    [ "${#packages[@]}" -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null || ! "$HAS_ROOT"; then
        say "these Debian packages are missing, and installing them takes apt-get and root or sudo: ${packages[*]}"
        return 1
    fi
    say "installing: ${packages[*]}"
    "${AS_ROOT[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2 </dev/null
    "${AS_ROOT[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${packages[@]}" >&2 </dev/null
}

# The environment is made anew only where the lock, the constraints or the project's metadata changed.
install_environment() {
    local stamp="$VENV/.installed" wanted python
    wanted=$(cd "$ROOT" && cat requirements.lock constraints.txt pyproject.toml | sha256sum)
    if [ -x "$VENV/bin/pytest" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
        return 0
    fi
    if [ ! -x "$VENV/bin/python" ]; then
        python=$(find_python) || {
            say "Python 3.11 or later is needed, and this distribution has none"
            return 1
        }
        say "making $VENV with $python"
        "$python" -m venv "$VENV"
    fi
    say "installing the locked Python packages"
    (
        cd "$ROOT"
        # Also for the isolated builds: c65ryu (Ryu 5.0) builds only with the setuptools that constraints.txt allows.
        export PIP_CONSTRAINT="$ROOT/constraints.txt" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
        "$VENV/bin/python" -m pip install -q --no-deps -r requirements.lock
        "$VENV/bin/python" -m pip install -q --no-deps -e .
    ) >&2 </dev/null
    printf '%s\n' "$wanted" >"$stamp"
}

# Open vSwitch's userspace datapath makes tap devices.
prepare_devices() {
    [ ! -e /dev/net/tun ] && "$HAS_ROOT" || return 0
    "${AS_ROOT[@]}" mkdir -p /dev/net
    "${AS_ROOT[@]}" mknod -m 666 /dev/net/tun c 10 200
}

# Prints the ids of the processes that carry this run's mark in their environment, but for this shell's own.
marked_processes() {
    local mark="VSRT_RUN=$VSRT_RUN" environment pid
    for environment in /proc/[0-9]*/environ; do
        pid=${environment#/proc/}
        pid=${pid%/environ}
        [ "$pid" != "$$" ] && [ "$pid" != "$BASHPID" ] || continue
        if "${AS_ROOT[@]}" grep -qz -- "^$mark\$" "$environment" 2>/dev/null; then
            printf '%s\n' "$pid"
        fi
    done
}

# Ends what a run has left behind, by process id; nothing where all is well. Prints what it ended.
end_leftovers() {
    local pid left=1
    for pid in $(marked_processes); do
        [ -d "/proc/$pid" ] || continue
        say "left behind: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
        "${AS_ROOT[@]}" kill -KILL "$pid" 2>/dev/null || true
        left=0
    done
    return "$left"
}

set_up() {
    install_packages
    install_environment
    prepare_devices
    # Marks all processes of this run, so that they can be told from everybody else's.
    VSRT_RUN="$$-$(date +%s%N)"
    TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/vsrt.XXXXXX")
    export VSRT_RUN TMPDIR
    CHILD=
    trap finish EXIT
    trap 'INTERRUPTED=130' INT
    trap 'INTERRUPTED=143; [ -z "$CHILD" ] || "${AS_ROOT[@]}" kill -INT "$CHILD"' TERM
}

finish() {
    local status=$?
    trap - EXIT
    trap '' INT TERM
    tear_down || status=$((status == 0 ? 1 : status))
    exit "${INTERRUPTED:-$status}"
}

# Runs a command to its end. Ctrl-C reaches it by the terminal; a termination of the script is passed on as one.
attend() {
    local status=0
    env --default-signal=INT "$@" </dev/null &
    CHILD=$!
    while [ -d "/proc/$CHILD" ]; do
        status=0
        wait "$CHILD" || status=$?
    done
    CHILD=
    return "$status"
}

# Ends and removes what set_up and the run made; fails, and says why, where a run left something behind.
tear_down() {
    local status=0 path
    if end_leftovers; then
        status=1
    fi
    for path in "$TMPDIR"/vsrt-*; do
        [ -e "$path" ] || continue
        say "left behind: $path"
        status=1
    done
    "${AS_ROOT[@]}" rm -rf "$TMPDIR"
    return "$status"
}
