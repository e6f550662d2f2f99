#!/usr/bin/env bash
# dinero.js 1.9.1 (npm): a sale divided among three, and the refund of the same sale.
# Guessed: a negative amount is divided like the positive one, so each party gives back what it was given.
# Seen: the odd centavo goes to the first party in the sale and is taken from the last one in the refund.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund dinero.js@1.9.1
seen=$(node -e "
const dinero = require('dinero.js')
for (const amount of [1000, -1000]) console.log(...dinero({ amount }).allocate([1, 1, 1]).map(part => part.getAmount()))")
echo "dinero.js 1.9.1: $seen"
[ "$seen" = "334 333 333
-333 -333 -334" ]
