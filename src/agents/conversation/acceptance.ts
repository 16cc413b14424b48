/**
 * Accepts the messages that start turns. Checks their content, their repetitions and their rate.
 *
 * RUN-5  Limit all turns, from every caller and entry point. Count only turns that began. Repeated and refused messages do not count.
 */
import type { Caller } from "../../protocol/caller-schemas.ts";
import { turnId } from "../../protocol/ids.ts";
import type { StartedTurn } from "../../protocol/signals.ts";
import { parseContent } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError } from "../../shared/errors.ts";
import { type TokenBucket, takeToken, tokenBucket } from "../../shared/token-bucket.ts";
import type { RuntimeContext } from "./context.ts";
import type { ConversationUnit } from "./conversation-core.ts";
import { MAX_NOTED_REPLACED } from "./core/conversation-limits.ts";
import { checkTurnSchemas } from "./core/planning/schema-check.ts";
import {
  checkReplaceable,
  checkSummaries,
  noticeOf,
  oldestVersion,
  type Replaced,
  type Replacement,
  takenItems,
  takenMoves,
} from "./core/replacement.ts";
import type { UserMessage } from "./core/signals.ts";
import type { ConversationState } from "./core/state.ts";
import { checkNewMedia, hasMedia } from "./effects/media.ts";
import { checkRepeated, repliedMessage, startedTurn } from "./inbound/message-checks.ts";
import type { ConversationDatabase } from "./store/conversation-database.ts";

interface AcceptanceContext extends Pick<RuntimeContext, "clock" | "media" | "turnLimit"> {
  store: Pick<ConversationDatabase, "turn" | "turnOfKey" | "turns" | "journal">;
}

/** The unit of work that takes a message. */
type AcceptingUnit = Pick<ConversationUnit, "base" | "state" | "commits" | "stage">;

export class Acceptance {
  #bucket: TokenBucket | null;
  /** Turns that were staged and counted before. */
  #prepaid = 0;

  constructor(private readonly context: AcceptanceContext) {
    this.#bucket = context.turnLimit === undefined ? null : tokenBucket(context.turnLimit);
  }

