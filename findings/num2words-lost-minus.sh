#!/usr/bin/env bash
# num2words 0.5.14 (PyPI): amounts in words, as receipts and cheques have them beside the figures, in Brazilian Portuguese
# (pt_BR), Portuguese and English.
# Guessed: one call says the same amount in each language, with its minus, and rounds half a centavo one way.
# Seen: in pt_BR a debit below one real loses its minus: -0.29 is 29 centavos, as 0.29 is; -1.29 has it. An int is reais
# in pt_BR and cents in the others: 8053 is 8,053 reais, or 80 euros and 53 cents. 80.505 has 50 centavos in pt_BR, 51
# cents in the others.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check num2words==0.5.14
seen=$(v/bin/python -c "
from decimal import Decimal
from num2words import num2words
for amount in [Decimal('-0.29'), Decimal('-1.29'), 8053, Decimal('8053'), Decimal('80.505')]:
    print(amount, *[num2words(amount, lang=lang, to='currency') for lang in ['pt_BR', 'pt', 'en']], sep=' | ')")
echo "num2words 0.5.14: $seen"
[ "$seen" = "-0.29 | zero reais e vinte e nove centavos | menos zero euros e vinte e nove cêntimos | minus zero euro, twenty-nine cents
-1.29 | menos um real e vinte e nove centavos | menos um euro e vinte e nove cêntimos | minus one euro, twenty-nine cents
8053 | oito mil e cinquenta e três reais | oitenta euros e cinquenta e três cêntimos | eighty euro, fifty-three cents
8053 | oito mil e cinquenta e três reais | oito mil e cinquenta e três euros | eight thousand and fifty-three euro, zero cents
80.505 | oitenta reais e cinquenta centavos | oitenta euros e cinquenta e um cêntimos | eighty euro, fifty-one cents" ]
