/** A run of a workflow, live. */
import type { RetryRun } from "../../protocol/coordinator-api.ts";
import type { RunEvent, RunView } from "../../protocol/run-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { RUN_ID } from "../../shared/identifiers.ts";
import type { Json } from "../../shared/json.ts";
import type { DramatisClient } from "../api.ts";
import { runtimeClock } from "../clock.ts";
import { asClientError, DramatisClientError, wrongInput } from "../errors.ts";
import type { StopRequest } from "../options.ts";
import { whenBack } from "../reconnect.ts";
import type { ConnectionStatus } from "../state.ts";
import { announceAnswer } from "./answers.ts";
import { isRefusal, LiveStore } from "./live-store.ts";
import { Shared, type SharedOptions, useShared } from "./use-shared.ts";

interface RunState {
  /** Absent until it is loaded. */
  run?: RunView | undefined;
  /** The entries of the run's journal, oldest first. They arrive before `run` changes. */
  events: readonly RunEvent[];
  /** The state of the stream of events. `closed` after the end of the run. */
  status: Exclude<ConnectionStatus, "unauthorized">;
  /** The failure of the last request or of the stream. The known run stays, except after a refusal. */
  error?: DramatisClientError | undefined;
}

export interface UseRunResult extends Omit<RunState, "error" | "run"> {
  /** Absent until it is loaded. */
  run?: RunView;
  error?: DramatisClientError;
  /** `true` once the run has ended. A failed run may continue after `retry`. */
  ended: boolean;
  /** Loads the run again. The hook does this after events, and when the reader returns to the page. */
  refresh(): void;
  /** Answers a gate of `run.gates` with JSON that fits its `schema`. Fails with `CONFLICT` if the gate has another answer. */
  answer(operationId: string, answer: Json): Promise<void>;
  /** Cancels the run. Fails with `CONFLICT` if the run has already ended. */
  cancel(options?: StopRequest): Promise<void>;
  /** Retries the failed run, as `client.runs.retry` does, and follows it again. */
  retry(options?: RetryRun): Promise<void>;
}

/** Milliseconds between two renderings while events arrive. */
const RENDER_MS = 60;
/** Events that change no gate and no status load the run again after this time, in milliseconds. */
const RELOAD_MS = 3_000;
/** Wait after a request that failed and may succeed later, in milliseconds. */
const RETRY_MS = 5_000;

const IDLE: RunState = { run: undefined, events: [], status: "connecting", error: undefined };

class LiveRun extends LiveStore<RunState> {
  readonly #wrongId: DramatisClientError | undefined;
  #life = new AbortController();
  #stream = new AbortController();
  #isFollowing = false;
  #isLoading = false;
  /** The run has changed during the request for it. */
  #isStale = false;
  /** Events that are not rendered yet. */
  #arrived: RunEvent[] = [];
  #newest: RunEvent | undefined;
  #endRender: (() => void) | undefined;
  #endReload: (() => void) | undefined;

  constructor(
    private readonly client: DramatisClient,
    private readonly id: string,
  ) {
    const wrongId = RUN_ID.test(id) ? undefined : wrongInput("INVALID_INPUT", `"${id}" is no id of a run.`);
    super(wrongId === undefined ? IDLE : { ...IDLE, status: "closed", error: wrongId });
    this.#wrongId = wrongId;
  }

