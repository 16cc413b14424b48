/**
 * The deployable Worker on plain workerd, as `workerd serve` runs it: it has only the storage of its own actors and
 * `DRAMATIS_LOCAL`, and no assets.
 */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Bundle, buildBundle, type WorkerConfig } from "../../bench/harness/bundle.ts";
import { type Server, serve } from "../../bench/harness/workerd.ts";
import { createClient } from "../../src/client/index.ts";

const ROOT = join(import.meta.dirname, "../..");
const deployed = JSON.parse(readFileSync(join(ROOT, "wrangler.jsonc"), "utf8")) as WorkerConfig;
const folder = mkdtempSync(join(tmpdir(), "dramatis-plain-"));
const log = join(folder, "workerd.log");

let server: Server;
let output: number;

/** Bundles a main module, under the repository's configuration without storage and assets. */
function build(name: string, main: string): Promise<Bundle> {
  const { compatibility_date, compatibility_flags, migrations } = deployed;
  const config = join(folder, `${name}.json`);
  writeFileSync(config, JSON.stringify({ name, main, compatibility_date, compatibility_flags, migrations }));
  return buildBundle(join(folder, name), config);
}

/** Serves a bundle from new databases. */
async function start(bundle: Bundle): Promise<string> {
  const directory = mkdtempSync(join(folder, "served-"));
  output = openSync(log, "w");
  server = await serve(bundle, directory, { variables: { DRAMATIS_LOCAL: "1" }, output });
  return `http://127.0.0.1:${server.port}`;
}

async function expectAnswer(baseUrl: string): Promise<void> {
  const health = await fetch(`${baseUrl}/health`);
  expect([health.status, await health.json()]).toMatchObject([200, { status: "ok" }]);
  const client = createClient({ baseUrl });
  const { id } = await client.conversations.create({ agentId: "assistant" });
  const types: string[] = [];
  for await (const { type } of client.streamTurn(id, { content: "What is 12*(3+4)?" })) types.push(type);
  expect(types).toContain("tool.completed");
  expect(types.at(-1)).toBe("turn.completed");
  const { messages } = await client.messages.list(id);
  expect(messages.at(-1)?.content).toContain("calculator answered 84");
}

/** Returns the reason why the Worker is not ready. */
async function reason(baseUrl: string): Promise<string> {
  const response = await fetch(`${baseUrl}/health`);
  expect(response.status).toBe(503);
  expect(readFileSync(log, "utf8")).toContain("The runtime is not ready");
  return ((await response.json()) as { detail: string }).detail;
}

afterEach(async () => {
  await server.stop();
  closeSync(output);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("G20 G28 a Worker with a configuration without bindings", () => {
  let bundle: Bundle;

  beforeAll(async () => {
    bundle = await build("plain", join(ROOT, "src/worker.ts"));
  });

  it("EXPORT-1 runs a turn with a tool, and workerd logs no error, no warning and no hung code", async () => {
    await expectAnswer(await start(bundle));
    await server.stop();
    expect(readFileSync(log, "utf8")).not.toMatch(/had hung|error:|warning:/i);
  });

  it("EXPORT-2 reports a class that has no storage", async () => {
    const config = { ...bundle.config, migrations: [{ new_sqlite_classes: ["Agent"] }] };
    expect(await reason(await start({ ...bundle, config }))).toContain(
      '"Conversation" is exported, but it is not a Durable Object class with storage',
    );
  });
});

it("EXPORT-3 a class of the application without storage is in /health, and in the error of a tool that calls it", async () => {
  const main = join(folder, "forgetful.ts");
  const from = (path: string) => JSON.stringify(join(ROOT, path));
  writeFileSync(
    main,
    `import { exports } from "cloudflare:workers";
     import { getAgentByName } from ${from("node_modules/agents/dist/index.js")};
     import { z } from ${from("node_modules/zod/index.js")};
     import { defineLibrary, definePersona, defineTool, dramatis } from ${from("src/index.ts")};
     import { SessionAgent } from ${from("src/actors.ts")};
     export class Shelf extends SessionAgent {}
     const tool = (name, execute) => defineTool({ name, description: name, input: z.object({}), execute });
     const tools = [
       tool("take", async () => (await getAgentByName(exports.Shelf, "acme:a")).name),
       tool("give", async () => (await getAgentByName(exports.Shef, "acme:a")).name),
     ];
     const persona = definePersona("seller", {
       identity: { systemPrompt: "You sell." },
       tools: { toolIds: ["take", "give"] },
     });
     const app = dramatis({
       libraries: [defineLibrary("shop", { tools, personas: [persona] })],
       agents: [{ id: "seller", persona: "shop/seller" }],
     });
     export const { Conversation, Agent, Executor } = app;
     export default app.handler;`,
  );
  const baseUrl = await start(await build("forgetful", main));
  const absent = ["Coordinator", "Trigger", "EventLog", "Workspace"];
  const missing = [
    ...absent.map((name) => ({ name, message: expect.stringContaining(`export const { ${name} } = app;`) })),
    { name: "Shelf", message: expect.stringContaining("Add it to `new_sqlite_classes`") },
  ];
  expect(await (await fetch(`${baseUrl}/health`)).json()).toMatchObject({
    missing: [{ name: "DB" }, { name: "BUCKET" }, ...missing],
  });
  const client = createClient({ baseUrl });
  const { id } = await client.conversations.create({ agentId: "seller" });
  const errors: unknown[] = [];
  for (const name of ["take", "give"])
    for await (const { type, data } of client.streamTurn(id, { content: `!tool ${name} {}` }))
      if (type === "tool.failed") errors.push(data);
  expect(errors).toMatchObject([
    { error: { message: expect.stringContaining("Add it to `new_sqlite_classes`") } },
    { error: { message: expect.stringContaining("The Worker does not export") } },
  ]);
});

describe("G28 a Worker that exports its classes under other names", () => {
  let bundle: Bundle;

  beforeAll(async () => {
    const main = join(folder, "renamed.ts");
    const worker = JSON.stringify(join(ROOT, "src/worker.ts"));
    writeFileSync(
      main,
      `import app, { Agent, Conversation, Executor } from ${worker};
       export { Agent as Person, Conversation as Talk, Executor as Hand };
       export default app;`,
    );
    bundle = await build("renamed", main);
    bundle.config.migrations = [{ new_sqlite_classes: ["Talk", "Person"] }];
  });

  it("EXPORT-1 runs a turn with a tool over declared bindings", async () => {
    const durable_objects = {
      bindings: [
        { name: "Conversation", class_name: "Talk" },
        { name: "Agent", class_name: "Person" },
      ],
    };
    const services = [{ binding: "Executor", entrypoint: "Hand" }];
    await expectAnswer(await start({ ...bundle, config: { ...bundle.config, durable_objects, services } }));
  });

  it("EXPORT-2 reports the class that is not found, at every entrance", async () => {
    const url = await start(bundle);
    expect(await reason(url)).toContain('The Worker does not export a class named "Conversation"');
    const detail = expect.stringContaining('"Conversation": export it under this name');
    const body = JSON.stringify({ agentId: "assistant" });
    for (const [path, init] of [["agents/assistant"], ["conversations", { method: "POST", body }]] as const) {
      const response = await fetch(`${url}/api/${path}`, init);
      expect([response.status, await response.json()]).toMatchObject([503, { code: "UNAVAILABLE", detail }]);
    }
  });
});
