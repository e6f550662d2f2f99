#!/usr/bin/env bash
# pycamt 1.1.1 (PyPI): balances of a camt.053 statement.
# Guessed: opening and closing balance are the text of the file, a debit with a sign before it.
# Seen: a balance in debit goes through a binary float: 100.00 is -100.0, 90071992547409.93 is -90071992547409.94. A
# balance in credit stays the text that it was.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check pycamt==1.1.1
seen=$(v/bin/python -c "
from pycamt.parser import Camt053Parser
balance = '<Bal><Tp><CdOrPrtry><Cd>{}</Cd></CdOrPrtry></Tp><Amt Ccy=\"BRL\">{}</Amt><CdtDbtInd>{}</CdtDbtInd><Dt><Dt>2026-11-01</Dt></Dt></Bal>'
for amount in ['100.00', '90071992547409.93']:
    text = ('<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.02\"><BkToCstmrStmt><GrpHdr><MsgId>M</MsgId>'
        '<CreDtTm>2026-11-02T08:00:00</CreDtTm></GrpHdr><Stmt><Id>S</Id><CreDtTm>2026-11-02T08:00:00</CreDtTm><Acct><Id>'
        '<Othr><Id>1</Id></Othr></Id><Ccy>BRL</Ccy></Acct>' + balance.format('OPBD', amount, 'DBIT')
        + balance.format('CLBD', amount, 'CRDT') + '</Stmt></BkToCstmrStmt></Document>')
    statement = Camt053Parser(text.encode()).get_statement_info()[0]
    print(amount, statement['OpeningBalance'], statement['ClosingBalance'])")
echo "pycamt 1.1.1: $seen"
[ "$seen" = "100.00 -100.0 100.00
90071992547409.93 -90071992547409.94 90071992547409.93" ]
