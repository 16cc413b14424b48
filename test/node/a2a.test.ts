/** The events of A2A for any frames of a turn. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TaskEncoder } from "../../src/compat/a2a/encoder.ts";
import { A2aError, rpcError, statusError } from "../../src/compat/a2a/errors.ts";
import { shownConfig, webhookOf } from "../../src/compat/a2a/push.ts";
import {
  answersOfMessage,
  jsonNames,
  listParams,
  type SentMessage,
  taskFilter,
} from "../../src/compat/a2a/requests.ts";
import { queryParams, taskCall } from "../../src/compat/a2a/rest.ts";
import { shownTask } from "../../src/compat/a2a/tasks.ts";
import type { StreamEvent } from "../../src/compat/a2a/wire.ts";
import { type Question, questionKey } from "../../src/compat/mcp/questions.ts";
import { PUSH_METHODS } from "../../src/http/a2a/push.ts";
import { webhookPoster, webhookProblems } from "../../src/http/a2a/push-sender.ts";
import type { A2aCall } from "../../src/http/a2a/tasks.ts";
import { jsonLater } from "../../src/http/base/respond.ts";
import type { Frame } from "../../src/protocol/frames.ts";

const ADA = { subject: "ada", tenant: "t", roles: [] };
const PLACE = {
  conversationId: "conv_01JD0000000000000000000000",
  turnId: "turn_01JD0000000000000000000000",
};
const NOW = "2026-01-01T00:00:00Z";

type Draft = Pick<Frame, "type" | "data"> & { messageId?: string; operationId?: string };

// SAFETY: the members of a draft belong together.
const frame = (draft: Draft) => ({ v: 1, seq: 1, turnId: PLACE.turnId, time: NOW, ...draft }) as Frame;

const started = (messageId: string): Draft => ({
  type: "message.started",
  messageId,
  data: { agentId: "one" },
});
const delta = (messageId: string, offset: number, text: string): Draft => ({
  type: "message.delta",
  messageId,
  data: { offset, text },
});
const reset = (messageId: string): Draft => ({ type: "message.reset", messageId, data: { reason: "lost" } });
const completed = (messageId: string, content: string): Draft => ({
  type: "message.completed",
  messageId,
  data: { agentId: "one", content },
});
const asked = (operationId: string): Draft => ({
  type: "approval.requested",
  operationId,
  data: { name: "look", input: {}, expiresAt: NOW },
});
const resolved = (operationId: string): Draft => ({
  type: "approval.resolved",
  operationId,
  data: { outcome: "approved" },
});
const waiting: Draft = { type: "turn.waiting", data: { reason: "approval" } };
const ended: Draft = { type: "turn.completed", data: {} };

const question = (operationId: string): Question => ({
  place: { ...PLACE, operationId },
  form: undefined,
  message: "May I?",
});

/** Reads events as a client does. */
function replies(events: readonly StreamEvent[]): string[] {
  const shown = new Map<string, string>();
  for (const event of events) {
    if (!("artifactUpdate" in event)) continue;
    const { artifact, append } = event.artifactUpdate;
    const text = artifact.parts.map((part) => ("text" in part ? part.text : "")).join("");
    expect(append && !shown.has(artifact.artifactId)).toBe(false);
    shown.set(artifact.artifactId, (append ? (shown.get(artifact.artifactId) ?? "") : "") + text);
  }
  return [...shown.values()];
}

function encoded(drafts: readonly Draft[]): StreamEvent[] {
  const encoder = new TaskEncoder(PLACE, ADA);
  return drafts.flatMap((draft) => encoder.push(frame(draft)));
}

const message = fc.constantFrom("m1", "m2");
const operation = fc.constantFrom("op1", "op2");
const anyDraft: fc.Arbitrary<Draft> = fc.oneof(
  message.map(started),
  fc.tuple(message, fc.nat(4), fc.string({ maxLength: 4 })).map(([id, at, text]) => delta(id, at, text)),
  message.map(reset),
  fc.tuple(message, fc.string({ maxLength: 8 })).map(([id, text]) => completed(id, text)),
  operation.map(asked),
  operation.map(resolved),
  fc.constantFrom(waiting, ended),
);

