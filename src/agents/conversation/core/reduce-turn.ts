/** The pieces of a transition that concern one turn. */

import { profileAt } from "../../../library/version-chain.ts";
import type { NativeReply } from "../../../model/messages.ts";
import type { ModelReply } from "../../../model/reply.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import { defined } from "../../../shared/defined.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { type ConversationState, nextEvent, type Operation, type Reply, type Turn } from "./state.ts";
import { sessionEventCount } from "./turn-events.ts";

/** A change on its way to being committed: the state it leads to and what it adds. */
export interface Transition {
  /** `state.seq` is still that of the last commit. */
  readonly state: ConversationState;
  readonly entries: readonly JournalEntry[];
  /** Turns that changed, in their newest form. A completed one also gives its session events. */
  readonly touched: ReadonlyMap<number, Turn>;
}

/** Puts a turn's new form into a transition. A completed turn's events take their place in the session here. */
export function withTurn(transition: Transition, turn: Turn, entries: readonly JournalEntry[]): Transition {
  const active = new Map(transition.state.active);
  let { sessions } = transition.state;
  let stored = turn;
  if (turn.status === "active") {
    active.set(turn.n, turn);
  } else {
    active.delete(turn.n);
    if (turn.status === "completed") {
      const from = nextEvent(sessions, turn.agentId);
      const count = sessionEventCount(turn);
      stored = { ...turn, events: { from, count } };
      sessions = { ...sessions, [turn.agentId]: from + count };
    }
  }
  return {
    state: { ...transition.state, sessions, active },
    entries: [...transition.entries, ...entries],
    touched: new Map(transition.touched).set(turn.n, stored),
  };
}

export function recordReply(chain: VersionChain, turn: Turn, reply: ModelReply, now: number): Turn {
  if (turn.call === null) return turn;
  const native = nativeReply(chain, turn, reply);
  const recorded: Reply = {
    item: turn.call.item,
    text: reply.text,
    ...defined({ reasoning: reply.reasoning }),
    finishReason: reply.finishReason,
    ...defined({ usage: reply.usage, providerMessageId: reply.providerMessageId, native }),
    at: now,
  };
  return { ...turn, call: null, replies: [...turn.replies, recorded] };
}

/** The reply's own parts with the names of who gave them: only they are sent them back (NATIVE-1). */
function nativeReply(chain: VersionChain, { call }: Turn, { native }: ModelReply): NativeReply | undefined {
  const profile = profileAt(chain, call?.profile ?? 0);
  if (native === undefined || profile === undefined) return undefined;
  return { provider: profile.provider, modelId: profile.modelId, parts: native };
}

/** Adds a tool call to the turn; one that was refused comes with its result. */
export function createOperation(turn: Turn, draft: Omit<Operation, "item" | "reply">, now: number): Turn {
  const operation: Operation = {
    ...draft,
    item: turn.items,
    reply: turn.replies.length - 1,
    ...(draft.result === undefined ? {} : { completedAt: now }),
  };
  const refused = draft.result !== undefined;
  return {
    ...turn,
    items: turn.items + 1,
    operations: [...turn.operations, operation],
    issues: refused ? { ...turn.issues, toolFailures: (turn.issues.toolFailures ?? 0) + 1 } : turn.issues,
  };
}
