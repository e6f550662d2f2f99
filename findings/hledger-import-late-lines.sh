#!/usr/bin/env bash
# hledger 1.25 (Debian 12): a bank's CSV is imported on 3 November with two lines of that day, and on 4 November again,
# when the bank has added a fee to the 3rd, in front of the two, and a receipt of the 2nd that it booked late.
# Guessed: `import` takes the lines that it has not seen: the fee, the late receipt and the line of the 4th.
# Seen: it remembers the latest day and how many lines of it there were. Older days are left out, so the receipt of 55.00
# is never booked; of the 3rd the first two lines are left out, which are now the fee and Maria, and Ana is booked a
# second time. The account is at 149.98 instead of 174.49, "imported 2 new transactions", exit 0.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
apt-get download -qq hledger=1.25-2+b5 libgmp10 libffi8 libtinfo6 > /dev/null 2>&1
for package in *.deb; do dpkg -x "$package" .; done
libraries=$(find "$work/usr/lib" "$work/lib" -maxdepth 1 -type d -name '*-linux-gnu' | paste -sd:)
printf '%s\n' 'fields date, description, amount' 'currency BRL' 'account1 Assets:Bank' > bank.csv.rules
touch books.journal
# Imports a file with these lines.
import() {
  printf '%s\n' "$@" > bank.csv
  LD_LIBRARY_PATH=$libraries usr/bin/hledger -f books.journal import bank.csv
}
seen=$(import 2026-11-03,Maria,80.00 2026-11-03,Ana,19.99
import 2026-11-02,Rui,55.00 2026-11-03,Fee,-10.50 2026-11-03,Maria,80.00 2026-11-03,Ana,19.99 2026-11-04,Lia,30.00
LD_LIBRARY_PATH=$libraries usr/bin/hledger -f books.journal register Assets -O csv | cut -d, -f2,4,6,7)
echo "hledger 1.25: $seen"
[ "$seen" = 'imported 2 new transactions from bank.csv
imported 2 new transactions from bank.csv
"date","description","amount","total"
"2026-11-03","Maria","BRL80.00","BRL80.00"
"2026-11-03","Ana","BRL19.99","BRL99.99"
"2026-11-03","Ana","BRL19.99","BRL119.98"
"2026-11-04","Lia","BRL30.00","BRL149.98"' ]
