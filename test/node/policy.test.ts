/** Policies: rules decide about calls of tools, through whole conversations. */
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { ERASED, withoutTexts } from "../../src/agents/conversation/core/erasure.ts";
import { checkToolCall } from "../../src/agents/conversation/core/planning/tool-call.ts";
import { incidentOf } from "../../src/agents/conversation/core/record/incidents.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { defineLibrary, definePersona, defineTool } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { step } from "../../src/library/tasks/step.ts";
import { type Gate, strictestOf, type Verdict, verdictOf } from "../../src/policy/gate.ts";
import { type PolicyRule, policyOf } from "../../src/policy/policy.ts";
import { TOOL_EFFECTS, type ToolEffect } from "../../src/protocol/definition-parts.ts";
import { matchesName } from "../../src/protocol/tool-patterns.ts";
import { checkBudget } from "../../src/shared/json-schema/violations.ts";
import { reportPolicy } from "../../src/startup.ts";
import { call, createTestApp, expectReplay, type TestApp, type TestTurn } from "../../src/testing/index.ts";
import { PLAIN_CHAIN, recordOf } from "../support/records.ts";

const toolNamed = (name: string, effect: ToolEffect) =>
  defineTool({
    name,
    description: `Does ${name}.`,
    input: z.object({}),
    effect,
    execute: () => `${name} done`,
  });
const library = defineLibrary("desk", {
  tools: [toolNamed("fetch_page", "pure"), toolNamed("refund", "once"), toolNamed("note", "idempotent")],
  personas: [
    definePersona("clerk", {
      identity: { systemPrompt: "Help." },
      tools: { toolIds: ["fetch_page", "refund", "note"] },
    }),
    definePersona("reader", {
      identity: { systemPrompt: "Read." },
      tools: {
        toolIds: ["fetch_page", "refund", "note"],
        constraints: { allowedActions: ["fetch_*", "note"] },
      },
    }),
  ],
});

const ASK_AFTER_WEB: PolicyRule = {
  id: "ask-after-web",
  effects: ["once"],
  tainted: true,
  then: "ask",
  reason: "Untrusted content led to this call.",
};

/** Returns a reply with several calls. */
const calls = (...names: string[]) => ({ calls: names.map((name) => ({ name, input: {} })) });

/** Returns the decisions in the journal of a turn. */
function decisionsOf(app: TestApp, turn: TestTurn) {
  const entries = app.recording(turn).rows.flatMap((row) => row.entries);
  return entries.filter(({ type }) => type.startsWith("policy.")).map(({ type, data }) => ({ type, data }));
}

test("E26 POLICY-4 a denied call never runs, and its error and the journal name the rule", async () => {
  const rule: PolicyRule = {
    id: "no-refunds",
    tools: ["refund"],
    then: "deny",
    reason: "Refunds are for people.",
  };
  const app = createTestApp({ libraries: [library], policy: [rule] });
  app.model.script(call("refund"), "I cannot.");
  const turn = await app.send("clerk", "Refund it.");
  const message = 'The tool "refund" is not allowed here by the rule "no-refunds". Refunds are for people.';
  expect(turn).toMatchObject({
    text: "I cannot.",
    calls: [{ name: "refund", error: { code: "PERMISSION_DENIED", message } }],
  });
  expect(app.effects).toEqual([]);
  expect(decisionsOf(app, turn)).toEqual([
    { type: "policy.denied", data: { rule: "no-refunds", reason: "Refunds are for people." } },
  ]);
  expectReplay(app.recording(turn));
});

test("E26 POLICY-1 POLICY-4 the first rule decides, and a call without a rule leaves no entry", async () => {
  const app = createTestApp({
    libraries: [library],
    policy: [
      { id: "notes", tools: ["note"], then: "allow" },
      { id: "nothing", tools: ["n*", "refund"], then: "deny" },
    ],
  });
  app.model.script(calls("note", "refund", "fetch_page"), "Done.");
  const turn = await app.send("clerk", "Go.");
  expect(turn.calls.map(({ error }) => error?.code)).toEqual([undefined, "PERMISSION_DENIED", undefined]);
  expect(decisionsOf(app, turn)).toEqual([
    { type: "policy.allowed", data: { rule: "notes" } },
    { type: "policy.denied", data: { rule: "nothing" } },
  ]);
});

