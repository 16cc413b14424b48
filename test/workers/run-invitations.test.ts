/** Agents that runs invite into the conversation which has started them, on the real Worker. */
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { newOperationId } from "../../src/agents/base/mailbox/operation-id.ts";
import type { TurnSummary } from "../../src/protocol/conversation-schemas.ts";
import { calledRunId } from "../../src/protocol/ids.ts";
import type { MailboxPeer } from "../../src/protocol/mailbox-api.ts";
import type { Json } from "../../src/shared/json.ts";
import { postTool } from "./authoring.ts";
import { Play } from "./provider.ts";
import { call, ended, type Flow, post } from "./run-helpers.ts";
import {
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  type TestConversation,
} from "./world.ts";

const identity = (systemPrompt: string) => ({ systemPrompt, modelProfileId: "test/scripted" });
const suffix = crypto.randomUUID().slice(0, 8);
const manager = `manager-${suffix}`;
let architect: string;

/** A workflow with a node that invites an agent, with its first item. */
const inviting = (agent: string): Flow => ({
  initialNode: "ask",
  contextSchema: { type: "object", properties: { said: {} } },
  nodes: [
    {
      ...{ ref: "ask", agent, mode: "loop_in" },
      inputMapping: { message: "input.items[0]" },
      outputMapping: { "state.said": "result.text" },
    },
  ],
  outputMapping: { said: "state.said" },
});

/** A workflow that runs another workflow. */
const around = (workflow: string): Flow => ({
  initialNode: "inner",
  contextSchema: { type: "object", properties: { said: {} } },
  nodes: [
    {
      ...{ ref: "inner", workflow },
      inputMapping: { key: "input.key", items: "input.items" },
      outputMapping: { "state.said": "result.said" },
    },
  ],
  outputMapping: { said: "state.said" },
});

const tool = (id: string, target: object, more?: object) => postTool("inviting", id, target, more);

beforeAll(async () => {
  architect = await createAgent({
    identity: identity("You are the architect."),
    tools: { toolIds: ["test/research"] },
  });
  const asks = await post(inviting(architect));
  const nested = await tool("nested_invite", { workflow: asks });
  const colleague = await createAgent({ identity: identity("You delegate."), tools: { toolIds: [nested] } });
  const toolIds = [
    await tool("invite", { workflow: asks }),
    await tool("invite_below", { workflow: await post(around(asks)) }),
    await tool("invite_later", { workflow: asks }, { async: true }),
    await tool("invite_nobody", { workflow: await post(inviting("nobody-there")) }),
    await tool("invite_self", { workflow: await post(inviting(manager)) }),
    await tool("ask_colleague", { agent: colleague }),
  ];
  const made = await request("/api/agents", {
    method: "POST",
    body: JSON.stringify({ id: manager, persona: { identity: identity("You manage."), tools: { toolIds } } }),
  });
  expect(made.status, await made.clone().text()).toBe(201);
});

afterEach(checkInvariants);

async function turnsOf({ path }: TestConversation): Promise<TurnSummary[]> {
  const response = await request(`${path}/turns?limit=200`);
  return (await response.json<{ turns: TurnSummary[] }>()).turns;
}

/** Waits until a conversation has a turn of an agent that satisfies `isSo`. */
const turnOf = (
  conversation: TestConversation,
  agentId: string,
  isSo: (turn: TurnSummary) => boolean = () => true,
): Promise<TurnSummary> =>
  vi.waitUntil(
    async () => (await turnsOf(conversation)).find((one) => one.agentId === agentId && isSo(one)),
    {
      timeout: 20_000,
      interval: 20,
    },
  );

/** The results that the model of a request got. */
const resultsIn = (asked: Awaited<ReturnType<Play["requests"]>>[number] | undefined): unknown[] =>
  (asked?.body.messages ?? []).flatMap(({ role, content }) =>
    role === "tool" ? [JSON.parse(content ?? "null")] : [],
  );

/** Starts a turn of the manager, which calls a tool with the content of the invited agent's script. */
async function invites(conversation: TestConversation, name: string, invited: Play) {
  const { play, turnId } = await conversation.play((key) => ({
    replies: [[{ call: name, input: { key, items: [invited.content] } }], [{ text: "Thanks." }]],
  }));
  return { play, turnId };
}

/** The id of the run of a turn's only call. */
async function runOf(conversation: TestConversation, turnId: string): Promise<string> {
  const { moves } = await conversation.turn(turnId);
  return moves.flatMap(({ toolCall }) => toolCall?.runId ?? [])[0] ?? "";
}

