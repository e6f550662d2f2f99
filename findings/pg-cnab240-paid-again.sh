#!/usr/bin/env bash
# pg-cnab240 1.0.5 (PyPI), CNAB 240 of Itaú (SISPAG): one process writes a file of payments on 3 November and another one
# on 4 November, and reads the first one again.
# Guessed: a new File begins without payments, and what is read is what was written.
# Seen: all files of a process share one list. The file of the 4th orders the transfer of the 3rd once more, and its
# trailer counts both. The file that is read has the two in it as well, and its own amount of 80.53 is 000000000805300, a
# hundred times as much: the field in centavos is taken for reais, and gets two decimals more.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check pg-cnab240==1.0.5
seen=$(v/bin/python -c "
from pg_cnab240.company import Company
from pg_cnab240.file import File
from pg_cnab240.payment import Payment
company = Company('LOJA EXEMPLO', '11222333000181')
company.set_bank_acccount(341, '01234', '56789', 3)
company.set_address('Rua A', 1, '', 'Centro', 'Sao Paulo', 'SP', '01310100')
written = []
for day, payee, amount in [('03112026', 'ANA', 80.53), ('04112026', 'RUI', 19.99)]:
    file = File('itau', company)
    file.header.set_company_data(company)
    file.add_payment(Payment(type='ted', favored_name=payee, favored_bank='033', agency='01111', account='000011111111', account_digit=0,
                             favored_document_number='11222333000181', ispb_code='90400888', your_number='P' + day, pay_date=day,
                             payment_amount=amount))
    file.generate()
    written.append(file.get_content())
    print(*[' '.join([line[43:73].strip(), line[93:101], line[119:134]]) for line in file.lines if line[13] == 'A'], file.lines[-1][17:29], sep=', ')
file = File('itau')
file.read_file_content(written[0])
print(*[payment.get_attribute('payment_amount') for payment in file.payments])")
echo "pg-cnab240 1.0.5: $seen"
[ "$seen" = "ANA 03112026 000000000008053, 000001000005
ANA 03112026 000000000008053, RUI 04112026 000000000001999, 000002000008
80.53 19.99 000000000805300" ]
