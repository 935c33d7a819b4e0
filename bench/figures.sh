#!/usr/bin/env bash
# All figures of docs/performance.md, one after the other: about 52 minutes on a machine of
# two processors that does nothing else, 45 GB of disk. Each line says how long it takes.
#
#   bench/figures.sh             all of them, on folders in the current one
#   bench/figures.sh recover     those whose name begins so
#   DIR=/mnt/x RUNS=1 bench/figures.sh
#
# A figure that fails is named at the end, and the others are taken all the same.
set -uo pipefail
cd "$(dirname "$0")/.."
ONLY=${1:-}
RUNS=${RUNS:-3} # of the workloads that an aim is set for
BLOBS=${BLOBS:-100000} # that are listed with their snapshots
DIR=$(mkdir -p "${DIR:-.}" && cd "${DIR:-.}" && pwd)
WORK=$(mktemp -d "$DIR/figures.XXXXXX")
make --no-print-directory build >/dev/null && go build -o "$WORK/bench" ./bench || exit 1
failed=()
children=()
end_children() {
    for pid in "${children[@]}"; do kill "$pid" && wait "$pid"; done 2>/dev/null
    children=()
}
trap 'end_children; rm -rf "$WORK"' EXIT
trap 'exit 130' INT TERM

# figure NAME SECONDS COMMAND...: SECONDS is about how long it takes.
figure() {
    local name=$1 about=$2 began=$SECONDS
    shift 2
    [[ $name == "$ONLY"* ]] || return 0
    echo "== $name (about $about s): $*" | sed "s|$WORK|DIR|g"
    "$@" || failed+=("$name")
    echo "-- $((SECONDS - began)) s"
}
bench() { "$WORK/bench" --dir "$WORK" "$@"; }
served() { bench --server bin/antipode "$@"; }
limited() { GOMEMLIMIT=2GiB served "$@"; }

figure disk-1 5 bench --workload fdatasync --concurrency 1 --duration 4s
figure disk-6 5 bench --workload fdatasync --concurrency 6 --duration 4s

# Both locations, shipping on, a new server each; what was written is read back at both.
for run in $(seq "$RUNS"); do
    figure "insert-$run" 22 served --workload insert --concurrency 64 --duration 10s
    figure "get-$run" 22 served --workload get --concurrency 64 --duration 10s
    figure "batch-$run" 22 served --workload batch --concurrency 16 --duration 10s
    figure "blob-put-4k-$run" 22 served --workload blob-put-4k --concurrency 64 --duration 10s
    figure "blob-put-4m-$run" 25 served --workload blob-put-4m --concurrency 16 --duration 10s
done

# Tables: pages, key ranges and a search by a property, among 100,000 entities; then what a table's size costs.
for n in 1 16 64; do
    figure "table-insert-$n" 15 served --workload insert --concurrency "$n" --duration 5s
    figure "table-get-$n" 15 served --workload get --concurrency "$n" --duration 5s
    figure "table-batch-$n" 15 served --workload batch --concurrency "$n" --duration 5s
    figure "table-page-$n" 25 served --workload query --rows 100000 --concurrency "$n" --duration 5s
    figure "table-range-$n" 25 served --workload query-range --rows 100000 --concurrency "$n" --duration 5s
    figure "table-search-$n" 40 served --workload query-search --rows 100000 --concurrency "$n" --duration 10s
done
# At rest: the compactions of what was loaded are over.
for rows in 10000 1000000; do
    figure "table-size-insert-$rows" 100 served --workload insert --concurrency 64 --depth "$rows" --rest 10m --duration 8s
    figure "table-size-get-$rows" 100 served --workload get --concurrency 64 --depth "$rows" --rest 10m --duration 8s
    figure "table-size-range-$rows" 100 served --workload query-range --rows "$rows" --concurrency 64 --rest 10m --duration 8s
done

# Queues: puts, and messages that are put, got and deleted, in a queue that is almost empty and in a deep one.
for n in 1 16 64; do
    figure "queue-put-$n" 15 served --workload queue-put --concurrency "$n" --depth 10 --duration 5s
    figure "queue-cycle-$n" 15 served --workload queue-cycle --concurrency "$n" --depth 10 --duration 5s
