/**
 * A session of an editor: one conversation, its stream of frames, its prompts and its requests for approval.
 *
 * ACP-9   A prompt has one key. The message is sent again with this key after a lost connection, so it starts one turn.
 * ACP-10  The session reads the conversation only while a turn is active or a prompt waits, and for `LINGER_MS` after. The next stream continues
 *         after the last frame, so each frame becomes updates once.
 * ACP-11  The editor is asked only about calls that the user of the token may answer. If another person answers first, the request is
 *         cancelled.
 * ACP-12  If the editor leaves, the turn continues. `session/cancel` stops the turn.
 * ACP-14  An approval answers a question of a server without fields and without an address. Other questions have only the option to deny, and
 *         the text of the request says where to answer.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type {
  AgentContext,
  ContentBlock,
  PromptResponse,
  RequestPermissionRequest,
  SessionUpdate,
} from "@agentclientprotocol/sdk";
import { DramatisClientError } from "../client/errors.ts";
import { newestVersions } from "../client/newest-versions.ts";
import { waitAfterLoss } from "../client/reconnect.ts";
import { contentOf, inlineMedia, type Prompt, promptOf } from "../compat/acp/prompt.ts";
import { diffsOf, kindOf, textContent } from "../compat/acp/tool-call.ts";
import { type Ask, type PromptEnd, SessionEncoder, stopReasonOf } from "../compat/acp/updates.ts";
import { mayAnswer, whoMayAnswer } from "../protocol/approval.ts";
import { type ElicitationView, isConfirmation } from "../protocol/elicitation.ts";
import type { Frame } from "../protocol/frames.ts";
import type { StartedTurn } from "../protocol/signals.ts";
import type { MediaPart } from "../shared/content.ts";
import { defined } from "../shared/defined.ts";
import { errorText } from "../shared/errors.ts";
import { isPlainObject } from "../shared/json.ts";
import type { Principal } from "../shared/principal.ts";
import { rpcError, rpcErrorOf } from "./acp-errors.ts";
import type { Cli } from "./command.ts";

/** Time for a request while the server is away, in milliseconds. */
const PATIENCE_MS = 30_000;
/** Time of the stream after the last turn, in milliseconds. The title of a conversation arrives after the turn. */
const LINGER_MS = 10_000;
/** The longest silence in the replay of a history, in milliseconds. Frames after a longer silence become updates later. */
const SILENCE_MS = 3_000;

/** Entries of a journal that are frames with updates. */
const SHOWN =
  "turn.started,turn.waiting,turn.completed,turn.failed,message.user,message.completed,tool.requested,tool.completed,tool.failed,tool.cancelled,approval.requested,approval.resolved";

const OPTIONS = [
  { optionId: "allow", name: "Approve", kind: "allow_once" },
  { optionId: "reject", name: "Deny", kind: "reject_once" },
] as const;

export interface SessionPorts {
  cli: Pick<Cli, "client" | "url" | "note">;
  editor: AgentContext;
  me: Pick<Principal, "subject" | "roles">;
}

/** A prompt that has no answer yet. */
interface Waiting {
  turnId: string | undefined;
  isCancelled: boolean;
  settle: (end: PromptEnd) => void;
  fail: (error: unknown) => void;
}

/** A history that is not complete. */
interface History {
  /** The last entry of the history. */
  until: number;
  frames: Frame[];
  /** Notes that a frame has arrived. */
  heard: () => void;
  done: () => void;
  fail: (error: unknown) => void;
}

export class AcpSession {
  readonly #ports: SessionPorts;
  readonly #id: string;
  readonly #encoder: SessionEncoder;
  readonly #prompts = new Set<Waiting>();
  /** The requests of the editor that have no answer, by operation. */
  readonly #asking = new Map<string, AbortController>();
  #seq = 0;
  #stream: AbortController | null = null;
  #lingers: NodeJS.Timeout | undefined;
  #history: History | null = null;

  constructor(ports: SessionPorts, id: string, agentId: string) {
    this.#ports = ports;
    this.#id = id;
    this.#encoder = new SessionEncoder(agentId);
  }

