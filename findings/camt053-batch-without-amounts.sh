#!/usr/bin/env bash
# camt053 0.0.23 beside pycamt 1.1.1 (PyPI): one booked entry that is a batch of two payments, and a pending entry.
# Guessed: both readers give the amount of each payment of a batch, and leave what is only pending out.
# Seen: camt053 gives the two end-to-end ids without amounts, so the batch of 150.00 cannot be matched; pycamt gives 100.00
# and 50.00. Both list the pending entry among the others; its status has to be looked at.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check camt053==0.0.23 pycamt==1.1.1
cat > statement.xml <<'XML'
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt><GrpHdr><MsgId>M</MsgId><CreDtTm>2026-11-02T08:00:00</CreDtTm></GrpHdr>
<Stmt><Id>S</Id><ElctrncSeqNb>1</ElctrncSeqNb><CreDtTm>2026-11-02T08:00:00</CreDtTm><Acct><Id><Othr><Id>1</Id></Othr></Id><Ccy>BRL</Ccy></Acct>
<Ntry><Amt Ccy="BRL">150.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><BookgDt><Dt>2026-11-01</Dt></BookgDt><ValDt><Dt>2026-11-01</Dt></ValDt>
<BkTxCd><Prtry><Cd>PIX</Cd></Prtry></BkTxCd><NtryDtls><Btch><NbOfTxs>2</NbOfTxs></Btch>
<TxDtls><Refs><EndToEndId>E1</EndToEndId></Refs><AmtDtls><TxAmt><Amt Ccy="BRL">100.00</Amt></TxAmt></AmtDtls></TxDtls>
<TxDtls><Refs><EndToEndId>E2</EndToEndId></Refs><AmtDtls><TxAmt><Amt Ccy="BRL">50.00</Amt></TxAmt></AmtDtls></TxDtls></NtryDtls></Ntry>
<Ntry><Amt Ccy="BRL">999.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>PDNG</Sts><BookgDt><Dt>2026-11-01</Dt></BookgDt><ValDt><Dt>2026-11-01</Dt></ValDt>
<BkTxCd><Prtry><Cd>CARD</Cd></Prtry></BkTxCd></Ntry></Stmt></BkToCstmrStmt></Document>
XML
seen=$(v/bin/python -c "
import camt053
from pycamt.parser import Camt053Parser
text = open('statement.xml').read()
for entry in camt053.parse_document(text).statements[0].to_dict()['entries']:
    print('camt053', entry['amount'], entry['status'], [(part['end_to_end_id'], part.get('amount')) for part in entry['details']])
for part in Camt053Parser(text.encode()).get_transactions():
    print('pycamt', part['Amount'], part['Status'], part.get('EndToEndId'))")
echo "$seen"
[ "$seen" = "camt053 150.00 BOOK [('E1', None), ('E2', None)]
camt053 999.00 PDNG []
pycamt 100.00 BOOK E1
pycamt 50.00 BOOK E2
pycamt 999.00 PDNG None" ]
