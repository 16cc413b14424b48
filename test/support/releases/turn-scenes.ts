/** Scenes of a release: conversations with a past, and conversations in every phase of a turn. */

import type { ToolSpec } from "../../../src/model/context.ts";
import { numbered, agent as spoken, user } from "../events.ts";
import type { StepScript } from "../provider-script.ts";
import type { Recording } from "./format.ts";
import { busy, held, say, Take } from "./take.ts";

const thought: StepScript = {
  raw: `data: ${JSON.stringify({ choices: [{ index: 0, delta: { reasoning_content: "Hm." } }] })}\n\n`,
};
/** A call with a large result. Two of these exceed one row. */
const big: StepScript = { call: "big", input: { size: 900_000 } };

export async function recordTurns(): Promise<Recording[]> {
  return [
    await created(),
    await completed(),
    await duringModelCall(),
    await duringBackoff(),
    await duringTools(),
    await duringPureTools(),
    await severalActive(),
    await afterRecoveries(),
    await afterTooManyRecoveries(),
    await withLongRow(),
    await waitingForClient(),
    await duringToolsOfBoth(),
    await severalSnapshots(),
  ];
}

async function created(): Promise<Recording> {
  return (await Take.begin("created")).recording();
}

async function completed(): Promise<Recording> {
  const take = await Take.begin("completed");
  const usage = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 };
  const first = await take.play(() => [[thought, { text: "Hello." }, { usage }]], { id: "key one" });
  await take.play(() => [say("In parts.")], {
    replyToMessageId: first.messageId,
    as: (text) => [{ type: "text", text }],
  });
  await take.play((key) => [
    [
      { text: "Looking. " },
      { call: "look_up", input: { key, n: 1 } },
      { call: "look_up", input: { key, n: 2 } },
    ],
    [
      { call: "save", input: { key, n: 3 } },
      { call: "charge", input: { key, n: 4 } },
    ],
    [
      { call: "counter", input: {} },
      { call: "fails", input: {} },
    ],
    [
      { call: "nobody", input: {} },
      { call: "save", input: "{" },
    ],
    say("Looked, saved and charged."),
  ]);
  await take.play(() => [{ attempts: [busy, say("At the second attempt.")] }]);
  await take.play(() => [[big, big], say("That was long.")]);
  await take.play(() => [[big, big], { attempts: [busy] }]);
  await take.play(() => [{ attempts: [{ status: 400, message: "No." }] }]);
  await take.play(() => [say("Above all, this goes on.")], { id: "key two" });
  return take.recording();
}

async function duringModelCall(): Promise<Recording> {
  const take = await Take.begin("during-model-call");
  await take.play(() => [say("Before.")]);
  await take.send(() => [held("After all.")], { id: "held" });
  await take.reached("message.started", 2);
  return take.recording();
}

async function duringBackoff(): Promise<Recording> {
  const take = await Take.begin("during-backoff");
  await take.send(() => [{ attempts: [busy, say("At last.")] }]);
  await take.reached("llm.call.failed");
  return take.recording();
}

async function duringTools(): Promise<Recording> {
  const take = await Take.begin("during-tools");
  await take.send((key) => [
    [
      { text: "All at once. " },
      { call: "look_up", input: { key, n: 1, gate: "hold" } },
      { call: "save", input: { key, n: 2, gate: "hold" } },
      { call: "charge", input: { key, n: 3, gate: "hold" } },
      { call: "save", input: { key, n: 4 } },
    ],
    say("So be it."),
  ]);
  await take.reached("tool.completed");
  return take.recording();
}

async function duringPureTools(): Promise<Recording> {
  const take = await Take.begin("during-pure-tools");
  await take.send((key) => [[{ call: "look_up", input: { key, n: 1, gate: "hold" } }], say("Found.")]);
  await take.reached("tool.requested");
  return take.recording();
}

async function severalActive(): Promise<Recording> {
  const take = await Take.begin("several-active");
  await take.play(() => [say("Before them all.")]);
  await take.send(() => [held("The first.")]);
  await take.send((key) => [[{ call: "charge", input: { key, n: 1, gate: "hold" } }], say("The second.")]);
  await take.reached("tool.requested");
  await take.send(() => [{ attempts: [busy, say("The third.")] }]);
  await take.reached("llm.call.failed");
  return take.recording();
}

async function afterRecoveries(): Promise<Recording> {
  const take = await Take.begin("after-recoveries");
  await take.send((key) => [
    [{ call: "charge", input: { key, n: 1, gate: "hold" } }],
    held("In spite of everything."),
  ]);
  await take.reached("tool.requested");
  for (let death = 1; death <= 3; death++) {
    await take.die();
    await take.reached("turn.resumed", death);
    // A turn that waits for a late result is not interrupted again.
    await take.reached("message.started", 2);
  }
  return take.recording();
}

async function afterTooManyRecoveries(): Promise<Recording> {
  const take = await Take.begin("after-too-many-recoveries");
  await take.send(() => [held("Never.")]);
  await take.reached("message.started");
  for (let death = 1; death <= 10; death++) {
    const { asked } = take.stage;
    await take.die();
    // While the turn pauses, a death does not interrupt it.
    await take.stage.until(() => take.stage.asked > asked);
  }
  await take.reached("turn.resumed", 10);
  return take.recording();
}

async function withLongRow(): Promise<Recording> {
  const take = await Take.begin("with-long-row");
  await take.send(() => [[big, big], held("That was long.")]);
  await take.reached("message.started", 2);
  return take.recording();
}

/** A tool that the client runs. */
const ASK: ToolSpec = { name: "ask", description: "Asks the user.", inputSchema: { type: "object" } };

async function waitingForClient(): Promise<Recording> {
  const take = await Take.begin("waiting-for-client");
  await take.send(() => [[{ call: "ask", input: { question: "Which?" } }], say("That one.")], {
    tools: [ASK],
  });
  await take.reached("turn.waiting");
  return take.recording();
}

async function duringToolsOfBoth(): Promise<Recording> {
  const take = await Take.begin("during-tools-of-both");
  await take.play(() => [say("Before.")]);
  await take.send(
    (key) => [
      [
        { call: "ask", input: { question: "Which?" } },
        { call: "look_up", input: { key, n: 1, gate: "hold" } },
        { call: "charge", input: { key, n: 2, gate: "hold" } },
        { call: "ask", input: { question: "And which?" } },
        { call: "save", input: { key, n: 3 } },
      ],
      say("Both of them."),
    ],
    { tools: [ASK] },
  );
  await take.reached("tool.completed");
  return take.recording();
}

/** Two turns in flight that began at different times, after a history from elsewhere. */
async function severalSnapshots(): Promise<Recording> {
  const take = await Take.begin("several-snapshots", {
    history: numbered([user("elsewhere"), spoken("before")]),
  });
  await take.send(() => [held("The first.")]);
  await take.send(() => [say("In between.")]);
  await take.reached("turn.completed");
  await take.send((key) => [[{ call: "save", input: { key, n: 1, gate: "hold" } }], say("The last.")]);
  await take.reached("tool.requested");
  await take.send(() => [say("At the end.")]);
  await take.reached("turn.completed", 2);
  return take.recording();
}
