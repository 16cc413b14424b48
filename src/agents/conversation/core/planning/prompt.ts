/**
 * The parts of a model call's request. Pure.
 *
 * PROMPT-1  The parts are those of the request of the call; of its newest request if the call has several attempts.
 * PROMPT-2  The end of a turn removes texts that only its calls need. `missing` names removed parts: the texts of recalled memories,
 *           withdrawn answers, the request of a context hook, and notes on other agents, other turns and quoted messages. It also names
 *           media, because the parts have their names only, and erased contents.
 */
import { estimateTokens, frameTokens, messageTokens } from "../../../../memory/session/tokens.ts";
import type { ContextMessage } from "../../../../model/messages.ts";
import type { PromptPart, TurnPrompt } from "../../../../protocol/prompt.ts";
import { ERASED } from "../erasure.ts";
import type { ConversationIdentity } from "../state.ts";
import type { TurnAsOfCall } from "./as-of.ts";
import { type PlannedRequest, plannedRequest, type RequestSources } from "./request.ts";

/** A request before its provider's form. */
export interface Prompt {
  request: PlannedRequest;
  parts: PromptPart[];
  missing: TurnPrompt["missing"];
}

/** Returns the request of a model call, with its parts. */
export function promptOf(
  record: ConversationIdentity,
  { turn, missing: lost }: TurnAsOfCall,
  sources: RequestSources,
): Prompt {
  const request = plannedRequest(record, turn, sources);
  const { base, assembled, moves } = request;
  const stable = base.cache?.stableMessages ?? 0;
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
    ofMessages("history", base.messages.slice(0, stable)),
    ofMessages("notes", base.messages.slice(stable, -1)),
    ofMessages("message", base.messages.slice(-1)),
  ];
  const first =
    assembled === undefined ? frame : [part("hook", estimateTokens(JSON.stringify(assembled)), [assembled])];
  const missing = new Set(lost);
  if (base.messages.some(({ parts = [] }) => parts.some(({ type }) => type !== "text"))) missing.add("media");
  if (base.messages.some(({ content }) => content === ERASED)) missing.add("erased");
  return {
    request,
    parts: [...first, ofMessages("moves", moves)].filter(({ count }) => count > 0),
    missing: [...missing],
  };
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
