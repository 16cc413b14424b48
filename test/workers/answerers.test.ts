/** Who may answer requests for approval and gates, on the real Worker: each rule, at each entrance, by each kind of person. */
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { APPROVAL_TIMEOUT_MS } from "../../src/agents/conversation/core/conversation-limits.ts";
import { createClient } from "../../src/client/http.ts";
import { pendingApprovals } from "../../src/client/state.ts";
import type { ApprovalNeed } from "../../src/protocol/approval-schema.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import { defined } from "../../src/shared/defined.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { Play } from "./provider.ts";
import { call, ended, post } from "./run-helpers.ts";
import {
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  TestConversation,
} from "./world.ts";

/** Everybody who tries. Ada writes the message, so she is the requester. */
const PEOPLE = {
  ada: person("ada"),
  participant: person("ben"),
  operator: person("olga", "operator"),
  admin: person("anna", "admin"),
  author: person("aron", "author"),
  named: person("carol"),
  stranger: person("mel"),
  foreigner: { ...person("ada", "admin", "operator", "author"), tenant: "globex" },
} satisfies Record<string, Principal>;
type Name = keyof typeof PEOPLE;
const NAMES = Object.keys(PEOPLE) as Name[];

function person(subject: string, ...roles: Principal["roles"]): Principal {
  return { subject, tenant: "test", roles: roles.length === 0 ? ["member"] : roles };
}

/** Each rule with the people whom it admits. Other people get `PERMISSION_DENIED` if they read the conversation, otherwise `NOT_FOUND`. */
const RULES: [name: string, need: ApprovalNeed, admitted: Name[]][] = [
  ["always", "always", ["ada", "participant", "operator", "admin"]],
  ["participant", { by: "participant" }, ["ada", "participant", "operator", "admin"]],
  ["requester", { by: "requester" }, ["ada"]],
  ["operator", { by: "operator" }, ["operator", "admin"]],
  ["roles", { by: { roles: ["author"] } }, ["author", "admin"]],
  ["users", { by: { users: ["carol", "ben"] } }, ["named", "participant"]],
  ["both", { by: { roles: ["operator"], users: ["ada"] } }, ["ada", "operator", "admin"]],
  ["others", { notRequester: true }, ["participant", "operator", "admin"]],
  ["other_users", { by: { users: ["ada", "carol"] }, notRequester: true }, ["named"]],
];
const READERS: ReadonlySet<Name> = new Set(["ada", "participant", "operator", "admin"]);

const refusalOf = (name: Name) => (READERS.has(name) ? "PERMISSION_DENIED" : "NOT_FOUND");

/** The entrances. Each returns "ok", or the code of the error. */
const ENTRANCES: Record<string, (given: Attempt) => Promise<string>> = {
  HTTP: async ({ conversation, operationId, principal, approved }) => {
    const init = { method: "POST", body: JSON.stringify({ approved }) };
    const path = `${conversation.path}/operations/${operationId}/approval`;
    return codeOf(await request(path, init, principal));
  },
  client: ({ conversation, operationId, principal, approved }) => {
    const client = createClient({
      baseUrl: "http://dramatis.test",
      fetch: (url, init) => request(new URL(url).pathname, init, principal),
    });
    return client.operations.resolveApproval(conversation.id, operationId, { approved }).then(
      () => "ok",
      ({ code }: { code: string }) => code,
    );
  },
  RPC: async ({ conversation, operationId, principal, approved }) => {
    // SAFETY: the class implements it.
    const stub = conversation.stub as unknown as ConversationApi;
    const given = await stub.resolveApproval(principal, operationId, { approved });
    return given.ok ? "ok" : given.error.code;
  },
  WebSocket: async ({ conversation, operationId, principal, approved }) => {
    const client = await conversation.connect({ principal });
    await vi.waitUntil(() => client.closed !== null || client.framesOf("snapshot").length > 0, {
      timeout: 20_000,
    });
    if (client.closed !== null) return "NOT_FOUND";
    client.send({ type: "approval.resolve", operationId, approved });
    await client.settled();
    client.close();
    return client.framesOf("error")[0]?.data.code ?? "ok";
  },
  "AI SDK": async ({ conversation, turnId, operationId, principal, approved }) => {
    const parts = [{ state: "approval-responded", approval: { id: operationId, approved } }];
    const messages = [{ id: turnId, role: "assistant", parts }];
    const init = { method: "POST", body: JSON.stringify({ messages }) };
    return codeOf(await request(`${conversation.path}/chat`, init, principal));
  },
};
/** People who may not read cannot open these. They answer by another entrance. */
const OF_READERS = new Set(["WebSocket", "AI SDK"]);

