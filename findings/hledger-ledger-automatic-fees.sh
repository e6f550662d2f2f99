#!/usr/bin/env bash
# hledger 1.25 and ledger 3.3.0 (Debian 12): sales of 80.53 and 1000.00, and an automated transaction that books an
# acquirer's fee of 1 % for each, written as ledger's manual has it (0.01).
# Guessed: both programs know automated transactions, so they book the same fees, or one of them refuses the rule.
# Seen: ledger books 10.81 BRL. hledger leaves the rule out unless --auto is given; with it a number without a currency is
# an amount, not a factor: -0.01 of no currency for each sale, whatever was sold. hledger's 1 % (*0.01) is an error in
# ledger. Nothing warns, exit 0: one file, three results.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
packages=(hledger=1.25-2+b5 ledger=3.3.0-3 libboost-filesystem1.74.0 libboost-iostreams1.74.0 libboost-python1.74.0
  libboost-regex1.74.0 libgmp10 libicu72 libmpfr6 libpython3.11 libffi8 libtinfo6)
apt-get download -qq "${packages[@]}" > /dev/null 2>&1
for package in *.deb; do dpkg -x "$package" .; done
libraries=$(find "$work/usr/lib" "$work/lib" -maxdepth 1 -type d -name '*-linux-gnu' | paste -sd:)
# Runs a program of the packages.
run() { LD_LIBRARY_PATH=$libraries "$work/usr/bin/$1" "${@:2}"; }
# Books in which the fee is written with a factor.
books() {
  cat << BOOKS
= Income:Sales
    Expenses:Fees          $2
    Liabilities:Acquirer   $1

2026-11-02 sale
    Assets:Bank      80.53 BRL
    Income:Sales

2026-11-03 sale
    Assets:Bank      1000.00 BRL
    Income:Sales
BOOKS
}
books 0.01 -0.01 > plain.journal
books '*0.01' '*-0.01' > star.journal
seen=$(for file in plain star; do
  echo "$file: ledger $(run ledger --args-only -f $file.journal balance Fees 2> /dev/null | xargs || true)," \
    "hledger $(run hledger -f $file.journal balance Fees --no-total | xargs)," \
    "hledger --auto $(run hledger -f $file.journal balance Fees --no-total --auto | xargs)"
done)
echo "$seen"
[ "$seen" = "plain: ledger 10.81 BRL Expenses:Fees, hledger , hledger --auto -0.02 Expenses:Fees
star: ledger , hledger , hledger --auto 10.81 BRL Expenses:Fees" ]