test("H8 POLICY-4 a once call that untrusted content has led to asks a person, and shows the rule and the origin", async () => {
  const app = createTestApp({ libraries: [library], policy: [ASK_AFTER_WEB] });
  app.model.script(call("refund"), "Refunded.");
  const trusted = await app.send("clerk", "Refund it.");
  expect([trusted.status, decisionsOf(app, trusted)]).toEqual(["completed", []]);
  const other = await app.conversation("clerk");
  app.model.script(call("fetch_page"), call("refund"), "Refunded after the page.");
  const turn = await other.send("Read the page.");
  expect(turn.status).toBe("waiting");
  const [asked] = app.approvals();
  expect(asked).toMatchObject({
    name: "refund",
    policy: { rule: "ask-after-web", reason: "Untrusted content led to this call.", taint: ["tool"] },
  });
  expect(app.effects.filter(({ tool }) => tool === "refund")).toHaveLength(1);
  app.crash();
  if (asked !== undefined) await app.approve(asked);
  const done = await app.settle(turn);
  expect(done).toMatchObject({ status: "completed", text: "Refunded after the page." });
  expect(app.effects.filter(({ tool }) => tool === "refund")).toHaveLength(2);
  expect(decisionsOf(app, done)).toEqual([
    {
      type: "policy.asked",
      data: { rule: "ask-after-web", reason: "Untrusted content led to this call.", taint: ["tool"] },
    },
  ]);
  expectReplay(app.recording(done));
});

test("H8 POLICY-4 equal calls before and after untrusted content have decisions of their own, also in a replay", async () => {
  const app = createTestApp({ libraries: [library], policy: [ASK_AFTER_WEB] });
  app.model.script(call("refund"), call("fetch_page"), call("refund"), "Twice.");
  const turn = await app.send("clerk", "Refund, read, refund.");
  // The first result is untrusted content, too.
  expect(app.approvals()).toHaveLength(1);
  const done = await approved(app, turn);
  expect(decisionsOf(app, done).map(({ type }) => type)).toEqual(["policy.asked"]);
  expectReplay(app.recording(done));
});

test("H8 POLICY-4 a denied request of a policy does not run", async () => {
  const app = createTestApp({ libraries: [library], policy: [ASK_AFTER_WEB] });
  app.model.script(call("fetch_page"), call("refund"), "It stays.");
  const turn = await app.send("clerk", "Read the page.");
  const [asked] = app.approvals();
  if (asked !== undefined) await app.deny(asked, "Not this one.");
  const done = await app.settle(turn);
  expect(done.calls.at(-1)).toMatchObject({ error: { code: "APPROVAL_DENIED" } });
  expect(app.effects.map(({ tool }) => tool)).toEqual(["fetch_page"]);
});

test("H8 POLICY-4 the caller of an agent sees the rule and the origin of the agent's request", async () => {
  const asker = definePersona("asker", {
    identity: { systemPrompt: "Ask." },
    tools: { toolIds: ["ask_clerk"] },
  });
  const delegate = defineTool({
    name: "ask_clerk",
    description: "Asks.",
    target: { agent: "clerk", modes: ["delegate"] },
  });
  const app = createTestApp({
    libraries: [library, defineLibrary("front", { tools: [delegate], personas: [asker] })],
    policy: [ASK_AFTER_WEB],
  });
  app.model.of("asker").script({ calls: [{ name: "ask_clerk", input: { message: "Go." } }] }, "Done.");
  app.model.of("clerk").script(call("refund"), "Refunded.");
  const turn = await app.send("asker", "Have it refunded.");
  expect(turn.status).toBe("waiting");
  // The words of another agent are untrusted.
  const policy = {
    rule: "ask-after-web",
    reason: "Untrusted content led to this call.",
    taint: ["colleague"],
  };
  expect(app.approvals()).toMatchObject([{ name: "refund", policy }]);
  const shown = app.recording(await approved(app, turn)).rows.flatMap(({ entries }) => entries);
  const asked = shown.find(({ type }) => type === "approval.requested");
  expect(asked?.data).toMatchObject({ of: { name: "refund", policy } });
});