interface Attempt {
  conversation: TestConversation;
  turnId: string;
  operationId: string;
  principal: Principal;
  approved: boolean;
}

async function codeOf(response: Response): Promise<string> {
  if (response.ok) {
    await response.body?.cancel();
    return "ok";
  }
  return (await response.json<{ code: string }>()).code;
}

const identity = { systemPrompt: "Test.", modelProfileId: "test/scripted" };
const agents = new Map<string, string>();

async function postTool(body: { id: string } & Record<string, unknown>): Promise<string> {
  const full = { name: body.id, description: "Moves money.", ...body };
  const init = { method: "POST", body: JSON.stringify(full) };
  const response = await request("/api/libraries/answerers/tools", init);
  expect(response.status, await response.clone().text()).toBe(201);
  return `answerers/${body.id}`;
}

beforeAll(async () => {
  for (const [name, approval] of RULES) {
    const tool = await postTool({ id: `pay_${name}`, target: { task: "test/transfer" }, approval });
    agents.set(name, await createAgent({ identity, tools: { toolIds: [tool] } }));
  }
});

afterEach(checkInvariants);

async function withBen(agent: string): Promise<TestConversation> {
  const conversation = await createConversation(agent);
  const init = { method: "POST", body: JSON.stringify({ type: "user", id: "ben" }) };
  expect((await request(`${conversation.path}/participants`, init)).status).toBe(200);
  return conversation;
}

/** Begins a turn with a call that waits for a person. */
async function beginApproval(name: string) {
  const conversation = await withBen(agents.get(name) ?? "");
  const client = await conversation.connect();
  const { play, turnId } = await conversation.play((key) => ({
    replies: [[{ call: `pay_${name}`, input: { key, to: "Bob" } }], [{ text: "Done." }]],
  }));
  const { operationId = "", data } = await client.frame("approval.requested");
  await client.frame("turn.waiting", ({ data: { reason } }) => reason === "approval");
  return { conversation, client, play, turnId, operationId, data };
}

