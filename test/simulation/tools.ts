/** The tools of a simulation and their executor, a separate process behind a network. */
import { z } from "zod";
import { readCalls } from "../../src/agents/executor/calls.ts";
import { deliverResult } from "../../src/agents/executor/deliver.ts";
import { runCalls } from "../../src/agents/executor/run-calls.ts";
import { callerToolState } from "../../src/agents/executor/tool-state.ts";
import {
  defineLibrary,
  defineModelProfile,
  defineTool,
  type Library,
  type ToolContext,
} from "../../src/library/define/define.ts";
import type { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import type { RetryPolicy, ToolEffect } from "../../src/protocol/definitions.ts";
import type {
  AttemptEnd,
  BatchCaller,
  ExecutorReport,
  TaskExecutor,
  TaskResultApi,
  ToolInvocation,
  ToolStateApi,
} from "../../src/protocol/executor-api.ts";
import { defined } from "../../src/shared/defined.ts";
import { noHandles, noResults } from "../../src/testing/world/local-executor.ts";
import { noMemory } from "../support/no-memory.ts";
import { isCareful } from "./approvals.ts";
import type { WorldClock } from "./clocks.ts";
import { type FaultPlane, InjectedError } from "./faults.ts";
import { type History, nextStep, type ToolRun } from "./history.ts";
import { hookTasks } from "./hooks.ts";
import { Link } from "./link.ts";
import type { Caller } from "./model.ts";
import { MODELS, profileOf } from "./models.ts";
import type { Moments } from "./moments.ts";
import { CAREFUL_NAMES, type CallPlan, JOB_NAMES, type Plan, TOOL_NAMES, type ToolName } from "./plan.ts";
import { plannedCalls } from "./planned-calls.ts";

export const EFFECTS: Readonly<Record<ToolName, ToolEffect>> = {
  look_up: "pure",
  save: "idempotent",
  charge: "once",
  note: "idempotent",
  research: "idempotent",
  deliver: "once",
  transfer: "once",
  remit: "idempotent",
};
const JOBS: ReadonlySet<string> = new Set([...JOB_NAMES, "remit"]);
/** The tools with calls that are retried after a temporary failure. */
export const RETRIES: Readonly<Partial<Record<ToolName, RetryPolicy>>> = {
  look_up: { maxAttempts: 3, backoffMs: 200 },
  save: { maxAttempts: 3, backoffMs: 500 },
};

/** Returns the effect of a tool. The client's tool is `once`, the default. A call of an unknown tool has no effect. */
export function effectOf(name: string): ToolEffect {
  return name === "ask" ? "once" : (EFFECTS[name as ToolName] ?? "pure");
}

export const LIBRARY = "sim";
export const TIMEOUT_MS = 10_000;
const LATENCY_MS = 3;
/** Delay before the ends of a broken connection notice, in milliseconds. */
const SILENCE_MS = 30_000;

type Note = (conversation: number, text: string) => void;

interface ToolSurroundings {
  clock: WorldClock;
  history: History;
  moments: Moments;
  note: Note;
}

export function toolLibrary(plan: Plan, { clock, history, moments, note }: ToolSurroundings): Library {
  const now = () => ({ step: nextStep(history), at: clock.elapsed });
  const calls = plannedCalls(plan);
  const tool = (name: ToolName) =>
    defineTool({
      name,
      description: `A tool that is ${EFFECTS[name]}.`,
      input: z.object({ call: z.string() }),
      effect: EFFECTS[name],
      timeoutMs: TIMEOUT_MS,
      ...defined({ retry: RETRIES[name] }),
      ...(JOBS.has(name) ? { async: true } : {}),
      ...(isCareful(name) ? { approval: "always" } : {}),
      async execute({ call }, context) {
        const conversation = Number(call.slice(1).split(".")[0]);
        const { operationId, signal } = context;
        const run: ToolRun = { conversation, call, tool: name, operationId, ...now() };
        signal.addEventListener("abort", () => (run.aborted = now()), { once: true });
        history.toolRuns.push(run);
        note(conversation, `tool ${name} begins ${call}`);
        moments.note(conversation, "tool");
        const before = history.toolRuns.filter((other) => other.call === call).length - 1;
        const answer = await perform(calls.get(call), { ...run, before }, context, clock).finally(
          () => (run.over = now()),
        );
        run.answer = answer;
        note(conversation, `tool ${name} answers ${call}`);
        return answer;
      },
    });
  return defineLibrary(LIBRARY, {
    tools: [...TOOL_NAMES, ...JOB_NAMES, ...CAREFUL_NAMES].map(tool),
    tasks: hookTasks(plan, { clock, history }),
    modelProfiles: MODELS.slice(1).map((modelId) => defineModelProfile(modelId, profileOf(modelId))),
  });
}

async function perform(
  plan: CallPlan | undefined,
  { call, tool, before }: ToolRun & { before: number },
  context: ToolContext,
  clock: WorldClock,
) {
  if (plan === undefined) throw new ToolError("Nobody planned this call.");
  const pause = Math.floor(plan.ms / (plan.progress + 1));
  for (let step = 1; step <= plan.progress; step++) {
    await clock.sleep(pause);
    context.progress({ call, step });
  }
  await clock.sleep(pause);
  if (before < (plan.failures ?? 0)) throw new ToolError("Planned: it may work later.", { retriable: true });
  switch (plan.outcome) {
    case "answer":
      if (tool === "note") await context.state.put(call, { call });
      return { call, operation: context.operationId };
    case "error":
      throw new ToolError("Planned: it did not work.");
    case "throw":
      throw new InjectedError("Planned: a defect of the tool.");
    case "never":
      return new Promise<never>(() => undefined);
    default:
      return plan.outcome satisfies never;
  }
}

/** An actor as an executor reaches it by name. */
export interface ActorTools extends ToolStateApi, TaskResultApi {
  /** Kills the actor. */
  die(): void;
}

export interface ExecutorSurroundings {
  code: DeployedCode;
  clock: WorldClock;
  plane: FaultPlane;
  history: History;
  /** Calls the conversation's actor and wakes it if needed. */
  connect: (conversation: number) => Promise<ActorTools>;
}

/** Returns the executor as one life of an actor sees it. It completes accepted calls even if the caller dies. */
export function executorFor(caller: Caller, surroundings: ExecutorSurroundings): TaskExecutor {
  const { code, clock, plane, connect } = surroundings;
  const { conversation } = caller;
  const ports = {
    tools: code,
    clock,
    state: () => callerToolState(() => connect(conversation)),
    defer: noHandles,
    results: noResults(clock),
    baseUrl: undefined,
    mayReach: () => true,
    vectors: new Map(),
    memory: noMemory,
    waitUntil: () => undefined,
    deliver: ({ operationId, attempt }: ToolInvocation, ended: AttemptEnd) => {
      keepResult(surroundings.history, { operationId, ...ended });
      return deliverResult(clock, () => lateResults(caller, surroundings), {
        operationId,
        attempt,
        ...ended,
      });
    },
  };
  return {
    async run(calls, actor) {
      const faults = plane.cross(conversation, "tool.request");
      const crash = faults.find((fault) => fault.kind === "crash");
      const loss = faults.find((fault) => fault.kind === "loss");
      for (const fault of faults) {
        if (fault.kind === "crash" || fault.kind === "jump") continue;
        plane.fire(fault);
        if (fault.kind === "error") throw new InjectedError("the executor is not there");
        if (fault.kind === "delay") await clock.sleep(fault.ms);
      }
      if (crash?.when === "before") {
        plane.fire(crash);
        caller.die();
        return new Promise<never>(() => undefined);
      }
      const connection = new Connection(caller, actor, surroundings);
      // RPC copies its arguments.
      const work = runCalls(ports, readCalls(copied(calls)), connection);
      if (crash !== undefined) {
        plane.fire(crash);
        caller.die();
      }
      if (loss !== undefined) connection.breakOff(false);
      await Promise.race([work, connection.broken]);
    },
  };
}

/** Answers a report: the operations that could not be stored, or an error. */
type Answer = (answer: string[] | Error) => void;

/** The connection between an executor and the life that called it. */
class Connection implements BatchCaller {
  /** Rejects when the caller notices that the connection is broken. */
  readonly broken: Promise<never>;
  readonly #link: Link<{ reports: ExecutorReport[]; answer: Answer }>;
  readonly #unanswered = new Set<Answer>();
  /** Number of the executor at its other end. */
  readonly executor: number;
  #isBroken = false;
  #reject: (error: unknown) => void = () => undefined;

  constructor(
    private readonly life: Caller,
    private readonly actor: BatchCaller,
    private readonly surroundings: ExecutorSurroundings,
  ) {
    const { clock, plane, history } = surroundings;
    this.executor = nextStep(history);
    this.broken = new Promise<never>((_, reject) => (this.#reject = reject));
    this.broken.catch(() => undefined);
    this.#link = new Link({
      clock,
      latency: LATENCY_MS,
      plane,
      conversation: life.conversation,
      port: "tool.report",
      deliver: ({ reports, answer }) => void this.#deliver(reports, answer),
      crash: () => life.die(),
      broken: (heard) => this.breakOff(heard),
    });
  }

  report(reports: ExecutorReport[]): Promise<string[]> {
    for (const report of reports) keepResult(this.surroundings.history, report);
    return new Promise((resolve, reject) => {
      const answer: Answer = (answered) => {
        this.#unanswered.delete(answer);
        if (answered instanceof Error) reject(answered);
        else resolve(answered);
      };
      this.#unanswered.add(answer);
      // A dead life resets its connections.
      if (!this.life.alive) this.surroundings.clock.timer(LATENCY_MS, () => answer(RESET));
      else if (this.#isBroken) this.surroundings.clock.timer(SILENCE_MS, () => answer(RESET));
      else this.#link.send({ reports: copied(reports), answer });
    });
  }

  async cancelled(): Promise<string[]> {
    const ids = await this.actor.cancelled();
    const { executor } = this;
    this.surroundings.history.cancellations.push(...ids.map((operationId) => ({ operationId, executor })));
    await this.surroundings.clock.sleep(LATENCY_MS);
    return ids;
  }

  /** Breaks the connection. `heard`: both ends notice at once. */
  breakOff(heard: boolean): void {
    this.#isBroken = true;
    const notice = () => {
      this.#link.close();
      for (const answer of this.#unanswered) answer(RESET);
      this.#reject(RESET);
    };
    if (heard) notice();
    else this.surroundings.clock.timer(SILENCE_MS, notice);
  }

  async #deliver(reports: ExecutorReport[], answer: Answer): Promise<void> {
    const answered = this.life.alive ? await this.actor.report(reports) : RESET;
    this.surroundings.clock.timer(LATENCY_MS, () => answer(this.life.alive ? answered : RESET));
  }
}

const RESET = new InjectedError("connection reset");

/** The conversation's entry point for late results after a crash, across the network. */
async function lateResults(
  { conversation }: Caller,
  { clock, plane, connect }: ExecutorSurroundings,
): Promise<TaskResultApi> {
  const actor = await connect(conversation);
  return {
    async handleTaskResult(result) {
      const faults = plane.cross(conversation, "tool.result");
      for (const fault of faults) {
        plane.fire(fault);
        if (fault.kind === "delay") await clock.sleep(fault.ms);
        if (fault.kind === "error") throw RESET;
        if (fault.kind === "crash" && fault.when === "before") actor.die();
        if (fault.kind === "duplicate") await actor.handleTaskResult(copied(result));
      }
      await clock.sleep(LATENCY_MS);
      const answer = await actor.handleTaskResult(copied(result));
      for (const { kind } of faults) {
        if (kind === "crash") actor.die();
        if (kind === "loss") throw RESET;
      }
      return answer;
    },
  };
}

function copied<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value));
}

function keepResult(history: History, report: ExecutorReport): void {
  if (!("result" in report)) return;
  const { operationId, result } = report;
  history.reported.set(operationId, [...(history.reported.get(operationId) ?? []), result]);
}
