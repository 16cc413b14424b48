/**
 * The parts of the newest request of a turn to its model. Pure.
 *
 * PROMPT-1  The parts are the parts of the newest model call that has replied, or runs. Their messages are the messages of its request.
 * PROMPT-2  The end of a turn removes texts that only its calls need. `missing` names removed parts: the texts of recalled memories,
 *           withdrawn answers, the request of a context hook, and notes on other agents and quoted messages.
 */
import { profileAt } from "../../../../library/definitions/version-chain.ts";
import { estimateTokens, frameTokens, messageTokens } from "../../../../memory/session/tokens.ts";
import type { ContextMessage } from "../../../../model/messages.ts";
import type { ModelProfile } from "../../../../model/profile.ts";
import type { Persona } from "../../../../protocol/definitions.ts";
import type { PromptPart, TurnPrompt } from "../../../../protocol/prompt.ts";
import { type ConversationIdentity, chainOf } from "../state.ts";
import type { Turn } from "../turn.ts";
import { baseContext, sentMoves } from "./context.ts";

/** The sources of a request. */
export interface PromptSources {
  history: readonly ContextMessage[];
  shownTurns: readonly Turn[];
}

/** A request before its provider's form. */
export interface Prompt {
  profile: ModelProfile;
  base: ReturnType<typeof baseContext>;
  moves: readonly ContextMessage[];
  parts: PromptPart[];
  missing: TurnPrompt["missing"];
}

/** Returns the newest request of a turn; `null` for a turn without a model call. */
export function promptOf(
  record: ConversationIdentity,
  given: Turn,
  { history, shownTurns }: PromptSources,
): Prompt | null {
  const turn = beforeReply(given);
  const index =
    given.call === null
      ? given.calls?.findLast(({ category }) => category === "none")?.profile
      : (given.call.profile ?? 0);
  if (index === undefined) return null;
  const chain = chainOf(record, turn.agentId);
  const profile = profileAt(chain, index) ?? chain.modelProfile.definition;
  const base = baseContext(record, turn.request === undefined ? history : [], turn, shownTurns);
  const moves = sentMoves(chain, profile, turn, turn.request === undefined ? base.messages : []);
  const stable = turn.request === undefined ? history.length : 0;
  const frame: PromptPart[] = [
    part(
      "instructions",
      frameTokens({ systemInstructions: base.systemInstructions ?? [] }),
      base.systemInstructions ?? [],
    ),
    part("tools", frameTokens({ tools: base.tools ?? [] }), base.tools ?? []),
    ...(base.output === undefined
      ? []
      : [part("output", estimateTokens(JSON.stringify(base.output.schema)), [base.output])]),
  ];
  const messages: PromptPart[] = [
    ofMessages("history", base.messages.slice(0, stable)),
    ofMessages("notes", base.messages.slice(stable, -1)),
    ofMessages("message", base.messages.slice(-1)),
  ];
  const assembled =
    turn.request === undefined
      ? []
      : [part("hook", estimateTokens(JSON.stringify(turn.request)), [turn.request])];
  return {
    ...{ profile, base, moves, missing: missingOf(record, chain.persona.definition, given) },
    parts: [
      ...(turn.request === undefined ? [...frame, ...messages] : assembled),
      ofMessages("moves", moves),
    ].filter(({ count }) => count > 0),
  };
}

/** Returns the turn as of its newest model call. */
function beforeReply(turn: Turn): Turn {
  if (turn.call !== null || turn.replies.length === 0) return turn;
  const last = turn.replies.length - 1;
  return {
    ...turn,
    replies: turn.replies.slice(0, last),
    operations: turn.operations.filter(({ reply }) => reply < last),
  };
}

function missingOf(
  { agents }: Pick<ConversationIdentity, "agents">,
  { memory }: Persona,
  { status, recalled, replyTo, calls = [], replies }: Turn,
): TurnPrompt["missing"] {
  if (status === "active") return [];
  const answered = calls.filter(({ category }) => category === "none").length;
  const missing: Readonly<Record<TurnPrompt["missing"][number], boolean>> = {
    memories: (recalled?.used.length ?? 0) > 0,
    withdrawn: answered > replies.length,
    hook: memory?.contextAssembly !== undefined,
    notes: agents.length > 1 || replyTo !== undefined,
  };
  return (["memories", "withdrawn", "hook", "notes"] as const).filter((name) => missing[name]);
}

function part(name: PromptPart["name"], tokens: number, items: readonly unknown[]): PromptPart {
  return { name, tokens, count: items.length };
}

function ofMessages(name: PromptPart["name"], messages: readonly ContextMessage[]): PromptPart {
  return part(
    name,
    messages.reduce((sum, message) => sum + messageTokens(message), 0),
    messages,
  );
}
