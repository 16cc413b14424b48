/** The events of AG-UI for any frames of a turn, held against the official schemas and the official client. */
import { HttpAgent } from "@ag-ui/client";
import { EventSchemas, RunAgentInputSchema } from "@ag-ui/core/schemas";
import { HttpAgent as OlderAgent } from "ag-ui-client-older";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RunEncoder, type RunOptions } from "../../src/compat/agui/encoder.ts";
import type { AgUiEvent } from "../../src/compat/agui/events.ts";
import { keepsRunning, runRequest, runSchema, snapshotMessage } from "../../src/compat/agui/request.ts";
import { questionKey } from "../../src/compat/mcp/questions.ts";
import type { MessageView } from "../../src/protocol/conversation-schemas.ts";
import type { Frame } from "../../src/protocol/frames.ts";

const ADA = { subject: "ada", tenant: "t", roles: [] };
const CONVERSATION = "conv_01JD0000000000000000000000";
const TURN = "turn_01JD0000000000000000000000";
const OPTIONS: RunOptions = { threadId: "t1", runId: "r1", conversationId: CONVERSATION, principal: ADA };

type Draft = Pick<Frame, "type" | "data"> & { messageId?: string; operationId?: string };

function frame(draft: Draft, seq = 1): Frame {
  // SAFETY: the members of a draft belong together.
  return { v: 1, seq, turnId: TURN, time: "2026-01-01T00:00:00Z", ...draft } as Frame;
}

const frames = (...drafts: Draft[]) => drafts.map(frame);

function eventsOf(given: readonly Frame[], options: Partial<RunOptions> = {}): AgUiEvent[] {
  const encoder = new RunEncoder({ ...OPTIONS, ...options });
  return [...encoder.start(), ...given.flatMap((one) => encoder.push(one)), ...encoder.end()];
}

const started = (messageId: string, agentId = "one"): Draft => ({
  type: "message.started",
  messageId,
  data: { agentId },
});
const completed = (messageId: string, content: string): Draft => ({
  type: "message.completed",
  messageId,
  data: { agentId: "one", content },
});
const delta = (messageId: string, offset: number, text: string): Draft => ({
  type: "message.delta",
  messageId,
  data: { offset, text },
});
const requested = (operationId: string, client?: true): Draft => ({
  type: "tool.requested",
  operationId,
  data: { name: "look", input: { at: operationId }, async: false, ...(client && { client }) },
});
const asked = (operationId: string, requester?: string): Draft => ({
  type: "approval.requested",
  operationId,
  data: {
    ...{ name: "look", input: {}, expiresAt: "2026-01-02T00:00:00Z" },
    ...(requester !== undefined && { requester, rule: { by: "requester" } }),
  },
});
const resolved = (operationId: string, outcome: "approved" | "denied"): Draft => ({
  type: "approval.resolved",
  operationId,
  data: { outcome },
});
const done = (operationId: string): Draft => ({
  type: "tool.completed",
  operationId,
  data: { result: "ok" },
});
const waiting = (reason: "approval" | "client-tools" | "operations"): Draft => ({
  type: "turn.waiting",
  data: { reason },
});
const ended: Draft = { type: "turn.completed", data: {} };

/** Returns the events that the official client accepts. */
async function accepted(events: readonly AgUiEvent[], isOlder: boolean): Promise<unknown[]> {
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  const headers = { "content-type": "text/event-stream" };
  const options = { url: "http://agui.test", fetch: async () => new Response(body, { headers }) };
  const client = isOlder ? new OlderAgent(options) : new HttpAgent(options);
  const seen: unknown[] = [];
  await client.runAgent({}, { onEvent: ({ event }) => void seen.push(event) });
  return seen;
}

const anyMessage = fc.constantFrom("m1", "m2");
const anyOperation = fc.constantFrom("op1", "op2", "op3");
const anyText = fc.string({ maxLength: 4 });
const error = { code: "MODEL_FAILED", message: "No.", retriable: false };
const anyDraft: fc.Arbitrary<Draft> = fc.oneof(
  fc.tuple(anyMessage, fc.constantFrom("one", "two")).map(([id, agent]) => started(id, agent)),
  fc.tuple(anyMessage, fc.nat(4), anyText).map(([id, offset, text]) => delta(id, offset, text)),
  fc.tuple(anyMessage, anyText).map(([id, text]) => completed(id, text)),
  anyMessage.map((messageId): Draft => ({ type: "message.reset", messageId, data: { reason: "lost" } })),
  fc.tuple(anyOperation, fc.boolean()).map(([id, client]) => requested(id, client || undefined)),
  fc
    .tuple(anyOperation, fc.option(fc.constantFrom("ada", "eve"), { nil: undefined }))
    .map(([id, by]) => asked(id, by)),
  fc.tuple(anyOperation, fc.constantFrom("approved", "denied")).map(([id, outcome]) => resolved(id, outcome)),
  anyOperation.map(done),
  anyOperation.map((operationId): Draft => ({ type: "tool.failed", operationId, data: { error } })),
  anyOperation.map((operationId): Draft => ({ type: "work.held", operationId, data: {} })),
  anyOperation.map((operationId): Draft => ({ type: "work.released", operationId, data: {} })),
  anyOperation.map((operationId): Draft => ({ type: "tool.progress", operationId, data: { progress: 1 } })),
  anyOperation.map(
    (operationId): Draft => ({
      type: "tool.deferred",
      operationId,
      data: { expiresAt: "2026-01-02T00:00:00Z" },
    }),
  ),
  fc.constantFrom("approval", "client-tools", "operations").map(waiting),
  fc.constant(ended),
  fc
    .constantFrom("CANCELLED", "MODEL_FAILED")
    .map((code): Draft => ({ type: "turn.failed", data: { error: { ...error, code } } })),
);

