#!/usr/bin/env bash
# iso20022.js 0.0.15 (npm): entries of a camt.053 statement, of account 0012345.
# Guessed: amounts are whole centavos, since the type says minor units; a reversal and a pending entry can be told.
# Seen: the text becomes a float times 100: 1.15 is 114.99999999999999 and 80.10 is 8009.999999999999, so that cutting
# off or comparing loses a centavo; the account is 12345; a reversal (RvslInd true) says false, and of a pending entry
# (PDNG) the status is gone: it adds up like a booked one.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund iso20022.js@0.0.15
cat > read.mjs <<'JS'
import { CashManagementEndOfDayReport } from 'iso20022.js'
const day = '<Dt>2026-11-01</Dt>'
const entry = (amount, status, reversal = '') => `<Ntry><Amt Ccy="BRL">${amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd>${reversal}
  <Sts>${status}</Sts><BookgDt>${day}</BookgDt><ValDt>${day}</ValDt><BkTxCd><Prtry><Cd>PIX</Cd></Prtry></BkTxCd></Ntry>`
const text = `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt>
  <GrpHdr><MsgId>M</MsgId><CreDtTm>2026-11-02T08:00:00</CreDtTm></GrpHdr>
  <Stmt><Id>S</Id><ElctrncSeqNb>1</ElctrncSeqNb><CreDtTm>2026-11-02T08:00:00</CreDtTm><Acct><Id><Othr><Id>0012345</Id></Othr></Id>
  <Ccy>BRL</Ccy><Svcr><FinInstnId><BIC>BRASBRRJ</BIC></FinInstnId></Svcr></Acct>
  <Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="BRL">100.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt>${day}</Dt></Bal>
  <Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="BRL">181.25</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt>${day}</Dt></Bal>
  ${entry('1.15', 'BOOK')}${entry('80.10', 'BOOK', '<RvslInd>true</RvslInd>')}${entry('8.57', 'PDNG')}</Stmt></BkToCstmrStmt></Document>`
const [statement] = CashManagementEndOfDayReport.fromXML(text).statements
console.log('account', statement.account.accountNumber)
for (const entry of statement.entries) console.log(entry.amount, 'reversal', entry.reversal, JSON.stringify(entry).match(/PDNG|BOOK/)?.[0] ?? 'no status')
JS
seen=$(node read.mjs)
echo "iso20022.js 0.0.15: $seen"
[ "$seen" = "account 12345
114.99999999999999 reversal false no status
8009.999999999999 reversal false no status
857 reversal false no status" ]
