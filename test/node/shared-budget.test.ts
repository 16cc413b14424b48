/** The budget of a turn that calls agents and passes the word to others: all parts together stay within it. */
import { expect, test } from "vitest";
import { planMentions, turnBudgetLeft } from "../../src/agents/conversation/core/planning/turn-taking.ts";
import type { AgentEnded } from "../../src/agents/conversation/core/signals.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { NOTHING } from "../../src/model/spending.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { SteeredConversation } from "../support/steered-model.ts";

const ask = (name: string, agent: string, more: object = {}) =>
  defineTool({ name, description: "Asks.", target: { agent }, ...more });
const CREW = defineLibrary("crew", {
  tools: [
    defineTool({ name: "join", description: "Brings in.", target: { agent: "architect", mode: "loop_in" } }),
    ask("ask", "lawyer"),
    ask("ask_later", "lawyer", { async: true }),
  ],
});
const ALLOWED = 12;

async function begin() {
  const room = await SteeredConversation.create(CREW);
  room.crew.set("architect", "You are architect.");
  const turns = () => [...room.runtime.state.active.values()];
  /** Model calls that the open calls of the first turn may make. */
  const given = () =>
    (turns()[0]?.operations ?? []).reduce(
      (sum, { agent, status }) => sum + (status === "dispatched" ? (agent?.budget?.modelCalls ?? 0) : 0),
      0,
    );
  return { room, turns, given };
}

const message: [string, { message: string }] = ["ask", { message: "Hi" }];

test("H4 INHERIT-1 LOOPIN-4 calls of agents and an agent that joins share the rest of a turn", async () => {
  const { room, turns, given } = await begin();
  await room.say("Go.", { budget: { modelCalls: ALLOWED } });
  (await room.request()).call(...Array.from({ length: 4 }, () => message), ["join", { message: "Hello" }]);
  await room.request();
  const joined = turns()[1]?.budget?.modelCalls ?? Number.NaN;
  expect(1 + given() + joined).toBeLessThanOrEqual(ALLOWED);
});

test("TALK-3 a continuing turn keeps as much as it gives, and an agent without the word gets no share", async () => {
  const { room, turns, given } = await begin();
  room.crew.set("lawyer", "You are lawyer.");
  for (const id of ["architect", "lawyer"]) await room.join({ type: "agent", id });
  await room.say("Go.", { to: "tester", budget: { modelCalls: ALLOWED } });
  (await room.request()).call(["ask_later", { message: "Hi" }]);
  const second = await room.request();
  const { state } = room.runtime;
  const turn = turns()[0] ?? expect.fail();
  if (turn.call === null) throw new Error("The model is called.");
  const facts = { startedAt: 0, finishedAt: 0 };
  const record = { type: "RECORD_ATTEMPT", turn: 1, facts, category: "none", isLast: true } as const;
  const calling = { ...turn, call: turn.call };
  const input = { now: 0, stem: "", newStem: () => "stem", gate: allowAll, agentTurns: 2 };
  const { before, after } = planMentions(state, calling, { text: "@architect @lawyer", record }, input);
  const part = Math.floor((ALLOWED - 2 - given()) / 3);
  expect(before).toMatchObject([
    { type: "LEAVE_UNASKED", agentId: "lawyer" },
    { type: "LOWER_BUDGET", budget: { modelCalls: ALLOWED - part } },
  ]);
  expect(after).toMatchObject([{ type: "START_TURN", agentId: "architect", budget: { modelCalls: part } }]);
  second.answer("@architect what now?");
  await room.request();
  const architects = turns().at(-1)?.budget?.modelCalls ?? Number.NaN;
  expect(architects).toBeGreaterThan(0);
  expect((turns()[0]?.budget?.modelCalls ?? 0) - 2 - given()).toBeGreaterThanOrEqual(architects);
});

test("TALK-3 of an overspent budget, the rest is zero", async () => {
  const { room, turns } = await begin();
  await room.say("Go.", { budget: { modelCalls: 3, tokens: 20_000 } });
  const turn = turns()[0] ?? expect.fail();
  const delegated = { ...NOTHING, tokens: 30_000, modelCalls: 1 };
  expect(turnBudgetLeft(room.runtime.state, { ...turn, delegated }, 2)).toEqual({ modelCalls: 1, tokens: 0 });
});

test("H4 TALK-3 INHERIT-1 a mentioned agent gets no share reserved for open calls, and no cycle gives the same share twice", async () => {
  const { room, turns, given } = await begin();
  await room.join({ type: "agent", id: "architect" });
  await room.say("Go.", { budget: { modelCalls: ALLOWED } });
  const later: [string, { message: string }] = ["ask_later", { message: "Hi" }];
  (await room.request()).call(later, later, later);
  (await room.request()).answer("@architect what now?");
  let asked = await room.request();
  const parts = [turns().at(-1)?.budget?.modelCalls ?? Number.NaN];
  expect(2 + given() + (parts[0] ?? 0)).toBeLessThanOrEqual(ALLOWED);
  for (const { item } of (turns()[0]?.operations ?? []).slice(0, 2)) {
    asked.answer("Fine.");
    const outcome = { text: "Done." };
    const end: AgentEnded = {
      type: "conversation.agent.ended",
      turn: 1,
      item,
      attempt: 1,
      agentId: "tester",
      outcome,
      spent: NOTHING,
    };
    const unit = room.runtime.begin();
    unit.stage([end]);
    await unit.release();
    (await room.request()).answer("@architect and now?");
    asked = await room.request();
    parts.push(turns().at(-1)?.budget?.modelCalls ?? Number.NaN);
  }
  // Four model calls of the first turn, and the share of its open call.
  const sum = parts.reduce((total, part) => total + part, 0);
  expect(4 + given() + sum).toBeLessThanOrEqual(ALLOWED);
  expect(sum).toBeGreaterThan(0);
});