  /** Reads the history, and sends it to the editor if `replays`. A turn that is active continues to send updates. */
  async load(replays: boolean): Promise<void> {
    const until = await this.#lastShown();
    if (until === 0) return;
    const { promise, resolve: done, reject: fail } = Promise.withResolvers<void>();
    let silence: NodeJS.Timeout | undefined;
    const waits = (milliseconds: number) => {
      clearTimeout(silence);
      silence = setTimeout(done, milliseconds);
    };
    const history: History = { until, frames: [], heard: () => waits(SILENCE_MS), done, fail };
    this.#history = history;
    waits(PATIENCE_MS);
    this.#follow();
    try {
      await promise;
    } finally {
      clearTimeout(silence);
      this.#history = null;
    }
    // The stream goes on, so all updates take their place before its next frame.
    const updates = newestTurns(history.frames).flatMap((frame) => this.#encoder.push(frame));
    const sent = replays ? updates.map((update) => this.#update(update)) : [];
    this.#settle();
    await Promise.all(sent);
  }

  /** Returns the number of the newest entry that a history shows; 0 without such an entry. */
  async #lastShown(): Promise<number> {
    let cursor: string | undefined;
    do {
      const page = { order: "desc", limit: 1, type: SHOWN, ...defined({ cursor }) } as const;
      const { entries, nextCursor } = await this.#ports.cli.client.conversations.journal(this.#id, page);
      const [entry] = entries;
      if (entry !== undefined) return entry.seq;
      cursor = nextCursor;
    } while (cursor !== undefined);
    return 0;
  }

  /** Sends a prompt and waits for the end of its turn. Throws a `RequestError`, also if the turn fails. */
  async prompt(blocks: readonly ContentBlock[]): Promise<PromptResponse> {
    const { promise, resolve: settle, reject: fail } = Promise.withResolvers<PromptEnd>();
    const waiting: Waiting = { turnId: undefined, isCancelled: false, settle, fail };
    this.#prompts.add(waiting);
    // The stream may be lost before the message is sent.
    promise.catch(() => undefined);
    try {
      const { turnId, status } = await this.#send(promptOf(blocks));
      waiting.turnId = turnId;
      this.#follow();
      if (status === "failed") settle(await this.#refusal(turnId));
      if (waiting.isCancelled) await this.#stop(turnId);
      this.#settle();
      return await this.#response(turnId, await promise);
    } catch (error) {
      throw rpcErrorOf(error, this.#ports.cli.url);
    } finally {
      this.#prompts.delete(waiting);
      this.#settle();
    }
  }

  /** Stops the turns of the waiting prompts, or all active turns if no prompt waits. */
  async cancel(): Promise<void> {
    const prompts = [...this.#prompts];
    for (const prompt of prompts) prompt.isCancelled = true;
    const started = prompts.flatMap(({ turnId }) => (turnId === undefined ? [] : [turnId]));
    const turns = prompts.length === 0 ? [...this.#encoder.active] : started;
    await Promise.all(
      turns.map((turnId) =>
        this.#stop(turnId).catch((error: unknown) => {
          this.#ports.cli.note(
            `${turnId} was not stopped: ${rpcErrorOf(error, this.#ports.cli.url).message}`,
          );
          for (const prompt of this.#prompts) if (prompt.turnId === turnId) prompt.fail(error);
        }),
      ),
    );
  }

  /** A prompt has no answer yet. */
  get isBusy(): boolean {
    return this.#prompts.size > 0;
  }

  /** Ends the stream, and leaves the turns. */
  leave(): void {
    clearTimeout(this.#lingers);
    for (const request of this.#asking.values()) request.abort();
    this.#stream?.abort();
  }

  /** Sends the message of a prompt (ACP-9). Returns its turn. */
  async #send(prompt: Prompt): Promise<Pick<StartedTurn, "turnId" | "status">> {
    const content = contentOf(prompt, inlineMedia(prompt) ?? (await this.#upload(prompt)));
    const idempotencyKey = crypto.randomUUID();
    this.#encoder.sent(idempotencyKey);
    const { untrusted } = prompt;
    const input = { content, idempotencyKey, ...defined({ untrusted }) };
    return this.#again(() => this.#ports.cli.client.turns.start(this.#id, input));
  }

  async #upload({ media }: Prompt): Promise<MediaPart[]> {
    const { attachments } = this.#ports.cli.client;
    const parts: MediaPart[] = [];
    for (const { type, data, mediaType, name } of media) {
      const file = new Blob([Buffer.from(data, "base64")], { type: mediaType });
      const { url } = await this.#again(() => attachments.upload(this.#id, file, defined({ name })));
      parts.push({ type, url, mediaType, ...defined({ name }) });
    }
    return parts;
  }

  /** Returns the end of a turn that failed at once: the conversation is stopped, or its budget is used up. */
  async #refusal(turnId: string): Promise<PromptEnd> {
    const { error } = await this.#again(() => this.#ports.cli.client.turns.get(this.#id, turnId));
    return error === undefined ? { type: "finished" } : { type: "failed", error };
  }

  async #stop(turnId: string): Promise<void> {
    try {
      await this.#again(() => this.#ports.cli.client.turns.cancel(this.#id, turnId));
    } catch (error) {
      // The turn has already ended.
      if (!(error instanceof DramatisClientError) || error.code !== "CONFLICT") throw error;
    }
  }

  async #response(turnId: string, end: PromptEnd): Promise<PromptResponse> {
    switch (end.type) {
      case "cancelled":
        return { stopReason: "cancelled" };
      case "waits":
        return { stopReason: "end_turn" };
      case "failed": {
        const { code, message } = end.error;
        throw rpcError(code, `${code}: ${message} See: dramatis inspect ${this.#id} ${turnId}`);
      }
      case "finished": {
        const { moves } = await this.#again(() => this.#ports.cli.client.turns.get(this.#id, turnId));
        const raw = moves.findLast((move) => move.raw !== undefined)?.raw;
        return { stopReason: stopReasonOf(isPlainObject(raw) ? raw.finishReason : undefined) };
      }
    }
  }

  /** Repeats a request while the server is away, for at most `PATIENCE_MS`. */
  async #again<Value>(request: () => Promise<Value>): Promise<Value> {
    const begin = Date.now();
    for (;;) {
      try {
        return await request();
      } catch (error) {
        const lostFor = Date.now() - begin;
        const isPassing = error instanceof DramatisClientError && error.retriable && lostFor < PATIENCE_MS;
        if (!isPassing) throw error;
        await sleep(Math.max(error.retryAfter ?? 0, waitAfterLoss(lostFor, Math.random())));
      }
    }
  }

  /** Opens the stream of frames, unless it is open (ACP-10). */
  #follow(): void {
    if (this.#stream !== null) return;
    const stream = new AbortController();
    this.#stream = stream;
    const { signal } = stream;
    const read = async () => {
      const frames = this.#ports.cli.client.conversations.follow(this.#id, { from: this.#seq, signal });
      for await (const frame of frames) {
        await this.#take(frame);
        if (signal.aborted) return;
      }
    };
    read()
      .catch((error: unknown) => {
        if (!signal.aborted) this.#lost(error);
      })
      .finally(() => {
        this.#stream = null;
        // A prompt that began while the stream ended.
        if (this.#prompts.size > 0 && signal.aborted) this.#follow();
      });
  }

  async #take(frame: Frame): Promise<void> {
    if (frame.seq !== undefined) this.#seq = frame.seq;
    const history = this.#history;
    if (history !== null) {
      history.frames.push(frame);
      history.heard();
      if (frame.seq !== undefined && frame.seq >= history.until) history.done();
      return;
    }
    for (const update of this.#encoder.push(frame)) await this.#update(update);
    this.#settle();
  }

  /** Ends prompts, asks about calls, and closes the stream, as the state of the conversation requires. */
  #settle(): void {
    for (const { turnId, settle } of this.#prompts) {
      const end = turnId === undefined ? undefined : this.#encoder.endOf(turnId);
      if (end !== undefined) settle(end);
    }
    for (const [id, request] of this.#asking) {
      if (this.#encoder.asks.has(id)) continue;
      this.#asking.delete(id);
      request.abort();
    }
    for (const [id, ask] of this.#encoder.asks) if (!this.#asking.has(id)) this.#ask(ask);
    clearTimeout(this.#lingers);
    if (this.#prompts.size === 0 && this.#encoder.active.size === 0)
      this.#lingers = setTimeout(() => this.#stream?.abort(), LINGER_MS);
  }

  #lost(error: unknown): void {
    this.#ports.cli.note(`The stream of ${this.#id} ended: ${errorText(error)}`);
    this.#history?.fail(error);
    for (const { fail } of this.#prompts) fail(error);
  }

  #ask(ask: Ask): void {
    const { editor, cli, me } = this.#ports;
    const { operationId: toolCallId, title, name, input, elicitation } = ask;
    const request = new AbortController();
    this.#asking.set(toolCallId, request);
    const explain = (text: string) =>
      this.#update({ sessionUpdate: "tool_call_update", toolCallId, content: [textContent(text)] });
    const decide = async () => {
      if (!mayAnswer(ask, me, true))
        return explain(`The call waits for an approval. ${whoMayAnswer(ask.rule)}`);
      const question =
        elicitation === undefined ? [] : [textContent(this.#questionText(toolCallId, elicitation))];
      const content = [...question, ...diffsOf(name, input)];
      const shown = { toolCallId, title, kind: kindOf(name), status: "pending", rawInput: input } as const;
      const toolCall = { ...shown, ...(content.length > 0 && { content }) };
      const mayApprove = elicitation === undefined || isConfirmation(elicitation);
      const options = OPTIONS.filter(({ optionId }) => mayApprove || optionId === "reject");
      const params: RequestPermissionRequest = { sessionId: this.#id, toolCall, options };
      const { outcome } = await editor.request("session/request_permission", params, {
        cancellationSignal: request.signal,
        stopWaitingOnCancel: true,
      });
      if (outcome.outcome === "cancelled" || request.signal.aborted) return;
      const approved = outcome.optionId === "allow";
      const round = elicitation && { round: elicitation.round, ...(approved && { values: {} }) };
      const answer = { approved, ...round };
      await this.#again(() => cli.client.operations.resolveApproval(this.#id, toolCallId, answer));
    };
    decide().catch(async (error: unknown) => {
      if (request.signal.aborted) return;
      const { message } = rpcErrorOf(error, cli.url);
      cli.note(`The answer to ${toolCallId} has failed: ${message}`);
      await explain(`The answer has failed. ${message}`).catch(() => undefined);
    });
  }

  /** Returns the question of a server as a quote, with the places that take an answer which the editor cannot give (ACP-14). */
  #questionText(operationId: string, question: ElicitationView): string {
    const { message, host, round, schema } = question;
    const texts = [`The server of the tool asks:\n\n${message.replaceAll(/^/gm, "> ")}`];
    if (host !== undefined) texts.push(`It wants you to open an address at ${host}.`);
    if (!isConfirmation(question)) {
      const values = schema === undefined ? "'{}'" : "JSON";
      const command = `dramatis approve ${this.#id} ${operationId} --round ${round} --values ${values}`;
      texts.push(`Answer in the console at ${this.#ports.cli.url}/c/${this.#id}, or run: ${command}`);
    }
    return texts.join("\n\n");
  }

  #update(update: SessionUpdate): Promise<void> {
    return this.#ports.editor.notify("session/update", { sessionId: this.#id, update });
  }
}

/** Returns the frames without the turns that later turns have replaced. */
function newestTurns(frames: readonly Frame[]): Frame[] {
  const versions = frames.map((frame) => {
    const { regenerates, edits } = frame.type === "turn.started" ? frame.data : {};
    return { frame, turnId: frame.turnId ?? "", ...defined({ regenerates, edits }) };
  });
  return newestVersions(versions).map(({ frame }) => frame);
}
