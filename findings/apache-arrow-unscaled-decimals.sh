#!/usr/bin/env bash
# pyarrow 26.0.1 (PyPI) writes an Arrow file with a column decimal128(18,2), apache-arrow 21.2.0 (npm) reads it.
# Guessed: two libraries of one project read 80.53 as 80.53; the scale is in the type of the column.
# Seen: in JavaScript the value is the number of centavos, whatever is asked of it: 8053 as text, as a number and in
# arithmetic, so a sum in reais is a hundred times as much. With scale 4 it is ten thousand times: 805300. JSON has it in
# quotes twice. Only valueOf with the scale, which the reader has to look up in the type, is 80.53.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check pyarrow==26.0.1
npm install --silent --no-audit --no-fund apache-arrow@21.2.0
v/bin/python -c "
from decimal import Decimal
import pyarrow
amounts = [Decimal('80.53'), Decimal('-10.50')]
table = pyarrow.table({'brl': pyarrow.array(amounts, pyarrow.decimal128(18, 2)), 'rate': pyarrow.array(amounts, pyarrow.decimal128(18, 4))})
with pyarrow.ipc.new_file('amounts.arrow', table.schema) as writer:
    writer.write_table(table)
print(*pyarrow.ipc.open_file('amounts.arrow').read_all()['brl'].to_pylist())" > written
seen=$(cat written; node -e "
const { tableFromIPC } = require('apache-arrow')
const table = tableFromIPC(require('fs').readFileSync('amounts.arrow'))
for (const { brl, rate } of table)
  console.log(String(brl), Number(brl), brl * 2, JSON.stringify(brl), 'scale 4:', String(rate), 'valueOf:', brl.valueOf(table.schema.fields[0].type.scale))")
echo "$seen"
[ "$seen" = '80.53 -10.50
8053 8053 16106 "\"8053\"" scale 4: 805300 valueOf: 80.53
-1050 -1050 -2100 "\"-1050\"" scale 4: -105000 valueOf: -10.5' ]
