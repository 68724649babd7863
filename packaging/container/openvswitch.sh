#!/bin/sh
# Runs Open vSwitch in the foreground with one bridge that the controller of $CONTROLLER programs.
set -eu

directory=${OVS_RUNDIR:-/run/openvswitch}
database=${OVS_DBDIR:-/etc/openvswitch}/conf.db
mkdir -p "$directory" "${database%/*}"
[ -e "$database" ] || ovsdb-tool create "$database" /usr/share/openvswitch/vswitch.ovsschema

ovsdb-server "$database" --remote="punix:$directory/db.sock" --pidfile --detach --no-chdir --log-file=/dev/null
stop() {
    kill "$(cat "$directory/ovs-vswitchd.pid")" "$(cat "$directory/ovsdb-server.pid")" 2>/dev/null || true
    wait
}
trap stop EXIT
trap 'exit 0' INT TERM
ovs-vsctl --no-wait init
ovs-vswitchd --pidfile --no-chdir "unix:$directory/db.sock" &
ovs-vsctl --may-exist add-br "$BRIDGE" \
    -- set bridge "$BRIDGE" datapath_type=netdev protocols=OpenFlow13 fail-mode=secure \
    -- set-controller "$BRIDGE" "$CONTROLLER" -- set controller "$BRIDGE" connection-mode=out-of-band
# Each interface of $PORTS (such as "eth1 eth2") becomes a port.
for port in ${PORTS:-}; do
    ovs-vsctl --may-exist add-port "$BRIDGE" "$port"
done
wait $!