describe("a call of a tool", () => {
  test.each(RULES)(
    "WHO-1 WHO-3 WHO-4 WHO-5 ACCESS-3 I1 the rule %s holds at each entrance, before and after the answer",
    async (name, need, admitted) => {
      const { conversation, client, play, turnId, operationId, data } = await beginApproval(name);
      const rule = typeof need === "object" ? need : undefined;
      expect([data.rule, data.requester]).toEqual(rule ? [rule, "ada"] : [undefined, undefined]);
      expect(pendingApprovals(client.state)).toMatchObject([
        { agentId: agents.get(name), approval: rule ? { rule, requester: "ada" } : {} },
      ]);
      expect((await conversation.turn(turnId)).moves[0]?.toolCall?.approval).toEqual({
        expiresAt: expect.any(String),
        ...(rule && { rule, requester: "ada" }),
      });
      const attempt = (entrance: string, one: Name, approved: boolean) =>
        ENTRANCES[entrance]?.({ conversation, turnId, operationId, principal: PEOPLE[one], approved });
      const refused = async () => {
        // Another tenant has another actor under this id.
        for (const entrance of Object.keys(ENTRANCES))
          for (const one of NAMES.filter((other) => !admitted.includes(other)))
            if (one !== "foreigner" || entrance !== "RPC")
              for (const approved of [true, false])
                expect([entrance, one, await attempt(entrance, one, approved)]).toEqual([
                  entrance,
                  one,
                  refusalOf(one),
                ]);
      };
      await refused();
      expect(await attempt("RPC", "foreigner", true)).toBe("NOT_FOUND");
      expect(await play.runs()).toEqual([]);
      for (const one of admitted)
        for (const entrance of Object.keys(ENTRANCES).filter(
          (other) => READERS.has(one) || !OF_READERS.has(other),
        ))
          expect([entrance, one, await attempt(entrance, one, true)]).toEqual([entrance, one, "ok"]);
      expect((await conversation.ended(turnId)).answer).toBe("Done.");
      await refused();
      for (const one of admitted) expect(await attempt("HTTP", one, false)).toBe("CONFLICT");
      expect(await play.runs()).toHaveLength(1);
    },
  );

  test("WHO-1 ACCESS-3 I1 the refusal names the rule; a person whom the rule admits reads only the request", async () => {
    const { conversation, turnId, operationId } = await beginApproval("users");
    const answer = { method: "POST", body: JSON.stringify({ approved: true }) };
    const path = `${conversation.path}/operations/${operationId}/approval`;
    const refused = await request(path, answer, PEOPLE.ada);
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({
      code: "PERMISSION_DENIED",
      detail: expect.stringContaining(
        'Only "carol" or "ben" may answer. The rule is {"by":{"users":["carol","ben"]}}.',
      ),
    });
    for (const place of ["", "/turns", `/turns/${turnId}`, "/messages", "/journal"])
      expect((await request(`${conversation.path}${place}`, {}, PEOPLE.named)).status, place).toBe(404);
    const unknown = path.replace(operationId, "op_01JD0000000000000000000002");
    expect((await request(unknown, answer, PEOPLE.named)).status).toBe(404);
    const invalid = { method: "POST", body: JSON.stringify({ approved: true, reason: "x".repeat(501) }) };
    expect((await request(path, invalid, PEOPLE.named)).status).toBe(422);
    const given = await request(path, answer, PEOPLE.named);
    expect(await given.json()).toEqual({
      operationId,
      turnId,
      approval: { outcome: "approved", by: { type: "user", userId: "carol" }, at: expect.any(String) },
    });
    await conversation.ended(turnId);
  });

  test("WHO-1 I1 a requester who left the conversation may no longer answer", async () => {
    const { conversation, turnId, operationId } = await beginApproval("requester");
    const leave = { method: "DELETE" };
    expect((await request(`${conversation.path}/participants/user/ada`, leave)).status).toBe(204);
    const given = { conversation, turnId, operationId, approved: true };
    expect(await ENTRANCES.HTTP?.({ ...given, principal: PEOPLE.ada })).toBe("NOT_FOUND");
    expect(await ENTRANCES.HTTP?.({ ...given, principal: PEOPLE.admin })).toBe("PERMISSION_DENIED");
    expect((await conversation.stop(turnId))[0]).toBe(200);
  });

  test("WHO-1 APPROVE-4 I1 after the deadline the rule holds, and the admitted get CONFLICT", async () => {
    const { conversation, turnId, operationId, play } = await beginApproval("operator");
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + APPROVAL_TIMEOUT_MS });
    try {
      const given = { conversation, turnId, operationId };
      for (const approved of [true, false]) {
        expect(await ENTRANCES.HTTP?.({ ...given, principal: PEOPLE.operator, approved })).toBe("CONFLICT");
        expect(await ENTRANCES.HTTP?.({ ...given, principal: PEOPLE.ada, approved })).toBe(
          "PERMISSION_DENIED",
        );
        expect(await ENTRANCES.HTTP?.({ ...given, principal: PEOPLE.named, approved })).toBe("NOT_FOUND");
      }
      await conversation.ended(turnId);
    } finally {
      vi.useRealTimers();
    }
    expect(await play.runs()).toEqual([]);
  });
});

