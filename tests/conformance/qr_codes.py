"""Reads the QR code of each picture, and prints its text."""

import sys

import zxingcpp
from PIL import Image

for path in sys.argv[1:]:
    found = zxingcpp.read_barcodes(Image.open(path))
    assert len(found) == 1, f"{path}: {found}"
    print(found[0].format.name, found[0].text)
