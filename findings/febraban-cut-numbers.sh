#!/usr/bin/env bash
# febraban 0.11.0 (PyPI), CNAB 240 of Itaú (SISPAG): numbers that are longer than their field.
# Guessed: a bank named by its 8-digit ISPB, or an account of 13 digits, is refused.
# Seen: a number is cut on its right without an error: 18236120 becomes bank 182, and the account loses its last digit.
# A CNPJ with letters is refused, so are names with an accent.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check febraban==0.11.0
seen=$(v/bin/python -c "
from types import SimpleNamespace as Of
from febraban.cnab240.itau.sispag.payment.transfer import Transfer
transfer = Transfer()
bank = Of(bankId='18236120', branchCode='0001', accountNumber='1234567890123', accountVerifier='7')
transfer.setReceiver(Of(name='Loja Azul', identifier='11222333000181', bank=bank))
line = transfer.toString()
print('bank', line[20:23], 'account', line[29:41])
for name, identifier in [('Loja Azul', '12ABC34501DE35'), ('Loja Açaí', '11222333000181')]:
    try:
        transfer.setReceiver(Of(name=name, identifier=identifier, bank=bank))
    except ValueError as refusal:
        print(refusal)")
echo "febraban 0.11.0: $seen"
[ "$seen" = "bank 182 account 123456789012
You add 12ABC34501DE35 that is a non numeric value
You add Loja Açaí that is a non alphaNumeric value" ]
