/**
 * Cases that users of other systems report. `test/fixtures/public-reports.json` has the inputs. Each case has a test here, or names the
 * tests that prove it elsewhere.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createEmbeddingGateway } from "../../src/adapters/gateway/embeddings.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import { ChatChunkEncoder } from "../../src/compat/openai/chat-chunks.ts";
import { chatInput, chatOptions, completionSchema } from "../../src/compat/openai/chat-request.ts";
import { ignoredFields } from "../../src/compat/openai/request-fields.ts";
import { responseOptions, responseSchema } from "../../src/compat/openai/response-request.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { eventToMessage } from "../../src/memory/session/events.ts";
import { EventAction } from "../../src/memory/session/session-event.ts";
import { MAX_CONTINUATIONS } from "../../src/model/joined-reply.ts";
import type { ContextMessage, NativeReply } from "../../src/model/messages.ts";
import { withOutputLimit } from "../../src/model/output-limit.ts";
import { type ModelProfile, PROVIDERS } from "../../src/model/profile.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { isJsonObject, isUnicode, type Json, type JsonObject } from "../../src/shared/json.ts";
import { objectFault } from "../../src/shared/json-fault.ts";
import { violations } from "../../src/shared/json-schema/violations.ts";
import { cut, piece } from "../../src/shared/text.ts";
import { inputIssues } from "../../src/shared/validation.ts";
import cases from "../fixtures/public-reports.json" with { type: "json" };
import { CaseDesk, type Reply } from "../support/case-desk.ts";
import { outcomeOf } from "../support/decoding.ts";
import { checkByRules } from "../support/strict-apis.ts";

/** The cases that are tested here: the titles of their tests have the id. */
const HERE = [
  "arguments-null-text",
  "arguments-broken",
  "unknown-tool",
  "result-cut-in-emoji",
  "tool-choice-none",
  "tool-choice-forced",
  "gemini-schemas",
  "gemini-parallel-calls",
  "responses-reasoning-pairs",
  "thinking-off-and-on",
  "pause-without-end",
  "null-content",
  "caps-honoured",
  "codex-body",
  "usage-chunk",
];

/** Tests in other files, with the beginnings of their titles. */
const ELSEWHERE: Readonly<Record<string, readonly [file: string, title: string][]>> = {
  "continuation-reconnect": [
    [
      "workers/conversation-wire",
      "WIRE-2 A client that joins in the middle of a text gets it with the snapshot, and the deltas continue from there",
    ],
    ["node/client-store", "CLIENT-2: lost, doubled and reordered deltas leave a beginning of the text"],
    ["node/client-store", "a snapshot anywhere, with the frames after it, equals the whole"],
  ],
  "connect-before-first-token": [
    ["workers/stops", "STOP-1 continues when the connection that follows it closes"],
    ["node/client-store", "G18 STOP-2 shows whether the conversation runs, is stopped or idle"],
    ["node/client-connection", "G18 SEND-5 CLIENT-7: a stop is sent once the connection is back"],
  ],
  "offline-message-kept": [
    [
      "node/client-connection",
      "SEND-1: sends messages from before it opened, and repeats them after a loss, under one id",
    ],
    ["node/client-connection", "SEND-1: a rejected message can be sent again"],
    ["node/client-store", "CLIENT-4: a snapshot that holds it records it"],
  ],
  "large-result": [
    ["workers/reported-cases", "LARGE-1 LARGE-2 LARGE-3 ERASE-7 a result of 3 MB: the call succeeds"],
    ["node/large-results", "LARGE-1 a view is well-formed Unicode, wherever its cuts are"],
  ],
  "delegate-memory-identity": [
    [
      "workers/memory-actions",
      "A58 MEMACT-1 an agent in the input is ignored, and ids of its memories are not found",
    ],
    [
      "workers/memory-recall",
      "RECALL-1 in the scope `user`, the secret of a user is in no recall, note or `why` of another user",
    ],
  ],
  "approval-denied-order": [
    ["node/approvals", "APPROVE-2 two calls of one tool, answered in reverse, one denied: two right results"],
    [
      "node/approvals",
      "APPROVE-3 APPROVE-4 the model gets a denial with its reason, and the call never runs",
    ],
  ],
  "gate-in-loop": [
    ["node/run-decisions", "F3 a fan-out in a branch, and one in a loop, fire each time"],
    ["node/run-faults", "RUNGATE-1 RUNGATE-2"],
    [
      "workers/run-nodes",
      "waits, refuses invalid answers, takes the first valid answer, and shows the question",
    ],
  ],
  "nested-child-wakes-parent": [
    ["node/run-faults", "SUBRUN-2"],
    ["workers/run-nodes", "fails with it, and a stop reaches the working nodes below, also after a crash"],
    ["workers/workflow-scenarios", "scenario 13: F9 a sub-workflow"],
  ],
  "computed-delay": [["node/run-faults", "RUNTIME-1 SUBRUN-2 STOREDTIME-1"]],
  "cron-impossible": [
    ["node/cron", "CRON-3 "],
    ["node/cron", "02:30 in Berlin fires once at both changes"],
  ],
  "chatty-extraction": [
    ["node/answers", "its text is the JSON alone, and a bare answer is unchanged"],
    ["node/learn-model", "LEARN-5 changes an offered memory, once, and refuses an invented id"],
  ],
  "fts-syntax-as-text": [["node/full-text", "FTS-1 no query breaks the search"]],
  "unicode-equality": [
    ["node/folding", "FOLD-2 the form %s is stable, and one for all canonically equivalent texts"],
    ["node/same-text", "FOLD-2 %j and %j, by tools, extractions and the API"],
  ],
  "many-hooks-one-conversation": [
    ["e2e/use-agent", "CLAIM-1 G10 a tool of the page runs in one of two tabs, and both show the answer"],
    [
      "node/client-connection",
      "SEND-1: sends messages from before it opened, and repeats them after a loss, under one id",
    ],
  ],
  "expired-token-reconnect": [
    ["node/client-connection", "ADMIT-1, ADMIT-2: after 4401 it resumes at its position with a new token"],
    ["workers/doors", "CONN-3 with a new token a client continues at its position"],
  ],
};

