#!/usr/bin/env bash
# nodenab 1.2.1 (npm), CNAB 400 of Bradesco with the layout that it brings: computed amounts of boletos (positions 127 to
# 139 of a record 1), and the paid amount of a return file (254 to 266).
# Guessed: an amount with more than two decimals is rounded to two, and 8053 in the field is 80.53.
# Seen: the rounded decimals lose their zeros in front and are filled up behind: 3 * 0.35 is 1.50, 1.005 is 1.10, and
# 80.995 is 80.100, one digit too many, so that the fields behind it move and the record has 401. A read amount is a text,
# the reais with 0.53 behind them: 80.53 is "800.53", 8.05 is "80.05". 80.00 is the number 80.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund nodenab@1.2.1
seen=$(node -e "
const { Layout, Remessa, RemessaFile, RetornoFile } = require('nodenab'), fields = require('nodenab/layouts/237/400/cobranca.json')
const layout = new Layout(237, '400', fields, { loadFromFile: false })
const blank = item => item.default ?? (item.picture.startsWith('X') ? '' : 0)
for (const amount of [80.53, 3 * 0.35, 1.005, 80.995]) {
  const order = new Remessa(layout), batch = order.novoLote(1), detail = { segmento_1: {} }
  for (const part of ['header', 'trailer'])
    for (const [name, item] of Object.entries(fields.remessa[part + '_arquivo'])) order[part].set(name, blank(item))
  for (const [name, item] of Object.entries(fields.remessa.detalhes.segmento_1)) detail.segmento_1[name] = blank(item)
  detail.segmento_1.valor = amount
  batch.inserirDetalhe(detail)
  order.inserirLote(batch)
  const record = new RemessaFile(order).generate().split('\r\n')[1]
  console.log(amount, record.slice(126, 139), record.length)
}
for (const paid of ['8053', '805', '8000']) {
  const record = ('1'.padEnd(253, '0') + paid.padStart(13, '0')).padEnd(400, '0')
  const file = ['0'.padEnd(400, '0'), record, '9'.padEnd(400, '0')].join('\r\n') + '\r\n'
  console.log(paid, JSON.stringify(new RetornoFile(layout, file).generate().toJSON().lotes[0].titulos[0][1].valor_pago))
}")
echo "nodenab 1.2.1: $seen"
[ "$seen" = '80.53 0000000008053 400
1.0499999999999998 0000000000150 400
1.005 0000000000110 400
80.995 0000000008010 401
8053 "800.53"
805 "80.05"
8000 80' ]
