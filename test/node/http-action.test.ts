/** The action `http.request`: the allowed addresses, and the handling of answers, against a real server on loopback. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { requestHttp } from "../../src/agents/executor/actions/http-request.ts";
import { resolverAt } from "../../src/library/tasks/resolver.ts";
import { MAX_HTTP_REDIRECTS, MAX_HTTP_RESPONSE_BYTES } from "../../src/library/tasks/task-limits.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { addressProblem, hostProblem, isPrivateHost } from "../../src/shared/host-rules.ts";
import { isJson, type Json } from "../../src/shared/json.ts";

interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
}

const seen: Seen[] = [];
let answer: (request: Seen, response: ServerResponse) => void;
const servers: Server[] = [];

async function open(): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = "", url = "", headers } = request;
    const one = { method, url, headers, body: Buffer.concat(chunks).toString() };
    seen.push(one);
    answer(one, response);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

let first: string;
let second: string;

beforeAll(async () => {
  [first, second] = [await open(), await open()];
});
beforeEach(() => void seen.splice(0));
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

const never = new AbortController().signal;
const ask = (input: Json, hosts: string[] = [first], signal = never) =>
  requestHttp({ hosts }, input, { signal, idempotencyKey: "op_1/step" });
const redirect = (status: number, location: string) => (_: Seen, response: ServerResponse) =>
  void response.writeHead(status, { location }).end();

describe("HTTP-7 secrets", () => {
  const secret = "Key-Of-The-First-Host";
  const credentials = async ({ host }: URL) =>
    host === first ? [{ header: "x-api-key", value: `Key ${secret}`, secret }] : [];
  const call = (input: Json) =>
    requestHttp({ hosts: [first, second] }, input, {
      signal: never,
      idempotencyKey: "op_1/step",
      credentials,
    });

  test("go to their host only, in place of a header of the input, also before and after a redirect", async () => {
    answer = ({ url, headers: { host } }, response) =>
      url === "/end"
        ? void response.end("ok")
        : redirect(302, host === first ? `http://${second}/` : `http://${first}/end`)({} as Seen, response);
    await call({ url: `http://${first}/`, headers: { "X-Api-Key": "mine" } });
    const keys = seen.map(({ headers }) => headers["x-api-key"]);
    expect(keys).toEqual([`Key ${secret}`, undefined, `Key ${secret}`]);
  });

  test("are in no error, even if the server redirects to them", async () => {
    answer = redirect(302, `https://${secret}.example/`);
    const refused = call({ url: `http://${first}/` });
    await expect(refused).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
      message: expect.stringContaining('"[redacted].example"'),
    });
  });

  test("are in no result, even if the server sends them back", async () => {
    answer = ({ headers }, response) =>
      void response
        .writeHead(200, { "content-type": "application/json", "x-seen": headers["x-api-key"] })
        .end(JSON.stringify({ [secret]: [`It is ${secret}.`] }));
    const result = await call({ url: `http://${first}/` });
    expect(result).toMatchObject({
      headers: { "x-seen": "Key [redacted]" },
      body: { "[redacted]": ["It is [redacted]."] },
    });
  });

  test("SECRET-3 that cannot be read stop the request", async () => {
    const failing = async () => {
      throw new DramatisError("UNAVAILABLE", "The database does not answer.", { retriable: true });
    };
    const options = { signal: never, idempotencyKey: "op_1/step", credentials: failing };
    const request = requestHttp({ hosts: [first] }, { url: `http://${first}/` }, options);
    await expect(request).rejects.toMatchObject({ code: "UNAVAILABLE", retriable: true });
    expect(seen).toEqual([]);
  });
});

describe("HTTP-6 a resolver", () => {
  const records = (answers: Record<string, { type: number; data: string }[]>) => {
    answer = ({ url }, response) => {
      const { searchParams } = new URL(url, "http://resolver");
      const Answer = answers[`${searchParams.get("name")} ${searchParams.get("type")}`];
      response
        .writeHead(200, { "content-type": "application/dns-json" })
        .end(JSON.stringify({ Status: 0, Answer }));
    };
  };
  const sent: string[] = [];
  const send = async (url: URL) => {
    sent.push(url.href);
    return url.pathname === "/moved"
      ? new Response(null, { status: 302, headers: { location: "https://inside.example/" } })
      : new Response("ok");
  };
  const hosts = ["outside.example", "inside.example", "9.9.9.9", "10.0.0.7:80"];
  const resolved = (url: string) =>
    requestHttp(
      { hosts },
      { url },
      { signal: never, idempotencyKey: "op_1/step", send, resolve: resolverAt(`http://${second}/dns-query`) },
    );
  beforeEach(() => void sent.splice(0));

  test.each(["10.0.0.7", "127.0.0.1", "169.254.169.254"])(
    "refuses a name with the address %s",
    async (data) => {
      records({
        "inside.example A": [
          { type: 5, data: "alias.example." },
          { type: 1, data },
        ],
      });
      await expect(resolved("https://inside.example/")).rejects.toMatchObject({
        ...{ code: "PERMISSION_DENIED", rule: "network" },
        message: `The host "inside.example" has the private address ${data}.`,
      });
      expect(sent).toEqual([]);
    },
  );

  test.each(["::1", "fd00::7", "::ffff:10.0.0.7"])("refuses a name with the address %s", async (data) => {
    records({ "inside.example AAAA": [{ type: 28, data }] });
    await expect(resolved("https://inside.example/")).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  });

  test.each([{ Status: 2 }, { Status: 5 }, { Status: 0, TC: true }, {}])(
    "refuses a name without a complete answer: %j",
    async (reply) => {
      answer = (_, response) => void response.end(JSON.stringify(reply));
      await expect(resolved("https://inside.example/")).rejects.toMatchObject({ retriable: true });
      expect(sent).toEqual([]);
    },
  );

  test("allows public addresses, names without addresses and listed addresses, and checks redirects", async () => {
    records({
      "outside.example A": [{ type: 1, data: "93.184.216.34" }],
      "inside.example A": [{ type: 1, data: "10.0.0.7" }],
    });
    expect(await resolved("https://outside.example/")).toMatchObject({ status: 200 });
    expect(seen.map(({ url }) => url)).toEqual([
      "/dns-query?name=outside.example&type=A",
      "/dns-query?name=outside.example&type=AAAA",
    ]);
    expect(await resolved("https://9.9.9.9/")).toMatchObject({ status: 200 });
    expect(await resolved("http://10.0.0.7/")).toMatchObject({ status: 200 });
    expect(seen).toHaveLength(2);
    await expect(resolved("https://outside.example/moved")).rejects.toMatchObject({ rule: "network" });
    expect(sent.at(-1)).toBe("https://outside.example/moved");
  });

  test("that does not answer stops the request, and the error may pass", async () => {
    for (const body of ["{", '{"Answer":1}']) {
      answer = (_, response) => void response.writeHead(200).end(body);
      await expect(resolved("https://outside.example/")).rejects.toMatchObject({ retriable: true });
    }
    answer = (_, response) => void response.writeHead(500).end("{}");
    await expect(resolved("https://outside.example/")).rejects.toMatchObject({ retriable: true });
    expect(sent).toEqual([]);
  });

  test.each(["", "dns.example", "http://dns.example/", "ftp://dns.example/"])(
    "has no address %j",
    (address) => {
      expect(() => resolverAt(address)).toThrow("`tasks.resolver` is");
    },
  );
});

describe("HOSTS-1 HOSTS-2 the hosts of an action", () => {
  test.each([
    ["https://api.example.com/x", null],
    ["https://api.example.com:443/x", null],
    ["http://api.example.com/x", "The port 80"],
    ["http://api.example.com:443/x", "Plain HTTP"],
    ["https://api.example.com:8443/x", "The port 8443"],
    ["https://other.example.com/", 'The host "other.example.com"'],
    ["https://api.example.com.evil.com/", "The host"],
    ["https://api.example.com@evil.com/", "user name"],
    ["https://user:pw@api.example.com/", "user name"],
    ["ftp://api.example.com/", 'The scheme "ftp:"'],
    ["http://127.0.0.1:8080/", null],
    ["http://127.0.0.1:8081/", "The host"],
    ["http://2130706433:8080/", null],
    ["http://0x7f.1:9/", "The host"],
    ["https://localhost/", "The host"],
    ["https://db.internal/", "The host"],
    ["http://[::1]:8080/", "The host"],
  ])("%s: %s", (address, problem) => {
    const found = addressProblem(new URL(address), [
      "api.example.com",
      "127.0.0.1:8080",
      "localhost",
      "db.internal",
    ]);
    if (problem === null) expect(found).toBeNull();
    else expect(found).toContain(problem);
  });

  test("a private host must be named with its port, and a host is written as a URL has it", () => {
    for (const host of ["localhost", "10.0.0.1", "[::1]", "printer", "db.internal", "169.254.169.254"])
      expect(hostProblem(host)).toContain("private host");
    for (const host of ["https://a.com", "a.com/x", "A.com", "a b", "", "a.com:99999"])
      expect(hostProblem(host)).toContain("is not a host");
    for (const host of ["a.com", "a.com:443", "a.com:8443", "localhost:80", "[::1]:8080", "8.8.8.8"])
      expect(hostProblem(host)).toBeNull();
  });

  test("a private address is recognised in any form", () => {
    const octet = fc.integer({ min: 0, max: 255 });
    const private4 = fc.oneof(
      fc.tuple(fc.constantFrom(0, 10, 127), octet, octet, octet),
      fc.tuple(fc.constant(192), fc.constant(168), octet, octet),
      fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), octet, octet),
      fc.tuple(fc.constant(169), fc.constant(254), octet, octet),
      fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), octet, octet),
      fc.tuple(fc.integer({ min: 224, max: 255 }), octet, octet, octet),
    );
    const forms = [
      ([a, b, c, d]: number[]) => `${a}.${b}.${c}.${d}`,
      ([a = 0, b = 0, c = 0, d = 0]: number[]) => String(((a * 256 + b) * 256 + c) * 256 + d),
      ([a = 0, b = 0, c = 0, d = 0]: number[]) =>
        `0x${[a, b, c, d].map((one) => one.toString(16).padStart(2, "0")).join("")}`,
      ([a, b, c = 0, d = 0]: number[]) => `${a}.${b}.${c * 256 + d}`,
      ([a, b, c, d]: number[]) => `[::ffff:${a}.${b}.${c}.${d}]`,
    ];
    fc.assert(
      fc.property(private4, fc.constantFrom(...forms), (address, form) => {
        expect(isPrivateHost(new URL(`http://${form(address)}/`).hostname)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
    for (const host of ["[fd00::1]", "[fe80::1]", "[::]", "[64:ff9b::7f00:1]"])
      expect(isPrivateHost(new URL(`http://${host}/`).hostname), host).toBe(true);
    for (const host of ["8.8.8.8", "[2606:4700::1111]", "example.com"])
      expect(isPrivateHost(new URL(`http://${host}/`).hostname), host).toBe(false);
  });
});

describe("a request", () => {
  test("sends method, headers and body, and returns status, headers and body", async () => {
    answer = (_, response) =>
      void response
        .writeHead(201, { "content-type": "application/json; charset=utf-8", "x-id": "7" })
        .end('{"ok":null}');
    const result = await ask({
      url: `http://${first}/orders?x=1`,
      method: "POST",
      headers: { authorization: "Bearer t" },
      body: { total: 5 },
    });
    expect(result).toMatchObject({ status: 201, headers: { "x-id": "7" }, body: { ok: null } });
    expect(seen).toMatchObject([
      {
        method: "POST",
        url: "/orders?x=1",
        body: '{"total":5}',
        headers: { authorization: "Bearer t", "content-type": "application/json" },
      },
    ]);
    answer = (_, response) =>
      void response.writeHead(404, { "content-type": "text/plain" }).end("No such order.");
    expect(await ask({ url: `http://${first}/` })).toMatchObject({ status: 404, body: "No such order." });
    answer = (_, response) =>
      void response.writeHead(200, { "content-type": "application/json" }).end("null");
    expect(await ask({ url: `http://${first}/` })).toMatchObject({ body: null });
    answer = (_, response) =>
      void response.writeHead(200, { "content-type": "application/json" }).end("{broken");
    expect(await ask({ url: `http://${first}/` })).toMatchObject({ body: "{broken" });
  });

  test.each([
    [{ url: "x" }, "not a valid address"],
    [{}, "/url"],
    [{ url: "https://a.com", method: "TRACE" }, "/method"],
    [{ url: "https://a.com", headers: { "a b": "c" } }, "A header"],
    [{ url: "https://a.com", more: 1 }, "more"],
    ["https://a.com", "not valid"],
  ])("with the input %j is refused", async (input, message) => {
    await expect(ask(input as Json)).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringContaining(message),
    });
  });

  test("HTTP-1 to a host that is not named, also by a redirect, is not sent", async () => {
    await expect(ask({ url: `http://${second}/` })).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    answer = redirect(302, `http://${second}/stolen`);
    await expect(ask({ url: `http://${first}/` })).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    expect(seen.map(({ url }) => url)).toEqual(["/"]);
  });

  test("HTTP-1 a redirect to another origin keeps no header that may be a secret, and gets no body", async () => {
    const headers = { authorization: "Bearer t", cookie: "c=1", "x-api-key": "k", accept: "text/plain" };
    const post = { url: `http://${first}/a`, method: "POST", headers, body: "text" };
    answer = ({ url }, response) =>
      url === "/a"
        ? redirect(303, `http://${second}/b`)(seen[0] as Seen, response)
        : void response.writeHead(200, { "set-cookie": "s=1" }).end("ok");
    const result = await ask(post, [first, second]);
    expect(result).toMatchObject({ body: "ok" });
    expect(JSON.stringify(result)).not.toContain("set-cookie");
    const [, redirected] = seen.splice(0);
    expect(redirected).toMatchObject({
      method: "GET",
      body: "",
      url: "/b",
      headers: { accept: "text/plain" },
    });
    for (const name of ["authorization", "cookie", "x-api-key"])
      expect(redirected?.headers[name]).toBeUndefined();
    answer = redirect(307, `http://${second}/b`);
    await expect(ask(post, [first, second])).rejects.toThrow("a `POST` must not reach");
    expect(seen.splice(0)).toHaveLength(1);
    answer = ({ url }, response) =>
      url === "/a" ? redirect(307, "/b")(seen[0] as Seen, response) : void response.end();
    await ask(post);
    expect(seen[1]?.headers.authorization).toBe("Bearer t");
    expect(seen[1]?.body).toBe("text");
  });

  test("HTTP-4 an idempotent request carries the key of its step, unless its input has one", async () => {
    const run = (headers: Record<string, string> = {}) =>
      requestHttp(
        { hosts: [first], effect: "idempotent" },
        { url: `http://${first}/`, headers },
        {
          signal: never,
          idempotencyKey: "op_1/pay",
        },
      );
    await run();
    await run({ "Idempotency-Key": "own" });
    await ask({ url: `http://${first}/` });
    expect(seen.map(({ headers }) => headers["idempotency-key"])).toEqual(["op_1/pay", "own", undefined]);
  });

  test("HTTP-1 follows five redirects, and no more", async () => {
    answer = redirect(302, "/again");
    await expect(ask({ url: `http://${first}/` })).rejects.toThrow("more than 5 times");
    expect(seen).toHaveLength(MAX_HTTP_REDIRECTS + 1);
  });

  test("HTTP-2 a response that is too large is an error, without reading on", async () => {
    let written = 0;
    answer = (_, response) => {
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(64 * 1024))) written += 64 * 1024;
      };
      response.on("drain", more);
      more();
    };
    await expect(ask({ url: `http://${first}/` })).rejects.toThrow(
      `more than ${MAX_HTTP_RESPONSE_BYTES} bytes`,
    );
    expect(written).toBeLessThan(64 * 1024 * 1024);
  });

  test("HTTP-3 no answer, 408, 429 and 5xx may pass", async () => {
    for (const status of [408, 429, 500, 503]) {
      answer = (_, response) => void response.writeHead(status).end("later");
      await expect(ask({ url: `http://${first}/` })).rejects.toMatchObject({ retriable: true });
    }
    answer = (_, response) => void response.destroy();
    await expect(ask({ url: `http://${first}/` })).rejects.toMatchObject({ retriable: true });
  });

  test("HTTP-3 JSON that no result may hold is its text, and the request succeeds", async () => {
    for (const body of [
      `${"[".repeat(64)}${"]".repeat(64)}`,
      '{"n":1e999}',
      `${"[".repeat(500)}${"]".repeat(500)}`,
    ]) {
      answer = (_, response) =>
        void response.writeHead(200, { "content-type": "application/json" }).end(body);
      expect(await ask({ url: `http://${first}/` })).toMatchObject({ status: 200, body });
    }
    const deep = `${"[".repeat(63)}${"]".repeat(63)}`;
    answer = (_, response) => void response.writeHead(200, { "content-type": "application/json" }).end(deep);
    const result = await ask({ url: `http://${first}/` });
    expect(isJson(result)).toBe(true);
    expect(JSON.stringify(result.body)).toBe(deep);
  });

  test.each<[string, Json]>([
    ["absent", {}],
    ["GET", { method: "GET" }],
    ["HEAD", { method: "HEAD" }],
  ])("HTTP-5 a body is refused if the method is %s", async (_, more) => {
    answer = (_request, response) => void response.end();
    const asking = ask({ url: `http://${first}/`, body: { a: 1 }, ...(more as object) });
    await expect(asking).rejects.toMatchObject({
      code: "INVALID_INPUT",
      retriable: false,
      message: expect.stringContaining("Name a method"),
    });
    expect(seen).toEqual([]);
  });

  test.each(["ключ", "a\nb"])("HTTP-5 the idempotency key %j is refused", async (idempotencyKey) => {
    const input = { url: `http://${first}/`, method: "POST" };
    await expect(
      requestHttp({ hosts: [first], effect: "idempotent" }, input, { signal: never, idempotencyKey }),
    ).rejects.toMatchObject({ name: "ToolError", code: "INVALID_INPUT", retriable: false });
    expect(seen).toEqual([]);
  });

  test("HTTP-1 a request that changes things is not redirected to another origin, also without a body", async () => {
    answer = redirect(307, `http://${second}/b`);
    for (const method of ["DELETE", "POST", "PUT"])
      await expect(ask({ url: `http://${first}/a`, method }, [first, second])).rejects.toThrow(
        "Use that address",
      );
    expect(seen.map(({ url }) => url)).toEqual(["/a", "/a", "/a"]);
    answer = ({ url }, response) =>
      url === "/a" ? redirect(307, `http://${second}/b`)(seen[0] as Seen, response) : void response.end("ok");
    expect(await ask({ url: `http://${first}/a` }, [first, second])).toMatchObject({ body: "ok" });
  });

  test("TASK-2 ends with its signal", async () => {
    const controller = new AbortController();
    answer = () => controller.abort(new Error("stopped"));
    await expect(ask({ url: `http://${first}/` }, [first], controller.signal)).rejects.toThrow("stopped");
  });
});
