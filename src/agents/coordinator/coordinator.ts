/**
 * The `Coordinator` actor: one run of a workflow.
 *
 * RUNACCESS-1  A run is visible to the principal that started it, and to operators and administrators of its tenant. To others it does not
 *              exist.
 * RUNACCESS-2  Repeating a start with its key and content answers the same run; with other content it is `IDEMPOTENCY_CONFLICT`.
 * RUNACCESS-4  The rule of a gate names who may answer it (WHO-1). A rule may admit people who may not see the run. They get its status without
 *              its contents. A reader whom the rule excludes gets `PERMISSION_DENIED`, also after the answer and after the end of the gate.
 * RUNACCESS-3  A run never asks an agent that waits for it: a workflow with such a node is refused. The agents that it asks count those above, so
 *              calls and runs that start each other have a bound.
 */
import type { ConnectionContext } from "agents";
import { checkAnswerer } from "../../policy/answerers.ts";
import {
  type AgentError,
  type AgentResult,
  type AgentResultApi,
  agentAnswerSchema,
  agentErrorSchema,
} from "../../protocol/agent-call.ts";
import type { CallAddress } from "../../protocol/call-address.ts";
import {
  type CoordinatorApi,
  type FollowRun,
  followRun,
  gateAnswer,
  type RetryRun,
  retryRun,
  type StartRun,
} from "../../protocol/coordinator-api.ts";
import type { Envelope } from "../../protocol/envelope.ts";
import {
  type TaskError,
  type TaskErrorApi,
  type TaskResult,
  type TaskResultApi,
  type ToolStateApi,
  type ToolStateEntry,
  taskFailure,
  taskResultSchema,
} from "../../protocol/executor-api.ts";
import type { WholeResultApi } from "../../protocol/large-result.ts";
import type { DeferApi, GivenHandle } from "../../protocol/operation-handle.ts";
import { type StopOptions, stopRequest } from "../../protocol/requests.ts";
import {
  type ChildRun,
  type ChildRunApi,
  type PartResult,
  RUN_START,
  subworkflowErrorSchema,
  subworkflowResultSchema,
} from "../../protocol/run-call.ts";
import type { RunView } from "../../protocol/run-schemas.ts";
import { readUpgrade } from "../../protocol/upgrade-request.ts";
import type { RunError } from "../../protocol/workflow-run.ts";
import { asDone, asResult, type Result } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import type { PageOptions } from "../../shared/page.ts";
import type { Principal } from "../../shared/principal.ts";
import { validate, validateRequest } from "../../shared/validation.ts";
import { DurableActor } from "../base/durable-actor.ts";
import { TenantTurns } from "../base/runtime/tenant-turns.ts";
import type { Client } from "../base/sockets/client.ts";
import { ConnectionGuard } from "../base/sockets/connection-guard.ts";
import { createOutflows } from "../base/sockets/outflow.ts";
import { takeAgentAnswers } from "./agent-nodes.ts";
import { takeChildRuns } from "./child-runs.ts";
import type { CoordinatorApplication } from "./context.ts";
import { wholeOutput } from "./core/child-run.ts";
import { runCaller, runWorkspace, unknownRun } from "./core/record.ts";
import { isOver } from "./core/state.ts";
import { cannotDefer, checkReader, mayRead } from "./inbound/start-run.ts";
import { readRunTrace } from "./reads/run-trace.ts";
import { journalPage, outerView, runIssues, runView, runWorkflow } from "./reads/run-views.ts";
import { startRun } from "./starts.ts";
import { connected, givenContext } from "./wiring.ts";

/** The methods that other actors and HTTP call. */
type CoordinatorRpc = CoordinatorApi &
  TaskResultApi &
  TaskErrorApi &
  AgentResultApi &
  ChildRunApi &
  WholeResultApi &
  ToolStateApi &
  DeferApi;

