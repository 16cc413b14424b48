/** Who enters with a token, and who does not, on the real Worker with real tokens and key sets. */
import { runInDurableObject } from "cloudflare:test";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { answer, expectProblem, persona } from "./http-client.ts";
import { ServedDocument } from "./provider.ts";
import { actorOf, type Claims, SECRET, sign, TokenServer } from "./token-server.ts";

const seconds = () => Math.floor(Date.now() / 1000);
const encoded = (value: unknown) => btoa(JSON.stringify(value)).replace(/=+$/, "");

const server = new TokenServer();
const NOBODY = "conv_01JD0000000000000000000000";
const ROUTES = [
  ["GET", "/api/agents"],
  ["POST", "/api/agents"],
  ["GET", "/api/agents/guide"],
  ["PATCH", "/api/agents/guide"],
  ["GET", "/api/conversations"],
  ["POST", "/api/conversations"],
  ["GET", `/api/conversations/${NOBODY}`],
  ["GET", `/api/conversations/${NOBODY}/turns`],
  ["POST", `/api/conversations/${NOBODY}/turns`],
  ["GET", `/api/conversations/${NOBODY}/messages`],
  ["GET", `/api/conversations/${NOBODY}/journal`],
  ["GET", `/api/conversations/${NOBODY}/events`],
  ["GET", `/conversations/${NOBODY}`],
  ["GET", `/agents/conversation/${NOBODY}`],
  ["GET", "/no/such/path"],
] as const;
const DOORS = ["/conversations/", "/agents/conversation/"];

afterEach(() => void vi.useRealTimers());

