/**
 * The `Coordinator` actor: one run of a workflow.
 *
 * RUNDOOR-1  A run is visible to the principal that started it, and to operators and administrators of its tenant. To others it does not
 *            exist.
 * RUNDOOR-2  Repeating a start with its key and content answers the same run; with other content it is `IDEMPOTENCY_CONFLICT`.
 * RUNDOOR-4  The rule of a gate names who may answer it (WHO-1). A rule may admit people who may not see the run. They get its status without
 *            its contents. A reader whom the rule excludes gets `PERMISSION_DENIED`, also after the answer and after the end of the gate.
 * RUNDOOR-3  A run never asks an agent that waits for it: a workflow with such a node is refused. The agents that it asks count those above, so
 *            calls and runs that start each other have a bound.
 */

import type { ConnectionContext } from "agents";
import type { DeadLetterWriter } from "../../d1/dead-letters.ts";
import type { Directory } from "../../d1/directory.ts";
import type { Span, SpanExporter } from "../../model/span.ts";
import { checkAnswerer } from "../../policy/answerers.ts";
import { systemClock, systemIds } from "../../ports/system.ts";
import { durableStorage } from "../../ports/workers/durable-storage.ts";
import type { AgentError, AgentResult, AgentResultApi } from "../../protocol/agent-call.ts";
import type { CallAddress } from "../../protocol/call-address.ts";
import type {
  CoordinatorApi,
  FollowRun,
  RetryRun,
  RunView,
  StartRun,
} from "../../protocol/coordinator-api.ts";
import type { ActorAddress, Envelope } from "../../protocol/envelope.ts";
import type {
  TaskError,
  TaskErrorApi,
  TaskExecutor,
  TaskResult,
  TaskResultApi,
  ToolStateApi,
  ToolStateEntry,
} from "../../protocol/executor-api.ts";
import { stemOf } from "../../protocol/ids.ts";
import type { WholeResultApi } from "../../protocol/large-result.ts";
import { checkNew, type LocationPolicy } from "../../protocol/location-policy.ts";
import type { DeferApi, GivenHandle } from "../../protocol/operation-handle.ts";
import type { PinnedWorkflow } from "../../protocol/pinned-workflow.ts";
import {
  type ChildRun,
  type ChildRunApi,
  MAX_TREE_RUNS,
  type PartResult,
  RUN_START,
} from "../../protocol/run-call.ts";
import { readEntrance } from "../../protocol/upgrade-request.ts";
import type { CalledRun, RunCallerApi } from "../../protocol/workflow-call.ts";
import type { RunError } from "../../protocol/workflow-run.ts";
import { trailOf } from "../../shared/call-trail.ts";
import { defined } from "../../shared/defined.ts";
import { asDone, asResult, DramatisError, type Result } from "../../shared/errors.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import type { Json, JsonObject } from "../../shared/json.ts";
import type { PageOptions } from "../../shared/page.ts";
import type { Principal } from "../../shared/principal.ts";
import { validate } from "../../shared/validation.ts";
import { durableActor } from "../base/lookup/durable-actors.ts";
import { approvalsProjection } from "../base/projections/approvals-projection.ts";
import { Projection } from "../base/projections/projection.ts";
import { TenantTurns } from "../base/runtime/tenant-turns.ts";
import { SessionAgent } from "../base/session-agent.ts";
import type { Client, ConnectionMemory } from "../base/sockets/client.ts";
import { ConnectionGuard } from "../base/sockets/connection-guard.ts";
import { createOutflows } from "../base/sockets/outflow.ts";
import { Wakeups } from "../base/timers/wakeups.ts";
import { takeAgentAnswers } from "./agent-nodes.ts";
import { takeChildRuns } from "./child-runs.ts";
import { wholeOutput } from "./core/child-run.ts";
import { changesGates } from "./core/gates.ts";
import { unknownRun } from "./core/record.ts";
import { beginsWork } from "./core/run-envelopes.ts";
import { isOver } from "./core/state.ts";
import { shownStatus } from "./core/work.ts";
import { RunTelemetry } from "./effects/run-telemetry.ts";
import { RunReaders } from "./inbound/run-readers.ts";
import { RunSockets } from "./inbound/run-sockets.ts";
import { RunWaiters } from "./inbound/run-waiters.ts";
import {
  answerCheck,
  cannotDefer,
  checkReader,
  checkRepeated,
  mayRead,
  parseFollow,
  parseRetry,
  parseStart,
  refuseWaiting,
  requestHash,
} from "./inbound/start-run.ts";
import { RunEvents } from "./reads/run-events.ts";
import { readRunTrace } from "./reads/run-trace.ts";
import { journalPage, outerView, runSummary, runView, runWorkflow, waitingGates } from "./reads/run-views.ts";
import { RunRuntime } from "./run-runtime.ts";

