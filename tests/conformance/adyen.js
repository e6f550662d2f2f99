// Adyen's own library signs notifications, and judges signatures of others. Argument: JSON of the key and of bodies of notifications.
const { hmacValidator } = require("@adyen/api-library");

const given = JSON.parse(process.argv[2]);
const judge = new hmacValidator();
const said = given.bodies.map((body) => {
  const item = body.notificationItems[0].NotificationRequestItem;
  return { holds: judge.validateHMAC(item, given.key), signature: judge.calculateHmac(item, given.key) };
});
console.log(JSON.stringify(said));
