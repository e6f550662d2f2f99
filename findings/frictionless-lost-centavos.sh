#!/usr/bin/env bash
# frictionless 5.21.0 (PyPI), the reader of Data Packages and Table Schema: a CSV of ten sales, nine of whole reais and one
# of 80.53, as spreadsheets write it that drop zeros at the end; and the same with all amounts as 10.00.
# Guessed: a reader that finds out the types of columns has a type that holds all values, or stops at one that it does not.
# Seen: what nine of ten cells have is the type of the column, here a whole number. The cell with centavos is empty in CSV,
# null in JSON and None in Python: 450 of 530.53 are left, exit 0, and no word. Only `validate`, another command, names it.
# Behind the first 100 rows no cell counts at all. With 10.00 everywhere all are right.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check frictionless==5.21.0
{ echo day,brl; for tens in 1 2 3 4 5 6 7 8 9; do echo "2026-11-02,${tens}0"; done; echo 2026-11-03,80.53; } > dropped.csv
sed '/\./!s/0$/0.00/' dropped.csv > two.csv
{ echo day,brl; for _ in $(seq 100); do echo 2026-11-02,10; done; for _ in $(seq 50); do echo 2026-11-03,80.53; done; } > late.csv
seen=$(for file in dropped two late; do
  echo "$file: $(v/bin/frictionless extract $file.csv --csv | tail -1) exit $?," \
    "json $(v/bin/frictionless extract $file.csv --json | v/bin/python -c "
import json, sys
print(json.load(sys.stdin)['$file'][-1]['brl'])")," \
    "sum $(v/bin/python -c "
from frictionless import Resource
print(sum(row['brl'] or 0 for row in Resource(path='$file.csv').read_rows()))")"
done)
echo "frictionless 5.21.0: $seen"
[ "$seen" = "dropped: 2026-11-03, exit 0, json None, sum 450
two: 2026-11-03,80.53 exit 0, json 80.53, sum 530.53
late: 2026-11-03, exit 0, json None, sum 1000" ]
