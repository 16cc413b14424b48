/**
 * The results of runs and agents that are too large for their turns.
 *
 * LARGE-4  The output of a run and the answer of an agent follow LARGE-1 and LARGE-2, as the result of a tool. If an envelope has only the
 *          excerpt of a result, the conversation reads the whole result from its sender before it takes the envelope.
 */
import { excerptOf, isLarge, viewOfResult } from "../../../attachments/large-result.ts";
import type { CallAddress } from "../../../protocol/call-address.ts";
import type { ActorAddress } from "../../../protocol/envelope.ts";
import { MAX_OUTPUT_BYTES } from "../../../protocol/executor-api.ts";
import { resolveId, resultAttachmentId } from "../../../protocol/ids.ts";
import type { ResultExcerpt } from "../../../protocol/large-result.ts";
import { DramatisError, unwrap } from "../../../shared/errors.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { NotNow } from "../../base/mailbox/handlers.ts";
import type { LargeResultStores, RuntimeContext, StoredConversation } from "../context.ts";
import { inlineBytes } from "../core/planning/results.ts";

export class LargeResults {
  constructor(
    private readonly context: Pick<RuntimeContext, "resultStores" | "isErased">,
    private readonly runtime: StoredConversation,
  ) {}

  /** Returns the view of a result that the turn of its call has no room for; `undefined` if it has, or if no call waits for the result. */
  async viewOf(address: CallAddress, result: Json): Promise<JsonObject | undefined> {
    const waiting = await this.#waiting(address);
    if (waiting === undefined) return undefined;
    const text = JSON.stringify(result);
    if (!isLarge(text, waiting.maxBytes)) return undefined;
    return this.#store(address, waiting.name, excerptOf(text), () => new TextEncoder().encode(text));
  }

  /** Returns the view of a result that its sender has; `undefined` if no call waits for the result. Throws `NotNow` if the sender does not answer. */
  async viewOfRemote(
    address: CallAddress,
    excerpt: ResultExcerpt,
    from: ActorAddress,
  ): Promise<JsonObject | undefined> {
    const waiting = await this.#waiting(address);
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
  async #waiting({ operationId, attempt }: CallAddress) {
    if (await this.context.isErased(operationId)) return undefined;
    const found = resolveId(operationId, "op", this.runtime.turn);
    const operation = found?.turn.operations.find(({ item }) => item === found.item);
    if (found === null || operation?.attempt !== attempt) return undefined;
    const { status, effect, name } = operation;
    if (status === "cancelled") return effect === "once" ? { name, maxBytes: MAX_OUTPUT_BYTES } : undefined;
    return status === "dispatched"
      ? { name, maxBytes: inlineBytes(this.runtime.state, found.turn) }
      : undefined;
  }

  async #store(
    { operationId, attempt }: CallAddress,
    name: string,
    excerpt: ResultExcerpt,
    read: (sender: LargeResultStores["sender"]) => Uint8Array | Promise<Uint8Array>,
  ): Promise<JsonObject> {
    const { context, runtime } = this;
    const { keeper, sender } = context.resultStores;
    const { tenant, id: conversationId } = runtime.state.record;
    const kept = await keeper.keep(
      { tenant, conversationId },
      {
        // Each delivery of an envelope stores the same attachment.
        id: resultAttachmentId(operationId, attempt),
        name: `${name}.json`,
        size: excerpt.bytes,
        read: () => read(sender),
        isDeleted: async () => !runtime.exists || (await context.isErased(operationId)),
      },
    );
    return viewOfResult(excerpt, kept);
  }
}
