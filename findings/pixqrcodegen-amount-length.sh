#!/usr/bin/env bash
# pixqrcodegen 0.9.1 (PyPI): a static PIX code of ten reais.
# Guessed: 10 and 10.00 make the same code, or the first is refused.
# Seen: the length of field 54 is that of the text that was given, the amount in it has two decimals: 10 is written as
# 02 10.00, so a reader takes 10 and meets .00 as the next field; 10.005 is 06 with five characters, and takes a digit
# of the field behind it. The code itself has the checksum of these wrong bytes, which is right.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check pixqrcodegen==0.9.1
seen=$(v/bin/python -c "
from pixqrcodegen import Payload
for amount in ['10.00', '10', '10,5', '10.005']:
    payload = Payload('Loja Azul', '11144477735', amount, 'SAO PAULO', 'PEDIDO1', '.')
    print(amount, payload.transactionAmount, payload.countryCode)")
echo "pixqrcodegen 0.9.1: $seen"
[ "$seen" = "10.00 540510.00 5802BR
10 540210.00 5802BR
10,5 540410.50 5802BR
10.005 540610.01 5802BR" ]
