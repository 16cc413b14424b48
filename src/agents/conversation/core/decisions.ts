/** The input and the output of planning. Every change of a conversation's state is one of these decisions. */
import type { WindowSizes } from "../../../memory/session/cut.ts";
import type { Gate } from "../../../policy/gate.ts";
import type { Caller } from "../../../protocol/caller-schemas.ts";
import type { DecisionOf, TurnDecisionOf } from "./facts/fact.ts";
import type { CONVERSATION_FACTS, TURN_FACTS } from "./facts/families.ts";
import type { RunningSideCall } from "./side-calls.ts";
import type { AttemptFacts } from "./signals.ts";
import type { ConversationIdentity, ConversationState } from "./state.ts";
import type { CallingTurn, Turn } from "./turn.ts";

/** A decision about the conversation. The function of its type declares its data. */
export type ConversationDecision = DecisionOf<typeof CONVERSATION_FACTS>;

/** A decision about an active turn. It changes nothing if the turn is over. */
export type TurnDecision = TurnDecisionOf<typeof TURN_FACTS>;

export type AgentDecision = ConversationDecision | TurnDecision;

export interface PlanInput {
  /** Milliseconds since the epoch. */
  now: number;
  /** The stem for the ids of a turn that starts. */
  stem: string;
  /** Makes the stem of a turn that an agent starts. */
  newStem?: () => string;
  /** Turns that the message of a user may have (TALK-2); `MAX_AGENT_TURNS` when absent. */
  agentTurns?: number;
  gate: Gate;
  /** Time limit of a tool that a client runs, in milliseconds; ten minutes when absent. */
  clientToolTimeoutMs?: number;
  /** The limits of calls of other agents; the defaults if absent. */
  calls?: CallLimits;
  /** Reports whether the first message gives a title (TITLE-4); when absent, it gives none. */
  isTitled?: (record: ConversationIdentity) => boolean;
  /** Time limit of an approval, in milliseconds; one day if absent. */
  approvalTimeoutMs?: number;
  /** Returns the sizes of the window after a turn; `null` if they are unknown or within `high` tokens. */
  sizesAfter?: (turn: Turn, high: number) => WindowSizes | null;
  /** Estimates the tokens of a turn's next request, including results of turns that this step ended. If absent, the largest request counts. */
  requestTokens?: (state: ConversationState, turn: CallingTurn, ended?: readonly Turn[]) => number;
  inProgress?: (turn: CallingTurn) => CallInProgress;
  /** Returns the measurements of a running or just ended side call. */
  sideCallInProgress?: (running: RunningSideCall) => AttemptFacts | undefined;
  /** Returns the room for calls in the actor's outbox; when absent, each has room. */
  outboxRoom?: () => { envelopes: number; bytes: number };
  /** The stored turns. If absent, only active turns are visible. */
  turns?: StoredTurns;
  /** The turns that the current step has ended. The store does not have them yet. */
  ended?: readonly Turn[];
}

export interface CallLimits {
  /** Calls below each other. */
  depth: number;
  /** Calls of one conversation at a time. */
  open: number;
  /** Calls below one conversation at a time, at all levels together. */
  tree: number;
}

/** The turns of a conversation, active or over, as of the last commit. Each read costs statements. */
export interface StoredTurns {
  after(n: number, caller: Caller): readonly number[];
  /** Returns a turn that is over, with its content; `undefined` for an unknown number. */
  turn(n: number): Turn | undefined;
  /** Returns the newest turns that pass, at most `limit`, descending. It looks at the newest 64 at most. */
  newest(limit: number, passes: (turn: ListedTurn) => boolean): readonly ListedTurn[];
}

/** A turn without its content. */
export type ListedTurn = Pick<Turn, "n" | "agentId" | "caller" | "status" | "exchange" | "silent">;

export interface CallInProgress {
  shown: string;
  /** The measurements of its attempt; absent if it does not run. */
  facts?: AttemptFacts;
}
