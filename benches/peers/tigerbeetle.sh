#!/bin/bash
# How many split charges TigerBeetle settles in a second: one replica on a new data file in a temporary directory ($TMPDIR),
# over loopback, under the load program beside this script. README.md says how to have both programs.
#
#   TIGERBEETLE=PROGRAM TIGERBEETLE_CHARGES=PROGRAM benches/peers/tigerbeetle.sh [SECONDS [IN_FLIGHT [hot|uniform [durable-intent]]]]
#
# Prints tps=… p50_ms=… p99_ms=…; TIGERBEETLE_PORT chooses the port.
set -euo pipefail

seconds=${1:-8}
in_flight=${2:-64}
load=${3:-hot}
address=127.0.0.1:${TIGERBEETLE_PORT:-54614}

if [ ! -x "${TIGERBEETLE:-}" ] || [ ! -x "${TIGERBEETLE_CHARGES:-}" ]; then
    echo "TigerBeetle is not here (TIGERBEETLE and TIGERBEETLE_CHARGES, benches/peers/README.md)" >&2
    exit 3
fi

place=$(mktemp -d)
server=
cleanup() {
    if [ -n "$server" ]; then
        kill -9 "$server" 2>/dev/null || true
    fi
    rm -rf "$place"
}
trap cleanup EXIT
"$TIGERBEETLE" format --cluster=0 --replica=0 --replica-count=1 "$place/data" >"$place/log" 2>&1
"$TIGERBEETLE" start --addresses="$address" "$place/data" >>"$place/log" 2>&1 &
server=$!
until (exec 3<>"/dev/tcp/${address/://}") 2>/dev/null; do
    kill -0 "$server" 2>/dev/null || { tail -n 1 "$place/log" >&2; exit 1; }
    sleep 0.1
done
timeout $((seconds + 60)) "$TIGERBEETLE_CHARGES" "$address" "$seconds" "$in_flight" "$load" ${4:+"$4"} 2>"$place/client" ||
    { tail -n 1 "$place/client" >&2; exit 1; }