test("each case has a test", () => {
  expect([...HERE, ...Object.keys(ELSEWHERE)].sort()).toEqual(cases.map(({ id }) => id).sort());
});

test.each(Object.entries(ELSEWHERE))("%s is proven elsewhere", (_id, tests) => {
  for (const [file, title] of tests)
    expect(readFileSync(join(import.meta.dirname, "..", `${file}.test.ts`), "utf8")).toContain(title);
});

/** Returns the input of a case. */
function inputOf<Input>(id: string): Input {
  // SAFETY: the fixture has the inputs of this type.
  return cases.find((one) => one.id === id)?.input as unknown as Input;
}

const CHUNK = (delta: object, finish: string | null = null) =>
  JSON.stringify({ id: "r", choices: [{ index: 0, delta, finish_reason: finish }] });
const says = (content: string) => [CHUNK({ content }), CHUNK({}, "stop"), "[DONE]"];
const calls = (...made: [name: string, text: unknown][]) => [
  CHUNK({
    tool_calls: made.map(([name, text], index) => ({
      index,
      id: `c${index}`,
      type: "function",
      function: { name, arguments: text },
    })),
  }),
  CHUNK({}, "tool_calls"),
  "[DONE]",
];

/** Tools that count their runs. */
function toolsOf(ran: string[]) {
  const tool = (name: string, input: z.ZodObject, approval?: "always") =>
    defineTool({
      name,
      description: `Does ${name}.`,
      input,
      effect: "idempotent",
      ...(approval && { approval }),
      execute: (given) => void ran.push(`${name} ${JSON.stringify(given)}`),
    });
  return defineLibrary("lib", {
    tools: [
      tool("now", z.object({})),
      tool("search", z.object({ q: z.string() })),
      tool("view", z.object({})),
      tool("list", z.object({})),
      tool("pay", z.object({}), "always"),
    ],
  });
}

const ALL = ["lib/now", "lib/search", "lib/view", "lib/list", "lib/pay"];

async function desk(
  reply: Reply,
  { toolIds = ALL, profile }: { toolIds?: string[]; profile?: ModelProfile } = {},
) {
  const ran: string[] = [];
  const opened = await CaseDesk.open({ library: toolsOf(ran), toolIds, reply, ...(profile && { profile }) });
  return { desk: opened, ran };
}

const resultsOf = (turn: { moves: readonly { toolResult?: unknown }[] }) =>
  turn.moves.flatMap(({ toolResult }) => (toolResult === undefined ? [] : [toolResult]));

