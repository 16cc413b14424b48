/** Scenes of a release: conversations with work beyond model calls and tools of their own, done and in flight. */

import { awaitsApproval } from "../../../src/agents/conversation/core/operation.ts";
import { ConversationFork } from "../../../src/agents/conversation/data/fork.ts";
import { Replacing } from "../../../src/agents/conversation/inbound/replacing.ts";
import { conversationView } from "../../../src/agents/conversation/reads/views.ts";
import type { ImportPart } from "../../../src/protocol/data-api.ts";
import type { Principal } from "../../../src/shared/principal.ts";
import { VERSION } from "../../../src/shared/version.ts";
import type { Script } from "../provider-script.ts";
import { hasSideCall, isExtracting } from "../running-work.ts";
import { backupOf } from "./backups.ts";
import { openOperations } from "./finish.ts";
import type { Recording } from "./format.ts";
import { toolsOnly } from "./library.ts";
import { Stage } from "./stage.ts";
import { held, RECORDED_USER, recordingOf, say, seedOf, Take, TENANT } from "./take.ts";

const ADA: Principal = { subject: RECORDED_USER, tenant: TENANT, roles: [] };

export async function recordWork(): Promise<Recording[]> {
  return [
    await queuedTurns(),
    await queuedSignals(),
    await waitingForApproval(),
    await deferred(),
    await duringContextHook(),
    await duringExtraction(),
    await duringCompaction(),
    await compactionFailed(),
    await duringTitle(),
    await replaced(),
    await budgeted(),
    await retained(),
    await forked(),
  ];
}

/** Turns that wait for the turn before them. */
async function queuedTurns(): Promise<Recording> {
  const take = await Take.begin("queued-turns", { order: "queued" });
  await take.send(() => [held("The first.")]);
  await take.send(() => [say("The second.")], { id: "second" });
  await take.send(() => [say("The third.")]);
  await take.reached("message.started");
  return take.recording();
}

/** Messages that wait to begin their turns. */
async function queuedSignals(): Promise<Recording> {
  const take = await Take.begin("queued-signals");
  await take.send(() => [held("The first.")]);
  await take.reached("message.started");
  const messages = ["The second.", "The third."].map((text) => take.message(() => [say(text)], { id: text }));
  await take.life.runtime.queue.add(messages);
  return take.recording();
}

const refund = (n: number) => (key: string) => [
  [{ call: "refund", input: { key, n } }],
  say(`Refund ${n} is over.`),
];
/** One call was approved, another denied, and the third waits for a person. */
async function waitingForApproval(): Promise<Recording> {
  const take = await Take.begin("waiting-for-approval", { persona: toolsOnly("refund", "save") });
  const caller = { type: "user", userId: RECORDED_USER } as const;
  for (const [index, approved] of [true, false].entries()) {
    await take.send(refund(index + 1));
    await take.reached("approval.requested", index + 1);
    const [waiting = ""] = openOperations(take.life, awaitsApproval);
    const reason = approved ? {} : { reason: "Too much." };
    await take.life.runtime.results.approve(waiting, { approved, caller, ...reason });
    await take.stage.until(() => !take.life.runtime.busy);
  }
  await take.send(refund(3));
  await take.reached("approval.requested", 3);
  await take.reached("turn.waiting", 3);
  return take.recording();
}

/** A tool has given away the handle of its result. */
async function deferred(): Promise<Recording> {
  const take = await Take.begin("deferred", { persona: toolsOnly("pay") });
  // The key of handles is random otherwise.
  take.stage.keyValue.put("handles:key", new Uint8Array(32).fill(7));
  await take.send((key) => [[{ call: "pay", input: { key } }], say("Paid.")]);
  await take.reached("turn.waiting");
  return take.recording();
}

const says = (hook: "assemble" | "extract"): Partial<Script> => ({ says: hook });

/** A task makes the request of a turn. */
async function duringContextHook(): Promise<Recording> {
  const memory = { contextAssembly: { task: "release/assemble" } } as const;
  const persona = { ...toolsOnly("save"), memory };
  const take = await Take.begin("during-context-hook", { persona });
  await take.play((key) => [[{ call: "save", input: { key, n: 1 } }], say("Before.")]);
  await take.send(() => [say("By a hook.")], { script: says("assemble") });
  await take.stage.until(() => take.stage.runs.filter(({ tool }) => tool === "assemble").length === 2);
  return take.recording();
}

/** A task extracts memories of a turn that has completed. */
async function duringExtraction(): Promise<Recording> {
  const memory = {
    ...({ scope: "agent", recall: false, memoryTools: false } as const),
    memoryExtraction: { task: "release/extract" } as const,
  };
  const persona = { ...toolsOnly("save"), memory };
  const take = await Take.begin("during-extraction", { persona, agentId: "recorded-learner" });
  await take.play(() => [say("Before.")]);
  await take.stage.until(() => !isExtracting(take.life.runtime));
  await take.play(() => [say("To be learned.")], { script: says("extract") });
  await take.stage.until(() => take.stage.runs.length === 2);
  return take.recording();
}

const words = (count: number) => "word ".repeat(count);
const long = (summary: Script["summary"]): { script: Partial<Script> } => ({
  script: { says: words(200), ...(summary && { summary }) },
});
const SHORT_MEMORY = { ...toolsOnly("save"), memory: { contextTokens: 2_000 } };

