// Compiles only where the description says what an event is about by its name, and what a problem has by its status.
import type { components, webhooks } from "./centavo";

type Schemas = components["schemas"];

export function about(event: Schemas["Event"]): string {
  switch (event.event) {
    case "refund.approved":
      return event.refund.charge_id + event.refund.amount.toFixed();
    case "withdrawal.rejected":
      return event.withdrawal.notes ?? "";
    case "split.available":
      return event.split.amount_cents.toFixed();
    case "subscription.charge_created":
      return event.subscription.plan_id;
    default:
      return event.timestamp;
  }
}

export function refused(problem: Schemas["Problem402"] | Schemas["Problem400"]): string {
  return problem.status === "RECUSADA" ? problem.txid : problem.message;
}

type Body<Event extends keyof webhooks> = webhooks[Event]["post"]["requestBody"]["content"]["application/json"];
type Told = Body<"event">;
export const paid = (told: Body<"charge.paid">): string => told.charge.txid ?? "";
export const order = (one: Told, other: Told): number => one.sequence - other.sequence;