describe("tokens that are refused", () => {
  const bad: [string, () => string | Promise<string>][] = [
    ["no token", () => "garbage"],
    ["three parts of nonsense", () => "a.b.c"],
    ["another secret", () => sign({}, { key: "another secret of more than 32 bytes" })],
    [
      "a changed claim",
      async () =>
        (await sign()).replace(/\.[^.]+\./, `.${encoded({ sub: "eve", tenant: "acme", exp: 9e9 })}.`),
    ],
    [
      "no signature",
      () => `${encoded({ alg: "none" })}.${encoded({ sub: "ada", tenant: "acme", exp: 9e9 })}.`,
    ],
    ["HS512", () => sign({}, { alg: "HS512" })],
    ["HS384", () => sign({}, { alg: "HS384" })],
    [
      "an asymmetric key",
      async () => sign({}, { key: (await generateKeyPair("ES256")).privateKey, alg: "ES256" }),
    ],
    ["no expiry", () => sign({ exp: undefined })],
    ["an expiry that is no time", () => sign({ exp: 1e15 })],
    ["not yet", () => sign({ nbf: seconds() + 120 })],
    ["no subject", () => sign({ sub: undefined })],
    ["an empty subject", () => sign({ sub: "" })],
    ["a subject beyond all bounds", () => sign({ sub: "x".repeat(201) })],
    ["half a character", () => sign({ sub: "\ud800" })],
    ["no tenant", () => sign({ tenant: undefined })],
    ["a tenant that breaks a name", () => sign({ tenant: "acme:x" })],
    ["a tenant that is no text", () => sign({ tenant: ["acme"] })],
    ["roles that are no list", () => sign({ roles: "admin" })],
    ["a token beyond all bounds", () => sign({ padding: "x".repeat(8192) })],
  ];

  test.each(bad)("JWT-1, JWT-3 %s: 401 over HTTP, 4401 on sockets", async (_, make) => {
    const token = await make();
    const refused = await answer(await server.as(token, "/api/agents"));
    expectProblem(refused, 401, "UNAUTHENTICATED");
    expect(refused.headers.get("www-authenticate")).toBe(
      'Bearer error="invalid_token", error_description="The token is not valid."',
    );
    for (const door of DOORS) {
      const { response, client } = await server.knock(`${door}${NOBODY}`, ["dramatis.v1", `bearer.${token}`]);
      expect(response.headers.get("sec-websocket-protocol")).toBe("dramatis.v1");
      expect(await client?.whenClosed()).toEqual({ code: 4401 });
      expect([client?.frames, client?.others]).toEqual([[], []]);
      const plain = await server.knock(`${door}${NOBODY}`, [`bearer.${token}`]);
      expect(plain.response.status).toBe(401);
    }
  });

  test("JWT-3 an expired token is refused as expired, after half a minute of grace for clock differences", async () => {
    expect((await server.as(await sign({ exp: seconds() - 10 }), "/api/agents")).status).toBe(200);
    const expired = await answer(await server.as(await sign({ exp: seconds() - 31 }), "/api/agents"));
    expectProblem(expired, 401, "UNAUTHENTICATED");
    expect(expired.headers.get("www-authenticate")).toContain("has expired");
  });

  test("AUTH-1 every route answers only 401, without a token or with a bad token", async () => {
    const tokens = [undefined, await sign({ exp: seconds() - 100 }), await sign({}, { key: "x".repeat(32) })];
    for (const [method, path] of ROUTES) {
      for (const token of tokens) {
        const response = await (token === undefined
          ? server.fetch(path, { method })
          : server.as(token, path, { method }));
        expectProblem(await answer(response), 401, "UNAUTHENTICATED");
      }
    }
    const anonymous = await server.fetch("/api/agents");
    expect(anonymous.headers.get("www-authenticate")).toBe("Bearer");
  });

  test("BEARER-1 the scheme has any case; other schemes, URLs and, over HTTP, subprotocols carry no token", async () => {
    const token = await sign();
    const status = async (init: RequestInit, path = "/api/agents") => (await server.fetch(path, init)).status;
    for (const authorization of [`bearer ${token}`, `BEARER   ${token} `]) {
      expect(await status({ headers: { authorization } })).toBe(200);
    }
    for (const authorization of [token, `Basic ${token}`, `Bearer${token}`, `Bearer ${token} ${token}`]) {
      expect(await status({ headers: { authorization } }), authorization).toBe(401);
    }
    for (const name of ["token", "access_token", "authorization", "bearer"]) {
      expect(await status({}, `/api/agents?${name}=${token}`)).toBe(401);
    }
    expect(await status({ headers: { "sec-websocket-protocol": `dramatis.v1, bearer.${token}` } })).toBe(401);
  });
});

describe("claims", () => {
  const agents = (claims: Claims, status: number) => async () => {
    await server.call(await sign(claims), "POST", "/api/agents", status, { persona });
  };

  test("roles grant exactly their permissions; unknown roles grant no permission, and a token without roles means member", async () => {
    await agents({ roles: ["author"] }, 201)();
    await agents({ roles: ["admin", "admin", "wizard"] }, 201)();
    for (const roles of [undefined, [], ["member"], ["Admin"], ["wizard", "root"], ["operator"]]) {
      await agents({ roles }, 403)();
    }
  });

  test("an operator reads messages of other users, a member does not", async () => {
    const id = await server.conversation(await sign({ roles: ["author"] }));
    await server.call(await sign({ sub: "eve" }), "GET", `/api/conversations/${id}`, 404);
    await server.call(
      await sign({ sub: "olga", roles: ["operator"] }),
      "GET",
      `/api/conversations/${id}`,
      200,
    );
  });

  test("issuer and audience must equal the configured values", async () => {
    const strict = new TokenServer({
      AUTH_SECRET: SECRET,
      AUTH_ISSUER: "https://issuer.test",
      AUTH_AUDIENCE: "dramatis",
    });
    const iss = "https://issuer.test";
    for (const aud of ["dramatis", ["other", "dramatis"]]) {
      await strict.call(await sign({ iss, aud }), "GET", "/api/agents", 200);
    }
    const wrong = [
      {},
      { iss },
      { aud: "dramatis" },
      { iss: "https://evil.test", aud: "dramatis" },
      { iss, aud: "x" },
    ];
    for (const claims of wrong) await strict.call(await sign(claims), "GET", "/api/agents", 401);
  });

  test("a secret is rotated: while the previous secret is configured, tokens of both are accepted", async () => {
    const next = "the next secret, which is as long as it must be";
    const [old, fresh] = [await sign(), await sign({}, { key: next })];
    const rotating = new TokenServer({ AUTH_SECRET: next, AUTH_SECRET_PREVIOUS: SECRET });
    for (const token of [old, fresh]) await rotating.call(token, "GET", "/api/agents", 200);
    const rotated = new TokenServer({ AUTH_SECRET: next });
    await rotated.call(fresh, "GET", "/api/agents", 200);
    await rotated.call(old, "GET", "/api/agents", 401);
  });
});

