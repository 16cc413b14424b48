/**
 * Stops, resumes and the end, for all entry points of a conversation.
 *
 * STOP-4  All readers of a conversation, including operators, may stop it and its turns. Only principals that may speak in it may resume or
 *         end it. Its journal names the principal.
 */
import type { ConversationView, TurnView } from "../../../protocol/conversation-schemas.ts";
import { type StopOptions, stopRequest } from "../../../protocol/requests.ts";
import { defined } from "../../../shared/defined.ts";
import type { Principal } from "../../../shared/principal.ts";
import { validateRequest } from "../../../shared/validation.ts";
import type { ConversationState } from "../core/state.ts";
import type { SignalOrigin, Stop } from "../core/stop-signals.ts";
import type { Turn } from "../core/turn.ts";
import type { ConversationQueries } from "../reads/queries.ts";
import { conversationView } from "../reads/views.ts";
import type { ConversationAccess } from "./access.ts";

interface StopsContext {
  runtime: {
    readonly state: ConversationState;
    readonly changes: {
      cancelTurn(turn: Turn, stop: Stop): Promise<void>;
      cancel(stop: Stop): Promise<void>;
      resume(stop: Stop): Promise<void>;
      end(stop: Stop): Promise<void>;
    };
  };
  queries: ConversationQueries;
  access: Pick<ConversationAccess, "stateFor" | "checkSpeaker">;
}

export class Stops {
  constructor(private readonly context: StopsContext) {}

  /** Throws `INVALID_INPUT` for invalid options, `NOT_FOUND` for an unknown turn, `CONFLICT` for a turn that has already ended. */
  async cancelTurn(principal: Principal, turnId: string, options: StopOptions): Promise<TurnView> {
    const { runtime, queries } = this.context;
    const stop = this.#stop(principal, options);
    await runtime.changes.cancelTurn(queries.requireTurn(runtime.state, turnId), stop);
    return queries.turn(runtime.state, turnId);
  }

  /** Throws `INVALID_INPUT` for invalid options. */
  async cancel(principal: Principal, options: StopOptions, origin?: SignalOrigin): Promise<ConversationView> {
    await this.context.runtime.changes.cancel({ ...this.#stop(principal, options), ...defined({ origin }) });
    return conversationView(this.context.runtime.state);
  }

  /**
   * Throws `INVALID_INPUT` for invalid options, `FORBIDDEN` for principals that may not speak, `NOT_CANCELLED` if the conversation is
   * not stopped.
   */
  async resume(principal: Principal, options: StopOptions, origin?: SignalOrigin): Promise<ConversationView> {
    this.context.access.checkSpeaker(principal);
    await this.context.runtime.changes.resume({ ...this.#stop(principal, options), ...defined({ origin }) });
    return conversationView(this.context.runtime.state);
  }

  /** Throws `INVALID_INPUT` for invalid options, and `FORBIDDEN` for principals that may not speak. */
  async complete(principal: Principal, options: StopOptions): Promise<ConversationView> {
    this.context.access.checkSpeaker(principal);
    await this.context.runtime.changes.end(this.#stop(principal, options));
    return conversationView(this.context.runtime.state);
  }

  #stop(principal: Principal, options: StopOptions): Stop {
    this.context.access.stateFor(principal);
    return { caller: { type: "user", userId: principal.subject }, ...validateRequest(stopRequest, options) };
  }
}
