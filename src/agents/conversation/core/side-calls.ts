/** The model calls beside the turns: for the summary of a session, and for the title of the conversation. Pure. */
import { compactionProfile, titleProfile } from "../../../library/definitions/version-chain.ts";
import { withOutputLimit } from "../../../model/output-limit.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { MAX_TITLE_TOKENS } from "../../../model/title-request.ts";
import {
  type BaseState,
  type ConversationIdentity,
  chainOf,
  type RunningCompaction,
  type Titling,
} from "./state.ts";

/** Names a call: it is charged to the agent of the session. */
export interface SideCallPlace {
  readonly session: string;
  /** The call is for the title; absent if it is for the summary of the session. */
  readonly title?: true;
}

export type SummaryCall = RunningCompaction & { readonly session: string; readonly title?: never };

export type TitleCall = Titling & { readonly session: string; readonly title: true };

export type RunningSideCall = SummaryCall | TitleCall;

type Sides = Pick<BaseState, "compactions" | "titling">;

export function sideCalls({ compactions, titling }: Sides): RunningSideCall[] {
  const summaries = Object.entries(compactions).flatMap(([session, { call, ...compaction }]) =>
    call === undefined ? [] : [{ ...compaction, call, session }],
  );
  return titling === undefined
    ? summaries
    : [...summaries, { ...titling, session: titling.agentId, title: true }];
}

/** Returns the call at a place; `undefined` if it does not run. */
export function sideCallAt(state: Sides, place: SideCallPlace): RunningSideCall | undefined {
  return sideCalls(state).find((one) => isAt(one, place));
}

export function isAt(one: SideCallPlace, other: SideCallPlace): boolean {
  return one.session === other.session && one.title === other.title;
}

export function placeOfCall({ session, title }: SideCallPlace): SideCallPlace {
  return { session, ...(title && { title }) };
}

export function sideProfile(
  record: Pick<ConversationIdentity, "agents">,
  { session, title }: SideCallPlace,
): ModelProfile {
  const chain = chainOf(record, session);
  return title ? withOutputLimit(titleProfile(chain), MAX_TITLE_TOKENS) : compactionProfile(chain);
}

/** Returns the key of a call's attempt. A turn ends once, so no other call has it. */
export function sideCallKey({ session, title, turn, call }: RunningSideCall): string {
  return `${title ? "titling" : "compaction"}:${session}:${turn}:${call.attempt}`;
}
