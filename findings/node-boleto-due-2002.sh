#!/usr/bin/env bash
# node-boleto 2.3.0 writes boletos that are due on 21 and 22 February 2025 and on 2 December 2026, read by broleto 0.0.12,
# @mrmgomes/boleto-utils 1.3.3, boleto.js 1.1.4 (npm) and shade-plugins-documentos-fiscais 0.1.0 (PyPI).
# Guessed: readers whose check digits pass read the day that was written, or refuse the line.
# Seen: the four digits of the due day ended with 9999 on 21 February 2025 and began again with 1000. node-boleto and shade
# know it; the three others call the line valid and its day 3 July 2000 and 12 April 2002, so that a boleto which is not
# due yet is 24 years overdue, and a payment planned for its day is one of the past. Amounts are right.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund node-boleto@2.3.0 broleto@0.0.12 @mrmgomes/boleto-utils@1.3.3 boleto.js@1.1.4
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check shade-plugins-documentos-fiscais==0.1.0
cat > boletos.js <<'JS'
globalThis.window = globalThis // boleto.js is made for pages
const writer = require('node-boleto').Boleto, { Boleto } = require('broleto'), utils = require('@mrmgomes/boleto-utils'), Page = require('boleto.js')
const day = date => date.toISOString().slice(0, 10)
for (const due of ['2025-02-21', '2025-02-22', '2026-12-02']) {
  const written = new writer({ banco: 'bradesco', data_emissao: new Date(), data_vencimento: new Date(due + 'T12:00Z'), valor: 8053, nosso_numero: '6',
    numero_documento: '1', cedente: 'Loja Azul', cedente_cnpj: '11222333000181', agencia: '1229', codigo_cedente: '469', carteira: '25',
    pagador: 'Maria', local_de_pagamento: '', instrucoes: '' })
  const line = written.linha_digitavel.replace(/\D/g, ''), read = new Boleto(line), checked = utils.validarBoleto(line), page = new (globalThis.Boleto ?? Page)(line)
  console.log(due, line, 'broleto', read.valid(), day(read.expirationDate()), 'boleto-utils', checked.sucesso, day(new Date(checked.vencimento)),
    'boleto.js', page.valid(), day(page.expirationDate()), page.amount())
}
JS
TZ=UTC node boletos.js > read.txt
seen=$(cat read.txt; v/bin/python -c "
from datetime import date
from shade_plugins_documentos_fiscais.linha_digitavel import decompor
for line in open('read.txt'):
    print(*(f'{name}={value}' for name, value in decompor(line.split()[1], date(2026, 11, 30)).items() if name in ('vencimento', 'valor')))")
echo "$seen"
[ "$seen" = "2025-02-21 23791229285000000000506000046901799990000008053 broleto true 2025-02-21 boleto-utils true 2025-02-21 boleto.js true 2025-02-21 80.53
2025-02-22 23791229285000000000506000046901210000000008053 broleto true 2000-07-03 boleto-utils true 2000-07-03 boleto.js true 2000-07-03 80.53
2026-12-02 23791229285000000000506000046901616480000008053 broleto true 2002-04-12 boleto-utils true 2002-04-12 boleto.js true 2002-04-12 80.53
vencimento=2025-02-21 valor=80.53
vencimento=2025-02-22 valor=80.53
vencimento=2026-12-02 valor=80.53" ]
