/** The input of one conversation's checks. */

import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { textOf } from "../../src/client/state.ts";
import type { MessageView, TurnView } from "../../src/protocol/conversation-schemas.ts";
import { operationId, parseItemId } from "../../src/protocol/ids.ts";
import type { History, Outcome, SentMessage } from "./history.ts";
import type { Fault } from "./plan.ts";
import type { Property } from "./properties.ts";

/** Id of the only agent. */
export const AGENT = "tester";

/** Returns the id of a conversation. */
export const conversationId = (number: number) => `conv_${String(number).padStart(26, "0")}`;

export interface Scope {
  history: History;
  outcome: Outcome;
  conversation: number;
  fail(property: Property, detail: string): void;
}

/** The part of a message that concerns its place in the transcript. */
export const tagIn = (content: MessageView["content"]) => textOf(content).split(" ")[0] ?? "";

/** Returns the tag of a turn: the tag of its message, and the number of a turn that regenerates another. */
export function tagOfTurn(turn: Pick<TurnView, "id" | "input" | "regenerates">): string {
  return versionTag(tagIn(turn.input), numberOf(turn.id), turn.regenerates);
}

/** As `tagOfTurn`, of an active turn. */
export function tagOfActive(turns: Iterable<Turn>, tag: string): string {
  for (const { n, input, regenerates } of turns)
    if (tagIn(input) === tag) return versionTag(tag, n, regenerates);
  return tag;
}

function versionTag(tag: string, n: number, regenerates: string | undefined): string {
  return regenerates === undefined ? tag : `${tag}~${n}`;
}

/** Returns the tag of a message without the version of its turn. */
export const messageTag = (tag: string) => tag.split("~")[0] ?? "";

export function numberOf(id: string): number {
  return parseItemId(id)?.n ?? 0;
}

/** Returns the ids of the operations that regenerated turns took over. */
export function takenIn({ contents }: Pick<Outcome, "contents">): Set<string> {
  const turns = [...contents.values()];
  return new Set(
    turns.flatMap((turn) =>
      turn.operations
        .filter(({ reply }) => reply < (turn.taken ?? 0))
        .map(({ item }) => operationId(turn, item)),
    ),
  );
}

export function sentIn({ history, conversation }: Scope): SentMessage[] {
  return history.sent.filter((sent) => sent.conversation === conversation);
}

export function firedIn({ history, conversation }: Scope, which: (fault: Fault) => boolean): number {
  return history.fired.filter((fault) => fault.conversation === conversation && which(fault)).length;
}
