"""Reads an OFX statement and prints it as JSON; with a second argument also writes it as OFX 2 there."""
import json
import sys
import xml.etree.ElementTree as ElementTree

from ofxtools.header import make_header
from ofxtools.Parser import OFXTree

tree = OFXTree()
tree.parse(sys.argv[1])
ofx = tree.convert()
statement = ofx.statements[0]
lines = [
    {"id": line.fitid, "centavos": int(line.trnamt * 100), "day": line.dtposted.date().isoformat(), "memo": line.memo}
    for line in statement.transactions
]
balance = int(statement.balance.balamt * 100)
print(json.dumps({"account": statement.account.acctid, "balance": balance, "lines": lines}))
if len(sys.argv) > 2:
    text = str(make_header(version=220)) + ElementTree.tostring(ofx.to_etree(), encoding="unicode")
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(text)