describe("A51 A28 AGENTNODE-4 RUNINVITE-1 RUNINVITE-2 a node in the mode loop_in", () => {
  test("invites its agent, shows the conversation while it waits, and has the answer as its result", async () => {
    const conversation = await createConversation(manager);
    const invited = new Play({ replies: [[{ gate: "answer" }, { text: "Mind the sessions." }]] });
    const { play, turnId } = await invites(conversation, "invite", invited);
    const turn = await turnOf(conversation, architect);
    const id = await runOf(conversation, turnId);
    const waiting = await vi.waitUntil(
      async () => {
        const run = await call("GET", `/${id}`, 200);
        return run.status === "waiting" ? run : undefined;
      },
      { timeout: 20_000 },
    );
    expect(waiting.active).toMatchObject([
      { node: "ask", status: "waiting_for_agent", conversationId: conversation.id },
    ]);
    expect((await conversation.view()).participants).toContainEqual({ type: "agent", id: architect });
    await invited.open("answer");
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "Thanks." });
    expect(resultsIn((await play.requests(2))[1])).toEqual([{ said: "Mind the sessions." }]);
    expect(await conversation.turn(turn.id)).toMatchObject({
      ...{ status: "completed", answer: "Mind the sessions." },
      caller: { type: "workflow", runId: id, node: "ask" },
    });
    expect((await conversation.messages()).map(({ content }) => content)).toContain("Mind the sessions.");
  });

  test("RUNINVITE-3 a run in a conversation with queued turns does not wait for itself", async () => {
    const conversation = await createConversation(manager);
    const changed = await request(conversation.path, {
      method: "PATCH",
      body: JSON.stringify({ turns: "queued" }),
    });
    expect(changed.status).toBe(200);
    const invited = new Play((key) => ({
      replies: [
        [{ call: "research", input: { key, gate: "found" } }],
        [{ text: "Wait." }],
        [{ text: "It is safe." }],
      ],
    }));
    const { play, turnId } = await invites(conversation, "invite", invited);
    await invited.requests(2);
    const other = await conversation.play({ replies: [[{ text: "Next." }]] });
    await invited.open("found");
    await conversation.ended(turnId);
    expect(resultsIn((await play.requests(2))[1])).toEqual([{ said: "It is safe." }]);
    expect(await conversation.ended(other.turnId)).toMatchObject({ answer: "Next." });
  });

  test("INVITE-1 a sub-workflow, and a run in the background, have the conversation, too", async () => {
    const conversation = await createConversation(manager);
    const below = await invites(
      conversation,
      "invite_below",
      new Play({ replies: [[{ text: "From below." }]] }),
    );
    await conversation.ended(below.turnId);
    expect(resultsIn((await below.play.requests(2))[1])).toEqual([{ said: "From below." }]);
    const later = new Play({ replies: [[{ text: "Later." }]] });
    const other = await createConversation(manager);
    const { play, turnId } = await other.play((key) => ({
      replies: [
        [{ call: "invite_later", input: { key, items: [later.content] } }],
        [{ text: "It runs." }],
        [{ text: "It has run." }],
      ],
    }));
    expect(await other.ended(turnId)).toMatchObject({ status: "completed", answer: "It has run." });
    expect(JSON.stringify((await play.requests(3))[2]?.body.messages)).toContain("Later.");
  });

  test("RUNINVITE-5 a crash of all actors leaves one turn and one result", async () => {
    const conversation = await createConversation(manager);
    const invited = new Play({ replies: [[{ gate: "answer" }, { text: "After all." }]] });
    const { play, turnId } = await invites(conversation, "invite", invited);
    await invited.requests(1);
    await crash();
    await conversation.view();
    await invited.open("answer");
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed" });
    expect(resultsIn((await play.requests(2)).at(-1))).toEqual([{ said: "After all." }]);
    expect((await turnsOf(conversation)).filter(({ agentId }) => agentId === architect)).toHaveLength(1);
  });
});

describe("A51 RUNINVITE-2 RUNINVITE-5 a node with an agent that does not answer", () => {
  const begun = async () => {
    const conversation = await createConversation(manager);
    const invited = new Play({ replies: [[{ gate: "never" }, { text: "Never." }]] });
    const { play, turnId } = await invites(conversation, "invite", invited);
    await invited.requests(1);
    const turn = await turnOf(conversation, architect);
    return { conversation, play, turnId, turn, runId: await runOf(conversation, turnId) };
  };

  test("fails when the agent leaves, and when its turn is stopped", async () => {
    const left = await begun();
    const path = `${left.conversation.path}/participants/agent/${architect}`;
    expect((await request(path, { method: "DELETE" })).status).toBeLessThan(300);
    expect(await ended(left.runId)).toMatchObject({
      status: "failed",
      error: { code: "CANCELLED", message: "The agent has left the conversation." },
    });
    const stopped = await begun();
    expect((await stopped.conversation.stop(stopped.turn.id))[0]).toBe(200);
    expect(await ended(stopped.runId)).toMatchObject({ status: "failed", error: { code: "CANCELLED" } });
    for (const { conversation, turnId, play } of [left, stopped]) {
      await conversation.ended(turnId);
      expect(JSON.stringify(resultsIn((await play.requests(2))[1]))).toContain("CANCELLED");
    }
  });

  test("a stop of the run or of the calling turn stops its turn", async () => {
    const first = await begun();
    await call("POST", `/${first.runId}/cancel`, 200);
    const second = await begun();
    expect((await second.conversation.stop(second.turnId))[0]).toBe(200);
    for (const { conversation, turn, runId } of [first, second]) {
      expect(await conversation.ended(turn.id)).toMatchObject({
        status: "failed",
        error: { code: "CANCELLED" },
      });
      expect(await ended(runId)).toMatchObject({ status: "cancelled" });
    }
    await first.conversation.ended(first.turnId);
  });
});