describe("a call of a delegate of a delegate", () => {
  /** Asks an agent, who asks an agent with a tool that needs an approval. */
  async function asking(name: string) {
    const bottom = agents.get(name) ?? "";
    const middleTool = await postTool({ id: `ask_${name}`, target: { agent: bottom } });
    const middle = await createAgent({ identity, tools: { toolIds: [middleTool] } });
    const topTool = await postTool({ id: `ask_chief_${name}`, target: { agent: middle } });
    const top = await createAgent({ identity, tools: { toolIds: [topTool] } });
    const conversation = await withBen(top);
    const client = await conversation.connect();
    const work = new Play((key) => ({
      replies: [[{ call: `pay_${name}`, input: { key, to: "Bob" } }], [{ text: "Paid." }]],
    }));
    const order = new Play({
      replies: [[{ call: `ask_${name}`, input: { message: work.content } }], [{ text: "Told." }]],
    });
    const { play, turnId } = await conversation.play({
      replies: [[{ call: `ask_chief_${name}`, input: { message: order.content } }], [{ text: "All told." }]],
    });
    void play;
    const { data } = await client.frame("approval.requested");
    const [call] = (await conversation.turn(turnId)).moves.map(({ toolCall }) => toolCall);
    const rooms = [conversation.id, call?.agent?.conversationId ?? "", data.of?.conversationId ?? ""];
    return {
      conversation,
      client,
      work,
      turnId,
      ask: data.of,
      rooms: rooms.map((id) => new TestConversation(id)),
    };
  }

  test.each(RULES.filter(([name]) => ["requester", "users", "others"].includes(name)))(
    "WHO-2 WHO-5 ACCESS-3 I1 the rule %s holds in each conversation above, and the requester is the person at the root",
    async (name, need, admitted) => {
      const { conversation, client, work, turnId, ask, rooms } = await asking(name);
      expect(ask).toMatchObject({ rule: need, requester: "ada", agentId: agents.get(name) });
      expect(pendingApprovals(client.state)).toMatchObject([
        { agentId: agents.get(name), approval: { rule: need, requester: "ada" } },
      ]);
      const operationId = ask?.operationId ?? "";
      const attempt = (room: TestConversation, one: Name, approved: boolean) =>
        ENTRANCES.HTTP?.({ conversation: room, turnId, operationId, principal: PEOPLE[one], approved });
      for (const [level, room] of rooms.entries())
        for (const one of NAMES.filter((other) => !admitted.includes(other)))
          expect([level, one, await attempt(room, one, true)]).toEqual([level, one, refusalOf(one)]);
      expect(await work.runs()).toEqual([]);
      for (const one of admitted)
        for (const [level, room] of rooms.entries())
          expect([level, one, await attempt(room, one, true)]).toEqual([level, one, "ok"]);
      expect((await conversation.ended(turnId)).answer).toBe("All told.");
      expect(await work.runs()).toHaveLength(1);
    },
  );
});

