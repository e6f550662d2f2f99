#!/usr/bin/env bash
# beancount 3.2.3 (PyPI): a sale whose two postings differ by four centavos, once with 80.50 and once with 80.5, as scripts
# and spreadsheets write it that drop a zero at the end. An assertion of the bank's balance follows, ten centavos too high.
# Guessed: 80.5 is 80.50, and both books are refused, as hledger and ledger refuse them.
# Seen: with 80.50 both errors are reported; with 80.5 and 80.6 bean-check finds nothing. What may be missing is half of
# the last digit of the roughest amount of a transaction (0.05 here), and the whole of it in a balance (0.1).
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check beancount==3.2.3
# Prints the errors of books with the amount of a sale and the balance that is asserted, as they are written.
check() {
  cat > books.beancount << BOOKS
2026-01-01 open Assets:Bank BRL
2026-01-01 open Income:Sales BRL
2026-11-03 * "sale"
  Assets:Bank    $1 BRL
  Income:Sales  -80.54 BRL
2026-11-04 balance Assets:Bank $2 BRL
BOOKS
  echo "$1 $2: $(v/bin/bean-check books.beancount 2>&1 | grep -oE 'Balance failed.*|Transaction does not.*' | sort | paste -sd, || true)"
}
seen=$(check 80.50 80.60; check 80.5 80.6)
echo "beancount 3.2.3: $seen"
[ "$seen" = "80.50 80.60: Balance failed for 'Assets:Bank': expected 80.60 BRL != accumulated 80.50 BRL (0.10 too little),Transaction does not balance: (-0.04 BRL)
80.5 80.6: " ]