/** Approves all requests. Returns the turn after it. */
async function approved(app: TestApp, turn: TestTurn): Promise<TestTurn> {
  for (const one of app.approvals()) await app.approve(one);
  return app.settle(turn);
}

test("E26 POLICY-5 a persona calls only its allowed actions", async () => {
  const app = createTestApp({ libraries: [library] });
  app.model.script(calls("fetch_page", "note", "refund"), "Done.");
  const turn = await app.send("reader", "Go.");
  expect(turn.calls.map(({ name, error }) => [name, error?.code])).toEqual([
    ["fetch_page", undefined],
    ["note", undefined],
    ["refund", "PERMISSION_DENIED"],
  ]);
  expect(decisionsOf(app, turn)).toEqual([
    { type: "policy.denied", data: { rule: "persona.allowed-actions" } },
  ]);
  expectReplay(app.recording(turn));
});

test("E26 POLICY-4 the stricter answer of the policy and of the gate counts, and a gate that throws denies", async () => {
  const app = createTestApp({
    libraries: [library],
    policy: [{ id: "all", then: "allow" }],
    gate: ({ name }) => {
      if (name === "refund") throw new Error("The gate is broken.");
      return name === "note" ? { decision: "deny", reason: "No notes." } : "allow";
    },
  });
  app.model.script(calls("fetch_page", "note", "refund"), "Done.");
  const turn = await app.send("clerk", "Go.");
  expect(turn.calls.map(({ error }) => error?.message)).toEqual([
    undefined,
    'The tool "note" is not allowed here. No notes.',
    'The tool "refund" is not allowed here.',
  ]);
});

test.each([
  [{ task: "pay/refund" }, "deny"],
  [{ task: "refund" }, "deny"],
  [{ task: { library: "pay", id: "refund" } }, "deny"],
  [{ workflow: "pay/refund@3" }, "deny"],
  [{ agent: "refund" }, "deny"],
  [{ task: "refund/other" }, "allow"],
] as const)("E26 POLICY-8 a rule denies a tool with another name over %j: %s", (target, decision) => {
  const gate = policyOf([
    { id: "first", tools: ["refund"], then: "allow", effects: ["pure"] },
    { id: "no-refunds", tools: ["refund"], then: "deny" },
  ]);
  const context = {
    tenant: "t",
    projectId: "p",
    agentId: "a",
    conversationId: "c",
    toolCallId: "1",
    taint: [],
  };
  const tool = { name: "gift", description: "Gives.", inputSchema: {}, effect: "pure", target } as const;
  // SAFETY: the gate reads only these members.
  expect(verdictOf(gate(tool as never, {}, context)).decision).toBe(decision);
});

test("E26 POLICY-9 a rule that denies or asks for `shell_exec` binds `shell_start`, and a rule that allows does not", () => {
  const gate = policyOf([
    { id: "commands", tools: ["shell_exec"], then: "allow" },
    { id: "no-commands", tools: ["shell_exec"], then: "ask" },
  ]);
  const tool = (name: string) => ({ name, description: "Runs.", inputSchema: {}, effect: "idempotent" });
  // SAFETY: the gate reads only these members.
  const decided = (name: string) => verdictOf(gate(tool(name) as never, {}, { taint: [] } as never)).decision;
  expect(["shell_exec", "shell_start", "shell_output"].map(decided)).toEqual(["allow", "ask", "allow"]);
});

