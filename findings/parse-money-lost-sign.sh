#!/usr/bin/env bash
# parse-money 1.0.12 beside parsecurrency 1.1.1 (npm): amounts as Brazilian statements and spreadsheets print them.
# Guessed: two parsers that know R$ 1.234,56 also know a debit, and refuse a third decimal.
# Seen: parse-money drops the sign, so a debit is a credit; parsecurrency keeps a minus and drops the parentheses in which
# accountants put a negative. A third decimal makes thousands in both: R$ 0,505 is 505 reais.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund parse-money@1.0.12 parsecurrency@1.1.1
seen=$(node -e "
const parseMoney = require('parse-money').default, parseCurrency = require('parsecurrency')
for (const text of ['R\$ 1.234,56', '-R\$ 10,50', 'R\$ -10,50', '(R\$ 10,50)', 'R\$ 0,505'])
  console.log(text, parseMoney(text)?.amount, parseCurrency(text)?.value)")
echo "$seen"
[ "$seen" = 'R$ 1.234,56 1234.56 1234.56
-R$ 10,50 10.5 -10.5
R$ -10,50 10.5 -10.5
(R$ 10,50) 10.5 10.5
R$ 0,505 505 505' ]