describe("I12 AG-UI: the events of any frames", () => {
  test("I12 AGUI-1 AGUI-2 AGUI-9 each event is well formed, and the official client of its version accepts each run", async () => {
    const answered = fc.option(fc.subarray(["op1", "op2"], { minLength: 1 }), { nil: undefined });
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyDraft, { maxLength: 40 }),
        answered,
        fc.boolean(),
        fc.boolean(),
        async (drafts, ids, all, isOlder) => {
          const options = { ...(ids && { answered: ids }), withClientResults: all, isOlder };
          const events = eventsOf(drafts.map(frame), options);
          for (const event of events) EventSchemas.parse(event);
          expect(await accepted(events, isOlder)).toEqual(events);
          const types = events.map(({ type }) => type);
          expect([types[0], types.filter((type) => type === "RUN_STARTED").length]).toEqual([
            "RUN_STARTED",
            1,
          ]);
          const ends = types.flatMap((type, index) => (/^RUN_(FINISHED|ERROR)$/.test(type) ? [index] : []));
          expect(ends).toEqual([types.length - 1]);
          const count = (type: string) => types.filter((other) => other === type).length;
          for (const kind of ["TEXT_MESSAGE", "TOOL_CALL"])
            expect(count(`${kind}_START`)).toBe(count(`${kind}_END`));
          expect(count("STEP_STARTED")).toBe(count("STEP_FINISHED"));
        },
      ),
      { numRuns: 500 },
    );
  });

  test("I12 AGUI-4 the shown text is the reply, and a changed reply is another message", () => {
    const texts = (events: AgUiEvent[]) => {
      const shown = new Map<string, string>();
      for (const event of events)
        if (event.type === "TEXT_MESSAGE_CONTENT")
          shown.set(event.messageId, (shown.get(event.messageId) ?? "") + event.delta);
      return [...shown.values()];
    };
    const reset: Draft = { type: "message.reset", messageId: "m", data: { reason: "lost" } };
    const begun = [started("m"), delta("m", 0, "Half"), reset, started("m")];
    const same = frames(...begun, delta("m", 0, "Half and"), completed("m", "Half and half."), ended);
    expect(texts(eventsOf(same))).toEqual(["Half and half."]);
    const changed = frames(...begun, delta("m", 0, "Other"), completed("m", "Other words."), ended);
    expect(texts(eventsOf(changed)).at(-1)).toBe("Other words.");
    fc.assert(
      fc.property(fc.array(fc.string({ minLength: 1, maxLength: 5 }), { minLength: 1 }), (pieces) => {
        let offset = 0;
        const deltas = pieces.map((piece) => {
          const sent = delta("m", offset, piece);
          offset += piece.length;
          return sent;
        });
        const reply = pieces.join("");
        const shown = texts(eventsOf(frames(started("m"), ...deltas, completed("m", reply), ended)));
        expect(shown).toEqual(reply === "" ? [] : [reply]);
      }),
    );
  });
});