describe("tools", () => {
  test("REPLY-5 arguments-null-text", async () => {
    const { arguments: given } = inputOf<{ arguments: unknown[] }>("arguments-null-text");
    const made = given.map((text): [string, unknown] => ["now", text]);
    const { desk: at, ran } = await desk((round) =>
      round === 0 ? calls(...made, ["search", "null"]) : says("Done."),
    );
    const turn = await at.say();
    expect(ran).toEqual(given.map(() => "now {}"));
    expect(resultsOf(turn).at(-1)).toMatchObject({ success: false, error: { code: "INVALID_INPUT" } });
  });

  test("UNICODE-1 arguments-broken", async () => {
    const { arguments: given } = inputOf<{ arguments: string[] }>("arguments-broken");
    const made = given.map((text): [string, unknown] => ["search", text]);
    const { desk: at, ran } = await desk((round) => (round === 0 ? calls(...made) : says("Done.")));
    const turn = await at.say();
    expect(ran).toEqual(['search {"q":"\ufffd"}']);
    const messages = resultsOf(turn)
      .slice(0, 4)
      .map((result) => String(Object(Object(result).error).message));
    expect(messages[0]).toContain(
      `at position 8, at the end of the text, after ${JSON.stringify('{"q":"a"')}`,
    );
    expect(messages[1]).toContain('are a list and not a JSON object, at position 0, at "[1]"');
    expect(messages[2]).toContain('are a number and not a JSON object, at position 0, at "42"');
    expect(messages[3]).toContain('at position 10, after "{\\"q\\":\\"a\\"} ", at "trailing"');
    expect(at.requests.every(isUnicode)).toBe(true);
  });

  test.each([
    ["abc", 0],
    ['{"a":}', 5],
    ["{'a':1}", 1],
    ['{"a":tru}', 8],
    [`{"a":"${"x".repeat(200)}",}`, 208],
    ['{"a":"\u{1f98a}" "b"}', 10],
    ['{"a":1}{"b":2}', 7],
  ])("arguments-broken the fault of %s is at %i", (text, at) => {
    expect(objectFault(text)).toContain(` at position ${at}, `);
    expect(objectFault(text).match(/position/g)).toHaveLength(1);
    expect(isUnicode(objectFault(text))).toBe(true);
  });

  test("NAME-1 unknown-tool", async () => {
    const { tools, calls: names } = inputOf<{ tools: string[]; calls: string[] }>("unknown-tool");
    const made = names.map((name): [string, unknown] => [name, "{}"]);
    const toolIds = tools.map((name) => `lib/${name}`);
    const { desk: at, ran } = await desk((round) => (round === 0 ? calls(...made) : says("Done.")), {
      toolIds,
    });
    const turn = await at.say();
    expect(ran).toEqual(["list {}"]);
    const failed = resultsOf(turn).filter((result) => Object(result).success === false);
    expect(failed).toHaveLength(3);
    for (const result of failed)
      expect(result).toMatchObject({
        error: { code: "NOT_FOUND", message: expect.stringContaining('The tools are "view", "list".') },
      });
  });

  test("TOOLCHOICE-1 TOOLCHOICE-2 tool-choice-none", async () => {
    const insists: Reply = (round) =>
      round < 3 ? calls(["list", "{}"], ["pay", "{}"]) : says('{"ok":true}');
    const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
    const { desk: at, ran } = await desk((round, body) =>
      round === 3 ? says("no JSON") : insists(round, body),
    );
    const turn = await at.say({ toolChoice: "none", output: { name: "answer", schema } });
    expect(ran).toEqual([]);
    expect(turn.status).toBe("completed");
    expect(at.frames.map(({ type }) => type)).not.toContain("approval.requested");
    expect(at.requests).toHaveLength(5);
    expect(at.requests.map((body) => body.tool_choice)).toEqual(Array.from({ length: 5 }, () => "none"));
    for (const result of resultsOf(turn))
      expect(result).toMatchObject({ error: { code: "PERMISSION_DENIED" } });
  });

  test("TOOLCHOICE-1 tool-choice-forced", async () => {
    const { toolChoice } = inputOf<{ toolChoice: { name: string } }>("tool-choice-forced");
    const { desk: at, ran } = await desk((_round, body) =>
      isJsonObject(body.tool_choice) ? calls(["search", '{"q":"a"}']) : says("Done."),
    );
    const turn = await at.say({ toolChoice });
    expect(turn.answer).toBe("Done.");
    expect(ran).toHaveLength(1);
    expect(at.requests.map((body) => body.tool_choice)).toEqual([
      { type: "function", function: toolChoice },
      "auto",
    ]);
  });

  test("result-cut-in-emoji no cut splits a character", () => {
    for (const fox of ["\u{1f98a}", "\ud83e", "\udd8a"]) {
      for (let limit = 5; limit < 12; limit++) {
        const text = `${"a".repeat(8)}${fox}bbb`;
        expect(cut(text, limit).isWellFormed()).toBe(true);
        expect(cut(text, limit).length).toBeLessThanOrEqual(limit);
        expect(piece("\u{1f98a}\u{1f98a}\u{1f98a}", limit - 8, limit - 5).isWellFormed()).toBe(true);
      }
    }
    expect(cut("ab\u{1f98a}", 3)).toBe("ab");
  });
});

