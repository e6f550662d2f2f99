#!/usr/bin/env bash
# currency.js 2.0.4 and dinero.js 1.9.1 (npm): a fee and its reversal.
# Guessed: 1 % of -50.50 is 1 % of 50.50 with the other sign, and two libraries of money agree.
# Seen: currency.js rounds halves towards plus infinity (0.51 and -0.50), so a reversal leaves a centavo behind;
# dinero.js rounds them to even, so that 1 % of 0.50 is a centavo in one library and nothing in the other.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund currency.js@2.0.4 dinero.js@1.9.1
seen=$(node -e "
const currency = require('currency.js'), dinero = require('dinero.js')
for (const [amount, rate] of [[50.5, 0.01], [16.75, 0.02], [0.5, 0.01]]) {
  const cents = Math.round(amount * 100)
  console.log(amount, rate, 'currency.js', currency(amount).multiply(rate).value, currency(-amount).multiply(rate).value,
    'dinero.js', dinero({ amount: cents }).multiply(rate).getAmount(), dinero({ amount: -cents }).multiply(rate).getAmount())
}")
echo "$seen"
[ "$seen" = "50.5 0.01 currency.js 0.51 -0.5 dinero.js 50 -50
16.75 0.02 currency.js 0.34 -0.33 dinero.js 34 -34
0.5 0.01 currency.js 0.01 -0 dinero.js 0 -0" ]
