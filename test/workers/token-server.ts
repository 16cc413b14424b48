/** The application with authentication as it is deployed, and clients that have tokens. */
import { createExecutionContext } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { SignJWT } from "jose";
import { expect } from "vitest";
import { dramatis } from "../../src/dramatis.ts";
import type { DramatisEnv } from "../../src/options.ts";
import { persona } from "./http-client.ts";
import { testLibrary } from "./library.ts";
import { Client } from "./world.ts";

/** Long enough for HS512 too, so that only the server's own choice excludes HS512. */
export const SECRET = "a secret of more than sixty-four bytes, as long as the hash of HS512 is";

const app = dramatis({
  libraries: [testLibrary],
  limits: { requests: false },
  a2a: { webhookHosts: [new URL(env.WEBHOOK_URL).host] },
});

export interface Claims {
  [claim: string]: unknown;
}

/** A token that is good for five minutes unless the claims say otherwise; `undefined` leaves a claim out. */
export function sign(
  claims: Claims = {},
  { key = SECRET, alg = "HS256", kid }: { key?: string | CryptoKey; alg?: string; kid?: string } = {},
): Promise<string> {
  const all = { sub: "ada", tenant: "acme", exp: Math.floor(Date.now() / 1000) + 300, ...claims };
  const present = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  const secret = typeof key === "string" ? new TextEncoder().encode(key) : key;
  return new SignJWT(present).setProtectedHeader({ alg, ...(kid === undefined ? {} : { kid }) }).sign(secret);
}

/** The answer to a socket: the response, and a client if it was accepted. */
export interface Knock {
  response: Response;
  client: Client | null;
}

/** The Worker with these variables. */
export class TokenServer {
  readonly #env: DramatisEnv;

  constructor(variables: object = { AUTH_SECRET: SECRET }) {
    // SAFETY: the test environment has every binding of the application; variables are added.
    this.#env = { ...env, ...variables } as unknown as DramatisEnv;
  }

  fetch(path: string, init: RequestInit = {}, origin = "http://dramatis.test"): Promise<Response> {
    return app.handler.fetch(new Request(`${origin}${path}`, init), this.#env, createExecutionContext());
  }

  as(token: string, path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${token}`);
    return this.fetch(path, { ...init, headers });
  }

  /** The body of an answer, which must have this status. */
  async call<Body = unknown>(
    token: string,
    method: string,
    path: string,
    status: number,
    body?: unknown,
  ): Promise<Body> {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const response = await this.as(token, path, init);
    const text = await response.text();
    expect(response.status, `${method} ${path}: ${text}`).toBe(status);
    return JSON.parse(text);
  }

  /** Knocks at a socket's door with subprotocols, as a browser does, and with headers that a program may add. */
  async knock(path: string, protocols: string[], extra: Record<string, string> = {}): Promise<Knock> {
    const headers = {
      ...extra,
      upgrade: "websocket",
      ...(protocols.length === 0 ? {} : { "sec-websocket-protocol": protocols.join(", ") }),
    };
    const response = await this.fetch(path, { headers });
    return { response, client: response.webSocket === null ? null : new Client(response.webSocket) };
  }

  /** An accepted client. */
  async connect(token: string, path: string): Promise<Client> {
    const { response, client } = await this.knock(path, ["dramatis.v1", `bearer.${token}`]);
    expect(response.headers.get("sec-websocket-protocol")).toBe("dramatis.v1");
    if (client === null) throw new Error(`No WebSocket: ${response.status} ${await response.text()}`);
    return client;
  }

  /** A conversation with a new agent; answers its id. */
  async conversation(token: string): Promise<string> {
    const agent = await this.call<{ id: string }>(token, "POST", "/api/agents", 201, { persona });
    const { id } = await this.call<{ id: string }>(token, "POST", "/api/conversations", 201, {
      agentId: agent.id,
    });
    return id;
  }
}

export function actorOf(conversation: string, tenant = "acme"): DurableObjectStub {
  return exports.Conversation.getByName(`${tenant}:${conversation}`);
}
