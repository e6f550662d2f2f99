#!/usr/bin/env bash
# pix-utils 2.8.2 (npm): the amount of a static PIX code.
# Guessed: an amount of zero or below is refused, and a text of reais is the amount that was given.
# Seen: zero and a negative amount leave the field out, so the payer types any amount; a tenth of a centavo is a code
# for 0.00; 8.575 is 8.57, since it goes through a binary float.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund pix-utils@2.8.2
seen=$(node -e "
const { createStaticPix, hasError } = require('pix-utils')
for (const transactionAmount of [82.53, 0, -5, 0.001, 8.575]) {
  const pix = createStaticPix({ merchantName: 'Loja', merchantCity: 'SP', pixKey: '11144477735', transactionAmount })
  const field = hasError(pix) ? pix.message : (pix.toBRCode().match(/5303986(?:54..(.*?))?5802BR/)[1] ?? 'no amount')
  console.log(transactionAmount, field)
}")
echo "pix-utils 2.8.2: $seen"
[ "$seen" = "82.53 82.53
0 no amount
-5 no amount
0.001 0.00
8.575 8.57" ]