/** Everything that an application provides to its runs. */
export interface CoordinatorClassPorts<Env> {
  executor(env: Env): TaskExecutor;
  deadLetters(env: Env): DeadLetterWriter | null;
  /** Returns `null` where there is no directory. */
  directory(env: Env): Directory | null;
  /** Resolves a workflow of a tenant with all that it runs. Throws `NOT_FOUND` or `INVALID_INPUT`. */
  workflow(env: Env, tenant: string, reference: DefinitionReference): Promise<PinnedWorkflow>;
  /** Returns an input as the workflow takes it. Throws `INVALID_INPUT`. */
  checkedInput(workflow: PinnedWorkflow, input: JsonObject): JsonObject;
  /** Branches above which a fan-out of a new run is spread; a default when absent. */
  fanOutWidth?: number;
  /** Returns `undefined` if spans are not exported. */
  exporter(env: Env): SpanExporter | undefined;
  /** Returns `undefined` if spans are not logged. */
  log(env: Env): ((spans: readonly Span[]) => void) | undefined;
  /** The limits of the tree of a new run; defaults when absent. */
  tree?: { active: number; tokens: number; total: number };
  /** Where the runs of a tenant may live. */
  location(tenant: string): LocationPolicy;
}

/** Returns the class `Coordinator` of an application. */
export function createCoordinatorClass<Env extends Cloudflare.Env>(
  ports: CoordinatorClassPorts<Env>,
): new (
  ctx: DurableObjectState,
  env: Env,
) => SessionAgent<Env> &
  CoordinatorApi &
  TaskResultApi &
  TaskErrorApi &
  AgentResultApi &
  ChildRunApi &
  WholeResultApi &
  ToolStateApi &
  DeferApi {
  const { active, tokens, total: maxTreeRuns = MAX_TREE_RUNS } = ports.tree ?? {};
  const treeRoom = active === undefined || tokens === undefined ? undefined : { runs: active, tokens };
  const outflows = createOutflows();
  /** The turns of all runs in this isolate. */
  const turns = new TenantTurns();
  return class Coordinator
    extends SessionAgent<Env>
    implements
      CoordinatorApi,
      TaskResultApi,
      TaskErrorApi,
      AgentResultApi,
      ChildRunApi,
      WholeResultApi,
      ToolStateApi,
      DeferApi
  {
    /** The names are stored with the jobs: never change them. */
    readonly #wakeups = new Wakeups(
      {
        run: () => {
          this.#runtime.reconcile();
          return this.#runtime.dueIn;
        },
        approvals: () => (this.#runtime.exists ? this.#approvals.wake() : null),
        directory: () => this.#listing.wake(),
        expiry: () => this.#sockets.expire(),
      },
      { early: ["run"] },
    );
    readonly #runtime = new RunRuntime({
      ...durableStorage(this.ctx.storage),
      clock: systemClock,
      executor: ports.executor(this.env),
      turn: () => turns.take(this.#runtime.state.record.tenant, systemClock),
      armWakeup: (milliseconds) => this.#wakeups.arm("run", milliseconds),
      ids: systemIds,
      // Starts keep to the room for what begins work (MAIL-20).
      send: (envelope) => this.mailbox.send(envelope, { owed: !beginsWork(envelope) }),
      room: () => this.mailbox.room(),
      withdraw: ({ to, type }) => this.mailbox.withdraw(to, type),
      statusChanged: () => this.#listing.note(),
      gatesChanged: () => void this.#approvals.note().catch((error: unknown) => console.error(error)),
      publish: (commit) => {
        const { before, state } = commit;
        this.#readers.wake();
        this.#sockets.wake();
        if (isOver(state)) this.#waiters.wake();
        if (changesGates(before, commit)) void this.#approvals.publish();
        if (shownStatus(before) !== shownStatus(state)) void this.#listing.publish();
        // The last step: an error of the telemetry stops no other step.
        this.#telemetry.ended(before, commit.row);
      },
    });
    /** The gates that wait for people, in the directory. */
    readonly #approvals = approvalsProjection({
      clock: systemClock,
      wakeup: this.#wakeups.named("approvals"),
      directory: () => ports.directory(this.env),
      waiting: () => {
        const { state } = this.#runtime;
        const { tenant, id: place } = state.record;
        return { tenant, place, seq: state.seq, waiting: waitingGates(state) };
      },
    });
    readonly #telemetry = new RunTelemetry(
      ports.exporter(this.env),
      ports.log(this.env),
      systemClock,
      (work) => this.ctx.waitUntil(work),
    );
    /** The run's entry in the directory. */
    readonly #listing = new Projection({
      clock: systemClock,
      wakeup: this.#wakeups.named("directory"),
      put: async () => {
        const { record, seq } = this.#runtime.state;
        await ports.directory(this.env)?.putRun(record.tenant, { ...runSummary(this.#runtime), seq });
      },
      changedAt: () => this.#runtime.endedAt ?? this.#runtime.state.record.createdAt,
    });
    readonly #events = new RunEvents(this.#runtime.store.journal);
    readonly #readers = new RunReaders({
      clock: systemClock,
      events: this.#events,
      state: () => this.#runtime.state,
    });
    readonly #sockets = new RunSockets({
      clock: systemClock,
      events: this.#events,
      outflows,
      clients: () => this.getConnections<ConnectionMemory>(),
      state: () => this.#runtime.state,
      expireAt: (time) => this.#wakeups.arm("expiry", Math.max(0, time - systemClock.now())),
    });
    readonly #waiters = new RunWaiters(systemClock);

    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, env);
      this.lifecycle.use(this.#wakeups);
      this.lifecycle.use(
        new ConnectionGuard({
          // The SDK tags each socket with its connection's id.
          connectionOf: (socket) => this.getConnection<ConnectionMemory>(this.ctx.getTags(socket)[0] ?? ""),
          isPlain: () => true,
          admit: (client, message) => this.#sockets.admit(client, message),
          receive: (client, message) => this.#sockets.receive(client, message),
        }),
      );
      takeAgentAnswers(this.mailbox, this.#runtime, (address) =>
        durableActor<WholeResultApi>(env as object, address),
      );
      takeChildRuns(this.mailbox, {
        clock: systemClock,
        ids: systemIds,
        keyValue: durableStorage(ctx.storage).keyValue,
        runtime: this.#runtime,
        run: (tenant, id) => durableActor<ChildRunApi>(env, { kind: "coordinator", tenant, id }),
        conversation: (tenant, id) => durableActor<RunCallerApi>(env, { kind: "conversation", tenant, id }),
        pinned: (to, called) => this.#pinned(to, called),
        bounds: defined({ width: ports.fanOutWidth, room: treeRoom }),
        checked: ({ workflow, input }) => ports.checkedInput(workflow, input),
      });
    }

    protected override createSessionStorage() {
      return null;
    }

    protected override get mailboxKind() {
      return "coordinator";
    }

    protected override checkStorage() {
      super.checkStorage();
      this.#runtime.store.checkVersion();
    }

    protected override whenArmed() {
      return this.#runtime.whenArmed();
    }

    /** A start of a run creates an actor, and the first commit of a run takes longest. */
    protected override async whenDeliverable({ type }: Pick<Envelope, "type">) {
      if (type === RUN_START) await turns.take(this.#runtime.state.record.tenant, systemClock);
    }

    protected override deadLetterDirectory() {
      return ports.deadLetters(this.env);
    }

    override async onStart(): Promise<void> {
      await this.startUnlessRefused(async () => {
        if (this.#runtime.exists) this.#sockets.restore();
        await this.#runtime.wake();
      });
    }

    async start(principal: Principal, given: StartRun): Promise<Result<RunView>> {
      return asResult(async () => {
        this.checkPlace();
        const {
          id,
          workflow: reference,
          input = {},
          projectId = "default",
          idempotencyKey,
          path = [],
          origin,
          pinned,
          ...rest
        } = parseStart(given);
        const { tenant, subject } = principal;
        if (this.name !== `${tenant}:${id}`)
          throw new DramatisError("INVALID_INPUT", `The actor of this run is "${tenant}:${id}".`);
        const request = await requestHash(given);
        if (this.#runtime.exists) return this.#repeated(principal, request, idempotencyKey);
        checkNew(id, ports.location(tenant), "/id");
        const workflow = pinned ?? (await ports.workflow(this.env, tenant, reference));
        refuseWaiting(workflow, path);
        // Another request may have started the run meanwhile.
        if (this.#runtime.exists) return this.#repeated(principal, request, idempotencyKey);
        await this.#runtime.start({
          ...{ id, tenant, projectId, workflow, request },
          stem: stemOf(systemIds.ulid()),
          input: ports.checkedInput(workflow, input),
          startedBy: subject,
          ...(path.length === 0 ? {} : { path }),
          ...trailOf(rest),
          ...defined({ origin, width: ports.fanOutWidth, room: treeRoom }),
          createdAt: systemClock.now(),
        });
        void this.#listing.publish();
        return runView(this.#runtime);
      });
    }

    async status(principal: Principal) {
      return this.#read(principal, () => runView(this.#runtime));
    }

    async cancel(principal: Principal, { reason }: { reason?: string } = {}) {
      return asResult(async () => {
        checkReader(this.#runtime.state.record, principal);
        await this.#runtime.cancel(principal.subject, reason);
        return runView(this.#runtime);
      });
    }

    async retryRun(principal: Principal, options: RetryRun = {}) {
      return asResult(async () => {
        checkReader(this.#runtime.state.record, principal);
        await this.#runtime.retry(principal.subject, parseRetry(options));
        return runView(this.#runtime);
      });
    }

    async journal(principal: Principal, options?: PageOptions) {
      return this.#read(principal, () => journalPage(this.#runtime.store.journal, options));
    }

    async traceRun(principal: Principal) {
      return this.#read(principal, () => readRunTrace(this.#runtime.state, this.#runtime.store.journal));
    }

    async workflow(principal: Principal) {
      return this.#read(principal, () => runWorkflow(this.#runtime.state));
    }

    async follow(principal: Principal, options: FollowRun = {}) {
      return this.#read(principal, () => this.#readers.stream(principal, parseFollow(options)));
    }

    async finished(principal: Principal, timeoutMs: number) {
      return asResult(async () => {
        checkReader(this.#runtime.state.record, principal);
        if (!isOver(this.#runtime.state)) await this.#waiters.wait(timeoutMs);
        return runView(this.#runtime);
      });
    }

    async handleTaskResult(result: TaskResult): Promise<Result<null>> {
      return asDone(() => this.#runtime.taskResult(result));
    }

    async handleTaskError({ operationId, attempt, error }: TaskError): Promise<Result<null>> {
      const result = { tool_call_id: "", success: false, error };
      return asDone(() => this.#runtime.taskResult({ operationId, attempt, result }));
    }

    async submitHumanInput(principal: Principal, operationId: string, answer: Json) {
      return asResult(async () => {
        const { record } = this.#runtime.state;
        const isReader = mayRead(record, principal);
        const place = { tenant: record.tenant, isReader, unknown: unknownRun };
        checkAnswerer(this.#runtime.answeredBy(operationId), principal, place);
        const given = validate(answerCheck, answer, "/answer");
        await this.#runtime.answer(operationId, given, principal.subject);
        return isReader ? runView(this.#runtime) : outerView(this.#runtime);
      });
    }

    async handleSubworkflowResult({
      output,
      ...address
    }: CallAddress & { output: Json }): Promise<Result<null>> {
      return asDone(() => this.#runtime.end(address, { output }));
    }

    async handleSubworkflowError({
      error,
      ...address
    }: CallAddress & { error: RunError }): Promise<Result<null>> {
      return asDone(() => this.#runtime.end(address, { error }));
    }

    async handleAgentResult({ text, operationId, attempt }: AgentResult): Promise<Result<null>> {
      return asDone(() => this.#runtime.end({ operationId, attempt }, { output: { text } }));
    }

    async handleAgentError({
      error: { code, message },
      operationId,
      attempt,
    }: AgentError): Promise<Result<null>> {
      return asDone(() => this.#runtime.end({ operationId, attempt }, { error: { code, message } }));
    }

    async childRun(address: CallAddress): Promise<Result<ChildRun>> {
      return asResult(() => this.#runtime.childRun(address));
    }

    async admitRun(): Promise<Result<null>> {
      return asDone(() => this.#runtime.admitRun(maxTreeRuns));
    }

    async partResult(address: CallAddress): Promise<Result<PartResult>> {
      return asResult(() => this.#runtime.partResult(address));
    }

    async wholeResult(address: CallAddress): Promise<Result<Uint8Array>> {
      return asResult(() => wholeOutput(this.#runtime.state, address));
    }

    async toolStateGet(key: string): Promise<Result<Json>> {
      return asResult(() => this.#runtime.toolState.get(key));
    }

    async toolStatePut(key: string, value: Json): Promise<Result<null>> {
      return asDone(() => this.#runtime.toolState.put(key, value));
    }

    async toolStateList(prefix: string): Promise<Result<ToolStateEntry[]>> {
      return asResult(() => this.#runtime.toolState.list(prefix));
    }

    async deferOperation(): Promise<Result<GivenHandle>> {
      return asResult(cannotDefer);
    }

    /** Followers of a run get its frames only. */
    override shouldSendProtocolMessages(): boolean {
      return false;
    }

    override async onConnect(connection: Client, { request }: ConnectionContext): Promise<void> {
      await this.#sockets.open(connection, readEntrance(request));
    }

    override onClose(connection: Client): void {
      this.#sockets.closed(connection);
    }

    override onRequest(): Response {
      return new Response("Not found", { status: 404 });
    }

    /** Returns the workflow of a tool call. Throws if it may not run here, or asks an agent that waits for it (RUNDOOR-3). */
    async #pinned({ tenant, id }: ActorAddress, { workflow, path }: CalledRun): Promise<PinnedWorkflow> {
      this.checkPlace();
      checkNew(id, ports.location(tenant), "/id");
      const pinned = await ports.workflow(this.env, tenant, workflow);
      refuseWaiting(pinned, path);
      return pinned;
    }

    /** Answers a request that was made before. Throws as `checkRepeated`. */
    #repeated(principal: Principal, request: string, key: string | undefined): RunView {
      checkRepeated(this.#runtime.state.record, principal, { request, key });
      return runView(this.#runtime);
    }

    #read<Value>(principal: Principal, body: () => Value): Promise<Result<Value>> {
      return asResult(() => {
        checkReader(this.#runtime.state.record, principal);
        return body();
      });
    }
  };
}