describe("E26 POLICY-7 HTTP-1 a request to a host that is not allowed", () => {
  const load = defineTask({
    id: "load",
    input: z.object({ url: z.string() }),
    output: z.object({ status: z.number() }),
    steps: [
      step("get", {
        action: { kind: "http.request", hosts: ["shop.example", "127.0.0.1:8080"], effect: "pure" },
        inputMapping: { url: "input.url" },
        outputMapping: { "output.status": "result.status" },
      }),
    ],
  });
  const loader = defineLibrary("web", {
    tools: [defineTool({ name: "load_page", description: "Loads.", target: { task: load } })],
    personas: [
      definePersona("loader", { identity: { systemPrompt: "Load." }, tools: { toolIds: ["load_page"] } }),
    ],
  });

  test.each([
    "https://other.example/",
    "https://2130706433/",
    "https://0177.0.0.1/",
    "https://0x7f000001/",
    "https://127.1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "http://169.254.169.254/latest/meta-data",
    "https://shop.example@10.0.0.1/",
    "https://shop.example./",
    "http://0x7f.1:8081/",
    "file:///etc/passwd",
    "https://shop.example/redirected",
  ])("is denied, and the journal has the rule: %s", async (url) => {
    const sent: string[] = [];
    const app = createTestApp({
      libraries: [loader],
      http: (request) => {
        sent.push(request.url);
        return new Response(null, { status: 302, headers: { location: "http://2852039166/secret" } });
      },
    });
    app.model.script({ calls: [{ name: "load_page", input: { url } }] }, "I cannot.");
    const turn = await app.send("loader", "Load it.");
    expect(turn.calls[0]?.error?.code).toBe("PERMISSION_DENIED");
    expect(sent).toEqual(url.endsWith("/redirected") ? [url] : []);
    expect(decisionsOf(app, turn)).toEqual([{ type: "policy.denied", data: { rule: "network" } }]);
    expectReplay(app.recording(turn));
  });
});

describe("the check of one call", () => {
  const check = (
    name: string,
    chain: Parameters<typeof recordOf>[0],
    gate: Gate,
    tools: Turn["tools"] = [],
  ) => {
    const record = recordOf(chain);
    const call = { id: "c", name, arguments: {} };
    const asked = { agentId: record.agents[0].id, tools, operations: [] };
    const id = { toolCallId: "c", taint: [] };
    return checkToolCall(record, asked, call, id, { now: 1, gate, stem: "" }, checkBudget());
  };

  test("E26 POLICY-4 a rule cannot ask for a call of a client's tool, so it denies the call", () => {
    const tool = { name: "show", description: "Shows.", inputSchema: {} };
    const { status, result, policy } = check("show", PLAIN_CHAIN, () => ({ decision: "ask", rule: "r" }), [
      tool,
    ]);
    expect([status, result?.error?.code, policy]).toEqual([
      "failed",
      "PERMISSION_DENIED",
      { decision: "ask", rule: "r" },
    ]);
    expect(check("show", PLAIN_CHAIN, () => "allow", [tool])).toMatchObject({ target: "client" });
  });

  test("E26 POLICY-5 the page of a large result is no action", () => {
    const { persona } = PLAIN_CHAIN;
    const constraints = { allowedActions: ["nothing"] };
    const definition = { ...persona.definition, tools: { constraints } };
    const chain = { ...PLAIN_CHAIN, persona: { ...persona, definition } };
    const { result } = check("read_tool_result", chain, () => "allow");
    expect(result?.error?.code).not.toBe("PERMISSION_DENIED");
  });
});

test("E26 E29 a denied call is an incident, an asked call is none", () => {
  expect(incidentOf("policy.denied", { rule: "r" })).toEqual({ kind: "denial" });
  expect(incidentOf("policy.asked", { rule: "r" })).toBeNull();
});

test("H8 an erasure keeps the rule and the origins of a decision, and removes the reason", () => {
  expect(withoutTexts({ rule: "r", reason: "Of a@b.c.", taint: ["tool"] })).toEqual({
    rule: "r",
    reason: ERASED,
    taint: ["tool"],
  });
});

test.each([
  [[{ id: "A", then: "deny" }], "small letters"],
  [[{ id: "a", then: "maybe" }], "then"],
  [[{ id: "a", tools: ["*x"], then: "deny" }], "beginning and `*`"],
  [[{ id: "a", tools: [], then: "deny" }], "tools"],
  [[{ id: "a", then: "deny", tool: "x" }], "tool"],
  [
    [
      { id: "a", then: "deny" },
      { id: "a", then: "ask" },
    ],
    'two rules with the id "a"',
  ],
])("E26 an invalid policy is refused: %j", (rules, problem) => {
  expect(() => policyOf(rules as PolicyRule[])).toThrow(problem);
});

