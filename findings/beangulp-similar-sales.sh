#!/usr/bin/env bash
# beangulp 0.2.0 with beancount 3.2.3 (PyPI): books with a receipt of 80.00 of 3 November, and five lines of the bank of
# the two days after it: receipts of 83.50, 77.00 and 84.10 of other payers, a refund of 80.00, and a rent of 83.90.
# Guessed: `extract --existing` leaves out a line that the books have: one of that amount and payer, on that day or near
# it.
# Seen: within two days the payer is not compared, the amount may differ by less than 5 %, and its sign does not count.
# Refund, rent and two receipts are each a "duplicate" of the one receipt, and written as comments. One line of five is
# left: the account moves by 84.10 instead of 80.70, and the exit code is 0.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check beangulp==0.2.0 beancount==3.2.3
cat > bank.py <<'PY'
import csv, datetime, beangulp
from decimal import Decimal
from beancount.core import data

class Bank(beangulp.Importer):
    def identify(self, path): return path.endswith('.csv')
    def account(self, path): return 'Assets:Bank'
    def extract(self, path, existing):
        return [data.Transaction(data.new_metadata(path, line), datetime.date.fromisoformat(day), '*', payer, '', data.EMPTY_SET, data.EMPTY_SET,
                                 [data.Posting('Assets:Bank', data.Amount(Decimal(amount), 'BRL'), None, None, None, None)])
                for line, (day, payer, amount) in enumerate(csv.reader(open(path)), 1)]

beangulp.Ingest([Bank()])()
PY
cat > books.beancount <<'BEANCOUNT'
2026-01-01 open Assets:Bank
2026-01-01 open Income:Sales

2026-11-03 * "Maria" ""
  Assets:Bank    80.00 BRL
  Income:Sales  -80.00 BRL
BEANCOUNT
printf '%s\n' 2026-11-04,Ana,83.50 2026-11-04,Maria,-80.00 2026-11-05,Rui,77.00 2026-11-05,Rent,-83.90 2026-11-05,Lia,84.10 > bank.csv
seen=$(v/bin/python bank.py extract --existing books.beancount bank.csv 2> log | sed -n 's/"[^"]*"$//; /^; 20\|^20/p; /Assets/p' | xargs)
echo "beangulp 0.2.0: $seen"
[ "$seen" = "; 2026-11-04 * Ana ; Assets:Bank 83.50 BRL ; 2026-11-04 * Maria ; Assets:Bank -80.00 BRL ; 2026-11-05 * Rui ; Assets:Bank \
77.00 BRL ; 2026-11-05 * Rent ; Assets:Bank -83.90 BRL 2026-11-05 * Lia Assets:Bank 84.10 BRL" ]
