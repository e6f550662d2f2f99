#!/usr/bin/env bash
# pypix 0.2.0 (PyPI): a static PIX code with the txid by which its payment is to be found.
# Guessed: field 62-05 has the txid that was given, at most 25 characters, and the CRC has four digits.
# Seen: the word Identificador is put before the txid, so the payment names a charge that nobody has, and a txid of 25
# characters makes one of 38; a checksum that begins with 0 loses that digit, so that the code ends a character early.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check pypix==0.2.0
seen=$(v/bin/python -c "
from pypix import Pix
def code(txid):
    pix = Pix()
    pix.set_pixkey('11144477735'); pix.set_merchant_name('Loja Azul'); pix.set_merchant_city('SAO PAULO')
    pix.set_amount(80); pix.set_txid(txid)
    return str(pix)
for txid in ['PEDIDO1', 'A' * 25]:
    print(code(txid).split('SAO PAULO')[1].split('6304')[0])
print(code('P7').split('SAO PAULO')[1])")
echo "pypix 0.2.0: $seen"
[ "$seen" = "62240520IdentificadorPEDIDO1
62420538IdentificadorAAAAAAAAAAAAAAAAAAAAAAAAA
62190515IdentificadorP76304CE3" ]
