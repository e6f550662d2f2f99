#!/usr/bin/env bash
# duckdb 2.0.1 and polars 2.1.0 (PyPI): a CSV with days as DD/MM/YY, as Brazilian statements have them, days 3 and 30 of
# November 2026 and 31 December, amounts in centavos.
# Guessed: a reader that makes dates by itself takes 30/11/26 for 30 November 2026, or leaves a text that it is not sure of.
# Seen: DuckDB takes the first number for the year: 2003-11-26, 2030-11-26, 2031-12-26. A day up to 31 is a year and 26 a
# day, so no row of the years 2001 to 2031 contradicts it. polars (try_parse_dates) reads the year 26, of the first
# century. Both have the type DATE, nothing warns, and a sum of November 2026 is empty. With four digits both are right.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check duckdb==2.0.1 polars==2.1.0
printf 'day,cents\n03/11/26,8053\n30/11/26,990\n31/12/26,115\n' > short.csv
sed 's|/26|/2026|' short.csv > long.csv
seen=$(v/bin/python -c "
import duckdb, polars
for name in ['short', 'long']:
    relation, frame = duckdb.sql(f\"FROM '{name}.csv'\"), polars.read_csv(f'{name}.csv', try_parse_dates=True)
    for reader, kind, rows in [('duckdb', relation.types[0], relation.fetchall()), ('polars', frame['day'].dtype, frame.rows())]:
        november = sum(cents for day, cents in rows if (day.year, day.month) == (2026, 11))
        print(name, reader, str(kind).upper(), *(day.isoformat() for day, _ in rows), 'November', november)")
echo "$seen"
[ "$seen" = "short duckdb DATE 2003-11-26 2030-11-26 2031-12-26 November 0
short polars DATE 0026-11-03 0026-11-30 0026-12-31 November 0
long duckdb DATE 2026-11-03 2026-11-30 2026-12-31 November 9043
long polars DATE 2026-11-03 2026-11-30 2026-12-31 November 9043" ]