  readonly refresh = (): void => {
    if (!this.isUsed) return;
    if (this.#isLoading) this.#isStale = true;
    else if (this.#wrongId === undefined) void this.#load(this.#life.signal);
  };

  readonly answer = async (operationId: string, answer: Json): Promise<void> => {
    await this.#act(() => this.client.runs.answer(this.id, operationId, answer));
    announceAnswer(operationId);
  };

  readonly cancel = (options?: StopRequest): Promise<void> =>
    this.#act(() => this.client.runs.cancel(this.id, options));

  readonly retry = (options?: RetryRun): Promise<void> =>
    this.#act(() => this.client.runs.retry(this.id, options));

  protected start(): () => void {
    if (this.#wrongId !== undefined) return () => {};
    this.#life = new AbortController();
    this.refresh();
    const leave = whenBack(() => {
      if (this.getSnapshot().status === "reconnecting") this.#follow();
      this.refresh();
    });
    return () => {
      leave();
      this.#life.abort();
      this.#forget();
      this.#isLoading = this.#isStale = false;
    };
  }

  /** Ends the stream, and drops its events. */
  #forget(): void {
    this.#stream.abort();
    this.#endRender?.();
    this.#endReload?.();
    this.#isFollowing = false;
    this.#arrived = [];
    this.#newest = this.#endRender = this.#endReload = undefined;
  }

  protected override fail(error: DramatisClientError): void {
    if (isRefusal(error)) this.#forget();
    super.fail(error);
  }

  async #act(request: () => Promise<RunView>): Promise<void> {
    if (this.#wrongId !== undefined) throw this.#wrongId;
    const { signal } = this.#life;
    const run = await request();
    // Without a known run, the caller may not read it.
    if (!signal.aborted && this.getSnapshot().run !== undefined) this.#take(run);
  }

  async #load(signal: AbortSignal): Promise<void> {
    this.#isLoading = true;
    this.#isStale = false;
    this.#endReload?.();
    this.#endReload = undefined;
    const found = await this.client.runs.get(this.id, { signal }).catch(asClientError);
    if (signal.aborted) return;
    this.#isLoading = false;
    if (!(found instanceof DramatisClientError)) this.#take(found);
    else {
      this.fail(found);
      if (found.retriable) this.#reloadAfter(Math.max(RETRY_MS, found.retryAfter ?? 0));
    }
    if (this.#isStale) this.refresh();
  }

  #take(run: RunView): void {
    const isOlder = run.seq < (this.getSnapshot().run?.seq ?? 0);
    this.change({ error: undefined, ...(!isOlder && { run }) });
    const hasMore = run.seq > (this.#newest?.seq ?? 0) || !isOver(run);
    if (hasMore && !this.#isFollowing) this.#follow();
  }

  #reloadAfter(milliseconds: number): void {
    this.#endReload ??= runtimeClock.timer(milliseconds, this.refresh);
  }

  #follow(): void {
    this.#stream.abort();
    this.#stream = new AbortController();
    this.#isFollowing = true;
    void this.#read(this.#stream.signal);
  }

  async #read(signal: AbortSignal): Promise<void> {
    const onConnection = (isOpen: boolean) => {
      const lost = END.test(this.#newest?.type ?? "") ? "closed" : "reconnecting";
      if (!signal.aborted) this.change({ status: isOpen ? "open" : lost });
    };
    const from = this.#newest?.seq ?? 0;
    try {
      for await (const event of this.client.runs.follow(this.id, { from, signal, onConnection })) {
        if (signal.aborted) return;
        this.#add(event);
      }
      if (!signal.aborted) this.change({ status: "closed" });
    } catch (cause) {
      if (signal.aborted) return;
      this.change({ status: "closed" });
      this.fail(asClientError(cause));
    }
    if (!signal.aborted) this.#isFollowing = false;
  }

  #add(event: RunEvent): void {
    this.#newest = event;
    this.#arrived.push(event);
    this.#endRender ??= runtimeClock.timer(RENDER_MS, () => this.#render());
  }

  #render(): void {
    this.#endRender = undefined;
    const { run, events } = this.getSnapshot();
    const arrived = this.#arrived.splice(0);
    this.change({ events: [...events, ...arrived] });
    const fresh = arrived.filter(({ seq }) => seq > (run?.seq ?? 0));
    if (fresh.some((event) => changesGates(event, run))) this.refresh();
    else if (fresh.length > 0) this.#reloadAfter(RELOAD_MS);
  }
}

/** The entry that ends a run. */
const END = /^workflow\.(?:completed|failed|cancelled|timed_out)$/;

/** Reports whether an event changes the status of the run, or opens or closes a gate. */
function changesGates({ type, token }: RunEvent, run: RunView | undefined): boolean {
  if (/^(?:gate|workflow)\./.test(type)) return true;
  return token !== undefined && run?.gates.some((gate) => gate.token === token) === true;
}

function isOver({ status }: RunView): boolean {
  return status !== "running" && status !== "waiting";
}

const shared = new Shared((client, id) => new LiveRun(client, id));

/**
 * Follows the run with this id: its state, its events, and the gates that wait for a person.
 *
 * @example
 * function Run({ id }: { id: string }) {
 *   const { run, events, answer, cancel, ended } = useRun(id);
 *   return (
 *     <>
 *       <p>{run?.status}: {events.length} events</p>
 *       {run?.gates.map(({ operationId, prompt }) => (
 *         <button key={operationId} onClick={() => answer(operationId, { approved: true })}>
 *           Approve: {prompt}
 *         </button>
 *       ))}
 *       {!ended && <button onClick={() => cancel()}>Cancel</button>}
 *     </>
 *   );
 * }
 */
export function useRun(id: string, options: SharedOptions = {}): UseRunResult {
  const store = useShared(shared, options, id);
  const { run, events, status, error } = store.getSnapshot();
  const { refresh, answer, cancel, retry } = store;
  const ended = run !== undefined && isOver(run);
  return { ...defined({ run, error }), events, status, ended, refresh, answer, cancel, retry };
}
