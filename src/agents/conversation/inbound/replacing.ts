/** The requests that replace a turn: a new answer to its message, or an edited message. */
import { type EditTurn, editTurn, type RegenerateTurn, regenerateTurn } from "../../../protocol/requests.ts";
import type { StartedTurn } from "../../../protocol/signals.ts";
import { defined } from "../../../shared/defined.ts";
import type { Principal } from "../../../shared/principal.ts";
import { validateRequest } from "../../../shared/validation.ts";
import { type Replaced, replacedBy } from "../core/replacement.ts";
import type { UserMessage } from "../core/signals.ts";
import type { Turn } from "../core/turn.ts";
import type { ConversationQueries } from "../reads/queries.ts";
import type { ConversationAccess } from "./access.ts";

interface ReplacingContext {
  access: Pick<ConversationAccess, "state" | "checkSpeaker">;
  queries: Pick<ConversationQueries, "requireTurn">;
  runtime: { accept(signal: UserMessage): Promise<StartedTurn> };
}

export class Replacing {
  constructor(private readonly context: ReplacingContext) {}

  /** Starts a turn with a new answer to the message of a turn (REPLACE-3). Throws `NOT_FOUND`, `FORBIDDEN`, `CONFLICT` (REPLACE-2). */
  regenerate(principal: Principal, turnId: string, input: RegenerateTurn = {}): Promise<StartedTurn> {
    const { idempotencyKey } = validateRequest(regenerateTurn, input);
    return this.#replace(principal, turnId, "regenerates", ({ input: content, replyTo, inputTaint }) => ({
      content,
      ...defined({ idempotencyKey, replyToMessageId: replyTo, untrusted: inputTaint && true }),
    }));
  }

  /** Starts a turn with an edited message in place of a turn. Throws as `regenerate` does. */
  edit(principal: Principal, turnId: string, input: EditTurn): Promise<StartedTurn> {
    const body = validateRequest(editTurn, input);
    return this.#replace(principal, turnId, "edits", () => body);
  }

  #replace(
    principal: Principal,
    turnId: string,
    kind: Replaced["kind"],
    bodyOf: (old: Turn) => Pick<UserMessage["data"], "content"> & { idempotencyKey?: string },
  ): Promise<StartedTurn> {
    const { access, queries, runtime } = this.context;
    access.checkSpeaker(principal);
    const old = queries.requireTurn(access.state, turnId);
    const { output, tools, toolChoice, maxOutputTokens, singleCalls, budget } = old;
    const { idempotencyKey, ...body } = bodyOf(old);
    return runtime.accept({
      type: "conversation.user.message",
      ...defined({ id: idempotencyKey }),
      caller: { type: "user", userId: principal.subject },
      data: {
        ...body,
        to: old.agentId,
        ...defined({ output, tools: tools && [...tools], toolChoice, maxOutputTokens, singleCalls, budget }),
      },
      replaces: replacedBy(kind, old),
    });
  }
}
