/** Plain HTTP to the Worker's front door, and the expectations for its answers. */
import { exports } from "cloudflare:workers";
import { expect } from "vitest";
import { z } from "zod";
import type { Principal } from "../../src/shared/principal.ts";

export const ADMIN: Principal = { subject: "ada", tenant: "http", roles: ["admin"] };
export const MEMBER: Principal = { subject: "mel", tenant: "http", roles: ["member"] };
export const STRANGER: Principal = { subject: "ada", tenant: "elsewhere", roles: ["admin"] };
export const persona = { identity: { systemPrompt: "You are a test." } };

/** Fields that answers have, one or the other; the assertions say which. */
interface Body {
  id: string;
  tenant: string;
  persona: unknown;
  projectIds: string[];
  participants: unknown;
  createdAt: string;
  status: unknown;
  gate: unknown;
  usage: unknown;
  spent: unknown;
  turnId: string;
  messageId: string;
  code: string;
  errors: { path: string }[];
  agents: { id: string }[];
  conversations: { id: string }[];
  turns: { id: string }[];
  messages: { role: string; content: unknown }[];
  entries: unknown[];
  library: string;
  version: number;
  hash: string;
  definition: unknown;
  owner: string | null;
  detail: string;
  libraries: { id: string }[];
  nextCursor?: string;
}

export interface Answer {
  status: number;
  headers: Headers;
  body: Body;
}

/** The headers that every response but a WebSocket's handshake has (SHEAD-1). */
export const SECURITY_HEADERS = {
  "content-security-policy":
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

export function securityHeadersOf({ headers }: Response): Record<string, string | null> {
  return Object.fromEntries(Object.keys(SECURITY_HEADERS).map((name) => [name, headers.get(name)]));
}

export function send(
  path: string,
  init: RequestInit = {},
  principal: Principal | null = ADMIN,
): Promise<Response> {
  const headers = new Headers(init.headers);
  if (principal !== null) headers.set("x-test-principal", JSON.stringify(principal));
  return exports.default.fetch(new Request(`http://dramatis.test${path}`, { ...init, headers }));
}

export async function call(method: string, path: string, body?: unknown, principal = ADMIN): Promise<Answer> {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  return answer(await send(path, init, principal));
}

export async function answer(response: Response): Promise<Answer> {
  // SAFETY: what a test reads of a body, it asserts.
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
}

export const get = (path: string, principal = ADMIN) => call("GET", path, undefined, principal);
export const post = (path: string, body: unknown, principal = ADMIN) => call("POST", path, body, principal);

export async function createAgent(id?: string, principal = ADMIN): Promise<string> {
  const { status, body } = await post(
    "/api/agents",
    { ...(id === undefined ? {} : { id }), persona },
    principal,
  );
  expect(status).toBe(201);
  return body.id;
}

export async function createConversation(agentId: string, principal = ADMIN): Promise<string> {
  const { status, body } = await post("/api/conversations", { agentId }, principal);
  expect(status).toBe(201);
  return body.id;
}

/** Says something; the answer is the stream of its turn. */
export async function say(conversation: string, content: unknown): Promise<Response> {
  return send(`/api/conversations/${conversation}/turns`, {
    method: "POST",
    headers: { accept: "text/event-stream" },
    body: JSON.stringify({ content }),
  });
}

/** Every page of a list, one after another. */
export async function pages(
  path: string,
  resource: "agents" | "conversations",
  query: string,
  principal = ADMIN,
): Promise<string[][]> {
  const found: string[][] = [];
  let cursor: string | undefined;
  do {
    const next = cursor === undefined ? "" : `&cursor=${cursor}`;
    const { status, body } = await get(`${path}?${query}${next}`, principal);
    expect(status).toBe(200);
    found.push(body[resource].map(({ id }) => id));
    cursor = body.nextCursor;
  } while (cursor !== undefined);
  return found;
}

export const problemSchema = z.strictObject({
  type: z.literal("about:blank"),
  title: z.string().min(1),
  status: z.int(),
  detail: z.string().min(1),
  code: z.string().regex(/^[A-Z_]+$/),
  errors: z.exactOptional(
    z.array(z.strictObject({ path: z.string().regex(/^(?:\/|$)/), message: z.string().min(1) })).min(1),
  ),
});

/** Asserts a problem document that agrees with the status line. */
export function expectProblem(
  { status, headers, body }: Answer,
  expected: number,
  code: string,
  path?: string,
): void {
  expect(problemSchema.parse(body)).toMatchObject({ status: expected, code });
  expect(status).toBe(expected);
  expect(headers.get("content-type")).toBe("application/problem+json");
  if (path !== undefined) expect(body.errors.map((issue) => issue.path)).toContain(path);
}

const a2aError = z.looseObject({
  error: z.looseObject({
    details: z.array(z.looseObject({ reason: z.string().optional() })).optional(),
    data: z.array(z.looseObject({ reason: z.string().optional() })).optional(),
  }),
});

/** Returns the code of Dramatis in an error of A2A. */
export function reasonIn(body: unknown): string {
  const { details, data } = a2aError.parse(body).error;
  const [first] = details ?? data ?? [];
  return first?.reason === "TASK_NOT_FOUND" ? "NOT_FOUND" : (first?.reason ?? "");
}
