"""Says of each document on the standard input whether python-stdnum takes it for a CPF, a CNPJ or neither."""

import sys

try:
    from stdnum.br import cnpj, cpf
except ImportError:
    print("the Python package python-stdnum is missing", file=sys.stderr)
    sys.exit(3)

if not cnpj.is_valid("12ABC34501DE35"):
    print("this python-stdnum is too old for alphanumeric CNPJs", file=sys.stderr)
    sys.exit(3)

for line in sys.stdin.read().split("\n"):
    if cpf.is_valid(line):
        print("cpf")
    elif cnpj.is_valid(line):
        print("cnpj")
    else:
        print("neither")