describe("a gate of a run", () => {
  /** Posts a workflow with a single node, which asks a person. Returns its reference. */
  async function flow(approval: ApprovalNeed, timeoutMs?: number): Promise<string> {
    const id = `asks_${crypto.randomUUID().slice(0, 8)}`;
    const rule = typeof approval === "object" ? { approval } : {};
    const action = { kind: "human.approve", prompt: "Send it?", ...rule, ...defined({ timeoutMs }) };
    const inputSchema = { type: "object", properties: {} };
    const body = { id, inputSchema, steps: [{ ref: "ask", action }] };
    const made = await request("/api/libraries/flows/tasks", { method: "POST", body: JSON.stringify(body) });
    expect(made.status, await made.clone().text()).toBe(201);
    return post({
      initialNode: "ask",
      contextSchema: { type: "object", properties: { answer: {}, secret: {} } },
      nodes: [
        { ref: "ask", task: `flows/${id}`, inputMapping: {}, outputMapping: { "state.answer": "result" } },
      ],
      outputMapping: { answer: "state.answer" },
    });
  }

  /** Starts a run as Ada; returns its gate. */
  async function waiting(workflow: string) {
    const input = { key: crypto.randomUUID() };
    const { id } = await call("POST", "", 201, { workflow, input }, PEOPLE.ada);
    return { id, gate: await gateOf(id) };
  }

  const gateOf = (id: string) =>
    vi.waitUntil(async () => (await call("GET", `/${id}`, 200)).gates[0], { timeout: 20_000 });

  const answered = async (id: string, operationId: string, one: Name, approved = true) => {
    const init = { method: "POST", body: JSON.stringify({ answer: { approved } }) };
    return codeOf(await request(`/api/runs/${id}/gates/${operationId}`, init, PEOPLE[one]));
  };

  /** Ben is no starter, so he reads no run. */
  const readsRun = (name: Name) => READERS.has(name) && name !== "participant";

  test.each(RULES)(
    "WHO-1 WHO-2 RUNACCESS-4 I1 the rule %s holds before and after the answer",
    async (_name, need, all) => {
      const rule = typeof need === "object" ? need : undefined;
      const byReading = rule === undefined || rule.by === undefined || rule.by === "participant";
      const admitted = byReading ? all.filter(readsRun) : all;
      const { id, gate } = await waiting(await flow(need));
      expect(gate).toMatchObject(rule ? { rule, requester: "ada" } : {});
      expect("rule" in gate).toBe(rule !== undefined);
      const refused = async () => {
        for (const one of NAMES.filter((other) => !admitted.includes(other)))
          for (const approved of [true, false])
            expect([one, await answered(id, gate.operationId, one, approved)]).toEqual([
              one,
              readsRun(one) ? "PERMISSION_DENIED" : "NOT_FOUND",
            ]);
      };
      await refused();
      expect((await call("GET", `/${id}`, 200)).status).toBe("waiting");
      for (const one of admitted)
        expect([one, await answered(id, gate.operationId, one)]).toEqual([one, "ok"]);
      expect(await ended(id)).toMatchObject({ status: "completed", output: { answer: { approved: true } } });
      await crash();
      for (const one of admitted) {
        expect([one, await answered(id, gate.operationId, one)]).toEqual([one, "ok"]);
        expect([one, await answered(id, gate.operationId, one, false)]).toEqual([one, "CONFLICT"]);
      }
      await refused();
    },
  );

  test("RUNACCESS-4 I1 a person whom the rule admits gets the status of the run without its contents", async () => {
    const { id, gate } = await waiting(await flow({ by: { users: ["carol"] } }));
    for (const path of ["", "/journal", "/workflow", "/events"])
      await call("GET", `/${id}${path}`, 404, undefined, PEOPLE.named);
    const path = `/${id}/gates/${gate.operationId}`;
    await call("POST", path, 422, { answer: {} }, PEOPLE.named);
    const answer = { answer: { approved: true } };
    await call("POST", `/${id}/gates/op_01JD0000000000000000000002`, 404, answer, PEOPLE.named);
    const view = await call("POST", path, 200, answer, PEOPLE.named);
    expect(view).toMatchObject({ id, startedBy: "ada", input: {}, state: {}, gates: [], active: [] });
    expect(view).not.toHaveProperty("output");
    const denied = await call<{ detail: string }>("POST", path, 403, answer, PEOPLE.ada);
    expect(denied.detail).toContain('The rule is {"by":{"users":["carol"]}}.');
  });

  test("WHO-1 RUNACCESS-4 I1 the rule holds after the time of the gate is over", async () => {
    const { id, gate } = await waiting(await flow({ by: "operator" }, 1_000));
    expect(await ended(id)).toMatchObject({ status: "failed", error: { code: "TIMEOUT" } });
    expect(await answered(id, gate.operationId, "operator")).toBe("CONFLICT");
    expect(await answered(id, gate.operationId, "ada")).toBe("PERMISSION_DENIED");
    expect(await answered(id, gate.operationId, "named")).toBe("NOT_FOUND");
  });

  test("WHO-2 I1 the requester of a sub-workflow, and of a run that an agent starts, is the person at the root", async () => {
    const asks = await flow({ by: "requester" });
    const parent = await post({
      initialNode: "inner",
      nodes: [{ ref: "inner", workflow: asks, inputMapping: { key: "input.key" } }],
    });
    const input = { key: crypto.randomUUID() };
    const { id } = await call("POST", "", 201, { workflow: parent, input }, PEOPLE.ada);
    const childOf = async () => (await call("GET", `/${id}`, 200)).active[0]?.runId;
    const child = (await vi.waitUntil(childOf, { timeout: 20_000 })) ?? "";
    const inner = await gateOf(child);
    expect(await answered(child, inner.operationId, "admin")).toBe("PERMISSION_DENIED");
    expect(await answered(child, inner.operationId, "ada")).toBe("ok");
    expect((await ended(id)).status).toBe("completed");

    const tool = await postTool({ id: "run_asks", target: { workflow: asks } });
    const worker = await createAgent({ identity, tools: { toolIds: [tool] } });
    const delegating = await postTool({ id: "ask_worker", target: { agent: worker } });
    const conversation = await createConversation(
      await createAgent({ identity, tools: { toolIds: [delegating] } }),
    );
    // Ben takes part first by name, and writes the message.
    for (const user of ["aaron", "ben"]) {
      const init = { method: "POST", body: JSON.stringify({ type: "user", id: user }) };
      expect((await request(`${conversation.path}/participants`, init)).status).toBe(200);
    }
    const below = new Play((key) => ({
      replies: [[{ call: "run_asks", input: { key } }], [{ text: "Ran." }]],
    }));
    const above = new Play({
      replies: [[{ call: "ask_worker", input: { message: below.content } }], [{ text: "Done." }]],
    });
    const said = { method: "POST", body: JSON.stringify({ content: above.content }) };
    const turn = await request(`${conversation.path}/turns`, said, PEOPLE.participant);
    const { turnId } = await turn.json<{ turnId: string }>();
    const runs = async () => {
      const { runs: all } = await (
        await request("/api/runs?limit=1&order=desc", {}, PEOPLE.participant)
      ).json<{ runs: { id: string }[] }>();
      return all[0]?.id;
    };
    // The wake-up would list it 15 seconds later.
    const started = (await vi.waitUntil(runs, { timeout: 10_000 })) ?? "";
    const gate = await gateOf(started);
    expect(gate).toMatchObject({ rule: { by: "requester" }, requester: "ben" });
    expect(await answered(started, gate.operationId, "ada")).toBe("NOT_FOUND");
    expect(await answered(started, gate.operationId, "participant")).toBe("ok");
    expect((await conversation.ended(turnId)).answer).toBe("Done.");
  });
});