export function createCoordinatorClass<Env extends Cloudflare.Env>(
  application: (env: Env) => CoordinatorApplication,
): new (
  ctx: DurableObjectState,
  env: Env,
) => DurableActor<Env> & CoordinatorRpc {
  const outflows = createOutflows();
  /** The turns of all runs in this isolate. */
  const turns = new TenantTurns();
  return class Coordinator extends DurableActor<Env> implements CoordinatorRpc {
    readonly #application = application(this.env);
    readonly #context = connected(
      givenContext(this.#application, this.env, this.mailbox, this.platform),
      turns,
      outflows,
    );
    readonly #runtime = this.#context.runtime;
    readonly #sockets = this.#context.sockets;

    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, env);
      this.lifecycle.use(
        new ConnectionGuard({
          connectionOf: (socket) => this.connectionOf(socket),
          isPlain: () => true,
          admit: (client, message) => this.#sockets.admit(client, message),
          receive: (client, message) => this.#sockets.receive(client, message),
        }),
      );
      takeAgentAnswers(this.mailbox, this.#context);
      takeChildRuns(this.mailbox, this.#context);
    }

    protected override get mailboxKind() {
      return "coordinator";
    }

    protected override checkStorage() {
      super.checkStorage();
      this.#runtime.store.checkVersion();
    }

    protected override get work() {
      return this.#context.work;
    }

    /** A start of a run creates an actor, and the first commit of a run takes longest. */
    protected override async whenDeliverable({ type }: Pick<Envelope, "type">) {
      if (type === RUN_START) await turns.take(this.#runtime.state.record.tenant, this.#context.clock);
    }

    async start(principal: Principal, given: StartRun): Promise<Result<RunView>> {
      return asResult(() => startRun(this.#context, principal, given));
    }

    async status(principal: Principal) {
      return this.#read(principal, () => {
        const hasCaller = runCaller(this.#runtime.state.record) !== undefined;
        const issues = hasCaller ? runIssues(this.mailbox) : {};
        return { ...runView(this.#runtime), ...issues };
      });
    }

    async cancel(principal: Principal, options: StopOptions = {}) {
      return asResult(async () => {
        checkReader(this.#runtime.state.record, principal);
        const { reason } = validateRequest(stopRequest, options, "/options");
        await this.#runtime.cancel(principal.subject, reason);
        return runView(this.#runtime);
      });
    }

    async retryRun(principal: Principal, options: RetryRun = {}) {
      return asResult(async () => {
        checkReader(this.#runtime.state.record, principal);
        await this.#runtime.retry(principal.subject, validateRequest(retryRun, options, "/options"));
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

    async workspace(principal: Principal) {
      return this.#read(principal, () => {
        const { record } = this.#runtime.state;
        return { project: record.projectId, ...runWorkspace(record) };
      });
    }

    async follow(principal: Principal, options: FollowRun = {}) {
      return this.#read(principal, () => {
        const { from = 0 } = validateRequest(followRun, options, "/options");
        return this.#context.readers.stream(principal, from);
      });
    }

    async finished(principal: Principal, timeoutMs: number) {
      return asResult(async () => {
        checkReader(this.#runtime.state.record, principal);
        if (!isOver(this.#runtime.state)) await this.#context.waiters.wait(timeoutMs);
        return runView(this.#runtime);
      });
    }

    async handleTaskResult(result: TaskResult): Promise<Result<null>> {
      return asDone(() => this.#runtime.taskResult(validate(taskResultSchema, result)));
    }

    async handleTaskError(failure: TaskError): Promise<Result<null>> {
      return asDone(() => this.#runtime.taskResult(taskFailure(failure)));
    }

    async submitHumanInput(principal: Principal, operationId: string, answer: Json) {
      return asResult(async () => {
        const given = this.#answerOf(principal, operationId, answer);
        await this.#runtime.answer(operationId, given, principal.subject);
        const isReader = mayRead(this.#runtime.state.record, principal);
        return isReader ? runView(this.#runtime) : outerView(this.#runtime);
      });
    }

    async hasHumanInput(principal: Principal, operationId: string, answer: Json) {
      return asResult(() =>
        this.#runtime.hasAnswer(operationId, this.#answerOf(principal, operationId, answer)),
      );
    }

    /** Returns the answer of a person who may answer. */
    #answerOf(principal: Principal, operationId: string, answer: Json): Json {
      const { record } = this.#runtime.state;
      const place = { tenant: record.tenant, isReader: mayRead(record, principal), unknown: unknownRun };
      checkAnswerer(this.#runtime.answeredBy(operationId), principal, place);
      return validate(gateAnswer.shape.answer, answer, "/answer");
    }

    async handleSubworkflowResult(result: CallAddress & { output: Json }): Promise<Result<null>> {
      return asDone(() => {
        const { output, ...address } = validate(subworkflowResultSchema, result);
        return this.#runtime.end(address, { output });
      });
    }

    async handleSubworkflowError(failure: CallAddress & { error: RunError }): Promise<Result<null>> {
      return asDone(() => {
        const { error, ...address } = validate(subworkflowErrorSchema, failure);
        return this.#runtime.end(address, { error });
      });
    }

    async handleAgentResult(answer: AgentResult): Promise<Result<null>> {
      return asDone(() => {
        const { text, ...address } = validate(agentAnswerSchema, answer);
        return this.#runtime.end(address, { output: { text } });
      });
    }

    async handleAgentError(failure: AgentError): Promise<Result<null>> {
      return asDone(() => {
        const { error, ...address } = validate(agentErrorSchema, failure);
        const { code, message } = error;
        return this.#runtime.end(address, { error: { code, message } });
      });
    }

    async childRun(address: CallAddress): Promise<Result<ChildRun>> {
      return asResult(() => this.#runtime.childRun(address));
    }

    async admitRun(id: string): Promise<Result<null>> {
      return asDone(() => this.#runtime.admitRun(id, this.#application.tree.total));
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
      await this.#sockets.open(connection, readUpgrade(request));
    }

    override onClose(connection: Client): void {
      this.#sockets.closed(connection);
    }

    #read<Value>(principal: Principal, body: () => Value): Promise<Result<Value>> {
      return asResult(() => {
        checkReader(this.#runtime.state.record, principal);
        return body();
      });
    }
  };
}
