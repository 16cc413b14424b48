/** The families of facts are disjoint: none replaces a decision or a frame of another family. */
import { expect, test } from "vitest";
import * as agentCalls from "../../src/agents/conversation/core/facts/agent-call.ts";
import * as approvals from "../../src/agents/conversation/core/facts/approval.ts";
import * as budgets from "../../src/agents/conversation/core/facts/budget.ts";
import * as compactions from "../../src/agents/conversation/core/facts/compaction.ts";
import * as contextHooks from "../../src/agents/conversation/core/facts/context-hook.ts";
import * as extractions from "../../src/agents/conversation/core/facts/extraction.ts";
import { CONVERSATION_FACTS, FRAMES, TURN_FACTS } from "../../src/agents/conversation/core/facts/families.ts";
import * as lifecycles from "../../src/agents/conversation/core/facts/lifecycle.ts";
import * as modelCalls from "../../src/agents/conversation/core/facts/model-call.ts";
import * as participants from "../../src/agents/conversation/core/facts/participants.ts";
import * as queues from "../../src/agents/conversation/core/facts/queue.ts";
import * as sideCalls from "../../src/agents/conversation/core/facts/side-call.ts";
import * as titlings from "../../src/agents/conversation/core/facts/titling.ts";
import * as tools from "../../src/agents/conversation/core/facts/tool.ts";
import * as turns from "../../src/agents/conversation/core/facts/turn.ts";

const MODULES = [
  ...[agentCalls, approvals, budgets, compactions, contextHooks, extractions],
  ...[lifecycles, modelCalls, participants, queues, sideCalls, titlings, tools, turns],
];

test("each decision and each frame belongs to one family", () => {
  const tables = MODULES.flatMap((module) => Object.entries(module)).filter(
    ([, value]) => typeof value === "object" && value !== null,
  );
  const keys = (isFrames: boolean) =>
    tables
      .flatMap(([name, table]) => (name.endsWith("Frames") === isFrames ? Object.keys(table) : []))
      .sort();
  expect(keys(true)).toEqual(Object.keys(FRAMES).sort());
  expect(keys(false)).toEqual([...Object.keys(CONVERSATION_FACTS), ...Object.keys(TURN_FACTS)].sort());
});
