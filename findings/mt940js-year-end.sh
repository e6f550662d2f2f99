#!/usr/bin/env bash
# mt940js 1.3.5 (npm) beside mt-940 5.1.1 (PyPI): MT940 lines around New Year, whose entry date has a month and a day only.
# Guessed: the year of the entry date is the one that is nearest to the value date, as MT940 means it.
# Seen: mt940js gives it the year of the value date: money of 1 January 2027 that was booked on 31 December 2026 is booked
# on 31 December 2027, and that of 31 December booked on 1 January a year before. mt-940 has both right.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund mt940js@1.3.5
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check mt-940==5.1.1
printf ':20:R\r\n:25:001/12345\r\n:28C:1/1\r\n:60F:C261230BRL100,00\r\n:61:2701011231C8,57NTRFX//1\r\n:61:2612310101C1,15NTRFX//2\r\n:62F:C270102BRL109,72\r\n-' > new-year.sta
seen=$(node -e "
const { Parser } = require('mt940js'), day = date => date.toISOString().slice(0, 10)
for (const line of new Parser().parse(require('fs').readFileSync('new-year.sta', 'utf8'))[0].transactions)
  console.log('mt940js', line.amount, day(line.date), day(line.entryDate))"
v/bin/python -c "
import mt940
for line in mt940.parse('new-year.sta'):
    print('mt-940', line.data['amount'].amount, line.data['date'], line.data['entry_date'])")
echo "$seen"
[ "$seen" = "mt940js 8.57 2027-01-01 2027-12-31
mt940js 1.15 2026-12-31 2026-01-01
mt-940 8.57 2027-01-01 2026-12-31
mt-940 1.15 2026-12-31 2027-01-01" ]
