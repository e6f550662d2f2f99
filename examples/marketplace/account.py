"""Account of the marketplace: opened once by an operator, and then read from a file.

An operator opens a merchant's account, makes its API key, and reviews the sellers. In life these are steps of people;
here the operators' token does them.
"""

from __future__ import annotations

import json
import os
import urllib.request
from dataclasses import asdict, dataclass

from centavo import Refused, connect, expect
from centavo.rest import AuthenticatedClient
from centavo.rest.api.balance import get_balance
from centavo.rest.api.sub_recipients import register_recipient
from centavo.rest.models import RegistrationResponse, RegistrationRequest

URL = os.environ.get("CENTAVO_URL", "http://127.0.0.1:8080")
OPERATORS = os.environ.get("CENTAVO_OPS_URL", "http://127.0.0.1:8081")

SELLERS = [("Recebedor Um", "52998224725"), ("Recebedor Dois", "11144477735"), ("Recebedor Três", "39053344705")]
"""Name and CPF of each seller."""


@dataclass
class Account:
    """A merchant with its key, and its sellers by their ids."""

    id: str
    api_key: str
    webhook_secret: str
    sellers: list[str]

    @property
    def client(self) -> AuthenticatedClient:
        return connect(URL, self.api_key)

    @property
    def is_sandbox(self) -> bool:
        return self.api_key.startswith("test_")

    @classmethod
    def of(cls, folder: str, webhook_url: str) -> Account:
        """The account of this folder; another one is opened where the server does not know its key."""
        path = os.path.join(folder, "account.json")
        if os.path.exists(path):
            with open(path) as file:
                account = cls(**json.load(file))
            try:
                get_balance.sync(client=account.client)
                return account
            except Refused as refused:
                if refused.status != 401:
                    raise
        account = cls.opened(webhook_url)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(account), file)
        return account

    @classmethod
    def opened(cls, webhook_url: str) -> Account:
        merchant = operate("/ops/merchants", {"name": "Loja Exemplo", "document": "11222333000181", "city": "São Paulo",
                                              "split_enabled": True})
        key = operate(f"/ops/merchants/{merchant['id']}/api-keys", {"webhook_url": webhook_url})
        account = cls(merchant["id"][:8], key["api_key"], key["webhook_secret"], [])
        for name, document in SELLERS:
            body = RegistrationRequest.from_dict(registration(name, document))
            seller = expect(RegistrationResponse, register_recipient.sync(client=account.client, body=body))
            operate(f"/ops/sub-recipients/{seller.id}/approve", {})
            account.sellers.append(str(seller.id))
        return account


def operate(path: str, body: dict) -> dict:
    """A call to the operators' listener."""
    headers = {"Authorization": f"Bearer {os.environ['CENTAVO_OPS_TOKEN']}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(OPERATORS + path, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


def registration(name: str, document: str) -> dict:
    return {
        "register_information": {
            "type": "individual", "document_number": document, "name": name, "birthdate": "15/03/1990",
            "mother_name": "Mãe Exemplo", "phone_numbers": [{"ddd": "11", "number": "987654321"}],
            "address": {"street": "Rua Augusta", "number": "100", "neighborhood": "Consolação", "city": "São Paulo",
                        "state": "SP", "zip_code": "01305000"}},
        "bank_account": {"bank_code": "001", "agencia": "1234", "conta": "56789", "conta_dv": "2"},
    }
