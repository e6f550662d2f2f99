// Reads the PIX codes that are given as arguments, and writes what pix-utils finds in them.
const { parsePix } = require('pix-utils');
const { parseEmv } = require('pix-utils/dist/main/emvHandler');

const found = process.argv.slice(2).map((code) => {
  const pix = parsePix(code);
  if (pix.error) return { error: pix.message };
  const emv = parseEmv({ emvCode: code });
  const { type, merchantName, merchantCity, url } = pix;
  return { type, merchantName, merchantCity, url, amount: emv.getTag('54'), txid: emv.getSubTag('05', '62') };
});
console.log(JSON.stringify(found));
