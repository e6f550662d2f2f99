#!/usr/bin/env bash
# openpurse 0.1.14 beside camt053 0.0.23 (PyPI): a bank's camt.053 file with the statements of two accounts: 80.53 in and
# 10.50 out on account 1, which had 100.00, and 55.00 in on account 2.
# Guessed: a reader gives all lines, each with its account, or says that it takes one statement.
# Seen: parse(), which its README shows for camt.053 too, makes one payment of the file: amount 100.00, the opening balance,
# with the end-to-end id of the first receipt, E1, for which 80.53 came. parse_detailed() gives all three lines as those of
# account 1, and the balances of both. Nothing warns. camt053 has each line with its account.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check openpurse==0.1.14 camt053==0.0.23
cat > read.py <<'PY'
from camt053 import services
from openpurse import OpenPurseParser
ACCOUNTS = [('1', '100.00', '170.03', [('E1', '80.53', 'CRDT'), ('E2', '10.50', 'DBIT')]), ('2', '10.00', '65.00', [('E3', '55.00', 'CRDT')])]
def balance(kind, amount):
    return (f'<Bal><Tp><CdOrPrtry><Cd>{kind}</Cd></CdOrPrtry></Tp><Amt Ccy="BRL">{amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd>'
        '<Dt><Dt>2026-11-03</Dt></Dt></Bal>')
def entry(id, amount, side):
    return (f'<Ntry><NtryRef>{id}</NtryRef><Amt Ccy="BRL">{amount}</Amt><CdtDbtInd>{side}</CdtDbtInd><Sts>BOOK</Sts><BookgDt><Dt>2026-11-03</Dt>'
        '</BookgDt><ValDt><Dt>2026-11-03</Dt></ValDt><BkTxCd><Prtry><Cd>PIX</Cd></Prtry></BkTxCd><NtryDtls><TxDtls><Refs>'
        f'<EndToEndId>{id}</EndToEndId></Refs></TxDtls></NtryDtls></Ntry>')
camt = ('<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt><GrpHdr><MsgId>M</MsgId><CreDtTm>2026-11-04T08:00:00</CreDtTm>'
    '</GrpHdr>' + ''.join(f'<Stmt><Id>S{account}</Id><ElctrncSeqNb>1</ElctrncSeqNb><CreDtTm>2026-11-04T08:00:00</CreDtTm><FrToDt>'
        '<FrDtTm>2026-11-03T00:00:00</FrDtTm><ToDtTm>2026-11-03T23:59:59</ToDtTm></FrToDt>'
        f'<Acct><Id><Othr><Id>{account}</Id></Othr></Id><Ccy>BRL</Ccy></Acct>{balance("OPBD", opening)}{balance("CLBD", closing)}'
        f'{"".join(entry(*line) for line in lines)}</Stmt>' for account, opening, closing, lines in ACCOUNTS) + '</BkToCstmrStmt></Document>')
parser = OpenPurseParser(camt.encode())
payment, statement = parser.parse(), parser.parse_detailed()
print('openpurse account', statement.account_id, *(line['amount'] for line in statement.entries), 'balances', *(balance['amount'] for balance in statement.balances), 'payment', payment.amount, payment.end_to_end_id)
print('camt053', *(f"{account['account']['other_id']}:{line['amount']}" for account in services.parse_statement(camt)['statements'] for line in account['entries']))
PY
seen=$(v/bin/python -W ignore read.py)
echo "$seen"
[ "$seen" = "openpurse account 1 80.53 10.50 55.00 balances 100.00 170.03 10.00 65.00 payment 100.00 E1
camt053 1:80.53 1:10.50 2:55.00" ]
