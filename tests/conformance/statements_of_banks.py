"""Prints how two readers of OFX read each of some statements, as JSON."""
import datetime
import json
import sys
import warnings
from decimal import Decimal

import ofxparse
from ofxtools.Parser import OFXTree

warnings.simplefilter("ignore")


def with_ofxparse(path):
    with open(path, "rb") as file:
        accounts = ofxparse.OfxParser.parse(file).accounts
    return [[account.number, [[line.id, centavos(line.amount), line.date.date().isoformat(), line.memo]
             for line in account.statement.transactions]] for account in accounts]


def with_ofxtools(path):
    tree = OFXTree()
    tree.parse(path)
    return [[statement.account.acctid, [[line.fitid, centavos(line.trnamt), line.dtposted.date().isoformat(), line.memo]
             for line in statement.transactions or []]] for statement in tree.convert().statements]


def centavos(amount):
    whole = Decimal(amount) * 100
    return int(whole) if whole == int(whole) else str(amount)


def read(reader, path):
    try:
        return {"accounts": reader(path)}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)[:200]}


print(json.dumps({path: {reader.__name__[5:]: read(reader, path) for reader in (with_ofxparse, with_ofxtools)}
                  for path in sys.argv[1:]}))
