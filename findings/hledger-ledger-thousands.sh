#!/usr/bin/env bash
# hledger 1.25 and ledger 3.3.0 (Debian 12): amounts as Brazilians write them, in a file without a commodity directive.
# Guessed: a lone point is decimal for both, or thousands for both once 1.234,56 stands in the file.
# Seen: after 1.234,56 hledger reads 1.234 as one and a bit, ledger as one thousand; with the two lines in the other
# order both read one and a bit. Neither warns. One file, two balances: 1.235,794 and 2.468,56.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
packages=(hledger=1.25-2+b5 ledger=3.3.0-3 libboost-filesystem1.74.0 libboost-iostreams1.74.0 libboost-python1.74.0
  libboost-regex1.74.0 libgmp10 libicu72 libmpfr6 libpython3.11 libffi8 libtinfo6)
apt-get download -qq "${packages[@]}" > /dev/null 2>&1
for package in *.deb; do dpkg -x "$package" .; done
libraries=$(find "$work/usr/lib" "$work/lib" -maxdepth 1 -type d -name '*-linux-gnu' | paste -sd:)
# Runs a program of the packages.
run() { LD_LIBRARY_PATH=$libraries "$work/usr/bin/$1" "${@:2}"; }
printf '2026-11-02 sale\n    Assets:Bank      1.234,56 BRL\n    Income:Sales\n\n' > cents
printf '2026-11-03 sale\n    Assets:Bank      1.234 BRL\n    Income:Sales\n\n' > thousand
seen=$(for order in "cents thousand" "thousand cents"; do
  read -r first second <<< "$order"
  cat "$first" "$second" > books.journal
  echo "$order: hledger $(run hledger -f books.journal balance Assets --no-total | xargs)," \
    "ledger $(run ledger --args-only -f books.journal balance Assets | xargs)"
done)
echo "$seen"
[ "$seen" = "cents thousand: hledger 1.235,794 BRL Assets:Bank, ledger 2.468,56 BRL Assets:Bank
thousand cents: hledger 1.235,794 BRL Assets:Bank, ledger 1.235,794 BRL Assets:Bank" ]
