/** Scenes of a release: conversations with envelopes. They call agents, are called, and lease parts of budgets. */

import { LeaseStore } from "../../../src/agents/agent/lease-store.ts";
import { AgentStore } from "../../../src/agents/agent/store.ts";
import { AGENT_CANCEL } from "../../../src/protocol/agent-call.ts";
import { VERSION } from "../../../src/shared/version.ts";
import type { ReplyScript } from "../provider-script.ts";
import { dumpStorage, type Recording } from "./format.ts";
import { RECORDED_PERSONA, toolsOnly } from "./library.ts";
import { connect } from "./network.ts";
import { Stage } from "./stage.ts";
import { held, recordingOf, say, Take, TENANT } from "./take.ts";
import { agentViews } from "./views.ts";

export async function recordMail(): Promise<Recording[]> {
  return [
    ...(await callInProgress("calling", [held("Forty-two.")])),
    ...(await callInProgress("asking", [
      [{ call: "refund", input: { key: `${VERSION}-asking-helper-2`, n: 42 } }],
      say("Forty-two."),
    ])),
    await unsent(),
    await undelivered(),
    ...(await leases()),
  ];
}

/** A call of the helper, with the script of its answer. */
const ask = (name: string, replies: ReplyScript[]) => ({
  call: "ask_helper",
  input: { message: JSON.stringify({ key: `${VERSION}-${name}`, replies }) },
});

/** A conversation after a call of an agent and during another, and the conversation that the call has opened. */
async function callInProgress(name: string, replies: ReplyScript[]): Promise<Recording[]> {
  const take = await Take.begin(`${name}-agent`, { persona: toolsOnly("ask_helper") });
  const { stage } = take;
  await connect(stage);
  await take.play(() => [[ask(`${name}-helper-1`, [say("One.")])], say("It says 1.")]);
  await take.send(() => [[ask(`${name}-helper-2`, replies)], say("It says 42.")]);
  await stage.until(() => stage.peers.length === 2);
  const [, helper = stage] = stage.peers;
  const isAt = () => helper.asked === 1 && (name === "calling" || helper.life.runtime.state.seq >= 8);
  await stage.until(isAt);
  // Another conversation may not stop the call, and the refusal is recorded.
  const { record } = helper.life.runtime.state;
  const stop = {
    ...{ operationId: `op_${stage.ids.ulid()}`, type: AGENT_CANCEL, sentAt: stage.clock.now() },
    from: { kind: "conversation", tenant: TENANT, id: `conv_${stage.ids.ulid()}` },
    to: { kind: "conversation", tenant: TENANT, id: record.id },
    body: { operationId: record.call?.operationId ?? "", attempt: 1 },
  };
  await helper.life.mailbox.receive(stop, { number: 1, last: false });
  for (let step = 0; step < 50; step++) await new Promise((resolve) => setImmediate(resolve));
  return [take.recording(), recordingOf(`${name}-helper`, helper)];
}

/** A call in its first attempt, and a call that waits for its next attempt. */
async function unsent(): Promise<Recording> {
  const take = await Take.begin("unsent", { persona: toolsOnly("ask_helper") });
  const { stage } = take;
  const places = [() => new Promise<never>(() => undefined), () => Promise.reject(new Error("It is away."))];
  stage.route = () => ({ receive: places.shift() ?? places[0] ?? expectNoMore });
  await take.send(() => [
    [ask("unsent-helper-1", [say("One.")]), ask("unsent-helper-2", [say("Two.")])],
    say("It says both."),
  ]);
  await stage.until(() => stage.keyValue.list("mailbox:out:", 2).some(([, entry]) => isWaiting(entry)));
  return take.recording();
}

const isWaiting = (entry: unknown) => typeof Object(entry).dueAt === "number";
const expectNoMore = () => new Promise<never>(() => undefined);

/** A call that its receiver refused. Its dead letter waits for the directory. */
async function undelivered(): Promise<Recording> {
  const take = await Take.begin("undelivered", { persona: toolsOnly("ask_helper") });
  const error = { code: "CONFLICT" as const, message: "Not here.", retriable: false };
  take.stage.route = () => ({ receive: async () => ({ type: "refused", recorded: true, error }) });
  await take.send(() => [[ask("undelivered-helper", [say("Never.")])], held("Nobody answers.")]);
  await take.reached("message.started", 2);
  return take.recording();
}

/** A lease in use, a lease that was asked for, and the agent with the budget. */
async function leases(): Promise<Recording[]> {
  const id = "recorded-thrifty";
  const bank = new Stage();
  const store = new AgentStore(bank, () => id);
  const time = new Date(bank.clock.now()).toISOString();
  const times = { createdAt: time, updatedAt: time };
  const budget = { tokens: 10_000_000, modelCalls: 1_000 };
  store.create({ id, tenant: TENANT, persona: RECORDED_PERSONA, projectIds: ["default"], budget, ...times });
  const begin = async (name: string) => {
    const take = await Take.begin(name, { agentId: id, leased: true, persona: toolsOnly("save") });
    await connect(take.stage, [], bank);
    await take.play(() => [say("Counted.")]);
    return take;
  };
  const leased = await begin("leased");
  await leased.send(() => [held("Within the lease.")]);
  await leased.reached("message.started", 2);
  const leasing = await begin("leasing");
  leasing.stage.route = () => undefined;
  await leasing.send(() => [say("With a new lease.")]);
  await leasing.stage.until(() => leasing.stage.keyValue.list("mailbox:out:", 1).length > 0);
  const views = { ...agentViews(store), budget: new LeaseStore(bank).view() };
  const storage = dumpStorage(bank.database, bank.keyValue);
  const agent: Recording = { name: "agent-with-leases", of: "agent", now: bank.clock.now(), storage, views };
  return [leased.recording(), leasing.recording(), agent];
}