describe("configuration", () => {
  test("AUTH-3 with tokens configured the local administrator is disabled", async () => {
    const local = { DRAMATIS_LOCAL: "1" };
    const origin = "http://127.0.0.1:8787";
    expect((await new TokenServer(local).fetch("/api/agents", {}, origin)).status).toBe(200);
    const closed = new TokenServer({ ...local, AUTH_SECRET: SECRET });
    expect((await closed.fetch("/api/agents", {}, origin)).status).toBe(401);
    expect((await closed.fetch("/health", {}, origin)).status).toBe(200);
  });

  test.each<[object, string]>([
    [{ AUTH_SECRET: "" }, "AUTH_SECRET must have at least 32 bytes"],
    [{ AUTH_SECRET: "short-and-secret" }, "AUTH_SECRET must have at least 32 bytes"],
    [{ AUTH_SECRET: SECRET, AUTH_SECRET_PREVIOUS: "short-and-secret" }, "AUTH_SECRET_PREVIOUS must have"],
    [{ AUTH_SECRET_PREVIOUS: SECRET }, "set AUTH_SECRET or AUTH_JWKS_URL"],
    [{ AUTH_ISSUER: "https://issuer.test" }, "set AUTH_SECRET or AUTH_JWKS_URL"],
    [{ AUTH_SECRET: SECRET, AUTH_ISSUER: "" }, "AUTH_ISSUER must not be empty"],
    [{ AUTH_SECRET: SECRET, AUTH_AUDIENCE: "" }, "AUTH_AUDIENCE must not be empty"],
    [{ AUTH_SECRET: SECRET, AUTH_JWKS_URL: "https://issuer.test/keys" }, "not both"],
    [{ AUTH_JWKS_URL: "" }, "AUTH_JWKS_URL must be an https address"],
    [{ AUTH_JWKS_URL: "http://issuer.test/keys" }, "AUTH_JWKS_URL must be an https address"],
    [{ AUTH_JWKS_URL: "http://localhost.issuer.test/keys" }, "AUTH_JWKS_URL must be an https address"],
  ])("JWT-2 %o refuses all callers and names the fix", async (variables, message) => {
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const wrong = new TokenServer({ DRAMATIS_LOCAL: "1", ...variables });
    const origin = "http://127.0.0.1:8787";
    for (const path of ["/health", "/api/agents", "/no/such/path"]) {
      for (const headers of [{}, { authorization: `Bearer ${await sign()}` }]) {
        const response = await wrong.fetch(path, { headers }, origin);
        const text = await response.text();
        expect(response.status, path).toBe(503);
        expect(text).toContain(message);
        expect(text).not.toContain("short-and-secret");
      }
    }
    quiet.mockRestore();
  });
});

