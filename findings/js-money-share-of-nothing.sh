#!/usr/bin/env bash
# js-money 0.6.3 and ts-money 0.4.8 (npm): a sale of 0.05 in which the first party has no share, and its refund.
# Guessed: whoever has a share of 0 gets 0.00, and a refund takes from each what the sale gave.
# Seen: odd centavos go to the first parties whatever their share: the one without a share is given 0.01 in the sale,
# and 0.01 again in the refund, for which the other two pay: after both, 0.02 are with a party that sold nothing.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund js-money@0.6.3 ts-money@0.4.8
seen=$(node -e "
const js = require('js-money'), { Money: ts } = require('ts-money')
for (const [name, of] of [['js-money', amount => new js(amount, js.BRL)], ['ts-money', amount => new ts(amount, 'BRL')]])
  console.log(name, ...[5, -5].map(amount => of(amount).allocate([0, 50, 50]).map(part => part.amount).join(' ')))")
echo "$seen"
[ "$seen" = "js-money 1 2 2 1 -3 -3
ts-money 1 2 2 1 -3 -3" ]
