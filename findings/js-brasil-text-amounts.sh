#!/usr/bin/env bash
# js-brasil 2.8.0 (npm): amounts as texts, as the API Pix and JSON APIs write them, shown in reais.
# Guessed: 80.00 as a text is shown as the number 80 is, and a debit that was shown is read back as a debit.
# Seen: of a text the point is dropped: 80.00 is R$ 8.000,00, a hundred times as much, and 80.5 ten times;
# 0.50 is R$ 05,00. A number is right. currencyToNumber loses the sign of the text that the package itself wrote for a debit.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund js-brasil@2.8.0
seen=$(node -e "
const { maskBr, utilsBr } = require('js-brasil')
for (const amount of [80, '80.00', '80.5', '0.50', -10.5]) {
  const shown = maskBr.currency(amount)
  console.log(JSON.stringify(amount), shown, utilsBr.currencyToNumber(shown))
}")
echo "js-brasil 2.8.0: $seen"
[ "$seen" = '80 R$ 80,00 80
"80.00" R$ 8.000,00 8000
"80.5" R$ 805,00 805
"0.50" R$ 05,00 5
-10.5 -R$ 10,50 10.5' ]
