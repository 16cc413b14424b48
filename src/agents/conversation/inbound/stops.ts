/**
 * Stops, resumes and the end, for all entrances of a conversation.
 *
 * STOP-4  Whoever may read a conversation may stop it and its turns, operators included; only those who may speak in it resume it or
 *         end it for good.
 *         Its journal names who did.
 */
import type { StopOptions } from "../../../protocol/conversation-api.ts";
import type { ConversationView, TurnView } from "../../../protocol/views.ts";
import { defined } from "../../../shared/defined.ts";
import type { Principal } from "../../../shared/principal.ts";
import { validate } from "../../../shared/validation.ts";
import type { ConversationState } from "../core/state.ts";
import type { SignalOrigin, Stop } from "../core/stop-signals.ts";
import type { Turn } from "../core/turn.ts";
import type { ConversationQueries } from "../reads/queries.ts";
import { conversationView } from "../reads/views.ts";
import { stopSchema } from "./requests.ts";

export interface StopsPorts {
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
  /** Throws `NOT_FOUND` unless the conversation exists and this principal may read it. */
  stateFor(principal: Principal): ConversationState;
  /** As `stateFor`. Also throws `FORBIDDEN` unless this principal may speak in the conversation. */
  checkSpeaker(principal: Principal): void;
}

export class Stops {
  constructor(private readonly ports: StopsPorts) {}

  /** Throws `INVALID_INPUT` for invalid options, `NOT_FOUND` for an unknown turn, `CONFLICT` for one that ended by itself. */
  async cancelTurn(principal: Principal, turnId: string, options: StopOptions): Promise<TurnView> {
    const { runtime, queries } = this.ports;
    const stop = this.#stop(principal, options);
    await runtime.changes.cancelTurn(queries.requireTurn(runtime.state, turnId), stop);
    return queries.turn(runtime.state, turnId);
  }

  /** Throws `INVALID_INPUT` for invalid options. */
  async cancel(principal: Principal, options: StopOptions, origin?: SignalOrigin): Promise<ConversationView> {
    await this.ports.runtime.changes.cancel({ ...this.#stop(principal, options), ...defined({ origin }) });
    return conversationView(this.ports.runtime.state);
  }

  /**
   * Throws `INVALID_INPUT` for invalid options, `FORBIDDEN` for those who may not speak, `NOT_CANCELLED` if the conversation is
   * not stopped.
   */
  async resume(principal: Principal, options: StopOptions, origin?: SignalOrigin): Promise<ConversationView> {
    this.ports.checkSpeaker(principal);
    await this.ports.runtime.changes.resume({ ...this.#stop(principal, options), ...defined({ origin }) });
    return conversationView(this.ports.runtime.state);
  }

  /** Throws `INVALID_INPUT` for invalid options, `FORBIDDEN` for those who may not speak. */
  async complete(principal: Principal, options: StopOptions): Promise<ConversationView> {
    this.ports.checkSpeaker(principal);
    await this.ports.runtime.changes.end(this.#stop(principal, options));
    return conversationView(this.ports.runtime.state);
  }

  #stop(principal: Principal, options: StopOptions): Stop {
    this.ports.stateFor(principal);
    return { caller: { type: "user", userId: principal.subject }, ...validate(stopSchema, options) };
  }
}
