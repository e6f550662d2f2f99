#!/usr/bin/env bash
# cielo-edi 15.14.1 (PyPI), a reader of the acquirer Cielo's settlement files: a sale of 82.53 (net 80.53), its cancellation,
# and a sale of 10.00 (net 9.80), in records D; the file's trailer has the net sum of 9.80.
# Guessed: the totals that the reader prints and returns are those of the file, in which each amount has a sign beside it.
# Seen: a net total of 170.86 beside the trailer's 9.80: the sign is a field of its own, which the totals leave out, so what
# was cancelled is added. Amounts of single records have no sign either. Nothing compares the totals with the trailer.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check cielo-edi==15.14.1
cat > write.py <<'PY'
def record(*fields):
    line = [' '] * 400
    for begin, text in fields:
        line[begin - 1:begin - 1 + len(text)] = text
    print(''.join(line))

def receivable(sign, gross, fee, net):
    record((1, 'D'), (2, '0000012345'), (54, '001'), (57, '002'), (70, '04'), (72, sign), (73, f'{gross:013}'),
        (86, '-' if sign == '+' else '+'), (87, f'{fee:013}'), (100, sign), (101, f'{net:013}'), (144, '000001'), (268, '03112026'))

record((1, '0'), (2, '0000012345'), (12, '20261103'), (20, '20261103'), (28, '20261103'), (43, 'CIELO'), (48, '04'), (71, '015'))
receivable('+', 8253, 200, 8053)
receivable('-', 8253, 200, 8053)
receivable('+', 1000, 20, 980)
record((1, '9'), (2, f'{3:011}'), (13, '+'), (14, f'{980:017}'), (42, '+'), (43, f'{1000:017}'))
PY
v/bin/python write.py > cielo.txt
seen=$(v/bin/cielo-edi cielo.txt --info 2> log | grep -oE 'Valor .*'
v/bin/python -c "
from cielo_edi.parser import CieloEDIParser
result = CieloEDIParser().processar('cielo.txt')
print('records', *(f'{line.sinal_valor_liquido} {line.valor_liquido}' for line in result.ur_agenda))
print('total', result.estatisticas.valor_liquido_total, 'trailer', result.trailer.sinal_valor_liquido, result.trailer.valor_liquido_soma,
    'refused', len(result.linhas_nao_processadas))")
echo "cielo-edi 15.14.1: $seen"
[ "$seen" = "Valor Bruto Total: R\$ 175.06
Valor Líquido Total: R\$ 170.86
records + 80.53 - 80.53 + 9.8
total 170.86 trailer + 9.8 refused 0" ]
