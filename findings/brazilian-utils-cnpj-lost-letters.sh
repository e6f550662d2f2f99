#!/usr/bin/env bash
# @brazilian-utils/brazilian-utils 2.4.0 (npm): a CNPJ with letters, as they are given out since July 2026 (here the
# sample of the Receita Federal, 12ABC34501DE35), checked, read and formatted.
# Guessed: a package whose validator knows letters knows them in its other functions; where it does not, it refuses.
# Seen: without { version: 2 } the number is not valid, and the formatter and the reader drop the letters without an
# error: 12.345.013/5 and 123450135. With the option all three are right.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund @brazilian-utils/brazilian-utils@2.4.0
seen=$(node -e "
const { isValidCnpj, formatCnpj, parseCnpj } = require('@brazilian-utils/brazilian-utils')
for (const options of [undefined, { version: 2 }]) {
  console.log(isValidCnpj('12ABC34501DE35', options), formatCnpj('12ABC34501DE35', options), parseCnpj('12.ABC.345/01DE-35', options))
}")
echo "brazilian-utils 2.4.0: $seen"
[ "$seen" = 'false 12.345.013/5 123450135
true 12.ABC.345/01DE-35 12ABC34501DE35' ]
