/**
 * Hostile bodies against every route with a body: each gets a typed refusal, changes no state, and leaves the Worker
 * working.
 */
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import type { z } from "zod";
import { errorStatus, pathTemplate } from "../../src/http/openapi/document.ts";
import { openAiErrorDocument } from "../../src/http/openapi/views.ts";
import { OPERATIONS } from "../../src/http/operations.ts";
import { claimText } from "../../src/protocol/operation-handle.ts";
import { FIXED_BODIES, hostileBodies, spoiled } from "../support/hostile-json.ts";
import {
  ADMIN,
  createAgent,
  createConversation,
  get,
  persona,
  post,
  problemSchema,
  reasonIn,
  send,
} from "./http-client.ts";

const principal = { ...ADMIN, tenant: "hostile" };

let agent: string;
let conversation: string;
/** The conversation that a body which is right ends for good. */
let ending: string;

beforeAll(async () => {
  agent = await createAgent("target", principal);
  expect((await post("/api/libraries/target/personas", { id: "target", ...persona }, principal)).status).toBe(
    201,
  );
  conversation = await createConversation(agent, principal);
  ending = await createConversation(agent, principal);
});

/** Everything that a body could have changed. */
async function state(): Promise<string> {
  const answers = await Promise.all(
    [
      "/api/agents?limit=200",
      `/api/agents/${agent}`,
      `/api/agents/${agent}/memories?limit=200`,
      "/api/conversations?limit=200",
      "/api/libraries?limit=200",
      ...["personas", "tools", "model-profiles", "skills"].map(
        (kind) => `/api/libraries/target/${kind}?limit=200`,
      ),
      `/api/conversations/${conversation}/journal?limit=200`,
    ].map((path) => get(path, principal)),
  );
  return JSON.stringify(answers.map(({ body }) => body));
}

/** An unsigned handle: the body is checked first. */
function handleFor(conversationId: string): string {
  const operationId = "op_01JD0000000000000000000000";
  const claim = { tenant: principal.tenant, conversationId, operationId, expiresAt: 9e12 };
  return `${claimText(claim)}.${"A".repeat(43)}`;
}

/** Reports whether the route documents the body. */
function isDocumented(schema: z.ZodType, bytes: Uint8Array): boolean {
  try {
    return schema.safeParse(JSON.parse(new TextDecoder().decode(bytes))).success;
  } catch {
    return false;
  }
}

/** The code of an error, in either shape. */
function codeIn(body: unknown, format: "openai" | "a2a" | undefined): string {
  if (format === undefined) return problemSchema.parse(body).code;
  if (format === "a2a") return reasonIn(body);
  const { code } = openAiErrorDocument.parse(body).error;
  return code === "model_not_found" ? "NOT_FOUND" : code.toUpperCase();
}

describe.each(
  OPERATIONS.flatMap((operation) =>
    operation.body === undefined ? [] : [{ ...operation, body: operation.body }],
  ),
)("BODY-2 a hostile body to $method $path", (operation) => {
  const { method, path, body: schema, optionalBody = false, errors = [], errorFormat } = operation;
  const statuses = new Set<number>(errors.map((code) => errorStatus({ errorFormat }, code)));

  /** Reports that the route takes the body: a body that may be absent may be empty, too. */
  const isAccepted = (bytes: Uint8Array) =>
    (optionalBody && bytes.length === 0) || isDocumented(schema, bytes);

  async function check(bytes: Uint8Array): Promise<void> {
    const target = path
      .replace(":library", "target")
      .replace(":project", "target")
      .replace(":repo", "target")
      .replace(":secret", "target")
      .replace(":server", "steady")
      .replace(":channel", "team-chat")
      .replace(":tenant", principal.tenant)
      .replace(
        ":id",
        /^\/(?:api\/agents|agui|a2a)/.test(path) ? agent : path.endsWith("/complete") ? ending : conversation,
      )
      .replace(":handle", handleFor(conversation))
      .replace(":operationId", "op_01JD0000000000000000000000")
      .replace(":message", "message%3Asend")
      .replace(":task", `${conversation}%3Aturn_01JD0000000000000000000000`)
      .replace(":memoryId", "mem_01JD0000000000000000000001")
      .replace(":turnId", "turn_01JD0000000000000000000000");
    expect(target, "the path has parameters that this test does not know").not.toContain(":");
    const response = await send(target, { method: method.toUpperCase(), body: bytes }, principal);
    const text = await response.text();
    if (response.status < 300) {
      expect(isAccepted(bytes), `accepted: ${text}`).toBe(true);
      return;
    }
    const code = codeIn(JSON.parse(text), errorFormat);
    expect(errors, pathTemplate(path)).toContain(code);
    expect(statuses).toContain(response.status);
  }

  test("of the fixed bodies is refused by a documented problem and leaves no trace", async () => {
    const before = await state();
    for (const bytes of FIXED_BODIES) if (!isAccepted(bytes)) await check(bytes);
    expect(await state()).toBe(before);
  });

  test("API-3 of any kind is refused by a documented problem, or is as documented", async () => {
    await fc.assert(fc.asyncProperty(hostileBodies, check), { numRuns: 25 });
  });

  test("API-3 that is right but for a field is refused by a documented problem, or is as documented", async () => {
    // SAFETY: a test of the description proves that each body has an example, which is an object.
    const example = schema.meta()?.example as Record<string, unknown>;
    const bodies = spoiled(example).map((text) => new TextEncoder().encode(text));
    await fc.assert(fc.asyncProperty(bodies, check), { numRuns: 25 });
  });

  test("leaves the Worker and its actors alive", async () => {
    expect((await send("/health", {}, null)).status).toBe(200);
    expect((await get(`/api/conversations/${conversation}`, principal)).status).toBe(200);
    expect((await get(`/api/agents/${agent}`, principal)).status).toBe(200);
  });
});
