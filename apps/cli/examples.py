"""Examples of every command of `vsrt`, for its help and its manual page."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "vsrt": (
        ("vsrt run --config policies/example.yaml multicast unicast monitor", "start a controller"),
        ("vsrt show groups", "ask it for its groups"),
        ("vsrt watch events", "follow what happens"),
    ),
    "vsrt topology": (("vsrt topology list", "the kinds of fabrics"),),
    "vsrt topology record": (("vsrt topology record", "the fabric as it is, as a section of the policy file"),),
    "vsrt topology make": (
        ("vsrt topology make fattree --k 4", "node-link JSON on standard output"),
        ("vsrt topology make avalanche24 -o fabric.graphml", "the suffix gives the format"),
    ),
    "vsrt topology list": (("vsrt topology list", "the kinds of fabrics and their parameters"),),
    "vsrt tree": (
        ("vsrt tree fabric.json --members h1,h5,h9", "the tree of three members"),
        ("vsrt tree b01.stp --algorithm steiner --json", "over the terminals of a SteinLib file"),
    ),
    "vsrt simulate": (
        ("vsrt simulate", "the first simulation of the article"),
        ("vsrt simulate --topology fabric.json --groups 10000 --plot plots", "a fabric of one's own"),
        ("vsrt simulate --servers 2000 --per-rack 40 --type tree", "2,000 servers in 50 racks, joined by a tree"),
        ("vsrt simulate --placement tenant --rates pareto:1.2 --aliases 10", "hot groups get further trees"),
        ("vsrt simulate --storm 10 --fail-links 20", "joins, leaves and failures over time"),
        ("vsrt simulate --groups 10000 --overcommit 500", "tables that hold a quarter of the groups"),
        ("vsrt simulate --groups 300 --background 20", "beside others that use a fifth of the cables"),
    ),
    "vsrt classes": (("vsrt classes limits --servers 4", "how full the trees of a group may be"),),
    "vsrt classes limits": (("vsrt classes limits --servers 4", "for 1, 2, 3 and 4 trees"),),
    "vsrt classes clusters": (
        ("vsrt classes clusters --input samples.json", "classes that compete for the same links"),
    ),
    "vsrt classes rates": (("vsrt classes rates --input port.json --json", "one JSON document"),),
    "vsrt classes transfers": (
        ("vsrt classes transfers --input state.json", "which trees would move, and why"),
        ("vsrt classes transfers --input state.json --pace fast", "at the pace that looks every 10 s"),
    ),
    "vsrt overcommit": (("vsrt overcommit shares --input table.json", "what each tenant is entitled to"),),
    "vsrt probe": (
        ("vsrt probe run --library packet-ins", "who sends the controller packets, and what they are"),
        ("vsrt probe list", "where scripts can look, and what they see there"),
    ),
    "vsrt overcommit shares": (("vsrt overcommit shares --input table.json --json", "one JSON document"),),
    "vsrt overcommit simulate": (
        ("vsrt overcommit simulate --trace packets.csv --table 2000", "as the controller would choose"),
        ("vsrt overcommit simulate --trace packets.parquet --table 2000 --policy lru", "beside another choice"),
    ),
    "vsrt scaling": (("vsrt scaling simulate --trace loads.csv --repeat 4", "a day of loads, four times over"),),
    "vsrt scaling advise": (("vsrt scaling advise", "how many monitors there should be, and why"),),
    "vsrt scaling history": (("vsrt scaling history --limit 12", "the last hour, if intervals are of five minutes"),),
    "vsrt scaling simulate": (
        ("vsrt scaling simulate --trace loads.csv --repeat 4", "a day of loads, four times over"),
        ("vsrt scaling simulate --trace loads.csv --learners yesterday,vscale --period 288", "two, on several days"),
    ),
    "vsrt policy": (("vsrt policy check policies/example.yaml", "list every fault"),),
    "vsrt policy check": (("vsrt policy check policies/example.yaml", "list every fault, with its line"),),
    "vsrt policy schema": (("vsrt policy schema > policy.schema.json", "for an editor that completes and checks"),),
    "vsrt policy discover": (
        ("vsrt policy discover --log changes.csv", "what is set together, where, and who deviates"),
        ("vsrt policy discover --log changes.csv --inventory ports.csv --window 30d --json", "as JSON"),
        ("vsrt policy discover --log changes.csv --plot plots", "pictures too"),
        ("vsrt policy discover --log changes.csv -o found.yaml", "templates that hold switches to it"),
    ),
    "vsrt policy compare": (
        ("vsrt policy compare proposed.yaml --audit audit.jsonl", "who would be refused, or admitted, instead"),
    ),
    "vsrt policy propose": (
        ("vsrt policy propose --audit audit.1.jsonl audit.jsonl -o proposed.yaml", "a file to read and change"),
        ("vsrt policy propose --audit audit.jsonl --by port", "hosts by the ports that they are at"),
    ),
    "vsrt policy explain": (
        ("vsrt policy explain policies/example.yaml --host 10.0.0.5 --group 239.1.1.1 --role receiver", ""),
    ),
    "vsrt emulate": (
        ("sudo vsrt emulate avalanche24 --algorithm vsrt --seed 1", "the experiment of the article"),
        ("sudo vsrt emulate scenarios/demo.yaml --framework os-ken", "a scenario of one's own"),
        ("sudo vsrt emulate feed.yaml --replay feed.pcap", "the packets of a capture, at their times"),
        ("sudo vsrt emulate feed.yaml --replay feed.pcap --speed 4 --plot plots", "four times as fast, with plots"),
    ),
    "vsrt run": (
        ("vsrt run --config policies/example.yaml multicast unicast monitor", "the usual apps"),
        ("vsrt run --state-dir vsrt-state --port 6653 multicast", "where the journal and the socket are"),
    ),
    "vsrt show": (
        ("vsrt show groups --search 239.1.", "groups whose documents have these letters"),
        ("vsrt show ports --switch 3 --sort tx_bps --reverse --limit 5", "the five ports that send most"),
        ("vsrt show members --group 239.1.1.1 --json", "one JSON document"),
        ("vsrt show unused", "rules that never decided, tenants without hosts, addresses that nobody uses"),
        ("vsrt show connections --tenant video", "which hosts of a tenant receive and send which groups"),
        ("vsrt show versions", "what each switch is, and which versions of OpenFlow, IGMP and MLD are in force"),
        ("vsrt show status --url https://127.0.0.1:8181 --ca ca.pem", "from the API of the dashboard"),
    ),
    "vsrt mount": (
        ("vsrt mount /mnt/vsrt", "ls /mnt/vsrt/switches; tail -f /mnt/vsrt/events; echo 3 > /mnt/vsrt/do/drain"),
        ("vsrt mount /mnt/vsrt --url https://127.0.0.1:8181 --ca ca.pem --token-file token", "from anywhere"),
    ),
    "vsrt actions": (
        ("vsrt actions --by ann --since 2026-11-22", "what ann asked for since then"),
        ("vsrt actions --action 'switch-*' --limit 20", "the newest 20 drains and the like"),
        ("vsrt actions --refused --json", "what was refused, as one JSON document"),
    ),
    "vsrt watch": (
        ("vsrt watch", "the status, drawn anew when it changes"),
        ("vsrt watch ports --switch 3", "the ports of one switch"),
        ("vsrt watch events --json", "each event as a line of JSON"),
    ),
    "vsrt maintain": (
        ("vsrt maintain plan", "in which order, and whose hosts would lose packets"),
        ("vsrt maintain start --select tier=core --hook ./upgrade", "./upgrade is run for each drained switch"),
    ),
    "vsrt maintain plan": (("vsrt maintain plan --disruptive", "every switch, ToRs too"),),
    "vsrt maintain start": (
        ("vsrt maintain start leaf1 spine2 --disruptive --hook ./upgrade", "two switches"),
        ("vsrt maintain start --disruptive --restarts --window 22:00-06:00 --hook ./upgrade", "by night"),
    ),
    "vsrt maintain status": (("vsrt maintain status --json", "one JSON document"),),
    "vsrt maintain pause": (("vsrt maintain pause", "those in work come to their end"),),
    "vsrt maintain resume": (
        ("vsrt maintain resume", "after a pause, where the command still runs"),
        ("vsrt maintain resume --hook ./upgrade", "after a failure was seen after, or the command was killed"),
    ),
    "vsrt maintain skip": (("vsrt maintain skip leaf3", "it stays as it is"),),
    "vsrt maintain abort": (("vsrt maintain abort", "what is drained for nothing is used again"),),
    "vsrt check": (
        ("vsrt check", "what switches hold against what they shall; nothing is changed"),
        ("vsrt check --repair --switch leaf1", "have what differs at one switch put right"),
    ),
    "vsrt cluster": (
        ("vsrt cluster check --config policy.yaml", "whether etcd is fit, and who is there"),
        ("vsrt cluster plan s1 s2 --controller 10.0.0.1 --controller 10.0.0.2", "lines for Open vSwitch"),
    ),
    "vsrt cluster check": (
        ("vsrt cluster check --config policy.yaml", "each server of etcd, and who is there"),
        ("vsrt cluster check --config policy.yaml --json", "for a script: status 0 where all is well"),
    ),
    "vsrt cluster plan": (
        ("vsrt cluster plan s1 s2 --controller 10.0.0.1 --controller 10.0.0.2 --tls", "both controllers, by TLS"),
        (
            "vsrt cluster plan --topology fabric.json --each 1 --monitor 10.0.1.1 --monitor 10.0.1.2",
            "one of the monitors at each switch",
        ),
    ),
    "vsrt cluster export": (
        ("vsrt cluster export fabric.archive --config policy.yaml", "all keys of the fabric, for the worst case"),
    ),
    "vsrt cluster import": (
        ("vsrt cluster import fabric.archive --config policy.yaml", "into an empty store, before controllers start"),
    ),
    "vsrt doctor": (
        ("vsrt doctor", "what is to be looked at, and what to do about it"),
        ("vsrt doctor --json", "for a script: status 0 where there is nothing to tell"),
    ),
    "vsrt changes": (("vsrt changes record -o changes.jsonl", "a line for each setting that changes"),),
    "vsrt changes record": (
        ("vsrt changes record -o changes.jsonl", "a line for each setting that changes"),
        ("vsrt changes record -o changes.jsonl --from-nothing", "what is set already first"),
        ("vsrt changes record -o changes.jsonl --db tcp:192.0.2.7:6640", "settings of this database too"),
        ("vsrt policy discover --log changes.jsonl", "what is set together, where, and who deviates"),
    ),
    "vsrt storm": (
        (
            "vsrt storm --joins 5000 --sigma-s 10 --switches 20 --leave",
            "5,000 hosts join within a minute, then leave",
        ),
        (
            "vsrt storm --joins 2000 --sigma-s 2 --step 2000 --slo-ms 50",
            "the largest storm with 99 % served in 50 ms",
        ),
        ("vsrt storm --joins 500 --sigma-s 5 --off 20%", "a fifth of the ports come up with their host"),
    ),
    "vsrt trace": (
        ("vsrt trace inspect feed.pcap", "rates, gaps, senders and joins of each group"),
        ("vsrt trace scenario feed.pcap -o feed.yaml", "for `vsrt emulate feed.yaml --replay feed.pcap`"),
    ),
    "vsrt trace inspect": (
        ("vsrt trace inspect feed.pcap", "rates, gaps, senders and joins of each group"),
        ("vsrt trace inspect feed.pcap.gz --json --plot plots", "for scripts, and for people"),
    ),
    "vsrt trace scenario": (
        ("vsrt trace scenario feed.pcap -o feed.yaml", "on the smallest FatTree with room for all hosts"),
        ("vsrt trace scenario feed.pcap --topology fabric.json --receivers 3", "three hosts receive each group"),
    ),
    "vsrt latency": (
        ("vsrt latency", "ten seconds: echoes, barriers, and the joins that come"),
        ("vsrt latency --group 239.1.1.1", "a group's packets too, hop by hop"),
        ("vsrt latency --for 1m --json", "for a script: status 1 where a switch answers no echo"),
    ),
    "vsrt profile": (
        ("vsrt profile start --for 10m", "the running controller notes what its operations take"),
        ("vsrt profile report before.parquet --html before.html", "figures and plots of them"),
    ),
    "vsrt profile start": (
        ("vsrt profile start --for 10m --name before", "it goes on by itself"),
        ("vsrt profile start --for 1h --wait", "until it has ended; Ctrl-C ends it"),
    ),
    "vsrt batch": (("vsrt batch check work.yaml", "what would be done for what"),),
    "vsrt batch init": (("vsrt batch init work.yaml", "a workflow to begin with"),),
    "vsrt batch list": (("vsrt batch list /etc/vsrt/workflows --category cameras", "those about cameras"),),
    "vsrt batch check": (("vsrt batch check work.yaml", "what would be done for what"),),
    "vsrt batch run": (("vsrt batch run work.yaml", "results in work.yaml.results.jsonl"),),
    "vsrt batch resume": (("vsrt batch resume work.yaml.results.jsonl", "what is not done, after a failure"),),
    "vsrt template": (("vsrt template check openflow-fabric", "what of this machine's switches is otherwise"),),
    "vsrt template list": (
        ("vsrt template list --file templates.yaml", "those that are shipped, and those of a file"),
    ),
    "vsrt template check": (
        ("vsrt template check openflow-fabric --db tcp:192.0.2.7:6640", "status 1 where something is otherwise"),
    ),
    "vsrt template apply": (
        ("vsrt template apply openflow-fabric", "all of it, or nothing"),
        (
            "vsrt template apply edge --file templates.yaml --db tcp:192.0.2.7:6640 --db tcp:192.0.2.8:6640",
            "two servers",
        ),
    ),
    "vsrt template history": (("vsrt template history", "what was applied and undone"),),
    "vsrt template undo": (("vsrt template undo", "the newest run; settings that others changed since forbid it"),),
    "vsrt template export": (("vsrt template export br0 > br0.yaml", "what a bridge has, as a template"),),
    "vsrt import": (("vsrt import faucet /etc/faucet/faucet.yaml -o policy.yaml", "and what became of each line"),),
    "vsrt import faucet": (
        ("vsrt import faucet /etc/faucet/faucet.yaml", "what would become of each line"),
        (
            "vsrt import faucet /etc/faucet/faucet.yaml -o policy.yaml --json",
            "for scripts; status 1 if some line is impossible",
        ),
    ),
    "vsrt import frr": (
        ("vsrt import frr frr.conf --at eth0=0x1:48 -o policy.yaml", "a router whose eth0 is at port 48 of switch 1"),
    ),
    "vsrt import bridge": (
        (
            "vsrt import bridge /etc/network/interfaces --at br0=0x1 -o policy.yaml",
            "its ports are those of switch 1, in order",
        ),
    ),
    "vsrt import ovs": (
        (
            "vsrt import ovs bridges.json ports.json interfaces.json -o policy.yaml",
            "as `ovs-vsctl --format=json list` prints",
        ),
    ),
    "vsrt profile stop": (("vsrt profile stop", "its file is whole then, and is named"),),
    "vsrt profile report": (
        ("vsrt profile report before.parquet", "count, mean and percentiles of each operation"),
        ("vsrt profile report after.parquet --against before.parquet", "status 1 where one is slower"),
        ("vsrt profile report before.parquet --json --html page.html", "for scripts, and for people"),
    ),
    "vsrt do": (("vsrt do drain 3", "take the traffic away from a switch"),),
    "vsrt do acknowledge": (("vsrt do acknowledge switch-down:3", "somebody sees to it"),),
    "vsrt do drain": (("vsrt do drain 3", "before switch 3 is serviced"),),
    "vsrt do undrain": (("vsrt do undrain 3", "traffic may cross switch 3 again"),),
    "vsrt do forget": (("vsrt do forget 3", "switch 3 was taken out for good"),),
    "vsrt do rebuild": (("vsrt do rebuild 239.1.1.1", "the tree of this group, without loss"),),
    "vsrt do hand-over": (("vsrt do hand-over c2", "c2 leads from now on, and this controller follows"),),
    "vsrt do drain-monitor": (("vsrt do drain-monitor m2", "before the machine of monitor m2 is serviced"),),
    "vsrt do undrain-monitor": (("vsrt do undrain-monitor m2", "monitor m2 polls its part of the switches again"),),
    "vsrt do alias": (("vsrt do alias add 239.1.1.1", "one more tree for a group that is about to get busy"),),
    "vsrt do alias add": (("vsrt do alias add 239.1.1.1", "one more tree for a group that is about to get busy"),),
    "vsrt do alias remove": (("vsrt do alias remove 239.1.1.1", "its senders go to the other trees"),),
    "vsrt do swap-out": (("vsrt do swap-out 239.1.1.1", "its next packet brings it in again"),),
    "vsrt do swap-in": (("vsrt do swap-in 239.1.1.1", "before it is about to get busy"),),
    "vsrt do pin": (("vsrt do pin 239.1.1.1", "no packet of it is to wait for the controller"),),
    "vsrt do unpin": (("vsrt do unpin 239.1.1.1", "it goes out while it is silent and others need the room"),),
    "vsrt do address": (("vsrt do address take video --name cam7", "the address that cam7 sends to"),),
    "vsrt do address take": (("vsrt do address take video --name cam7", "the address that cam7 sends to"),),
    "vsrt do address release": (("vsrt do address release video --name cam7", "another may have it"),),
    "vsrt do label": (("vsrt do label add leaf1 rack=b7", "selectors choose leaf1 by rack=b7"),),
    "vsrt do label add": (("vsrt do label add leaf1:7 room=a", "selectors choose the port by room=a"),),
    "vsrt do label remove": (("vsrt do label remove leaf1 rack", "leaf1 has the rack of the policy file, or none"),),
    "vsrt do candidate": (("vsrt do candidate accept 1f0c6a3b9d52", "it is written into a file"),),
    "vsrt do candidate accept": (("vsrt do candidate accept 1f0c6a3b9d52", "it is written into a file"),),
    "vsrt do candidate ignore": (("vsrt do candidate ignore 1f0c6a3b9d52", "it is shown last from now on"),),
    "vsrt do candidate consider": (("vsrt do candidate consider 1f0c6a3b9d52", "as if nothing had been said"),),
    "vsrt do reload": (("vsrt do reload", "read the policy file now"),),
    "vsrt do reset-counters": (("vsrt do reset-counters", "counts start from 0"),),
    "vsrt do static-member": (("vsrt do static-member add 239.1.1.1 3:2", "port 2 of switch 3 gets the group"),),
    "vsrt do static-member add": (("vsrt do static-member add 239.1.1.1 3:2", "port 2 of switch 3 gets the group"),),
    "vsrt do static-member remove": (("vsrt do static-member remove 239.1.1.1 3:2", "only if its hosts ask for it"),),
    "vsrt do router-port": (("vsrt do router-port add 3:48 4", "an IPv4 multicast router is behind the port"),),
    "vsrt do router-port add": (("vsrt do router-port add 3:48 4", "an IPv4 multicast router is behind the port"),),
    "vsrt do router-port remove": (("vsrt do router-port remove 3:48 4", "only if queries come from there"),),
    "vsrt dashboard": (
        ("vsrt dashboard --socket vsrt-state/vsrt.sock", "read-only, at http://127.0.0.1:8181/"),
        ("vsrt dashboard --token-file token --certificate cert.pem --key key.pem --host 0.0.0.0", "writes, by TLS"),
    ),
    "vsrt replay": (
        ("vsrt replay run.jsonl --app multicast", "what the core asked for"),
        ("vsrt replay run.jsonl --probe wait.probe", "what a script finds in what all apps did"),
    ),
    "vsrt probe run": (
        ("vsrt probe run --library barrier-latency --for 5m", "how long each switch takes to confirm edits"),
        ("vsrt probe run -e 'aggr n[2][0]; multicast:event:PacketReceived { n[dpid, in_port]++; }'", "who sends"),
    ),
    "vsrt probe ps": (("vsrt probe ps", "the scripts that look at the controller"),),
    "vsrt probe stop": (("vsrt probe stop 3", "end one of them"),),
    "vsrt probe library": (
        ("vsrt probe library", "the questions that scripts are shipped for"),
        ("vsrt probe library refusals > mine.probe", "one of them, to begin with"),
    ),
    "vsrt probe check": (("vsrt probe check wait.probe", "what is wrong with a script, and where"),),
    "vsrt probe list": (("vsrt probe list 'multicast:effect:*'", "what multicast asks for, with its arguments"),),
    "vsrt perf": (("vsrt perf top", "the busiest ports, now"),),
    "vsrt perf rates": (("vsrt perf rates --input samples.csv --json", "mean rates of every port of a file"),),
    "vsrt perf history": (
        ("vsrt perf history 3:1 --since 2h", "of one port, from the files"),
        ("vsrt perf history --roll-up 1h", "hour by hour"),
    ),
    "vsrt perf report": (
        ("vsrt perf report --by node", "a line for each switch"),
        ("vsrt perf report 3 --statistics flow", "flow entries of switch 3"),
    ),
    "vsrt perf top": (("vsrt perf top --order errors --limit 10", "the ports with most errors"),),
    "vsrt perf histogram": (
        ("vsrt perf histogram rx_bytes --node 3", "how the rates of one switch are distributed"),
    ),
    "vsrt perf events": (("vsrt perf events 3:1 --limit 10", "the latest of one port"),),
    "vsrt perf reset": (("vsrt perf reset 3", "totals of switch 3 begin anew"),),
    "vsrt perf set": (("vsrt perf set interval_s 2", "poll every two seconds"),),
    "vsrt perf get": (("vsrt perf get", "all settings"),),
    "vsrt allocate": (("vsrt allocate ports --live --count 2 --type tor", "ports of the running controller"),),
    "vsrt allocate ports": (
        ("vsrt allocate ports --input request.json", "ports, or paths over several networks"),
        ("vsrt allocate ports --live --count 2 --type tor --role trunk", "by measured load"),
    ),
    "vsrt allocate metric": (
        ("vsrt allocate metric --input state.json", "one port"),
        ("vsrt allocate metric --input vmax.csv --family vmax --config policy.yaml", "over time"),
    ),
    "vsrt allocate pool": (
        ("vsrt allocate pool --input pools.json", "the pool with room on the least loaded array"),
        ("vsrt allocate pool --live --type tor --role trunk --count 2", "the pod with room for two paths"),
    ),
    "vsrt allocate explain": (
        ("vsrt allocate explain --input request.json --port p7", "why p7 was taken or not"),
        ("vsrt allocate explain --live --port 3:1", "of the last live allocation"),
    ),
    "vsrt allocate watch": (("vsrt allocate watch --type tor", "the most used ports of ToR switches"),),
    "vsrt allocate whatif": (("vsrt allocate whatif --plot plots", "a day replayed beside counts and chance"),),
    "vsrt normalcy": (
        ("vsrt normalcy fit --input series.csv", "what is normal for a series"),
        ("vsrt normalcy --live", "what is normal for each port of the running controller"),
    ),
    "vsrt normalcy fit": (("vsrt normalcy fit --input series.csv --plot plots", "category, period and bounds"),),
    "vsrt normalcy update": (
        ("vsrt normalcy update --model model.npz --input day.csv", "with the points of one more day"),
    ),
    "vsrt normalcy score": (("vsrt normalcy score --input series.csv -o scores.csv", "how abnormal each point is"),),
    "vsrt diagnose": (
        ("vsrt diagnose --input metrics.csv --plot plots", "members of a group that should behave alike"),
        ("vsrt diagnose --input metrics.parquet --metric await --json", "by one metric"),
        ("vsrt diagnose --input ports.csv --cables cables.csv", "ports, both ends of a cable told as one fault"),
        ("vsrt diagnose --input day.parquet --thresholds limits.json", "by what an earlier day told"),
    ),
    "vsrt record": (("vsrt record -o /var/log/vsrt", "disks and networks every second, day by day"),),
    "vsrt completion": (
        ("vsrt completion bash > /etc/bash_completion.d/vsrt", ""),
        ("vsrt completion zsh > ~/.zfunc/_vsrt", "with fpath+=~/.zfunc before compinit in .zshrc"),
        ("vsrt completion fish > ~/.config/fish/completions/vsrt.fish", ""),
    ),
}
"""Per command, as it is called: command lines and what they do."""