done
figure queue-get-delete-64 20 served --workload queue-get-delete --concurrency 64 --depth 40000 --duration 5s
figure queue-deep-64 200 served --workload queue-cycle --concurrency 64 --depth 1000000 --duration 10s
figure queue-bytes 10 go test -run '^$' -bench Bytes -benchtime 1000x ./services/queues
figure queue-subqueues 20 go test -run '^$' -bench Subqueues -benchtime 6000x -count 3 ./services/queues

# Blobs: appends, leases, batches of deletes, pages with snapshots, copies and blobs of many blocks.
for n in 1 16 64; do
    figure "blobs-append-$n" 12 served --workload append --concurrency "$n" --duration 5s
    figure "blobs-lease-renew-$n" 12 served --workload lease-renew --concurrency "$n" --duration 5s
done
figure blobs-batch-delete-16 20 served --workload batch-delete --concurrency 16 --rows 40960 --warmup 0s
# BLOBS=1000000 is the full size, and takes ten times as long.
figure blobs-list-snapshots-16 50 served --workload list-snapshots --rows "$BLOBS" --concurrency 16 --duration 5s
# Three replicas of the source are 15 GiB: the second location is stopped.
figure blobs-copy-5GiB 30 limited --stop-location southcentralus --workload blob-copy --concurrency 1 --duration 5s --read-back 64
figure blobs-put-256MiB 40 served --workload blob-put-blocks --concurrency 4 --warmup 0s --bytes 2GiB --read-back 64
figure blobs-get-256MiB 40 served --workload blob-get-blocks --concurrency 4 --warmup 0s --bytes 2GiB --read-back 64

# Below the protocol.
for n in 1 16 64; do
    for kind in pebble stamp network; do
        figure "commit-$kind-$n" 8 bench --workload "commit-$kind" --concurrency "$n" --duration 5s
    done
done

# etcd N: that many members on loopback.
etcd_members() {
    local i peers=()
    for i in $(seq "$1"); do peers+=("m$i=http://127.0.0.1:$((23900 + i))"); done
    for i in $(seq "$1"); do
        etcd --name "m$i" --data-dir "$WORK/etcd-$1-$i" --log-level error \
            --listen-client-urls "http://127.0.0.1:$((23800 + i))" --advertise-client-urls "http://127.0.0.1:$((23800 + i))" \
            --listen-peer-urls "http://127.0.0.1:$((23900 + i))" --initial-advertise-peer-urls "http://127.0.0.1:$((23900 + i))" \
            --initial-cluster "$(IFS=,; echo "${peers[*]}")" --initial-cluster-state new >/dev/null 2>&1 &
        children+=($!)
    done
    sleep 3
}
if command -v etcd >/dev/null && [[ etcd == "${ONLY:0:4}"* || -z $ONLY ]]; then
    for members in 1 3; do
        etcd_members "$members"
        for n in 1 16 64; do
            figure "etcd-$members-$n" 8 bench --workload commit-etcd --etcd 127.0.0.1:23801 --concurrency "$n" --duration 5s
        done
        end_children
    done
elif [[ -z $ONLY ]]; then
    echo "== etcd is not installed: not taken"
fi

figure log 50 env TMPDIR="$WORK" go test -run '^$' -bench Commit -benchtime 2s -count 3 ./stamp/seglog
figure extents 40 env TMPDIR="$WORK" go test -run '^$' -bench ThreeStores -benchtime 2s -count 3 ./stamp/extent
figure leaders 90 env TMPDIR="$WORK" go test -count=1 ./test/faults -run TestLeaderKilled -v -args -rounds=5

figure recover-node 150 bench --workload recover-node --bytes 2GiB
figure restart 30 bench --workload restart --duration 20s
figure restart-1GiB 120 bench --workload restart --bytes 1GiB
figure copy-cost 300 served --workload copy-cost --bytes 256MiB --copy-rate 4MiB --concurrency 16 --pairs 5
figure scrub-cost 390 served --workload scrub-cost --bytes 1GiB --scrub-period 10m --pairs 5
# Three copies are 30 GiB: the second location is stopped.
figure load-10GiB 100 limited --stop-location southcentralus --workload blob-put-4m --concurrency 16 --warmup 0s --bytes 10GiB --read-back 200

if ((${#failed[@]})); then
    echo "FAILED: ${failed[*]}"
    exit 1
fi