const BAD = "\ud83e";
const BROKEN: ContextMessage[] = [
  { role: "user", content: `hi ${BAD}`, name: `a${BAD}` },
  {
    role: "assistant",
    content: `\u{1f98a}`,
    toolCalls: [{ id: `x${BAD}`, name: "f", arguments: { [`k${BAD}`]: { deep: [`v${BAD}`] } } }],
  },
  { role: "tool", content: `r${BAD}`, toolCallId: `x${BAD}` },
];

describe("every provider", () => {
  const context = (messages: ContextMessage[]) => ({
    systemInstructions: [`s${BAD}`],
    messages,
    tools: [
      {
        name: "f",
        description: `d${BAD}`,
        inputSchema: { type: "object", properties: { [`p${BAD}`]: { type: "string" } } },
      },
    ],
    toolChoice: "auto" as const,
  });

  test.each(PROVIDERS)("UNICODE-1 a request to %s is well-formed, and so is its extension", (provider) => {
    const profile = { provider, modelId: "m", parameters: { user: `u${BAD}` } };
    const format = adapterFor(provider);
    const request = format.buildRequest(profile, context(BROKEN));
    expect(isUnicode(request)).toBe(true);
    const extended = format.extend(
      profile,
      format.buildRequest(profile, context(BROKEN.slice(0, 2))),
      BROKEN.slice(2),
    );
    expect(isUnicode(extended)).toBe(true);
  });

  test.each(["openai", "openai-responses", "anthropic", "gemini"] as const)(
    "GATE-6 a body that no format built is well-formed when it is sent to %s",
    async (provider) => {
      const sent: string[] = [];
      const gateway = createModelGateway({
        secret: () => "key",
        clock: new VirtualClock(),
        fetch: async (_url, init) => {
          sent.push(String(init.body));
          return new Response("{}", { status: 400 });
        },
      });
      const call = { profile: { provider, modelId: "m" }, body: { a: [{ [BAD]: BAD }] }, context: CALLER };
      for await (const _delta of gateway.stream(call, new AbortController().signal));
      expect(sent).toEqual(['{"a":[{"\ufffd":"\ufffd"}]}']);
    },
  );

  test("EMBED-4 texts to embed are well-formed", async () => {
    const sent: string[] = [];
    const gateway = createEmbeddingGateway({
      secret: () => "key",
      clock: new VirtualClock(),
      fetch: async (_url, init) => {
        sent.push(String(init.body));
        return Response.json({ data: [{ embedding: [1] }] });
      },
    });
    const request = {
      profile: { provider: "openai", modelId: "m" } as const,
      texts: [`a${BAD}`],
      context: CALLER,
    };
    await gateway.embed(request, new AbortController().signal);
    expect(sent).toEqual(['{"model":"m","input":["a\ufffd"]}']);
  });

  test.each(PROVIDERS)("BLANK-1 a request to %s without messages has one", (provider) => {
    const request = adapterFor(provider).buildRequest(
      { provider, modelId: "m" },
      { ...context([]), systemInstructions: [] },
    );
    const [list] = [request.messages, request.input, request.contents, request.prompt].filter(Array.isArray);
    if (provider !== "offline") expect(list).toHaveLength(1);
  });

  test.each(["openai", "workers-ai", "openai-responses"] as const)(
    "OPENAI-1 an empty id of a call fits %s",
    (provider) => {
      const call = { name: "f", arguments: {} };
      const request = adapterFor(provider).buildRequest(
        { provider, modelId: "m" },
        context([
          { role: "user", content: "hi" },
          {
            role: "assistant",
            content: "",
            toolCalls: [
              { ...call, id: "" },
              { ...call, id: "" },
            ],
          },
          { role: "tool", content: "1", toolCallId: "" },
        ]),
      );
      const ids = JSON.stringify(request).match(/"(?:id|call_id)":"[^"]*"/g) ?? [];
      expect(new Set(ids.slice(0, 2)).size).toBe(2);
      expect(ids.every((id) => !id.endsWith('""'))).toBe(true);
    },
  );

  test.each(PROVIDERS)("UNICODE-1 arguments for %s have no escapes of lone surrogates", (provider) => {
    const profile = { provider, modelId: "m" };
    const format = adapterFor(provider);
    const calls = [{ id: "c", name: "f", arguments: { [`k${BAD}`]: [{ deep: BAD }] } }];
    const messages: ContextMessage[] = [
      { role: "user", content: "hi" },
      { role: "assistant", content: "", toolCalls: calls },
      { role: "tool", content: "1", toolCallId: "c" },
    ];
    const extended = format.extend(
      profile,
      format.buildRequest(profile, context(messages.slice(0, 1))),
      messages.slice(1),
    );
    for (const request of [format.buildRequest(profile, context(messages)), extended])
      expect(JSON.stringify(request)).not.toMatch(/\\ud[89a-f]/i);
  });

  test.each(PROVIDERS.filter((provider) => provider !== "offline"))(
    "CALLIDS-1 calls of one message without ids get their own results from %s",
    (provider) => {
      const profile = { provider, modelId: "gemini-3" };
      const twice = ["", "x"].flatMap((id) => [id, id]);
      const named = (ids: readonly string[]): ContextMessage[] => [
        { role: "user", content: "hi" },
        {
          ...{ role: "assistant", content: "" },
          toolCalls: ids.map((id, n) => ({ id, name: "f", arguments: { n } })),
        },
        ...ids.map((id, n): ContextMessage => ({ role: "tool", content: `result ${n}`, toolCallId: id })),
      ];
      const { buildRequest } = adapterFor(provider);
      const text = JSON.stringify(buildRequest(profile, context(named(twice))));
      const idOf = /"(?:id|call_id|tool_call_id|tool_use_id|toolCallId)":"([^"]*)"/g;
      const ids = [...text.matchAll(idOf)].map(([, id]) => id);
      expect(new Set(ids).size).toBe(4);
      expect(ids.slice(4)).toEqual(ids.slice(0, 4));
    },
  );

  test.each([
    ["a text", "So \n"],
    [
      "blocks",
      [
        { type: "text", text: "So " },
        { type: "text", text: " \n" },
      ],
    ],
  ])("ANTHROPIC-8 a request that ends with %s has no blank at its end after an extension", (_, content) => {
    const { extend } = adapterFor("anthropic");
    const user = { role: "user", content: "hi" };
    const request = { messages: [user, { role: "assistant", content }] };
    const trimmed = typeof content === "string" ? "So" : [{ type: "text", text: "So" }];
    expect(
      extend({ provider: "anthropic", modelId: "m" }, request, [{ role: "user", content: " " }]).messages,
    ).toEqual([user, { role: "assistant", content: trimmed }]);
  });

  test("ANTHROPIC-8 an extension that ends with a reply has no blank at its end", () => {
    const profile = { provider: "anthropic", modelId: "m" } as const;
    const { extend, buildRequest } = adapterFor("anthropic");
    const request = buildRequest(profile, context([{ role: "user", content: "hi" }]));
    const parts = [
      { type: "text", length: 4 },
      { type: "block", value: { type: "server_tool_use" } },
      { type: "text", length: 3 },
    ];
    // SAFETY: parts of the literal types that a native reply has.
    const native = { ...profile, parts } as NativeReply;
    for (const extra of [{}, { native }]) {
      const { messages } = extend(profile, request, [{ role: "assistant", content: "So \nit \n", ...extra }]);
      const last = Array.isArray(messages) ? Object(messages.at(-1)) : {};
      expect(last.content.at(-1)).toMatchObject({ type: "text", text: expect.stringMatching(/\S$/) });
    }
  });

  test.each([
    ["openai", {}, { max_completion_tokens: 5 }],
    ["openai", { max_tokens: 3 }, { max_tokens: 3 }],
    ["openai", { max_tokens: 9 }, { max_tokens: 5 }],
    ["openai-responses", {}, { max_output_tokens: 5 }],
    ["anthropic", {}, { max_tokens: 5 }],
    [
      "anthropic",
      { thinking: { type: "enabled", budget_tokens: 1_024 } },
      { max_tokens: 5, thinking: { type: "disabled" } },
    ],
    [
      "gemini",
      { generationConfig: { maxOutputTokens: 9, topK: 1 } },
      { generationConfig: { maxOutputTokens: 5, topK: 1 } },
    ],
    ["gemini", {}, { generationConfig: { maxOutputTokens: 5 } }],
    ["workers-ai", {}, { max_tokens: 5 }],
    ["ai-sdk", {}, { maxOutputTokens: 5 }],
  ] as const)(
    "OUTLIMIT-1 OUTLIMIT-2 caps-honoured a limit of 5 for %s with %j",
    (provider, parameters, expected) => {
      const profile: ModelProfile = withOutputLimit(
        { provider, modelId: "m", parameters: { ...parameters } },
        5,
      );
      const request = adapterFor(provider).buildRequest(profile, context([{ role: "user", content: "hi" }]));
      expect(request).toMatchObject(expected);
    },
  );
});

