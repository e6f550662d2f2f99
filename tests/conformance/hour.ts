// What both flows in TypeScript have in common: the receiver of webhooks, and the people.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";

export function check(holds: unknown, what: unknown): asserts holds {
  if (!holds) throw new Error(typeof what === "string" ? what : JSON.stringify(what));
}

/** The kinds of events that may have a name. */
type Named<Told, Name> = Told extends { event: infer Event } ? (Name extends Event ? Told : never) : never;

/** Receives webhooks, verifies them, and finds the first one of a name. */
export class Receiver<Told extends { event: string }> {
  secret = "";
  private heard: Told[] = [];
  private server: Server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    this.heard.push(new Webhook(this.secret).verify(body, request.headers as Record<string, string>) as Told);
    response.end();
  });

  async url(): Promise<string> {
    await new Promise<void>((done) => this.server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  async hears<Name extends Told["event"]>(name: Name): Promise<Named<Told, Name>> {
    for (let tries = 0; tries < 600; tries++) {
      const told = this.heard.find((one) => one.event === name);
      if (told) return told as Named<Told, Name>;
      await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error(`no ${name} came`);
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

export const merchant = { name: "Loja Exemplo", document: "11222333000181", split_enabled: true };

export const registration = {
  register_information: {
    type: "individual" as const, document_number: "52998224725", name: "Ana Exemplo", birthdate: "15/03/1990",
    mother_name: "Mãe Exemplo", phone_numbers: [{ ddd: "11", number: "987654321" }],
    address: {
      street: "Rua Augusta", number: "100", neighborhood: "Consolação", city: "São Paulo", state: "SP",
      zip_code: "01305000",
    },
  },
  bank_account: { bank_code: "001", agencia: "1234", conta: "56789", conta_dv: "2" },
};

export const payer = { valor: "25.90", nome: "Maria Souza", cpf: "12345678909" };

export const order = (recipient: string, number = "4111111111111111") => ({
  amount: 10_000,
  customer: { name: "Maria Souza", email: "maria@example.com", document: "12345678909" },
  credit_card: { number, holder_name: "MARIA SOUZA", exp_month: 12, exp_year: 2039, cvv: "123" },
  splits: [{ sub_recipient_id: recipient, amount: 3_500 }],
});

export const run = (flow: () => Promise<void>): void => {
  flow().then(() => console.log("the flow of a marketplace went through"), (error) => {
    console.error(error);
    process.exit(1);
  });
};
