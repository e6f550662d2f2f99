#!/usr/bin/env bash
# ezmoney 1.0.3 (npm): amounts in reais as numbers, and a sale divided among three and its refund.
# Guessed: BRL has two decimals, so 8.57 as a number is 8.57 as a text, and a refund takes from each what it was given.
# Seen: without a precision a number is rounded to whole reais, whatever the currency: 8.57 is 9, 0.29 is nothing. The odd
# centavo goes to the last party in a sale and is taken from the first one in its refund.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund ezmoney@1.0.3
seen=$(node -e "
const { fromNumber, fromString, toString, allocate } = require('ezmoney')
for (const amount of [8.57, 80.1, 0.29]) console.log(amount, toString(fromNumber(amount, 'BRL')), toString(fromString('BRL ' + amount)))
for (const text of ['BRL 10.00', 'BRL -10.00']) console.log(...allocate(fromString(text), [1, 1, 1]).map(toString))")
echo "ezmoney 1.0.3: $seen"
[ "$seen" = "8.57 BRL 9 BRL 8.57
80.1 BRL 80 BRL 80.1
0.29 BRL 0 BRL 0.29
BRL 3.33 BRL 3.33 BRL 3.34
BRL -3.34 BRL -3.33 BRL -3.33" ]