describe("I12 A2A: the stream of a task", () => {
  test("I12 A2A-4 for any frames a stream has at most one status, at its end", () => {
    fc.assert(
      fc.property(fc.array(anyDraft, { maxLength: 40 }), (drafts) => {
        const events = encoded(drafts);
        replies(events);
        const ends = events.flatMap((event, index) => ("statusUpdate" in event ? [index] : []));
        expect(ends).toEqual(drafts.includes(ended) ? [events.length - 1] : []);
      }),
      { numRuns: 500 },
    );
  });

  test("I12 A2A-3 A2A-5 the artifacts are the replies with text, also if model calls are repeated", () => {
    const text = fc.string({ minLength: 1, maxLength: 6 });
    const reply = fc.record({
      lost: fc.array(text, { maxLength: 3 }),
      pieces: fc.array(text, { minLength: 1 }),
    });
    fc.assert(
      fc.property(fc.array(reply, { maxLength: 4 }), (given) => {
        const pieces = (id: string, texts: readonly string[]) =>
          texts.map((piece, index) => delta(id, texts.slice(0, index).join("").length, piece));
        const drafts = given.flatMap(({ lost, pieces: kept }, index) => {
          const id = `m${index}`;
          const all = kept.join("");
          return [started(id), ...pieces(id, lost), reset(id), ...pieces(id, kept), completed(id, `${all}.`)];
        });
        expect(replies(encoded([...drafts, ended]))).toEqual(
          given.map(({ pieces: kept }) => `${kept.join("")}.`),
        );
      }),
    );
  });

  test("I12 A2A-2 a stream asks only for requests that are open in the turn and in its frames", () => {
    const encoder = new TaskEncoder(PLACE, ADA);
    const push = (draft: Draft) => {
      encoder.push(frame(draft));
      return encoder.mayWait(frame(draft));
    };
    expect([push(asked("op1")), push(asked("op2")), push(waiting)]).toEqual([false, false, true]);
    expect(encoder.ask([question("op2")], NOW)).toEqual([]);
    expect(push(resolved("op1"))).toBe(true);
    expect(encoder.ask([question("op2")], NOW)).toMatchObject([
      { statusUpdate: { status: { state: "TASK_STATE_INPUT_REQUIRED" } } },
    ]);
    expect(encoder.isOver).toBe(true);
  });
});

describe("I12 A2A: answers", () => {
  const questions = [question("op1"), question("op2")];
  const answersOf = (parts: SentMessage["parts"], open: readonly Question[]) =>
    answersOfMessage(
      { messageId: "1", role: "ROLE_USER", parts },
      open.map(({ place }) => place),
    );

  test("I12 A2A-6 any text but approve and deny answers nothing", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        fc.pre(!/^(approve|deny)$/i.test(text.trim()));
        expect(() => answersOf([{ text }], [question("op1")])).toThrow(/Must answer/);
      }),
    );
    expect(answersOf([{ text: " Approve " }], [question("op1")])).toEqual([
      { operationId: "op1", approved: true },
    ]);
    expect(() => answersOf([{ text: "approve" }], questions)).toThrow(/several/);
  });

  test("I12 A2A-6 each data part answers the request of its id", () => {
    const parts = questions.map(({ place }, index) => ({
      data: { id: questionKey(place), approved: index === 0, reason: "Because." },
    }));
    expect(answersOf(parts, questions)).toEqual([
      { operationId: "op1", approved: true, reason: "Because." },
      { operationId: "op2", approved: false, reason: "Because." },
    ]);
    expect(() => answersOf([{ data: { id: "other", approved: true } }], questions)).toThrow(
      /id of a request/,
    );
    expect(() => answersOf([...parts, ...parts.slice(1)], questions)).toThrow(/Must answer another/);
    expect(() => answersOf([{ text: "approve" }, { text: "deny" }], questions.slice(1))).toThrow(/another/);
  });
});