  /** Checks a message's content and schemas. Throws if they are invalid. Returns a promise for attachments only. */
  check(signal: UserMessage): Promise<void> | undefined {
    const content = parseContent(signal.data.content);
    checkTurnSchemas(signal.data);
    // Do this before the final look-up of the key, because that look-up and the commit need one step.
    if (!hasMedia(content) || signal.replaces?.kind === "regenerates") return undefined;
    return checkNewMedia(content, this.context.media, () => this.#turnOfKey(signal) !== undefined);
  }

  /** As `check`. Throws `UNSUPPORTED` for attachments: their check is asynchronous. */
  checkNow(signal: UserMessage): void {
    const content = parseContent(signal.data.content);
    checkTurnSchemas(signal.data);
    if (!hasMedia(content)) return;
    throw new DramatisError(
      "UNSUPPORTED",
      "An envelope cannot contain attachments. Send their URLs as text.",
    );
  }

  /** Reports whether the message's key has started a turn, or was used otherwise. */
  isKnown(signal: UserMessage): boolean {
    return this.#turnOfKey(signal) !== undefined;
  }

  /** Counts a turn that begins later, by `stagePrepaid`. Throws `RATE_LIMITED`. */
  prepay(): void {
    this.#checkRate(1);
    this.#take(1);
  }

  /** Stages a message as `stage` does. Its turn was counted before. */
  stagePrepaid(unit: AcceptingUnit, signal: UserMessage): void {
    if (!this.#stage(unit, signal, () => undefined).repeated) this.#prepaid += 1;
  }

  /** Drops staged turns that were not committed. */
  forgetPrepaid(): void {
    this.#prepaid = 0;
  }

  /** Stages a message that was checked, unless its key has started a turn. */
  stage(unit: AcceptingUnit, signal: UserMessage): StartedTurn {
    return this.#stage(unit, signal, (turns) => this.#checkRate(turns));
  }

  #stage(unit: AcceptingUnit, signal: UserMessage, checkRate: (turns: number) => void): StartedTurn {
    const turnOf = (n: number) => unit.state.active.get(n) ?? this.context.store.turn(n);
    const known = this.#turnOfKey(signal);
    if (known !== undefined) return startedTurn(checkRepeated(turnOf(known), signal), true);
    const { replaces } = signal;
    const replacement = replaces && this.#replacement(unit.state, replaces, signal.caller);
    const replied = repliedMessage(signal.data.replyToMessageId, turnOf, unit.state.record);
    const begun = unit.state.turns - (unit.base?.turns ?? 0);
    checkRate(begun + 1);
    unit.stage([{ ...signal, ...defined({ replied, replacement }) }]);
    // In a stopped conversation the turn ends at once. A read here could fail although the message is committed.
    const turn = unit.commits.at(-1)?.transition.touched.get(unit.state.turns);
    if (turn === undefined) throw new Error("An accepted message has started a turn.");
    return startedTurn(turn, false);
  }

  /** Returns the turn that a message replaces, with what the new turn needs of it. Throws `CONFLICT` (REPLACE-2). */
  #replacement(state: ConversationState, replaces: Replaced, caller: Caller): Replacement {
    const { store } = this.context;
    const { kind, n } = replaces;
    const old = state.active.get(n) ?? store.turn(n);
    if (old === null) throw new Error(`The replaced turn ${n} is missing.`);
    const by = store.turns.supersededBy(n);
    checkReplaceable(state, old, by && turnId(by), caller);
    const [begun] = store.journal.backward(old.firstSeq, 1);
    const sessions = store.journal.headAt((begun?.seq ?? 1) - 1)?.sessions ?? {};
    checkSummaries(state, sessions);
    const isTaken = kind === "regenerates";
    const oldest = oldestVersion(old, (number) => store.turn(number));
    const first = Math.max(oldest, state.turns + 1 - MAX_NOTED_REPLACED);
    const numbers = Array.from({ length: Math.max(0, state.turns + 1 - first) }, (_, index) => first + index);
    const left = numbers.flatMap((number) => store.turn(number) ?? []);
    const skipped = isTaken ? takenItems(old, (number) => store.turn(number)) : new Map();
    return {
      ...replaces,
      sessions,
      taken: isTaken ? takenMoves(old) : { replies: [], operations: [], items: 1 },
      notice: noticeOf(left, skipped),
      notices: Object.fromEntries(
        state.record.agents.map(({ id }) => [
          id,
          noticeOf(
            left.filter(({ agentId }) => agentId === id),
            skipped,
          ),
        ]),
      ),
    };
  }

  /** Counts turns that a commit began. */
  count(turns: number): void {
    const prepaid = Math.min(turns, this.#prepaid);
    this.#prepaid -= prepaid;
    this.#take(turns - prepaid);
  }

  #take(turns: number): void {
    if (turns === 0 || this.#bucket === null) return;
    this.#bucket = takeToken(this.#bucket, turns, this.context.clock.now()).bucket;
  }

  #turnOfKey({ id, correlationId, caller }: UserMessage): number | undefined {
    return id === undefined ? undefined : this.context.store.turnOfKey(caller, id, correlationId);
  }

  /** Throws `RATE_LIMITED` if the bucket has not as many turns. */
  #checkRate(turns: number): void {
    const now = this.context.clock.now();
    let bucket = this.#bucket;
    for (let turn = 0; bucket !== null && turn < turns; turn++) {
      const taken = takeToken(bucket, 1, now);
      if (!taken.allowed) throw tooManyTurns(taken.retryAfter);
      ({ bucket } = taken);
    }
  }
}

function tooManyTurns(retryAfter: number): DramatisError {
  const message = `Too many turns in a short time. Try again in ${Math.ceil(retryAfter / 1000)} s.`;
  return new DramatisError("RATE_LIMITED", message, { retriable: true, retryAfter });
}