describe("the definition of a tool", () => {
  const posted = async (tool: object) => {
    const body = {
      id: "rule",
      name: "rule",
      description: "Tests.",
      target: { task: "test/double" },
      ...tool,
    };
    const init = { method: "POST", body: JSON.stringify(body) };
    const response = await request("/api/libraries/rules/tools", init);
    return [response.status, await response.text()] as const;
  };

  test.each<[problem: string, approval: unknown, message: string]>([
    [
      "an unknown role",
      { by: { roles: ["boss"] } },
      'Unknown role \\"boss\\". The roles are `member`, `author`, `operator`, `admin`.',
    ],
    [
      "an unknown group",
      { by: "boss" },
      "Must be `requester`, `participant`, `operator`, or {roles, users}.",
    ],
    ["no group", {}, "Must have `by` or `notRequester`."],
    ["an empty group", { by: { roles: [], users: [] } }, "Must name a role or a user."],
    ["a rule without anybody", { by: "requester", notRequester: true }, "/approval/notRequester"],
    ["a false mark", { by: "operator", notRequester: false }, "Must be `true`, or absent."],
    ["an unknown field", { by: "operator", who: "me" }, "/approval"],
    ["no need", "sometimes", "/approval"],
  ])("WHO-1 I1 is refused with %s", async (_problem, approval, message) => {
    const [status, text] = await posted({ approval });
    expect(text).toContain(message);
    expect(status).toBe(422);
  });
});
