#!/usr/bin/env bash
# brbank 0.0.5 (PyPI), charges of the API Pix with one answer of an institution each (no network): 80.53 paid on 30 November at
# 22:30 in São Paulo, once with the time as 2026-12-01T01:30Z and once as 22:30-03:00, and 80.53 that was paid and returned whole.
# Guessed: the day of payment is a Brazilian day, whatever zone the time is written in, and money that went back is not paid.
# Seen: the day is cut from the time as it is written: with Z, as the Central Bank's examples have it, what is paid after 21:00 is
# of the next day, here 1 December, another month. A returned payment is LIQUIDADO with its 80.53, as the other two: the returns
# in the answer are not read.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check brbank==0.0.5
seen=$(v/bin/python -c "
import asyncio, httpx
from brbank.adapters.pix_bacen import PixBacenAdapter, PixBacenConfig
returned = [{'id': 'D1', 'rtrId': 'D' + '0' * 31, 'valor': '80.53', 'horario': {'solicitacao': '2026-11-30T15:00:00Z'}, 'status': 'DEVOLVIDO'}]
async def ask(time, returns):
    paid = {'endToEndId': 'E' + '0' * 31, 'txid': 'a' * 32, 'valor': '80.53', 'horario': time, **returns}
    charge = {'status': 'CONCLUIDA', 'txid': 'a' * 32, 'valor': {'original': '80.53'}, 'pix': [paid]}
    client = httpx.AsyncClient(transport=httpx.MockTransport(lambda request: httpx.Response(200, json=charge)))
    config = PixBacenConfig(perfil='sicoob', conta='1', chave_pix='11144477735', ambiente='sandbox', modalidade='cob', token_estatico='x')
    seen = await PixBacenAdapter(config, client=client).consultar_titulo('a' * 32)
    print(time, seen.status.value, seen.valor_pago, seen.data_pagamento)
asyncio.run(ask('2026-12-01T01:30:00.000Z', {}))
asyncio.run(ask('2026-11-30T22:30:00.000-03:00', {}))
asyncio.run(ask('2026-11-30T14:00:00.000Z', {'devolucoes': returned}))")
echo "brbank 0.0.5: $seen"
[ "$seen" = "2026-12-01T01:30:00.000Z LIQUIDADO 80.53 2026-12-01
2026-11-30T22:30:00.000-03:00 LIQUIDADO 80.53 2026-11-30
2026-11-30T14:00:00.000Z LIQUIDADO 80.53 2026-11-30" ]
