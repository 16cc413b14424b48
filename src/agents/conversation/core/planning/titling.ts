/**
 * Planning the title that a model writes. Pure.
 *
 * TITLE-6  If the persona names a profile for titles, the first completed turn with an answer starts a call for a title, in the commit
 *          that ends it. The conversation is listed, and its title is absent or automatic. The answer does not wait. The title describes the
 *          message and the answer of this turn.
 * TITLE-7  A conversation has one such call. The call follows the path of calls for summaries: budget, lease, attempts, crashes, stops. If it
 *          fails or is stopped, the title stays, and no turn fails.
 * TITLE-8  A title by a model is one line of at most `MAX_MODEL_TITLE` characters, without quotes and control characters. The thoughts
 *          before a title, the Markdown marks and the addresses of links are removed.
 * TITLE-9  A person's title ends the call. A later reply changes nothing, and is charged.
 */
import { messageTokens } from "../../../../memory/session/tokens.ts";
import type { ModelContext } from "../../../../model/context.ts";
import { titleRequest } from "../../../../model/title-request.ts";
import { plainText } from "../../../../shared/content.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import type { TitleCall } from "../side-calls.ts";
import type { SideCallCompleted } from "../signals.ts";
import { chainOf } from "../state.ts";
import { modelTitle } from "../titles.ts";
import type { Transition } from "../transition.ts";
import type { Turn } from "../turn.ts";
import { finalReply } from "../turn-operations.ts";

/** Starts the call for a title that the end of a turn makes due (TITLE-6). Call it after every change. */
export function planTitling(
  before: Transition,
  { state, touched }: Transition,
  { isTitled }: PlanInput,
): AgentDecision[] {
  const { record, titling } = state;
  const { title, automaticTitle, listed } = record;
  if (titling !== undefined || listed === false) return [];
  const isDue = (turn: Turn) => {
    const isEnd = turn.status === "completed" && before.touched.get(turn.n) !== turn;
    return isEnd && (automaticTitle ?? (title === null && turn.n === 1)) && answerOf(turn) !== "";
  };
  const turn = [...touched.values()].find(isDue);
  if (turn === undefined) return [];
  const { titleProfile: named } = chainOf(record, turn.agentId);
  if (named === undefined || isTitled?.(record) !== true) return [];
  const { n, stem, agentId } = turn;
  const { systemInstructions, messages } = titleContext(turn);
  const frame = [...systemInstructions, ...messages.map(({ content }) => content)];
  const tokens = frame.reduce((sum, content) => sum + messageTokens({ role: "user", content }), 0);
  return [{ type: "START_TITLING", turn: n, stem, agentId, tokens }];
}

/** Returns the request for the title that describes a turn. */
export function titleContext(turn: Pick<Turn, "input" | "replies" | "operations">): ModelContext {
  return titleRequest(plainText(turn.input), answerOf(turn));
}

function answerOf(turn: Pick<Turn, "replies" | "operations">): string {
  return finalReply(turn)?.text.trim() ?? "";
}

/** Plans after the reply of the model. */
export function acceptedTitle({ session }: TitleCall, { reply, facts }: SideCallCompleted): AgentDecision {
  const made = { facts, category: "none" as const };
  const place = { session, title: true as const };
  const { toolCalls, finishReason, text } = reply;
  const title = modelTitle(text);
  const isWhole = toolCalls.length === 0 && finishReason === "stop";
  if (isWhole && title !== null) return { type: "TITLE", ...place, text: title, made };
  const message = isWhole ? "The model gave no title." : `The title was not finished (${finishReason}).`;
  return { type: "GIVE_UP_SIDE_CALL", ...place, error: { code: "MODEL_FAILED", message }, made };
}
