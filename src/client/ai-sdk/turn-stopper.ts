/**
 * Stops turns for the AI SDK's `Chat`: an abort of a request's signal stops the turn that the request streams.
 *
 * UISTOP-1  An abort stops the turn even before its stream begins: the request continues until the turn is known. The reader does not wait
 *           for it.
 * UISTOP-2  A turn continues if its stream ends or breaks, or if its reader leaves. It also continues if another resume of the same chat
 *           replaces a resume.
 */
import { TURN_HEADER } from "../../protocol/frames.ts";
import type { DramatisClient } from "../api.ts";
import { runtimeClock } from "../clock.ts";
import { DramatisClientError } from "../errors.ts";

/** The waits before each further attempt of a stop that did not arrive, in milliseconds. */
const WAITS_MS = [500, 2_000, 8_000];

export interface ChatRequest {
  chatId: string;
  conversationId: string;
  abortSignal: AbortSignal | undefined;
}

export class TurnStopper {
  readonly #conversations = new WeakMap<AbortSignal, string>();
  /** The newest resume of each chat. */
  readonly #resumes = new Map<string, AbortSignal>();
  readonly #replaced = new WeakSet<AbortSignal>();

  constructor(
    private readonly turns: Pick<DramatisClient["turns"], "cancel">,
    private readonly send: typeof fetch,
  ) {}

  /** Records a request before it is sent. Call it when the chat calls, without waiting for anything. */
  begin({ chatId, conversationId, abortSignal }: ChatRequest, isResume: boolean): void {
    if (abortSignal === undefined) return;
    this.#conversations.set(abortSignal, conversationId);
    if (!isResume) return;
    const before = this.#resumes.get(chatId);
    if (before !== undefined) this.#replaced.add(before);
    this.#resumes.set(chatId, abortSignal);
  }

  /** A `fetch` with a signal that stops the turn of the response. */
  readonly fetch: typeof fetch = async (input, init) => {
    const signal = init?.signal ?? undefined;
    const conversationId = signal && this.#conversations.get(signal);
    if (signal === undefined || conversationId === undefined) return this.send(input, init);
    signal.throwIfAborted();
    const connection = new AbortController();
    const response = this.send(input, { ...init, signal: connection.signal });
    const aborted = new Promise<never>((_, reject) => {
      const onAbort = () => {
        reject(signal.reason);
        void this.#stop(response, signal, conversationId).finally(() => connection.abort());
      };
      signal.addEventListener("abort", onAbort, { once: true });
    });
    return Promise.race([response, aborted]);
  };

  async #stop(pending: Promise<Response>, signal: AbortSignal, conversationId: string): Promise<void> {
    // A chat that resumes again aborts its former resume first, and calls in the same task.
    await wait(0);
    if (this.#replaced.has(signal)) return;
    const response = await pending.catch(() => null);
    const turnId = response?.headers.get(TURN_HEADER) ?? null;
    if (turnId === null) return;
    for (const again of [...WAITS_MS, null]) {
      const error: unknown = await this.turns.cancel(conversationId, turnId).then(
        () => null,
        (reason: unknown) => reason,
      );
      if (error === null || codeOf(error) === "CONFLICT") return;
      if (!(error instanceof DramatisClientError && error.retriable) || again === null) {
        console.error(`The turn ${turnId} could not be stopped.`, error);
        return;
      }
      await wait(again);
    }
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof DramatisClientError ? error.code : undefined;
}

function wait(milliseconds: number): Promise<void> {
  return new Promise((resolve) => void runtimeClock.timer(milliseconds, resolve));
}
