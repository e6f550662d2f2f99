#!/usr/bin/env bash
# debauto 0.2.3 (PyPI), direct debits in Febraban's 150-byte layout: a debit of 80.53 of the customer of branch 123, with
# the classes for Banco do Brasil, Caixa and Santander.
# Guessed: a number in a fixed field has its zeros in front, as the layout says and as the package does in the trailer.
# Seen: record E has them behind, in all three: the 15 digits of the amount, in centavos, are 805300000000000, eight
# trillion reais, and branch 123 is 1230, another one. The trailer has 80.53 as it should be, so the file contradicts
# itself. A branch of four digits is right, the amount never is.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check debauto==0.2.3
seen=$(v/bin/python -c "
from debauto.bancos.bb import BancoBrasil
from debauto.bancos.caixa import Caixa
from debauto.bancos.santander import Santander
from debauto.remessa import Configuracao, Debito
for bank in [BancoBrasil, Caixa, Santander]:
    for branch in ['123', '1234']:
        file = bank(Configuracao('1', '2', '3', 'Loja Azul', '1', '03/11/2026'))
        file.debitos = Debito('PEDIDO1', branch, '45678', '03/11/2026', 80.53, '03', '', '0')
        debit, trailer = file.get_debitos()[0], file.get_trailler()
        print(bank.__name__, branch, 'written', debit[26:30], 'amount', debit[52:67], 'trailer', trailer[7:24])")
echo "debauto 0.2.3: $seen"
[ "$seen" = "BancoBrasil 123 written 1230 amount 805300000000000 trailer 00000000000008053
BancoBrasil 1234 written 1234 amount 805300000000000 trailer 00000000000008053
Caixa 123 written 1230 amount 805300000000000 trailer 00000000000008053
Caixa 1234 written 1234 amount 805300000000000 trailer 00000000000008053
Santander 123 written 1230 amount 805300000000000 trailer 00000000000008053
Santander 1234 written 1234 amount 805300000000000 trailer 00000000000008053" ]
