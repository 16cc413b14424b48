/** The input of one conversation's checks. */

import { textOf } from "../../src/client/state.ts";
import type { MessageView } from "../../src/protocol/views.ts";
import type { History, Outcome, SentMessage } from "./history.ts";
import type { Fault } from "./plan.ts";
import type { Property } from "./properties.ts";

/** Id of the only agent. */
export const AGENT = "tester";

export interface Scope {
  history: History;
  outcome: Outcome;
  conversation: number;
  fail(property: Property, detail: string): void;
}

/** The part of a message that concerns its place in the transcript. */
export const tagIn = (content: MessageView["content"]) => textOf(content).split(" ")[0] ?? "";

export function sentIn({ history, conversation }: Scope): SentMessage[] {
  return history.sent.filter((sent) => sent.conversation === conversation);
}

export function firedIn({ history, conversation }: Scope, which: (fault: Fault) => boolean): number {
  return history.fired.filter((fault) => fault.conversation === conversation && which(fault)).length;
}