describe("I12 the REST binding", () => {
  test("I12 A2A-11 any id of a task keeps its colons, and only known verbs count", () => {
    const anyId = fc
      .string({ minLength: 1 })
      .filter((id) => !/:(?:cancel|subscribe)$/.test(id) && !id.includes("\n"));
    fc.assert(
      fc.property(anyId, (id) => {
        const params = { id };
        expect(taskCall(id, "GET")).toEqual({ method: "GetTask", params });
        expect(taskCall(id, "POST")).toBeUndefined();
        expect(taskCall(`${id}:cancel`, "POST")).toEqual({ method: "CancelTask", params });
        expect(taskCall(`${id}:cancel`, "GET")).toBeUndefined();
        for (const method of ["GET", "POST"])
          expect(taskCall(`${id}:subscribe`, method)).toEqual({ method: "SubscribeToTask", params });
      }),
    );
  });

  test("I12 A2A-11 parameters in a query have the values that they have in JSON", () => {
    const given = fc.record(
      {
        contextId: fc.string({ maxLength: 50 }),
        pageSize: fc.integer({ min: 1, max: 100 }),
        historyLength: fc.nat(),
        includeArtifacts: fc.boolean(),
        pageToken: fc.string({ maxLength: 50 }),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(given, (params) => {
        const query = Object.fromEntries(
          Object.entries(params).map(([name, value]) => [name, String(value)]),
        );
        expect(listParams.parse(queryParams(query))).toEqual(listParams.parse(params));
      }),
    );
    for (const text of ["many", "1.5", "0x10", "", "9".repeat(30)])
      expect(listParams.safeParse(queryParams({ pageSize: text })).success).toBe(false);
    expect(listParams.safeParse(queryParams({ includeArtifacts: "TRUE" })).success).toBe(false);
  });

  test("I12 A2A-12 a filter that no task can match asks no list", () => {
    const filter = (given: object) => taskFilter(listParams.parse(given));
    for (const status of ["SUBMITTED", "REJECTED", "AUTH_REQUIRED"])
      expect(filter({ status: `TASK_STATE_${status}` })).toBeNull();
    expect(filter({ contextId: "absent" })).toBeNull();
    expect(filter({ status: "TASK_STATE_UNSPECIFIED", contextId: "" })).toEqual({});
    expect(filter({ statusTimestampAfter: "2026-01-01T02:00:00+02:00" })).toEqual({
      since: "2026-01-01T00:00:00.000Z",
    });
  });
});

describe("I12 answers that take time", () => {
  test("I12 A2A-8 a request that waits stops reading when its client leaves", async () => {
    const begun = Promise.withResolvers<AbortSignal>();
    const waiting = jsonLater((signal) => {
      begun.resolve(signal);
      return new Promise<object>(() => undefined);
    });
    const signal = await begun.promise;
    expect(signal.aborted).toBe(false);
    await waiting.body?.cancel();
    expect(signal.aborted).toBe(true);
    expect(await jsonLater(async () => ({ text: "é" })).json()).toEqual({ text: "é" });
    await expect(jsonLater(() => Promise.reject(new Error("Lost."))).json()).rejects.toThrow();
  });
});

describe("I12 names of members", () => {
  test("I12 A2A-6 parameters may have the names of the definition, and JSON of clients keeps its names", () => {
    const data = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(data, data, (json, metadata) => {
        const given = {
          history_length: 1,
          message: { task_id: "x", parts: [{ media_type: "t", data: json }], metadata },
        };
        expect(jsonNames(given)).toEqual({
          historyLength: 1,
          message: { taskId: "x", parts: [{ mediaType: "t", data: json }], metadata },
        });
      }),
    );
    const camel = { contextId: "y", pageSize: 2, status: "TASK_STATE_WORKING" };
    expect(jsonNames(camel)).toEqual(camel);
  });
});

