import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { ADA, request } from "./world.ts";

const PERSONA = { identity: { systemPrompt: "You keep records." } };

async function send(method: string, path: string, body?: object) {
  const response = await request(path, { method, ...(body && { body: JSON.stringify(body) }) });
  return { status: response.status, body: await response.json<{ id: string; metadata?: object }>() };
}

test("A75 the free metadata of an agent is returned unchanged, and an update replaces all of it", async () => {
  const metadata = { team: "records", tags: ["a", { deep: [1, null, true] }], "": "empty name", 名: "値" };
  const created = await send("POST", "/api/agents", { persona: PERSONA, metadata });
  expect(created).toMatchObject({ status: 201, body: { metadata } });
  const path = `/api/agents/${created.body.id}`;
  expect((await send("GET", path)).body.metadata).toEqual(metadata);
  const row = () =>
    env.DB.prepare("SELECT metadata FROM agents WHERE tenant = ?1 AND id = ?2")
      .bind(ADA.tenant, created.body.id)
      .first<string>("metadata");
  expect(JSON.parse((await row()) ?? "")).toEqual(metadata);
  await send("PATCH", path, { projectIds: ["other"] });
  expect((await send("GET", path)).body.metadata).toEqual(metadata);
  await send("PATCH", path, { metadata: { only: 1 } });
  expect((await send("GET", path)).body.metadata).toEqual({ only: 1 });
  await send("PATCH", path, { metadata: null });
  expect((await send("GET", path)).body).not.toHaveProperty("metadata");
  expect(await row()).toBeNull();
});

test.each([
  ["a list", []],
  ["a text", "text"],
  ["more than 16 KiB", { text: "x".repeat(16 * 1024) }],
  ["a lone surrogate", { text: "\ud800" }],
])("A75 metadata that is %s is refused, and no agent is created", async (_, metadata) => {
  const id = `agent-${crypto.randomUUID()}`;
  const refused = await send("POST", "/api/agents", { id, persona: PERSONA, metadata });
  expect(refused).toMatchObject({ status: 422, body: { code: "INVALID_INPUT" } });
  expect((await send("GET", `/api/agents/${id}`)).status).toBe(404);
});
