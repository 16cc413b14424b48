/**
 * Reads past turns for the tool `history`.
 *
 * PAST-1  A page has the newest turns of the agent before a turn, newest first. It has as many turns as fit its tokens, and at least one.
 *         Each turn is on one page.
 * PAST-2  An agent reads only its own turns. It cannot read messages that were not sent to it.
 * PAST-3  A page reads a bounded number of rows.
 */
import { estimateTokens } from "../../../memory/session/tokens.ts";
import { joinTaints, taintMember } from "../../../model/taint.ts";
import { turnId } from "../../../protocol/ids.ts";
import type { PastTurn, PastTurns, PastTurnsRequest } from "../../../protocol/tool-memory.ts";
import { plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import { shorten } from "../../../shared/text.ts";
import { toIso } from "../../../shared/time.ts";
import { taintOfText } from "../core/taints.ts";
import type { Turn } from "../core/turn.ts";
import { finalReply } from "../core/turn-operations.ts";
import type { TurnFacts } from "../store/turn-reading.ts";

/** Default tokens of a page, and their bounds in a request. */
const DEFAULT_TOKENS = 2_000;
const MIN_TOKENS = 100;
const MAX_TOKENS = 8_000;
/** Rows that a page reads at most. */
const MAX_ROWS = 100;
/** Maximum number of shown characters of a text of a turn, for each token of the page. */
const CHARACTERS_PER_TOKEN = 2;

interface TurnList {
  /** Lists turns before number `n`, descending, at most `limit`. */
  list(
    n: number,
    limit: number,
  ): { turns: readonly Pick<TurnFacts, "n" | "stem" | "agentId" | "status">[]; more: boolean };
  turn(n: number): Turn | null;
}

export function readPastTurns(
  list: TurnList,
  n: number,
  { agentId, tokens = DEFAULT_TOKENS }: Pick<PastTurnsRequest, "agentId" | "tokens">,
): PastTurns {
  const room = Math.min(MAX_TOKENS, Math.max(MIN_TOKENS, tokens));
  const { turns: listed, more } = list.list(n, MAX_ROWS);
  const turns: PastTurn[] = [];
  let used = 0;
  let last: (typeof listed)[number] | undefined;
  for (const facts of listed) {
    const turn = facts.agentId === agentId && facts.status !== "active" ? list.turn(facts.n) : null;
    if (turn !== null) {
      const shown = pastTurn(turn, room);
      const size = estimateTokens(JSON.stringify(shown));
      if (turns.length > 0 && used + size > room)
        return { turns, ...defined({ next: last && turnId(last) }) };
      turns.push(shown);
      used += size;
    }
    last = facts;
  }
  return { turns, ...(more && last !== undefined ? { next: turnId(last) } : {}) };
}

function pastTurn(turn: Turn, tokens: number): PastTurn {
  const { createdAt, input, operations } = turn;
  const last = finalReply(turn);
  const limit = (tokens * CHARACTERS_PER_TOKEN) / 2;
  const [message, answer = ""] = [plainText(input), last?.text];
  const isShortened = message.length > limit || answer.length > limit;
  const tools = operations.map(({ name }) => name);
  return {
    turnId: turnId(turn),
    at: toIso(createdAt),
    message: shorten(message, limit),
    ...(answer === "" ? {} : { answer: shorten(answer, limit) }),
    ...(tools.length === 0 ? {} : { tools: tools.slice(0, 20) }),
    ...taintMember(joinTaints(taintOfText(turn), last?.taint)),
    ...(isShortened ? { shortened: true as const } : {}),
  };
}