const CALLER = {
  tenant: "t",
  conversationId: "conv_1",
  turnId: "turn_1",
  agentId: "a",
  projectId: "default",
};

describe("providers", () => {
  test("GEMINI-8 gemini-schemas", () => {
    const { schemas } = inputOf<{ schemas: JsonObject[] }>("gemini-schemas");
    const tools = schemas.map((inputSchema, index) => ({ name: `t${index}`, description: "", inputSchema }));
    const request = adapterFor("gemini").buildRequest(
      { provider: "gemini", modelId: "gemini-3-pro" },
      { systemInstructions: [], messages: [], tools, toolChoice: "auto" },
    );
    const [{ functionDeclarations }] = z
      .tuple([
        z.object({
          functionDeclarations: z.array(
            z.object({ parametersJsonSchema: z.custom<JsonObject>(isJsonObject) }),
          ),
        }),
      ])
      .parse(request.tools);
    const sent = functionDeclarations.map(({ parametersJsonSchema }) => parametersJsonSchema);
    for (const schema of sent) checkGeminiSchema(schema);
    expect(sent[0]).toMatchObject({
      properties: { n: { anyOf: [{ type: "integer", minimum: 1 }, { type: "null" }] } },
    });
    expect(sent[1]).toMatchObject({ properties: { level: { type: "integer", enum: [0, 1, 2] } } });
    expect(sent[2]).toMatchObject({ properties: { k: { enum: ["a"] } }, required: ["k"] });
    expect(sent[2]?.description).toContain('required: ["gone"]');
    expect(violations(schemas[2] ?? {}, { k: "a" })).toHaveLength(1);
  });

  test("gemini-parallel-calls", () => {
    const call = (name: string, thoughtSignature?: string) => ({
      functionCall: { name, args: {} },
      ...(thoughtSignature && { thoughtSignature }),
    });
    const parts = [call("a", "S1"), call("b"), call("a")];
    const outcome = outcomeOf("gemini", [{ candidates: [{ content: { parts }, finishReason: "STOP" }] }]);
    if (!outcome.ok) throw new Error(outcome.error.message);
    const { text, toolCalls, native = [] } = outcome.reply;
    const profile = { provider: "gemini", modelId: "gemini-3-pro" } as const;
    const results = [2, 0, 1].map((at): ContextMessage => {
      return { role: "tool", content: `r${at}`, toolCallId: toolCalls[at]?.id ?? "" };
    });
    const reply: ContextMessage = {
      role: "assistant",
      content: text,
      toolCalls,
      native: { ...profile, parts: native },
    };
    const messages: ContextMessage[] = [{ role: "user", content: "hi" }, reply, ...results];
    // After a restart, the messages come from storage.
    const stored: ContextMessage[] = JSON.parse(JSON.stringify(messages));
    const { contents } = adapterFor("gemini").buildRequest(profile, {
      systemInstructions: [],
      messages: stored,
      tools: [],
      toolChoice: "auto",
    });
    expect(contents).toMatchObject([
      { role: "user" },
      {
        role: "model",
        parts: [
          { functionCall: { name: "a" }, thoughtSignature: "S1" },
          { functionCall: { name: "b" } },
          { functionCall: { name: "a" } },
        ],
      },
      {
        role: "user",
        parts: [0, 1, 2].map((at) => ({ functionResponse: { response: { output: `r${at}` } } })),
      },
    ]);
    expect(JSON.stringify(contents).match(/thoughtSignature/g)).toHaveLength(1);
  });

  test("responses-reasoning-pairs", () => {
    const { output } = inputOf<{ output: string[][] }>("responses-reasoning-pairs");
    expect(output).toHaveLength(3);
    const reasoning = (id: string) => ({ type: "reasoning", id, summary: [], encrypted_content: `e ${id}` });
    const profile = { provider: "openai-responses", modelId: "gpt-5" } as const;
    const round = (n: number): ContextMessage[] => {
      const call = { type: "function_call", id: `fc_${n}`, call_id: `c${n}`, name: "f", arguments: "{}" };
      const outcome = outcomeOf("openai-responses", [
        { object: "response", status: "completed", output: [reasoning(`rs_${n}`), call] },
      ]);
      if (!outcome.ok) throw new Error(outcome.error.message);
      const { toolCalls, native = [] } = outcome.reply;
      return [
        { role: "assistant", content: "", toolCalls, native: { ...profile, parts: native } },
        { role: "tool", content: "ok", toolCallId: `c${n}` },
      ];
    };
    const first: ContextMessage = { role: "user", content: "hi" };
    const [reply, result] = round(2);
    if (reply === undefined || result === undefined) throw new Error("A round has two messages.");
    const built = (messages: ContextMessage[], modelId = "gpt-5") =>
      JSON.stringify(
        adapterFor("openai-responses").buildRequest(
          { ...profile, modelId },
          { systemInstructions: [], messages, tools: [], toolChoice: "auto" },
        ).input,
      );
    const whole = built([first, ...round(1), reply, result]);
    expect(whole).toMatch(/rs_1.*fc_1.*rs_2.*fc_2/);
    // Stopped between the reasoning and its call: the reply has no call, and the reasoning stays out.
    expect(built([first, { role: "assistant", content: "Stopped." }])).not.toContain("rs_");
    // If the history begins at the call, the request has both the call and its reasoning, or lacks both.
    expect(built([reply, result])).toMatch(/rs_2.*fc_2/);
    expect(built([first, reply, result], "gpt-4.1")).not.toMatch(/rs_|fc_/);
    expect(built([{ role: "user", content: "edited" }, reply, result])).toMatch(/rs_2.*fc_2/);
  });

  test("OUTLIMIT-2 thinking-off-and-on", () => {
    const content = [
      { type: "thinking", thinking: "h\u{1f98a}m", signature: "S" },
      { type: "redacted_thinking", data: "R" },
      { type: "text", text: "Look:" },
      { type: "tool_use", id: "t", name: "f", input: { a: 1 } },
    ];
    const outcome = outcomeOf("anthropic", [
      { type: "message", id: "m", role: "assistant", content, stop_reason: "tool_use" },
    ]);
    if (!outcome.ok) throw new Error(outcome.error.message);
    const { text, toolCalls, native = [] } = outcome.reply;
    const thinks: ModelProfile = {
      provider: "anthropic",
      modelId: "claude",
      parameters: { thinking: { type: "enabled", budget_tokens: 2_000 } },
    };
    const stored: ContextMessage[] = JSON.parse(
      JSON.stringify([
        { role: "user", content: "hi" },
        {
          role: "assistant",
          content: text,
          toolCalls,
          native: { provider: "anthropic", modelId: "claude", parts: native },
        },
        { role: "tool", content: "1", toolCallId: "t" },
      ]),
    );
    const built = (profile: ModelProfile) =>
      adapterFor("anthropic").buildRequest(profile, {
        systemInstructions: [],
        messages: stored,
        tools: [],
        toolChoice: "auto",
      });
    for (const profile of [thinks, { ...thinks, parameters: {} }, thinks]) {
      const { messages } = built(profile);
      expect(Array.isArray(messages) && messages[1]).toEqual({ role: "assistant", content });
    }
    expect(built(withOutputLimit(thinks, 2_000))).toMatchObject({
      max_tokens: 2_000,
      thinking: { type: "disabled" },
    });
    expect(built(withOutputLimit(thinks, 2_001))).toMatchObject({
      max_tokens: 2_001,
      thinking: { budget_tokens: 2_000 },
    });
  });

  test("PAUSE-2 pause-without-end", async () => {
    const profile: ModelProfile = { provider: "anthropic", modelId: "claude", baseUrl: "http://provider" };
    const pauses = (round: number) => [
      { type: "message_start", message: { id: `m${round}`, content: [] } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: `${round}. ` } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "pause_turn" } },
      { type: "message_stop" },
    ];
    const { desk: at } = await desk((round) => pauses(round).map((event) => JSON.stringify(event)), {
      profile,
    });
    const turn = await at.say();
    expect(turn).toMatchObject({ status: "completed", issues: { replyPaused: true } });
    expect(at.requests).toHaveLength(MAX_CONTINUATIONS + 1);
    for (const { messages } of at.requests.slice(1)) {
      const last = Array.isArray(messages) ? Object(messages.at(-1)) : {};
      expect(last.content.at(-1).text).toMatch(/\S$/);
    }
  });

  test("EMPTY-1 an empty reply is an empty message with an issue", async () => {
    const { desk: at } = await desk(() => says(" "));
    const turn = await at.say();
    expect(turn).toMatchObject({ status: "completed", answer: " ", issues: { emptyReply: true } });
  });

  test("EMPTY-1 a notice after the last move is marked, so that a model does not take it for its own text", async () => {
    const { desk: at } = await desk((_round, body) =>
      body.tool_choice === "none" ? says("") : calls(["now", "{}"]),
    );
    await at.say();
    const [completed] = at.frames.flatMap((frame) =>
      frame.type === "message.completed" && frame.data.interim !== true ? [frame.data] : [],
    );
    expect(completed).toMatchObject({
      notice: true,
      content: expect.stringMatching(/^The turn stopped here/),
    });
    const event = {
      id: "e",
      sessionId: "s",
      seq: 1,
      timestamp: 1,
      content: "x",
      action: EventAction.AGENT_MESSAGE,
      metadata: { notice: true },
    } as const;
    expect(eventToMessage(event)).toMatchObject({ role: "system", metadata: { note: true } });
  });
});