describe("key sets", () => {
  interface Signer {
    privateKey: CryptoKey;
    jwk: JWK;
    alg: string;
    kid: string;
  }

  async function signer(alg: string, kid: string): Promise<Signer> {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
    return { privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" }, alg, kid };
  }

  const by = ({ privateKey, alg, kid }: Signer) => sign({}, { key: privateKey, alg, kid });

  let all: Signer[];

  beforeAll(async () => {
    all = await Promise.all(["RS256", "PS256", "ES256", "EdDSA"].map((alg) => signer(alg, `key-${alg}`)));
  });

  async function issuer(keys: Signer[]) {
    const document = new ServedDocument();
    await document.set({ keys: keys.map(({ jwk }) => jwk) });
    return { document, server: new TokenServer({ AUTH_JWKS_URL: document.url }) };
  }

  test("take asymmetric signatures; the keys are fetched once", async () => {
    const { document, server } = await issuer(all);
    for (const one of all) await server.call(await by(one), "GET", "/api/agents", 200);
    expect(await document.reads()).toBe(1);
    expect((await server.fetch("/health")).status).toBe(200);
  });

  test("simultaneous requests before the first keys are all accepted", async () => {
    const { server } = await issuer(all);
    const [one] = all;
    const token = await by(one as Signer);
    const answers = await Promise.all(Array.from({ length: 8 }, () => server.as(token, "/api/agents")));
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
  });

  test("JWT-1 a public key is not a secret: a token signed with it is refused", async () => {
    const { server } = await issuer(all);
    for (const { jwk, kid } of all) {
      for (const key of [JSON.stringify(jwk), jwk.n ?? jwk.x ?? ""]) {
        await server.call(await sign({}, { key, kid }), "GET", "/api/agents", 401);
      }
    }
    await server.call(await sign(), "GET", "/api/agents", 401);
    await server.call(
      `${encoded({ alg: "none", kid: "key-RS256" })}.${encoded({ sub: "a" })}.`,
      "GET",
      "/api/agents",
      401,
    );
    const forger = await signer("ES256", "key-ES256");
    await server.call(await by(forger), "GET", "/api/agents", 401);
  });

  test("keys are rotated without a restart; unknown keys cause one request in half a minute", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const [old, next, forged] = [
      await signer("ES256", "old"),
      await signer("ES256", "next"),
      await signer("ES256", "forged"),
    ];
    const { document, server } = await issuer([old]);
    await server.call(await by(old), "GET", "/api/agents", 200);
    await document.set({ keys: [next.jwk] });
    vi.setSystemTime(Date.now() + 31_000);
    await server.call(await by(next), "GET", "/api/agents", 200);
    await server.call(await by(old), "GET", "/api/agents", 401);
    for (let n = 0; n < 5; n++) await server.call(await by(forged), "GET", "/api/agents", 401);
    expect(await document.reads()).toBe(2);
  });

  test("JWT-4 keys that cannot be fetched are 503, are not asked for again at once, and then work", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const [one] = all as [Signer];
    const { document, server } = await issuer([one]);
    for (const broken of [null, { no: "keys" }]) {
      await document.set(broken);
      const before = await document.reads();
      for (let n = 0; n < 3; n++) {
        const problem = await server.call(await by(one), "GET", "/api/agents", 503);
        expect(JSON.stringify(problem)).not.toContain(document.url);
      }
      expect((await document.reads()) - before).toBe(1);
      vi.setSystemTime(Date.now() + 6_000);
    }
    await document.set({ keys: [one.jwk] });
    await server.call(await by(one), "GET", "/api/agents", 200);
    quiet.mockRestore();
  });

  test("JWT-4 fetched keys stay valid for an hour while newer keys cannot be fetched", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const [one, unknown] = [await signer("ES256", "one"), await signer("ES256", "unknown")];
    const { document, server } = await issuer([one]);
    await server.call(await by(one), "GET", "/api/agents", 200);
    await document.set(null);
    vi.setSystemTime(Date.now() + 30 * 60_000);
    await server.call(await by(one), "GET", "/api/agents", 200);
    await server.call(await by(unknown), "GET", "/api/agents", 503);
    vi.setSystemTime(Date.now() + 60 * 60_000);
    await server.call(await by(one), "GET", "/api/agents", 503);
    quiet.mockRestore();
  });
});

