"""pypix-api drives the player in the dialects of its banks. Arguments: JSON of player addresses, client and key."""

import json
import sys

try:
    from pypix_api.auth.oauth2 import OAuth2Client
    from pypix_api.banks.bb import BBPixAPI
    from pypix_api.banks.inter import InterPixAPI
    from pypix_api.banks.sicoob import SicoobPixAPI
    from pypix_api.banks.sicredi import SicrediPixAPI
except ImportError as error:
    sys.stderr.write(f"{error}")
    sys.exit(77)

given = json.loads(sys.argv[1])
BANKS = {"bb": BBPixAPI, "inter": InterPixAPI, "sicoob": SicoobPixAPI, "sicredi": SicrediPixAPI}
bank, client_id, secret = given["dialect"], given["client_id"], given["secret"]
shown = {"inter": {"client_secret": secret, "client_auth": "body"}, "sicredi": {"client_secret": secret}}
# Without TLS the certificate is shown to nobody; the client only looks whether the file is there.
oauth = OAuth2Client(given["token_url"], client_id, cert=__file__, pvk=__file__, **shown.get(bank, {}))
kind = BANKS[bank]
kind.BASE_URL = given["url"]
api = kind(oauth, **({"conta_corrente": given["account"]} if bank == "inter" else {}))
txid = "a" * 32
body = {
    "calendario": {"expiracao": 3600},
    "devedor": {"cpf": "52998224725", "nome": "Fulano de Tal"},
    "valor": {"original": "10.50"},
    "chave": given["key"],
}
code = api.criar_cob(txid, body)["pixCopiaECola"]
assert api.consultar_cob(txid)["pixCopiaECola"] == code
assert api.revisar_cob(txid, {"status": "REMOVIDA_PELO_USUARIO_RECEBEDOR"})["status"].startswith("REMOVIDA")
payments = api.consultar_pix("2020-01-01T00:00:00+00:00", "2099-01-01T00:00:00Z", pagina_atual=0, itens_por_pagina=10)["pix"]
payment = payments[0]["endToEndId"]
made = api.solicitar_devolucao_pix(payment, "b" * 32, {"valor": "1.00"})
assert made == api.consultar_devolucao_pix(payment, "b" * 32)
api.configurar_webhook(given["key"], "https://pay.example.com/bell")
print(code)
