// The schemas that two generators make for zod take every example of both descriptions.

import { readFileSync } from 'node:fs';
import { schemas as merchants } from './merchants.zod';
import { schemas as operators } from './operators.zod';
import * as heyMerchants from './merchants/zod.gen';
import * as heyOperators from './operators/zod.gen';

type Schema = { safeParse(value: unknown): { success: boolean; error?: unknown } };
type Schemas = Record<string, Schema>;

// Every value that has an example and the name of its schema: bodies of JSON, and schemas of components.
function* examples(value: unknown, name = ''): Generator<[string, unknown]> {
  if (typeof value !== 'object' || value === null) return;
  const members = value as Record<string, any>;
  const named: string = members['schema']?.$ref ?? members['$ref'] ?? name;
  if ('example' in members && named.startsWith('#/components/schemas/')) yield [named, members['example']];
  for (const [key, member] of Object.entries(members)) {
    if (key === 'schemas') {
      for (const [of, schema] of Object.entries(member)) yield* examples(schema, `#/components/schemas/${of}`);
    } else if (key !== 'example' && (!/^[a-z]+\//.test(key) || key.endsWith('json'))) {
      yield* examples(member);
    }
  }
}

function take(description: string, of: (name: string) => Schema | undefined): number {
  let taken = 0;
  for (const [reference, example] of examples(JSON.parse(readFileSync(description, 'utf8')))) {
    const name = reference.split('/').pop()!;
    const schema = of(name);
    if (!schema) throw new Error(`${description}: there is no ${name}`);
    const parsed = schema.safeParse(example);
    if (!parsed.success) throw new Error(`${description}: ${name}: ${JSON.stringify(example)}: ${parsed.error}`);
    taken += 1;
  }
  return taken;
}

const sets: [string, Schemas, Schemas][] = [
  ['openapi.json', merchants as Schemas, heyMerchants as unknown as Schemas],
  ['operations.json', operators as Schemas, heyOperators as unknown as Schemas],
];
for (const [description, zodios, hey] of sets) {
  const counts = [take(description, (name) => zodios[name]), take(description, (name) => hey[`z${name}`])];
  if (counts.some((count) => count < 100)) throw new Error(`${description}: ${counts} examples`);
}
console.log('every example was taken');