describe("I12 push notifications", () => {
  test("I12 A2A-14 without listed hosts the server sends none, and each method says so", async () => {
    expect([webhookProblems([]), webhookPoster([], undefined)]).toEqual([undefined, undefined]);
    // SAFETY: the methods look at this port first.
    const call = { ports: {} } as A2aCall;
    for (const method of Object.values(PUSH_METHODS))
      await expect(method(call, {})).rejects.toMatchObject({ reason: "PUSH_NOTIFICATION_NOT_SUPPORTED" });
  });

  test("I12 A2A-14 an invalid list breaks only the requests that use it", () => {
    const problem = webhookProblems(["https://example.com/"]);
    expect(() => problem?.(new URL("https://example.com"))).toThrow("https://example.com/");
  });

  test("I12 A2A-14 a list with a star has all public hosts by https at their usual port, and no private host", () => {
    const problem = webhookProblems(["*"]);
    const hosts = fc.constantFrom("example.com", "8.8.8.8", "sub.example.org");
    fc.assert(
      fc.property(hosts, fc.webPath(), (host, path) => {
        expect(problem?.(new URL(`https://${host}${path}`))).toBeNull();
        expect(problem?.(new URL(`http://${host}${path}`))).not.toBeNull();
      }),
    );
    const inside = fc.tuple(fc.constantFrom(10, 127), fc.nat(255), fc.nat(255), fc.nat(255));
    fc.assert(
      fc.property(inside, ([a, b, c, d]) => {
        const number = ((a * 256 + b) * 256 + c) * 256 + d;
        for (const host of [
          `${a}.${b}.${c}.${d}`,
          `${number}`,
          `0x${number.toString(16)}`,
          `[::ffff:${a}.${b}.${c}.${d}]`,
        ])
          expect(problem?.(new URL(`https://${host}/`)), host).not.toBeNull();
      }),
    );
  });

  test("I12 A2A-15 a shown configuration never has the token or the credentials", () => {
    const secret = fc.string({
      minLength: 12,
      maxLength: 40,
      unit: fc.constantFrom(..."abcdefXYZ0123456789-._~"),
    });
    fc.assert(
      fc.property(secret, secret, (token, credentials) => {
        const given = {
          url: "https://example.com/",
          token,
          authentication: { scheme: "Bearer", credentials },
        };
        const hook = webhookOf(PLACE, given, "one");
        expect(hook.headers).toEqual({
          authorization: `Bearer ${credentials}`,
          "x-a2a-notification-token": token,
        });
        const text = JSON.stringify(shownConfig(PLACE, hook));
        expect([text.includes(token), text.includes(credentials)]).toEqual([false, false]);
      }),
    );
  });
});

describe("I12 the forms of errors and tasks", () => {
  test("I12 A2A-9 both forms of an error have the same details", () => {
    const reasons = [
      ...["TASK_NOT_FOUND", "TASK_NOT_CANCELABLE", "UNSUPPORTED_OPERATION", "VERSION_NOT_SUPPORTED"],
      ...["INVALID_PARAMS", "METHOD_NOT_FOUND", "INTERNAL_ERROR"],
    ] as const;
    const issues = fc.array(fc.record({ path: fc.string().map((name) => `/${name}`), message: fc.string() }));
    fc.assert(
      fc.property(fc.constantFrom(...reasons), fc.string(), issues, (reason, message, found) => {
        // SAFETY: the list above has only reasons.
        const error = new A2aError(reason as A2aError["reason"], message, found);
        const [rpc, status] = [rpcError(error), statusError(error)];
        expect(rpc.data).toEqual(status.details);
        expect([rpc.message, status.message]).toEqual([message, message]);
        expect(rpc.code).toBeLessThan(-32_000);
        expect(status.code).toBeGreaterThanOrEqual(400);
        expect(status.details.length).toBe(found.length === 0 ? 1 : 2);
      }),
    );
  });

  test("I12 A2A-12 a task is shown with the newest messages, and without artifacts if they are not wanted", () => {
    const history = fc.array(fc.string().map((messageId) => ({ messageId })));
    fc.assert(
      fc.property(
        history,
        fc.option(fc.nat({ max: 5 }), { nil: undefined }),
        fc.boolean(),
        (all, historyLength, includeArtifacts) => {
          const task = {
            id: "x",
            contextId: "y",
            status: { state: "TASK_STATE_WORKING", timestamp: NOW },
            artifacts: [],
            history: all,
          };
          // SAFETY: the members of messages do not matter here.
          const shown = shownTask(task as never, { historyLength, includeArtifacts });
          expect("artifacts" in shown).toBe(includeArtifacts);
          if (historyLength === 0) expect(shown).not.toHaveProperty("history");
          else expect(shown.history).toEqual(historyLength === undefined ? all : all.slice(-historyLength));
        },
      ),
    );
  });
});