test("A28 A51 the turns of the three callers, a user, a run and an agent, carry the right ids", async () => {
  const conversation = await createConversation(manager);
  const invited = new Play({ replies: [[{ text: `@${manager} what do you think?` }]] });
  const { turnId } = await invites(conversation, "invite", invited);
  const isOfAgent = ({ caller, status }: TurnSummary) => caller?.type === "agent" && status !== "active";
  await turnOf(conversation, manager, isOfAgent);
  await conversation.ended(turnId);
  const runId = await runOf(conversation, turnId);
  const turns = await Promise.all((await turnsOf(conversation)).map(({ id }) => conversation.turn(id)));
  const its = turns.find(({ agentId }) => agentId === architect);
  expect(turns.map(({ caller }) => caller)).toEqual(
    expect.arrayContaining([
      { type: "user", userId: "ada" },
      { type: "workflow", runId, node: "ask" },
      { type: "agent", agentId: architect, turnId: its?.id },
    ]),
  );
  expect(turns).toHaveLength(3);
  expect((await conversation.messages()).find(({ turnId: of }) => of === its?.id)).toMatchObject({
    ...{ role: "user", runId },
    content: invited.content,
  });
});

describe("A51 RUNINVITE-5 RUNINVITE-6 envelopes of runs", () => {
  const receive = (conversation: TestConversation, type: string, from: string, body: Json) => {
    // SAFETY: every actor has this method; the type of a stub wraps what it returns.
    const stub = conversation.stub as unknown as MailboxPeer;
    const address = (kind: string, id: string) => ({ kind, tenant: "test", id });
    const envelope = {
      operationId: newOperationId(),
      ...{ from: address("coordinator", from), to: address("conversation", conversation.id) },
      ...{ type, sentAt: Date.now(), body },
    };
    return stub.receive(envelope, { number: 1, last: true });
  };

  test("a run without a call is refused; a run that revoked its invitation, and a late run, start no turn", async () => {
    const conversation = await createConversation(manager);
    const { turnId } = await conversation.play({ replies: [[{ text: "Hello." }]] });
    await conversation.ended(turnId);
    const origin = { operationId: `op_${turnId.slice("turn_".length)}`, attempt: 1 };
    const run = calledRunId(origin.operationId, 1);
    const node = { operationId: newOperationId(), attempt: 1 };
    const invitation = { ...node, agentId: architect, node: "ask", content: "Hi.", path: [], origin };
    const forged = "run_01JD0000000000000000000000";
    expect(
      await receive(conversation, "agent.invite", forged, { ...invitation, rootRunId: forged }),
    ).toMatchObject({ type: "refused", error: { code: "FORBIDDEN" } });
    const whole = { ...invitation, rootRunId: run };
    expect(await receive(conversation, "agent.invite", run, whole)).toMatchObject({ type: "done" });
    expect(await receive(conversation, "agent.uninvite", run, node)).toMatchObject({ type: "done" });
    expect(await receive(conversation, "agent.invite", run, whole)).toMatchObject({ type: "done" });
    expect(await turnsOf(conversation)).toHaveLength(1);
    expect((await conversation.view()).participants).not.toContainEqual({ type: "agent", id: architect });
  });
});

describe("A51 A28 RUNINVITE-4 an agent that may not join", () => {
  test.each([
    ["invite_nobody", "NOT_FOUND"],
    ["invite_self", "PERMISSION_DENIED"],
  ])("%s fails with %s, and no agent joins", async (name, code) => {
    const conversation = await createConversation(manager);
    const { play, turnId } = await invites(conversation, name, new Play({ replies: [[{ text: "No." }]] }));
    await conversation.ended(turnId);
    expect(JSON.stringify(resultsIn((await play.requests(2))[1]))).toContain(code);
    expect(await turnsOf(conversation)).toHaveLength(1);
  });

  test("no agent joins a called agent's conversation", async () => {
    const conversation = await createConversation(manager);
    const unheard = new Play({ replies: [[{ text: "Unheard." }]] });
    const colleague = new Play({
      replies: [
        [{ call: "nested_invite", input: { key: "k", items: [unheard.content] } }],
        [{ text: "I cannot." }],
      ],
    });
    const { turnId } = await conversation.play({
      replies: [[{ call: "ask_colleague", input: { message: colleague.content } }], [{ text: "Well." }]],
    });
    await conversation.ended(turnId);
    expect(JSON.stringify(resultsIn((await colleague.requests(2))[1]))).toMatch(
      /PERMISSION_DENIED.*works alone/,
    );
  });
});
