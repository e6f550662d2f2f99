#!/usr/bin/env bash
# beanquery 0.2.0 with beancount 3.2.3 (PyPI): books with sales of 80 and 120 and a fee of 0.50, the balance of each
# account as CSV.
# Guessed: `-f csv` writes the amounts of the books; to how many decimals they are shown is a matter of tables for people.
# Seen: each amount is rounded to the number of decimals that most amounts of the file have, here none: the fee is 0 BRL,
# and the bank has 200 BRL instead of 199.50. With --numberify the fee is an empty cell. sum(number) in the same line is
# right.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check beanquery==0.2.0 beancount==3.2.3
cat > books.beancount <<'BEANCOUNT'
2026-01-01 open Assets:Bank
2026-01-01 open Income:Sales
2026-01-01 open Expenses:Fees

2026-11-03 * "Maria"
  Assets:Bank    80 BRL
  Income:Sales  -80 BRL

2026-11-03 * "Ana"
  Assets:Bank    120 BRL
  Income:Sales  -120 BRL

2026-11-04 * "Fee"
  Assets:Bank    -0.50 BRL
  Expenses:Fees   0.50 BRL
BEANCOUNT
query='SELECT account, sum(position) AS sum, sum(number) AS number GROUP BY account ORDER BY account'
seen=$({ v/bin/bean-query -f csv books.beancount "$query"; v/bin/bean-query -f csv --numberify books.beancount "$query"; } | tr -d ' \r')
echo "beanquery 0.2.0: $seen"
[ "$seen" = "account,sum,number
Assets:Bank,200BRL,199.50
Expenses:Fees,0BRL,0.50
Income:Sales,-200BRL,-200
account,sum(BRL),number
Assets:Bank,200,199.50
Expenses:Fees,,0.50
Income:Sales,-200,-200" ]
