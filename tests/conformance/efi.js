// Efí's own client orders transfers and looks them up. Argument: JSON of port, certificate, key, client and PIX key.
const https = require("https");

const given = JSON.parse(process.argv[2]);
// The client knows one host, and here its name leads to the player.
const createConnection = https.Agent.prototype.createConnection;
https.Agent.prototype.createConnection = function (options, done) {
  const here = { ...options, servername: options.host, host: "127.0.0.1", port: given.port };
  return createConnection.call(this, here, done);
};
const client = require("sdk-node-apis-efi");
const EfiPay = client.default ?? client;
const efi = new EfiPay({
  sandbox: false,
  client_id: given.client_id,
  client_secret: given.client_secret,
  certificate: given.certificate,
  pemKey: given.certificate_key,
});
const told = (call) => call.then((answer) => ({ answer }), (refusal) => ({ refusal }));
const to = (favorecido) => ({ valor: "10.50", pagador: { chave: given.key }, favorecido });
const account = {
  nome: "Ana Prado", cpf: "52998224725", codigoBanco: "60701190", agencia: "1234", conta: "567890", tipoConta: "cacc",
};

(async () => {
  const [one, other] = given.ids;
  const said = {
    sent: await told(efi.pixSend({ idEnvio: one }, to({ chave: "maria@example.com" }))),
    again: await told(efi.pixSend({ idEnvio: one }, to({ chave: "maria@example.com" }))),
    account: await told(efi.pixSend({ idEnvio: other }, to({ contaBanco: account }))),
    nameless: await told(efi.pixSend({}, to({ chave: "maria@example.com" }))),
    unknown: await told(efi.pixSend({ idEnvio: "b".repeat(32) }, to({ chave: given.unknown_key }))),
    found: await told(efi.pixSendDetailId({ idEnvio: one })),
    none: await told(efi.pixSendDetailId({ idEnvio: "b".repeat(32) })),
    list: await told(efi.pixSendList({ inicio: "2020-01-01T00:00:00Z", fim: "2099-01-01T00:00:00Z" })),
  };
  console.log(JSON.stringify(said));
})();
