/** The families of facts together: each decision with its change, and each journal entry with its frame. Pure. */
import type { EntryType } from "../../../../protocol/journal.ts";
import { agentCall, agentCallFrames, agentCharge } from "./agent-call.ts";
import { approval, approvalFrames } from "./approval.ts";
import { budget, budgetFrames, turnBudget } from "./budget.ts";
import { compaction, compactionFrames } from "./compaction.ts";
import { contextHook, contextHookFrames } from "./context-hook.ts";
import { extraction, extractionFrames } from "./extraction.ts";
import type { Change, Shown, TurnChange } from "./fact.ts";
import { lifecycle, lifecycleFrames } from "./lifecycle.ts";
import { modelCall, modelCallFrames } from "./model-call.ts";
import { participants, participantsFrames } from "./participants.ts";
import { queue, queueFrames } from "./queue.ts";
import { sideCall } from "./side-call.ts";
import { titling, titlingFrames } from "./titling.ts";
import { lateTool, tool, toolFrames } from "./tool.ts";
import { newTurn, turn, turnFrames } from "./turn.ts";

/** The decisions about the conversation. */
export const CONVERSATION_FACTS = {
  ...{ ...agentCharge, ...budget, ...compaction, ...extraction, ...lateTool },
  ...{ ...lifecycle, ...newTurn, ...participants, ...queue, ...sideCall, ...titling },
} satisfies Record<string, Change<never>>;

export const TURN_FACTS = {
  ...{ ...agentCall, ...approval, ...contextHook, ...modelCall, ...tool, ...turn, ...turnBudget },
} satisfies Record<string, TurnChange<never>>;

/** The frames of journal entries; `null` for entries without a frame. */
export const FRAMES = {
  ...{ ...agentCallFrames, ...approvalFrames, ...budgetFrames, ...compactionFrames, ...contextHookFrames },
  ...{ ...extractionFrames, ...lifecycleFrames, ...modelCallFrames, ...participantsFrames, ...queueFrames },
  ...{ ...titlingFrames, ...toolFrames, ...turnFrames },
} satisfies Record<EntryType, Shown<never> | null>;
