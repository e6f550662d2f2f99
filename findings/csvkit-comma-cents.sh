#!/usr/bin/env bash
# csvkit 2.2.0 (PyPI): a CSV as Brazilian banks and spreadsheets write it, with semicolons and amounts of 80,53 and 1.234,56.
# Guessed: sorting changes the order of rows alone; what is no number in English stays a text, so a sum refuses it.
# Seen: csvsort writes 8053 and 1.23456: each comma is thousands, wherever it stands, and the amounts are a hundred times
# as much or a thousandth. csvstat sums them (9044.235 for 1324.99), and csvjson writes 990.0 for 9,90. Nothing warns.
# csvcut leaves the texts as they are, so the same file is right in one of the programs and wrong in the next; -L pt_BR is right.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check csvkit==2.2.0 agate==1.14.2 babel==2.19.0
printf 'day;amount\n2026-11-02;80,53\n2026-11-03;1.234,56\n2026-11-04;9,90\n' > bank.csv
# Runs a program of csvkit on the file.
run() { echo "$*: $("v/bin/$1" -d ';' "${@:2}" bank.csv | tr '\n' ' ')"; }
seen=$(run csvcut; run csvsort; run csvsort -L pt_BR; run csvstat --sum -c 2; run csvstat --sum -c 2 -L pt_BR; run csvjson)
echo "csvkit 2.2.0: $seen"
[ "$seen" = 'csvcut: day,amount 2026-11-02,"80,53" 2026-11-03,"1.234,56" 2026-11-04,"9,90" 
csvsort: day,amount 2026-11-02,8053 2026-11-03,1.23456 2026-11-04,990 
csvsort -L pt_BR: day,amount 2026-11-02,80.53 2026-11-03,1234.56 2026-11-04,9.90 
csvstat --sum -c 2: 9044.235 
csvstat --sum -c 2 -L pt_BR: 1324.99 
csvjson: [{"day": "2026-11-02", "amount": 8053.0}, {"day": "2026-11-03", "amount": 1.23456}, {"day": "2026-11-04", "amount": 990.0}]' ]