describe("tenants", () => {
  test("G7 two tenants with equal ids are separate on every route and socket", async () => {
    const tokens = {
      acme: await sign({ tenant: "acme", roles: ["admin"] }),
      globex: await sign({ tenant: "globex", roles: ["admin"] }),
    };
    const conversations: Record<string, string> = {};
    for (const [tenant, token] of Object.entries(tokens)) {
      const body = { id: "guide", persona: { identity: { systemPrompt: `You serve ${tenant}.` } } };
      await server.call(token, "POST", "/api/agents", 201, body);
      const created = await server.call<{ id: string }>(token, "POST", "/api/conversations", 201, {
        agentId: "guide",
      });
      conversations[tenant] = created.id;
    }
    for (const [tenant, token] of Object.entries(tokens)) {
      const other = tenant === "acme" ? "globex" : "acme";
      const agent = await server.call(token, "GET", "/api/agents/guide", 200);
      expect(agent).toMatchObject({
        tenant,
        persona: { identity: { systemPrompt: `You serve ${tenant}.` } },
      });
      for (const list of ["/api/agents?limit=200", "/api/conversations?limit=200"]) {
        const text = JSON.stringify(await server.call(token, "GET", list, 200));
        expect(text).toContain(list.includes("agents") ? '"id":"guide"' : conversations[tenant]);
        expect(text).not.toContain(conversations[other]);
        expect(text).not.toContain(other);
      }
      const path = `/api/conversations/${conversations[other]}`;
      for (const part of [
        "",
        "/turns",
        "/messages",
        "/journal",
        "/events",
        "/turns/turn_00000000000000000000000001",
      ]) {
        await server.call(token, "GET", `${path}${part}`, 404);
      }
      await server.call(token, "POST", `${path}/turns`, 404, { content: "Let me in" });
      for (const door of DOORS) {
        const client = await server.connect(token, `${door}${conversations[other]}`);
        expect(await client.whenClosed()).toEqual({ code: 4404 });
        expect(client.frames.map(({ type }) => type)).toEqual(["error"]);
      }
      await server.call(token, "GET", `/api/conversations/${conversations[tenant]}`, 200);
    }
  });
});

describe("socket doors", () => {
  test("BEARER-2 the answer names our protocol if it was offered, and never the token", async () => {
    const token = await sign({ roles: ["author"] });
    const id = await server.conversation(token);
    for (const door of DOORS) {
      const offers = [
        ["dramatis.v1", `bearer.${token}`],
        [`bearer.${token}`, "other", "dramatis.v1"],
      ];
      for (const offer of offers) {
        const { response, client } = await server.knock(`${door}${id}`, offer);
        expect(response.status).toBe(101);
        expect(response.headers.get("sec-websocket-protocol")).toBe("dramatis.v1");
        expect(JSON.stringify([...response.headers])).not.toContain(token);
        expect((await client?.frame("snapshot"))?.data.conversation.id).toBe(id);
        client?.close();
      }
      const without = await server.as(token, `${door}${id}`, { headers: { upgrade: "websocket" } });
      expect(without.status).toBe(101);
      expect(without.headers.get("sec-websocket-protocol")).toBeNull();
      without.webSocket?.accept();
      without.webSocket?.close();
    }
  });

  test("SOCKET-1 the token stays outside the actor", async () => {
    const token = await sign({ roles: ["author"] });
    const id = await server.conversation(token);
    const clients = await Promise.all(DOORS.map((door) => server.connect(token, `${door}${id}`)));
    await Promise.all(clients.map((client) => client.frame("snapshot")));
    const kept = await runInDurableObject(actorOf(id), async (_, state) =>
      JSON.stringify([
        state
          .getWebSockets()
          .map((socket) => [socket.deserializeAttachment(), state.getTags(socket), socket.url]),
        [...(await state.storage.list())],
      ]),
    );
    expect(kept).toContain('"subject":"ada"');
    for (const part of token.split(".")) expect(kept).not.toContain(part);
    for (const client of clients) client.close();
  });
});