/** Throws for a schema with a keyword that the Gemini API does not name, or with required members that are not properties. */
function checkGeminiSchema(schema: JsonObject): void {
  const known =
    /^(?:\$ref|\$defs|type|format|title|description|enum|items|prefixItems|(?:min|max)Items|minimum|maximum|anyOf|properties|additionalProperties|required|propertyOrdering)$/;
  const { properties, required = [], $defs, anyOf = [], items, additionalProperties } = schema;
  expect(Object.keys(schema).filter((keyword) => !known.test(keyword))).toEqual([]);
  const named = [properties, $defs].flatMap((group) => (isJsonObject(group) ? Object.values(group) : []));
  if (Array.isArray(required))
    for (const name of required) expect(Object.keys(Object(properties))).toContain(name);
  const nested: (Json | undefined)[] = [
    ...named,
    ...(Array.isArray(anyOf) ? anyOf : []),
    items,
    additionalProperties,
  ];
  for (const inner of nested) if (isJsonObject(inner)) checkGeminiSchema(inner);
}

describe("the OpenAI protocols", () => {
  const user = { role: "user", content: "hi" };
  const chat = (body: object) => completionSchema.safeParse({ model: "a", messages: [user], ...body });
  const params = (parsed: { error?: z.core.$ZodError | undefined }) =>
    parsed.error === undefined ? [] : inputIssues(parsed.error).map(({ path }) => path);

  test("OAI-13 null-content", () => {
    const { messages } = inputOf<{ messages: object[] }>("null-content");
    expect(() => chatInput(completionSchema.parse({ model: "a", messages }))).toThrow(
      expect.objectContaining({
        code: "INVALID_INPUT",
        message: expect.stringContaining('"b"'),
        options: { errors: [expect.objectContaining({ path: "/messages/2/tool_call_id" })] },
      }),
    );
    expect(params(chat({ messages: [{ role: "user", content: null }] }))).toEqual(["/messages/0/content"]);
    const twice = { role: "tool", tool_call_id: "a", content: "x" };
    const repeated = completionSchema.parse({
      model: "a",
      messages: [...messages.slice(0, 2), twice, twice, user],
    });
    expect(() => chatInput(repeated)).toThrow('"a"');
  });

  test("OAI-11 OAI-12 caps-honoured", () => {
    const { body } = inputOf<{ body: JsonObject }>("caps-honoured");
    const refused = Object.keys(body).filter((name) =>
      params(chat({ [name]: body[name] })).includes(`/${name}`),
    );
    expect(refused.sort()).toEqual(["logprobs", "n", "stop"]);
    expect(chatOptions(completionSchema.parse({ model: "a", messages: [user], max_tokens: 1 }))).toEqual({
      maxOutputTokens: 1,
    });
    const both = completionSchema.parse({
      model: "a",
      messages: [user],
      max_tokens: 1,
      max_completion_tokens: 2,
    });
    expect(() => chatOptions(both)).toThrow("max_completion_tokens");
    const ignored = completionSchema.parse({
      model: "a",
      messages: [user],
      temperature: 0,
      seed: 1,
      user: null,
    });
    expect(ignoredFields(completionSchema, ignored).sort()).toEqual(["seed", "temperature"]);
    expect(params(chat({ invented: 1 }))).toEqual(["/invented"]);
  });

  test("OAI-11 codex-body", () => {
    const { body } = inputOf<{ body: JsonObject }>("codex-body");
    const sent = { model: "a", input: "hi", ...body };
    expect(params(responseSchema.safeParse(sent))).toEqual(["/tools/0/type"]);
    const text = { verbosity: "low", format: { type: "text" } };
    const accepted = responseSchema.parse({
      ...sent,
      tools: [],
      text,
      max_output_tokens: 7,
      reasoning: { effort: "low" },
    });
    expect(ignoredFields(responseSchema, accepted).sort()).toEqual([
      "client_metadata",
      "include",
      "reasoning",
      "store",
      "text.verbosity",
    ]);
    expect(responseOptions(accepted)).toEqual({ maxOutputTokens: 7, singleCalls: true });
  });

  test("OAI-4 usage-chunk", () => {
    const address = {
      conversationId: "conv_01ARZ3NDEKTSV4RRFFQ69G5FAV",
      turnId: "turn_01ARZ3NDEKTSV4RRFFQ69G5FAV",
      index: 0,
      finalOnly: false,
    };
    const answer = {
      status: "completed",
      messages: [],
      calls: [],
      finishReason: "stop",
      usage: null,
      completedAt: null,
    } as const;
    const [, last] = new ChatChunkEncoder(address, "a", true).end({ ...answer, messages: [], calls: [] });
    expect(last).toMatchObject({ choices: [], usage: { total_tokens: 0 } });
    const [only] = new ChatChunkEncoder(address, "a", false).end({ ...answer, messages: [], calls: [] });
    expect(only).not.toHaveProperty("usage");
  });
});

test("the strict double refuses requests that the formats must not send", () => {
  expect(() => checkByRules("/v1/chat/completions", { messages: [] })).toThrow("no messages");
});
