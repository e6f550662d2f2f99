#!/usr/bin/env bash
# beancount-interpolate 2.5.1 with beancount 3.2.3 (PyPI): a prepaid insurance of 300.00 with a fee of 1.00 is spread over
# the days of January with the plugin split, once with the fee as the last posting and once as the first.
# Guessed: the parts sum to what was spread, whatever the order of the postings, or bean-check complains.
# Seen: a part below 0.05 waits until enough has gathered, so the fee has 15 parts and the others have 31. The last posting
# alone says on how many days something is booked: with the fee there, 146.16 of 301.00 are booked, each transaction
# balances, and bean-check finds nothing. The parts of the fee of 31 days stand on 15 days in a row of odd intervals.
# With the fee first all 301.00 are booked.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check beancount-interpolate==2.5.1 beancount==3.2.3
# Books with the postings in the order in which they are given.
books() {
  cat << BOOKS
plugin "beancount_interpolate.split"
2025-01-01 open Assets:Bank BRL
2025-01-01 open Expenses:Insurance BRL
2025-01-01 open Expenses:Fee BRL
2026-01-01 * "Insurer" "insurance"
  split: "month"
BOOKS
  printf '  %s BRL\n' "$@"
}
books "Assets:Bank -301.00" "Expenses:Insurance 300.00" "Expenses:Fee 1.00" > last.beancount
books "Expenses:Fee 1.00" "Expenses:Insurance 300.00" "Assets:Bank -301.00" > first.beancount
seen=$(for place in last first; do
  v/bin/bean-check $place.beancount
  v/bin/python -c "
from collections import Counter
from beancount import loader
from beancount.core.data import filter_txns
entries, errors, _ = loader.load_file('$place.beancount')
sums, transactions = Counter(), list(filter_txns(entries))
for transaction in transactions:
    for posting in transaction.postings: sums[posting.account] += posting.units.number
print('fee $place:', len(errors), 'errors,', len(transactions), 'days,', *(f'{name} {sums[name]}' for name in sorted(sums)))"
done)
echo "beancount-interpolate 2.5.1: $seen"
[ "$seen" = "fee last: 0 errors, 15 days, Assets:Bank -146.16 Expenses:Fee 1.00 Expenses:Insurance 145.16
fee first: 0 errors, 31 days, Assets:Bank -301.00 Expenses:Fee 1.00 Expenses:Insurance 300.00" ]
