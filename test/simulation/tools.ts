/** The tools of a simulation and their executor, a separate process behind a network. */
import { z } from "zod";
import { readCalls } from "../../src/agents/executor/calls.ts";
import { serviceExecutor } from "../../src/agents/executor/client.ts";
import { writeLines } from "../../src/agents/executor/lines.ts";
import { runCalls } from "../../src/agents/executor/run-calls.ts";
import { conversationToolState } from "../../src/agents/executor/tool-state.ts";
import {
  defineLibrary,
  defineModelProfile,
  defineTool,
  type Library,
  type ToolContext,
} from "../../src/library/define.ts";
import type { DeployedCode } from "../../src/library/deployed-code.ts";
import { ToolError } from "../../src/library/tool-error.ts";
import type { ToolEffect } from "../../src/protocol/definitions.ts";
import type { ExecutorReport, TaskExecutor, ToolStateApi } from "../../src/protocol/executor-api.ts";
import type { WorldClock } from "./clocks.ts";
import { type FaultPlane, InjectedError } from "./faults.ts";
import type { History, ToolRun } from "./history.ts";
import { Link } from "./link.ts";
import type { Caller } from "./model.ts";
import { MODELS, profileOf } from "./models.ts";
import type { CallPlan, Plan, ToolName } from "./plan.ts";
import { plannedCalls } from "./planned-calls.ts";

export const EFFECTS: Readonly<Record<ToolName, ToolEffect>> = {
  look_up: "pure",
  save: "idempotent",
  charge: "once",
  note: "idempotent",
};
export const LIBRARY = "sim";
const TIMEOUT_MS = 10_000;
const LATENCY_MS = 3;
/** Delay before the ends of a broken connection notice, in milliseconds. */
const SILENCE_MS = 30_000;

type Note = (conversation: number, text: string) => void;

export function toolLibrary(plan: Plan, clock: WorldClock, history: History, note: Note): Library {
  const calls = plannedCalls(plan);
  const tool = (name: ToolName) =>
    defineTool({
      name,
      description: `A tool that is ${EFFECTS[name]}.`,
      input: z.object({ call: z.string() }),
      effect: EFFECTS[name],
      timeoutMs: TIMEOUT_MS,
      async execute({ call }, context) {
        const conversation = Number(call.slice(1).split(".")[0]);
        const run: ToolRun = { conversation, call, tool: name, operationId: context.operationId };
        history.toolRuns.push(run);
        note(conversation, `tool ${name} begins ${call}`);
        const answer = await perform(calls.get(call), run, context, clock);
        run.answer = answer;
        note(conversation, `tool ${name} answers ${call}`);
        return answer;
      },
    });
  return defineLibrary(LIBRARY, {
    tools: [tool("look_up"), tool("save"), tool("charge"), tool("note")],
    modelProfiles: MODELS.slice(1).map((modelId) => defineModelProfile(modelId, profileOf(modelId))),
  });
}

async function perform(
  plan: CallPlan | undefined,
  { call, tool }: ToolRun,
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

export interface ExecutorSurroundings {
  code: DeployedCode;
  clock: WorldClock;
  plane: FaultPlane;
  history: History;
  /** Calls the conversation's actor and wakes it if needed. */
  connect: (conversation: number) => Promise<ToolStateApi>;
}

/** Returns the executor as one life of an actor sees it. It completes accepted calls even if the caller dies. */
export function executorFor(caller: Caller, surroundings: ExecutorSurroundings): TaskExecutor {
  const { code, clock, plane, connect } = surroundings;
  const { conversation } = caller;
  const state = () => conversationToolState(() => connect(conversation));
  return serviceExecutor({
    async run(calls, signal) {
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
      // RPC copies its arguments.
      const batch = readCalls(JSON.parse(JSON.stringify(calls)));
      const source = writeLines(async function* (cancelled): AsyncGenerator<ExecutorReport, void> {
        yield* batch.refused;
        yield* runCalls({ tools: code, clock, state }, batch.calls, AbortSignal.any([signal, cancelled]));
      });
      const lines = carried(caller, source, surroundings);
      if (crash !== undefined) {
        plane.fire(crash);
        caller.die();
        return new Promise<never>(() => undefined);
      }
      if (loss === undefined) return lines;
      await clock.sleep(SILENCE_MS);
      throw new InjectedError("the executor's answer was lost");
    },
  });
}

/** Forwards the executor's lines to the caller. */
function carried(
  caller: Caller,
  source: ReadableStream<Uint8Array>,
  { clock, plane, history }: ExecutorSurroundings,
): ReadableStream<Uint8Array> {
  const { conversation } = caller;
  const reader = source.getReader();
  let target: ReadableStreamDefaultController<Uint8Array> | undefined;
  const link = new Link<Uint8Array | null>({
    clock,
    latency: LATENCY_MS,
    plane,
    conversation,
    port: "tool.line",
    deliver(line) {
      if (!caller.alive) return;
      if (line === null) target?.close();
      else target?.enqueue(line);
      if (line === null) target = undefined;
    },
    crash: () => caller.die(),
    broken(heard) {
      const breakOff = () => {
        target?.error(new InjectedError("connection reset"));
        target = undefined;
      };
      if (heard) breakOff();
      else clock.timer(SILENCE_MS, breakOff);
    },
  });
  const decoder = new TextDecoder();
  const read = async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return link.end(null);
      keepResult(history, decoder.decode(value));
      link.send(value);
    }
  };
  return new ReadableStream<Uint8Array>({
    start(controller) {
      target = controller;
      void read();
    },
    cancel() {
      target = undefined;
      link.close();
      void reader.cancel();
    },
  });
}

function keepResult(history: History, line: string): void {
  const report: ExecutorReport = JSON.parse(line);
  if (!("result" in report)) return;
  const { operationId, result } = report;
  history.reported.set(operationId, [...(history.reported.get(operationId) ?? []), result]);
}
