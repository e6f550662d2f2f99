#!/usr/bin/env bash
# money-math 2.6.3 (npm): fees of a sale and of its refund, amounts as texts.
# Guessed: arbitrary precision and no floats, so 2 % of -80.25 is 2 % of 80.25 with the other sign.
# Seen: each product and quotient is rounded by adding half a centavo towards plus and cutting off towards zero: a
# negative result is a centavo or two short (-1.59 beside 1.61), and 1 % of -0.50 is +0.01, with the sign turned.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund money-math@2.6.3
seen=$(node -e "
const { mul, percent, div } = require('money-math')
for (const amount of ['80.25', '0.50', '100.00', '20.00'])
  console.log(amount, [amount, '-' + amount].map(text => [mul(text, '0.02'), percent(text, '1.00'), div(text, '3.00')].join(' ')).join(' | '))")
echo "money-math 2.6.3: $seen"
[ "$seen" = "80.25 1.61 0.80 26.75 | -1.59 -0.79 -26.75
0.50 0.01 0.01 0.17 | -0.01 0.01 -0.15
100.00 2.00 1.00 33.33 | -2.00 -1.00 -33.33
20.00 0.40 0.20 6.67 | -0.40 -0.20 -6.65" ]
