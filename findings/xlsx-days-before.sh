#!/usr/bin/env bash
# xlsx 0.18.5 (SheetJS, npm) in Brazil's time zone: a CSV with amounts of 2026-11-30, 2026-12-01 and 03/11/2026, written
# as CSV.
# Guessed: a day without a time is that day in every time zone, as it stands in the file.
# Seen: each is the day before: money of 1 December is of 30 November, which is another month. As a number the first is
# 46355.8747, 20:59:32 of the 29th. 03/11/2026 is read month first, and comes out as 10 March. In UTC the first two are
# right. With raw: true the texts stay as they are.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund xlsx@0.18.5
printf 'day,amount\n2026-11-30,80.53\n2026-12-01,19.99\n03/11/2026,5.00\n' > bank.csv
cat > read.js <<'JS'
const XLSX = require('xlsx'), sheet = raw => XLSX.readFile('bank.csv', { raw }).Sheets.Sheet1
for (const raw of [false, true]) console.log(...XLSX.utils.sheet_to_csv(sheet(raw)).trim().split('\n').slice(1))
console.log(...XLSX.utils.sheet_to_json(sheet(false)).map(row => row.day.toFixed(4)))
JS
seen=$(for zone in America/Sao_Paulo UTC; do TZ=$zone node read.js; done)
echo "xlsx 0.18.5: $seen"
[ "$seen" = "11/29/26,80.53 11/30/26,19.99 3/10/26,5.00
2026-11-30,80.53 2026-12-01,19.99 03/11/2026,5.00
46355.8747 46356.8747 46091.9997
11/30/26,80.53 12/1/26,19.99 3/11/26,5.00
2026-11-30,80.53 2026-12-01,19.99 03/11/2026,5.00
46356.0000 46357.0000 46092.0000" ]
