/**
 * The results of runs and agents that are too large for their turns.
 *
 * LARGE-4  The output of a run and the answer of an agent follow LARGE-1 and LARGE-2, as the result of a tool. If an envelope has only the
 *          excerpt of a result, the conversation reads the whole result from its sender before it takes the envelope.
 */
import { excerptOf, isLarge, viewOfResult } from "../../attachments/large-result.ts";
import type { ResultKeeper } from "../../attachments/result-keeper.ts";
import type { ActorAddress } from "../../protocol/envelope.ts";
import { MAX_OUTPUT_BYTES } from "../../protocol/executor-api.ts";
import { resolveId, resultAttachmentId } from "../../protocol/ids.ts";
import type { ResultExcerpt, WholeResultApi } from "../../protocol/large-result.ts";
import type { RunCallAddress } from "../../protocol/run-call.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";
import type { Json, JsonObject } from "../../shared/json.ts";
import { NotNow } from "../base/mailbox/handlers.ts";
import { inlineBytes } from "./core/planning/results.ts";
import type { ConversationState } from "./core/state.ts";
import type { Turn } from "./core/turn.ts";

/** The parts outside of the actor. */
export interface LargeResultStores {
  keeper: Pick<ResultKeeper, "keep">;
  /** Finds the actor that sent an envelope. */
  sender(address: ActorAddress): Promise<WholeResultApi>;
}

export interface LargeResultsPorts {
  /** Absent if no result is stored. */
  stores: LargeResultStores | undefined;
  state(): ConversationState;
  exists(): boolean;
  /** Returns a turn, active or over; `null` for an unknown number. */
  turn(n: number): Turn | null;
}

export class LargeResults {
  constructor(private readonly ports: LargeResultsPorts) {}

  /** Returns the view of a result that the turn of its call has no room for; `undefined` if it has, or if no call waits for the result. */
  async viewOf(address: RunCallAddress, result: Json): Promise<JsonObject | undefined> {
    const waiting = this.#waiting(address);
    if (waiting === undefined) return undefined;
    const text = JSON.stringify(result);
    if (!isLarge(text, waiting.room)) return undefined;
    return this.#store(address, waiting.name, excerptOf(text), () => new TextEncoder().encode(text));
  }

  /** Returns the view of a result that its sender has; `undefined` if no call waits for the result. Throws `NotNow` if the sender does not answer. */
  async viewOfRemote(
    address: RunCallAddress,
    excerpt: ResultExcerpt,
    from: ActorAddress,
  ): Promise<JsonObject | undefined> {
    const waiting = this.#waiting(address);
    if (waiting === undefined) return undefined;
    try {
      return await this.#store(address, waiting.name, excerpt, async (sender) =>
        unwrap(await (await sender(from)).wholeResult(address)),
      );
    } catch (error) {
      if (!(error instanceof DramatisError) || error.retriable)
        throw new NotNow(`The result was not read: ${error}`);
      return viewOfResult(excerpt, { lost: "it was deleted." });
    }
  }

  /** Returns the call that takes the result of an attempt, also late (OP-6). A hook is no call. */
  #waiting({ operationId, attempt }: RunCallAddress) {
    const found = resolveId(operationId, "op", this.ports.turn);
    const operation = found?.turn.operations.find(({ item }) => item === found.item);
    if (found === null || operation?.attempt !== attempt) return undefined;
    const { status, effect, name } = operation;
    if (status === "cancelled") return effect === "once" ? { name, room: MAX_OUTPUT_BYTES } : undefined;
    return status === "dispatched" ? { name, room: inlineBytes(this.ports.state(), found.turn) } : undefined;
  }

  async #store(
    { operationId, attempt }: RunCallAddress,
    name: string,
    excerpt: ResultExcerpt,
    read: (sender: LargeResultStores["sender"]) => Uint8Array | Promise<Uint8Array>,
  ): Promise<JsonObject> {
    const { stores, state, exists } = this.ports;
    if (stores === undefined) return viewOfResult(excerpt, { lost: "this conversation stores no results." });
    const { tenant, id: conversationId } = state().record;
    const kept = await stores.keeper.keep(
      { tenant, conversationId },
      {
        // Each delivery of an envelope stores the same attachment.
        id: resultAttachmentId(operationId, attempt),
        name: `${name}.json`,
        size: excerpt.bytes,
        read: () => read(stores.sender),
        isDeleted: () => !exists(),
      },
    );
    return viewOfResult(excerpt, kept);
  }
}
