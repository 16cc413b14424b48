/** The complete content of the Worker's stores, as texts, to search for forbidden content. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect } from "vitest";

export async function rowsOfD1(): Promise<string> {
  const tables = await env.DB.prepare(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '_cf_%'",
  ).all<{ name: string }>();
  const texts: string[] = [];
  for (const { name } of tables.results)
    texts.push(JSON.stringify((await env.DB.prepare(`SELECT * FROM "${name}"`).all()).results));
  return texts.join("\n");
}

/** The keys and contents of all objects. */
export async function objectsOfR2(): Promise<string> {
  const { objects } = await env.BUCKET.list();
  const texts = objects.map(async ({ key }) => `${key} ${await (await env.BUCKET.get(key))?.text()}`);
  return (await Promise.all(texts)).join("\n");
}

/** The texts of everything in an actor's storage. */
export function storageOf(stub: DurableObjectStub): Promise<string> {
  return runInDurableObject(stub, async (_, { storage }) => {
    const { sql } = storage;
    const decode = (value: unknown) =>
      value instanceof ArrayBuffer ? new TextDecoder().decode(value) : value;
    const tables = sql
      .exec<{ name: string }>(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '_cf_%' AND name <> 'message_words'",
      )
      .toArray();
    const texts = tables.map(({ name }) =>
      JSON.stringify(
        sql
          .exec(`SELECT * FROM "${name}"`)
          .toArray()
          .map((row) => Object.values(row).map(decode)),
      ),
    );
    return [...texts, JSON.stringify([...storage.kv.list()])].join("\n");
  });
}

/** Waits until an actor stores no copy of a text. */
export async function expectErased(stub: DurableObjectStub, text: string): Promise<void> {
  await expect.poll(() => storageOf(stub)).not.toContain(text);
}
