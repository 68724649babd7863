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
        promtool:prometheus chromium-headless-shell:chromium-headless-shell openssl:openssl sadf:sysstat zsh:zsh fish:fish mandoc:mandoc
        systemd-analyze:systemd gcc:gcc python3-config:python3-dev vtysh:frr igmpproxy:igmpproxy
        etcd:etcd-server nft:nftables strace:strace fusermount3:fuse3 qemu-system-x86_64:qemu-system-x86
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
    # At runlevel 1 packages start no services: routers begin in the networks of tests, and nowhere else.
    "${AS_ROOT[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install -y -q --no-install-recommends "${packages[@]}" >&2 </dev/null
}

# One pip keeps to one processor: the lock is cut into parts, of which as many as there are processors go in at a time.
# What comes as source is built apart from the environment, which is not whole yet.
install_locked() {
    local parts="$VENV/.parts"
    rm -rf "$parts"
    mkdir "$parts"
    awk -v parts="$(($(nproc) * 3))" -v folder="$parts" \
        '/^[^ #]/ { part = packages++ % parts } { print > (folder "/" part) }' requirements.lock
    printf '%s\0' "$parts"/* |
        xargs -0 -n 1 -P "$(nproc)" "$VENV/bin/python" -m pip install -q --no-deps --no-compile --use-pep517 -r
    rm -rf "$parts"
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
        # Of all these modules a quarter is ever imported, and translated then.
        install_locked
        "$VENV/bin/python" -m pip install -q --no-deps --no-compile -e .
    ) >&2 </dev/null
    printf '%s\n' "$wanted" >"$stamp"
}

# Unpacks the distribution's kernel for the guests of tests (apps/emulation/guest_image.py), with the modules they need;
# this machine boots nothing else than before. Debian has modules and kernel in one package, Ubuntu in two.
fetch_guest_kernel() (
    kernel="$ROOT/build/guest-kernel"
    if [ -d "$kernel" ] || [ "$(uname -m)" != x86_64 ] || ! "$HAS_ROOT" || ! command -v apt-get >/dev/null; then return 0; fi
    mkdir -p "$ROOT/build"
    folder=$(mktemp -d "$ROOT/build/kernel.XXXXXX")
    trap 'rm -rf "$folder"' EXIT
    mapfile -t packages < <(guest_kernel_packages)
    if [ "${#packages[@]}" = 0 ]; then
        "${AS_ROOT[@]}" apt-get update -q >&2 </dev/null
        mapfile -t packages < <(guest_kernel_packages)
    fi
    if [ "${#packages[@]}" = 0 ]; then
        say "apt knows no kernel for guests: neither linux-image-cloud-amd64 nor linux-image-virtual"
        return 1
    fi
    say "unpacking a kernel for guests: ${packages[*]}"
    (cd "$folder" && apt-get download -q "${packages[@]}" >/dev/null </dev/null)
    mkdir "$folder/unpacked"
    for archive in "$folder"/*.deb; do
        dpkg-deb --fsys-tarfile "$archive" | tar -x -C "$folder/unpacked" --no-same-owner --wildcards '*/boot/vmlinuz-*' \
            '*/kernel/net/*' '*/kernel/drivers/net/*' '*/kernel/drivers/virtio/*' '*/kernel/drivers/char/*' 2>/dev/null || true
    done
    if [ -z "$(find "$folder/unpacked" -name 'vmlinuz-*')" ]; then
        say "there is no kernel in them"
        return 1
    fi
    mv "$folder/unpacked" "$kernel"
)

# Prints the packages of the smallest kernel of the distribution's that has devices for VLANs, bonds and bridges.
guest_kernel_packages() {
    local image
    image=$(apt-cache depends linux-image-cloud-amd64 linux-image-virtual 2>/dev/null |
        awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ { print $2; exit }')
    [ -n "$image" ] || return 0
    printf '%s\n' "$image"
    apt-cache depends "$image" | awk '$1 == "Depends:" && $2 ~ /^linux-modules-[0-9]/ { print $2 }'
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

# Installs what is missing; the functions that are named run beside the longest part of it.
set_up() {
    local beside task
    install_packages
    for task in "$@"; do
        "$task" &
        beside="${beside:-} $!"
    done
    install_environment
    for task in ${beside:-}; do
        wait "$task"
    done
    prepare_devices
    # Marks all processes of this run, so that they can be told from everybody else's.
    VSRT_RUN="$$-$(date +%s%N)"
    TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/vsrt.XXXXXX")
    export VSRT_RUN TMPDIR
    CHILD='' BESIDE=''
    trap finish EXIT
    trap 'INTERRUPTED=130; give_up_beside' INT
    trap 'INTERRUPTED=143; [ -z "$CHILD" ] || "${AS_ROOT[@]}" kill -INT "$CHILD"; give_up_beside' TERM
}

finish() {
    local status=$?
    # A subshell that ends before it has its own traps ends nothing of the run.
    [ "$BASHPID" = "$$" ] || exit "$status"
    trap - EXIT
    trap '' INT TERM
    give_up_beside
    end_beside >/dev/null || true
    tear_down || status=$((status == 0 ? 1 : status))
    exit "${INTERRUPTED:-$status}"
}

# Returns the status of a child, also of one that has ended; signals that this shell traps end the wait, not the child.
await() {
    local status
    while true; do
        status=0
        wait "$1" || status=$?
        [ -d "/proc/$1" ] || return "$status"
    done
}

# Runs a command to its end. Ctrl-C reaches it by the terminal; a termination of the script is passed on as one.
attend() {
    local status=0
    env --default-signal=INT "$@" </dev/null &
    CHILD=$!
    await "$CHILD" || status=$?
    CHILD=
    return "$status"
}

# Begins a function beside what follows, with the niceness of tests that give way to live ones; end_beside waits for it and
# prints what it said.
begin_beside() {
    (
        trap - EXIT INT
        trap '[ -z "$CHILD" ] || { kill -INT "$CHILD"; wait "$CHILD"; }; exit 143' TERM
        renice -n 10 -p "$BASHPID" >/dev/null
        set -e
        "$@"
    ) >"$TMPDIR/beside.log" 2>&1 </dev/null &
    BESIDE=$!
}

give_up_beside() {
    [ -z "$BESIDE" ] || kill -TERM "$BESIDE" 2>/dev/null || true
}

# Returns the status of what begin_beside began, 0 where it began nothing; what it printed is shown where it failed, so
# that pytest's summary of the whole suite is the last line of a run that passes.
end_beside() {
    local status=0
    [ -n "$BESIDE" ] || return 0
    await "$BESIDE" || status=$?
    BESIDE=
    [ "$status" = 0 ] || cat "$TMPDIR/beside.log"
    return "$status"
}

# What a whole run does beside its checks and tests. Pytest translates test modules as they are first imported and keeps
# that: done here once, it is not done by each of its processes at the same time.
test_beside() {
    attend "$VENV/bin/python" -m pytest -q -p no:cacheprovider --collect-only >/dev/null || true
    test_compiled
}

# tcc spares the tests most of gcc's time; where it is not to be had gcc does without.
install_tcc() {
    if command -v tcc >/dev/null || ! "$HAS_ROOT" || ! command -v apt-get >/dev/null; then return 0; fi
    "${AS_ROOT[@]}" apt-get update -q >/dev/null </dev/null || true
    "${AS_ROOT[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends tcc >/dev/null </dev/null || say "no tcc: gcc compiles the cores"
}

# Builds the compiled cores without optimisation, and runs tests of those that all others need over them, and of scripts
# that look at a controller which runs them. Properties have a fifth of their examples: what holds of the sources is tried
# with all of them, and that machine code does the same shows in fewer. VSRT_COMPILED_EXAMPLES_DIVISOR=1 tries all. Where
# tcc is, it makes the machine code, of what gcc has no complaint about.
test_compiled() {
    local source="$TMPDIR/source" built="$TMPDIR/compiled" packages=(
        admission membership rules snapshot unicast datapath packaging/test_compiled_modules.py probes
        openflow/test_functions_of_process.py cli/test_probe_guide.py
    )
    if ! command -v gcc >/dev/null; then
        say "no C compiler: leaving out the compiled cores"
        return 0
    fi
    mkdir "$source"
    # The sources are copied, for a build writes beside them.
    (cd "$ROOT" && cp -r apps controller topology policies dashboards scenarios packaging pyproject.toml setup.py \
        README.md LICENSE MANIFEST.in CHANGELOG.md "$source")
    export VSRT_COMPILE=1
    install_tcc
    local compiler=gcc
    if command -v tcc >/dev/null; then compiler="$ROOT/script/lib/cc"; fi
    CC="$compiler" LDSHARED="$compiler -shared" VSRT_COMPILE_LEVEL=0 PIP_DISABLE_PIP_VERSION_CHECK=1 \
        attend "$VENV/bin/python" -m pip install -q --no-build-isolation --no-deps --no-compile \
        --target "$built" "$source"
    PYTHONPATH="$built" PYTHONSAFEPATH=1 attend "$VENV/bin/python" -m pytest -q -p no:cacheprovider -n "$(nproc)" \
        --dist loadfile --examples-divisor "${VSRT_COMPILED_EXAMPLES_DIVISOR:-5}" "${packages[@]/#/tests/unit/}"
    unset VSRT_COMPILE
    rm -rf "$source" "$built"
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