test("E26 a rule with the mistyped name of a tool is reported with similar names", () => {
  const warn = vi.spyOn(console, "warn").mockReturnValue();
  onTestFinished(() => warn.mockRestore());
  const tools = ["refund", "refnud", "ref*", "nothing_*", "repo_write", "read_tool_result"];
  reportPolicy(
    [
      { id: "money", tools, then: "deny" },
      { id: "all", then: "allow" },
    ],
    [library],
  );
  expect(warn.mock.calls).toEqual([
    [
      expect.stringMatching(
        /^The rule "money" of the policy names the tool "refnud", which .* has. The tools are: refund, /,
      ),
    ],
  ]);
});

const names = fc.stringMatching(/^[a-c_]{1,4}$/);
const patterns = fc.array(fc.tuple(names, fc.boolean()), { minLength: 1, maxLength: 4 });

test("E26 POLICY-3 a pattern matches its exact name, or all names with its beginning", () => {
  fc.assert(
    fc.property(patterns, names, (given, name) => {
      const written = given.map(([text, isOpen]) => (isOpen ? `${text}*` : text));
      const expected = given.some(([text, isOpen]) => name === text || (isOpen && name.startsWith(text)));
      expect(matchesName(written, name)).toBe(expected);
    }),
  );
});

const rules = fc.uniqueArray(
  fc.record(
    {
      id: fc.stringMatching(/^[a-z]{3}$/),
      tools: patterns.map((given) => given.map(([text, isOpen]) => (isOpen ? `${text}*` : text))),
      effects: fc.uniqueArray(fc.constantFrom(...TOOL_EFFECTS), { minLength: 1 }),
      agents: fc.uniqueArray(fc.constantFrom("a", "b"), { minLength: 1 }),
      tainted: fc.constant(true as const),
      then: fc.constantFrom("allow" as const, "deny" as const, "ask" as const),
    },
    { requiredKeys: ["id", "then"] },
  ),
  { selector: ({ id }) => id, maxLength: 6 },
);

test("E26 POLICY-1 POLICY-2 removing the rule that decided lets the next rule decide, and no other rule matters", () => {
  fc.assert(
    fc.property(
      rules,
      names,
      fc.constantFrom(...TOOL_EFFECTS),
      fc.boolean(),
      (given, name, effect, isTainted) => {
        const tool = { name, effect, description: "", inputSchema: {} } as Parameters<
          ReturnType<typeof policyOf>
        >[0];
        const context = {
          ...{ tenant: "t", projectId: "p", agentId: "a", conversationId: "c" },
          toolCallId: "call",
          taint: isTainted ? (["tool"] as const) : [],
        };
        const decide = (list: PolicyRule[]) => verdictOf(policyOf(list)(tool, {}, context));
        const { decision, rule } = decide(given);
        if (rule === undefined) {
          expect(decision).toBe("allow");
          for (const one of given) expect(decide([one]).rule).toBeUndefined();
          return;
        }
        const index = given.findIndex(({ id }) => id === rule);
        expect(decide(given.slice(0, index)).rule).toBeUndefined();
        expect(decide(given.slice(0, index + 1))).toEqual(decide(given));
        expect(given[index]?.then).toBe(decision);
      },
    ),
  );
});

test("E26 the strictest of several answers counts, and an unknown answer denies", () => {
  const answers = fc.constantFrom<Verdict["decision"]>("allow", "ask", "deny");
  const strictness = ["allow", "ask", "deny"];
  fc.assert(
    fc.property(fc.array(answers), (given) => {
      const gate = strictestOf(...given.map((answer) => () => answer));
      const context = {
        tenant: "t",
        projectId: "p",
        agentId: "a",
        conversationId: "c",
        toolCallId: "call",
        taint: [],
      };
      const worst = Math.max(0, ...given.map((answer) => strictness.indexOf(answer)));
      const tool = {} as Parameters<typeof gate>[0];
      expect(verdictOf(gate(tool, {}, context)).decision).toBe(strictness[worst]);
    }),
  );
  expect(verdictOf("yes" as "allow")).toEqual({ decision: "deny" });
  expect(verdictOf(null as unknown as Verdict)).toEqual({ decision: "deny" });
  const odd = { decision: "ask", rule: 7, reason: "R".repeat(3_000), severity: 3 } as unknown as Verdict;
  expect(verdictOf(odd)).toEqual({ decision: "ask", reason: expect.stringMatching(/^R{400,}…?$/) });
});
