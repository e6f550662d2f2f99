#!/bin/bash
# How many split charges PostgreSQL settles in a second: postgres.sql under pgbench, on a cluster of its own with its default
# durability, over loopback. The cluster is made in a temporary directory ($TMPDIR), and is gone afterwards.
#
#   benches/peers/postgres.sh [SECONDS [CLIENTS [hot|uniform]]]      hot: one merchant; uniform: 100 at random
#
# Prints tps=… p50_ms=… p99_ms=…; PGPORT chooses the port.
set -euo pipefail

seconds=${1:-8}
clients=${2:-64}
load=${3:-hot}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PGHOST=127.0.0.1 PGPORT=${PGPORT:-54613} PGUSER=postgres

case $load in
    hot) merchant='\set merchant 1' ;;
    uniform) merchant='\set merchant random(1, 100)' ;;
    *) echo "the load is hot or uniform, not $load" >&2; exit 2 ;;
esac

programs=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1 || true)
if [ ! -x "$programs/pgbench" ]; then
    echo "PostgreSQL is not installed (apt-get install postgresql)" >&2
    exit 3
fi

place=$(mktemp -d)
# The server refuses to run as root.
as_server() { "$@"; }
if [ "$(id -u)" = 0 ]; then
    chown postgres: "$place"
    as_server() { runuser -u postgres -- "$@"; }
fi
cleanup() {
    as_server "$programs/pg_ctl" -D "$place/data" -m fast -w stop >/dev/null 2>&1 || true
    rm -rf "$place"
}
trap cleanup EXIT
cd "$place"

as_server "$programs/initdb" -D "$place/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
cat >>"$place/data/postgresql.conf" <<SETTINGS
listen_addresses = '$PGHOST'
port = $PGPORT
unix_socket_directories = ''
max_connections = $((clients + 20))
shared_buffers = 1GB
wal_buffers = 64MB
max_wal_size = 8GB
SETTINGS
as_server "$programs/pg_ctl" -D "$place/data" -l "$place/log" -w start >/dev/null
"$programs/psql" -qX -v ON_ERROR_STOP=1 -f - postgres <"$here/postgres.sql"

echo "$merchant" >load.sql
echo 'SELECT settle(:merchant, 10000);' >>load.sql
"$programs/pgbench" -n -M prepared -f load.sql -c "$clients" -j 2 -T "$seconds" --log --log-prefix="$place/times" postgres >summary
tps=$(awk '/^tps/ { printf "%.0f", $3 }' summary)
cat times.* | awk '{ print $3 }' | sort -n | awk -v tps="$tps" '
    { micros[NR] = $1 }
    END { printf "tps=%s p50_ms=%.2f p99_ms=%.2f\n", tps, micros[int((NR + 1) * 0.5)] / 1000, micros[int((NR + 1) * 0.99)] / 1000 }'
