#!/usr/bin/env bash
# @half0wl/money 1.0.2 (npm): amounts as texts with two decimals, as the API Pix and bank files write them.
# Guessed: 80.00 is eighty reais, as 80.53 is eighty reais and 53 centavos; the README has 10.00 as 1000 minor units.
# Seen: the text becomes a number first, and a whole number is taken for centavos: 80.00 is R$ 0,80, a hundredth, while
# 80.01 is right. So only whole amounts are wrong. A thousands separator ends the number: 1,234.56 is R$ 0,01.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund @half0wl/money@1.0.2
seen=$(node -e "
const { Money } = require('@half0wl/money')
for (const text of ['80.53', '80.01', '80.00', '-80.00', '80.5', '1234.00', '1,234.56'])
  console.log(text, Money.fromString('BRL', text).getAmount())")
echo "@half0wl/money 1.0.2: $seen"
[ "$seen" = "80.53 8053
80.01 8001
80.00 80
-80.00 -80
80.5 8050
1234.00 1234
1,234.56 1" ]