describe("I12 AG-UI: the runs of a turn", () => {
  const batch = [
    started("m1"),
    completed("m1", "Let me see."),
    requested("op1"),
    asked("op1"),
    requested("op2", true),
  ];
  const key = (operationId: string) =>
    questionKey({ conversationId: CONVERSATION, turnId: TURN, operationId });

  test("I12 AGUI-3 a run ends with the wait, and the next run begins after it", () => {
    const turn = frames(
      ...[...batch, waiting("approval")],
      ...[resolved("op1", "approved"), done("op1"), waiting("client-tools")],
      ...[done("op2"), started("m2"), completed("m2", "Done."), ended],
    );
    const [one, two, three] = [
      eventsOf(turn),
      eventsOf(turn, { answered: ["op1"] }),
      eventsOf(turn, { answered: ["op2"] }),
    ];
    expect(one.at(-1)).toMatchObject({
      outcome: { type: "interrupt", interrupts: [{ id: key("op1"), toolCallId: "op1" }] },
    });
    expect(two.map(({ type }) => type)).toEqual(["RUN_STARTED", "TOOL_CALL_RESULT", "RUN_FINISHED"]);
    expect(two.at(-1)).toMatchObject({ outcome: { type: "success", pendingToolCallIds: ["op2"] } });
    expect(three.map(({ type }) => type)).toEqual([
      "RUN_STARTED",
      ...["STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STEP_FINISHED"],
      "RUN_FINISHED",
    ]);
    expect(three.at(-1)).toMatchObject({ outcome: { type: "success" } });
  });

  test("I12 AGUI-3 a request that only others may answer is no interrupt", () => {
    const turn = frames(started("m1"), requested("op1"), asked("op1", "eve"), waiting("approval"));
    expect(eventsOf(turn).at(-1)).toMatchObject({ outcome: { type: "success" } });
    const eve = { ...ADA, subject: "eve" };
    expect(eventsOf(turn, { principal: eve }).at(-1)).toMatchObject({ outcome: { type: "interrupt" } });
  });

  test("I12 AGUI-3 after an answer a run waits again, even if the turn does not announce it", () => {
    const both = [
      started("m1"),
      requested("op1"),
      asked("op1"),
      requested("op2"),
      asked("op2"),
      waiting("approval"),
    ];
    const answered = frames(...both, resolved("op1", "denied"), done("op1"));
    expect(eventsOf(answered, { answered: ["op1"] }).at(-1)).toMatchObject({
      outcome: { type: "interrupt", interrupts: [{ id: key("op2") }] },
    });
  });
});

describe("I12 AG-UI: requests", () => {
  const base = { threadId: "t1", runId: "r1", messages: [] };
  const user = (content: unknown) => ({ id: "1", role: "user", content });

  test("I12 AGUI-5 every input of the protocol has one effect, or an error with its place", () => {
    const role = fc.constantFrom("user", "assistant", "tool", "system", "reasoning");
    const message = fc.record({ id: fc.string(), role, content: fc.string(), toolCallId: fc.string() });
    const input = fc.record({
      ...{ threadId: fc.constant("t1"), runId: fc.constant("r1") },
      messages: fc.array(message, { maxLength: 5 }),
      tools: fc.constant([]),
      context: fc.array(fc.record({ description: fc.string(), value: fc.string() }), { maxLength: 2 }),
      forwardedProps: fc.jsonValue(),
      state: fc.jsonValue(),
    });
    fc.assert(
      fc.property(input, (given) => {
        const parsed = runSchema.parse(given);
        expect(keepsRunning(parsed)).toBe(false);
        try {
          expect(["turn", "answers", "read"]).toContain(runRequest(parsed).type);
        } catch (thrown) {
          expect(thrown).toMatchObject({
            code: "INVALID_INPUT",
            options: { errors: [{ path: /^\/messages\// }] },
          });
        }
      }),
    );
  });

  test("I12 AGUI-5 AGUI-6 the last message of the user, its context and its tools are the turn", () => {
    const context = [{ description: "Page", value: "3" }];
    const tools = [{ name: "look", description: "Looks." }];
    const messages = [user("Old."), { id: "2", role: "assistant", content: "Yes." }, user("New.")];
    const input = { ...base, messages, context, tools, forwardedProps: { dramatis: { keepRunning: true } } };
    expect(RunAgentInputSchema.safeParse(input).success).toBe(true);
    expect(runRequest(runSchema.parse(input))).toEqual({
      type: "turn",
      turn: {
        content: [
          { type: "text", text: "New." },
          { type: "text", text: "Context of the application:\nPage: 3" },
        ],
        idempotencyKey: "r1",
        tools: [{ name: "look", description: "Looks.", inputSchema: { type: "object", properties: {} } }],
      },
    });
    expect(keepsRunning(runSchema.parse(input))).toBe(true);
  });

  test("I12 AGUI-5 two answers to one interrupt are refused", () => {
    const interruptId = questionKey({ conversationId: CONVERSATION, turnId: TURN, operationId: "op1" });
    const resume = [true, false].map((approved) => ({
      ...{ interruptId, status: "resolved" },
      payload: { approved },
    }));
    expect(runRequest(runSchema.parse({ ...base, resume: resume.slice(1) }))).toMatchObject({
      type: "answers",
    });
    expect(() => runRequest(runSchema.parse({ ...base, resume }))).toThrow(/one answer for each interrupt/);
  });

  test("I12 AGUI-6 a snapshot omits the context of the run, and no text of the user", () => {
    const [heading, other] = ["Context of the application:", "Context of the application: what is it?"];
    const shown = (...texts: string[]) =>
      snapshotMessage({
        ...{ id: "m1", role: "user", turnId: TURN, createdAt: "2026-01-01T00:00:00.000Z" },
        content: texts.map((text) => ({ type: "text", text })),
      } as MessageView).content;
    expect(shown("Hello.", `${heading}\nPage: 3`)).toBe("Hello.");
    expect(shown(`${heading}\nmine`, other)).toEqual([
      { type: "text", text: `${heading}\nmine` },
      { type: "text", text: other },
    ]);
  });
});