/** Fills the history until its `count`th compaction has begun. */
async function fill(take: Take, count: number, summary: Script["summary"]): Promise<void> {
  for (let turn = 1; take.count("context.compaction.started") < count; turn++) {
    if (turn > 10) throw new Error("The history does not fill its budget.");
    await take.play(() => [[{ text: "word ", times: 200 }]], long(summary));
  }
}

/** A compaction is done, another runs, and so does a turn. */
async function duringCompaction(): Promise<Recording> {
  const take = await Take.begin("during-compaction", { persona: SHORT_MEMORY });
  await fill(take, 1, say("The first summary."));
  await take.stage.until(() => !hasSideCall(take.life.runtime));
  await fill(take, 2, held("The second summary."));
  await take.send(() => [held("After the summary.")]);
  await take.stage.until(() => take.life.runtime.state.active.size > 0);
  return take.recording();
}

/** A compaction was given up. */
async function compactionFailed(): Promise<Recording> {
  const take = await Take.begin("compaction-failed", { persona: SHORT_MEMORY });
  await fill(take, 1, { status: 400, message: "No." });
  await take.stage.until(() => !hasSideCall(take.life.runtime));
  return take.recording();
}

/** A model writes the title of the first turn. */
async function duringTitle(): Promise<Recording> {
  const persona = { ...toolsOnly("save"), titles: { modelProfileId: "release/titler" } } as const;
  const take = await Take.begin("during-title", { persona, title: null });
  await take.play(() => [say("An answer.")], { script: { title: [held("The title.")] } });
  await take.stage.until(() => hasSideCall(take.life.runtime));
  return take.recording();
}

/** A turn is answered again, and edited after that. The edit is in flight. */
async function replaced(): Promise<Recording> {
  const take = await Take.begin("replaced", { persona: toolsOnly("save") });
  const { queries, runtime } = take.life;
  const access = { checkSpeaker: () => undefined, state: runtime.state };
  const replacing = () => {
    // SAFETY: these are the members that it uses.
    const context = { access: { ...access, state: runtime.state }, queries, runtime } as unknown;
    return new Replacing(context as ConstructorParameters<typeof Replacing>[0]);
  };
  const answers = ["At first.", "Once more."].map(say);
  const first = await take.play((key) => [[{ call: "save", input: { key, n: 1 } }], { attempts: answers }]);
  await take.stage.clock.advance(1_000);
  const again = await replacing().regenerate(ADA, first.turnId, { idempotencyKey: "again" });
  await take.stage.until(() => !runtime.busy);
  const { data } = take.message(() => [held("Edited.")]);
  await take.stage.clock.advance(1_000);
  await replacing().edit(ADA, again.turnId, { content: data.content });
  await take.stage.until(() => take.stage.asked === 4);
  return take.recording();
}

/** A fork after a turn, with a turn of its own. A turn was active in the other conversation. */
async function forked(): Promise<Recording> {
  const source = await Take.begin("fork-source", { persona: toolsOnly("save") });
  await source.play((key) => [[{ call: "save", input: { key, n: 1 } }], say("Shared.")], { id: "shared" });
  await source.send(() => [held("Left out.")]);
  const stage = new Stage(undefined, seedOf("forked"), source.stage.clock);
  const conversationId = `conv_${stage.ids.ulid()}`;
  const { queries, runtime } = source.life;
  const absent = { ok: false as const, error: { code: "NOT_FOUND" as const, message: "", retriable: false } };
  const target = {
    view: async () =>
      stage.life.runtime.exists ? { ok: true, value: conversationView(stage.life.runtime.state) } : absent,
    takeFork: async (part: ImportPart) => {
      await backupOf(stage, stage.life, { tenant: TENANT, conversationId }).takeFork(part);
      return { ok: true, value: null };
    },
  };
  // SAFETY: these are the members that it uses.
  const context = {
    ...{ clock: stage.clock, attachments: null, queries, runtime },
    access: { checkSpeaker: () => undefined, state: runtime.state },
    conversation: async () => target,
  } as unknown as ConstructorParameters<typeof ConversationFork>[0];
  await new ConversationFork(context).fork(ADA, { id: conversationId });
  stage.isOpen = true;
  const content = JSON.stringify({ key: `${VERSION}-forked`, replies: [say("Of the fork.")] });
  const caller = { type: "user", userId: RECORDED_USER } as const;
  await stage.life.runtime.accept({ type: "conversation.user.message", caller, data: { content } });
  await stage.until(() => !stage.life.runtime.busy);
  return recordingOf("forked", stage);
}

/** Limits of a conversation and of a turn, with a call that has a reservation. */
async function budgeted(): Promise<Recording> {
  const take = await Take.begin("budgeted", { budget: { tokens: 500_000, modelCalls: 20 } });
  const usage = { prompt_tokens: 1_200, completion_tokens: 50, total_tokens: 1_250 };
  await take.play(() => [[{ text: "Counted." }, { usage }]]);
  await take.send(() => [held("Within the budget.")], { budget: { modelCalls: 3 } });
  await take.reached("message.started", 2);
  return take.recording();
}

/** A conversation of a project with a retention. */
async function retained(): Promise<Recording> {
  const take = await Take.begin("retained", { projectId: "brief" });
  await take.play(() => [say("For a week.")]);
  return take.recording();
}
