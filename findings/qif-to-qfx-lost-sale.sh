#!/usr/bin/env bash
# qif-to-qfx 0.1.1 (PyPI): two sales of 80.00 to one payer on one day, and a fee of 10.50, from QIF.
# Guessed: a converter writes the lines of the file, and its sum.
# Seen: the second of two equal sales is dropped, and unless --no-balance is given each line gets another one that
# takes it back: the file sums to 0.00 instead of 149.50, and says so as the bank's balance.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check qif-to-qfx==0.1.1
printf '!Type:Bank\nD11/02/2026\nT80.00\nPMaria\n^\nD11/02/2026\nT80.00\nPMaria\n^\nD11/03/2026\nT-10.50\nPTarifa\n^\n' > bank.qif
seen=$(for options in "" --no-balance; do
  # shellcheck disable=SC2086
  v/bin/qif-to-qfx bank.qif -o bank.qfx $options > log
  echo "amounts $(grep -o 'TRNAMT>.*' bank.qfx | cut -d'>' -f2 | xargs), balance $(grep -o 'BALAMT>.*' bank.qfx | cut -d'>' -f2)"
done)
echo "qif-to-qfx 0.1.1: $seen"
[ "$seen" = "amounts 80.00 -10.50 10.50 -80.00, balance 0.00
amounts 80.00 -10.50, balance 69.50" ]
