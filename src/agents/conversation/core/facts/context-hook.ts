/** The context hook of an active turn, which makes the request of a cycle. Pure. */
import type { ActiveTurn } from "../../../../library/hooks/hook-inputs.ts";
import type { Taint } from "../../../../model/taint.ts";
import type { PinnedHook } from "../../../../protocol/definitions.ts";
import { defined } from "../../../../shared/defined.ts";
import type { JsonObject } from "../../../../shared/json.ts";
import { hookRunMember } from "../called-workflow.ts";
import { withOutcome } from "../isolation.ts";
import type { JournalEntry } from "../journal-entry.ts";
import { reservedAs } from "../operation.ts";
import { recalledEntries, withoutRecallNote } from "../recalled.ts";
import { type ConversationIdentity, chainOf } from "../state.ts";
import { dueFor } from "../task-spending.ts";
import type { Transition } from "../transition.ts";
import type { HooksOfTurn, Recalled, Turn } from "../turn.ts";
import { type FailureText, silent, type TurnStep } from "./fact.ts";

export const contextHook = {
  /** Calls the model with the request that the hook gave. */
  ASSEMBLED(
    on: TurnStep,
    { request, taint, recalled }: { request: JsonObject; taint: Taint; recalled?: Recalled },
  ): Transition {
    const { assembly, ...others } = on.turn;
    if (assembly === undefined) return on.transition;
    const { n, items } = others;
    const call = { item: items, attempt: 1, notBefore: on.now, final: assembly.final ?? false };
    const called = {
      ...others,
      ...withOutcome(on.turn),
      ...(recalled === undefined ? {} : withoutRecallNote({ recalled })),
      ...{ request, requestTaint: taint, call, items: items + 1 },
    };
    return on.replace(
      called,
      on.entry("context_assembly.completed", assembly.item, runData(runOf(on.record, on.turn))),
      ...recalledEntries(n, recalled),
      on.entry("message.started", items),
    );
  },

  RETRY_ASSEMBLY(on: TurnStep, { notBefore, error }: { notBefore: number; error: FailureText }): Transition {
    const { turn, chain } = on;
    const { assembly } = turn;
    if (assembly === undefined) return on.transition;
    const attempt = assembly.attempt + 1;
    const due = reservedAs(assembly, dueFor(chain.contextAssembly?.task));
    const members = { assembly: { ...due, attempt, notBefore }, hooks: { ...turn.hooks, attempt } };
    const entry = assemblyFailure(on.record, turn, error, false);
    return on.change({ ...withOutcome(turn), ...members }, entry);
  },

  /** Waits until `deadline` for the result of a run that the actor no longer follows. */
  INTERRUPT_ASSEMBLY(on: TurnStep, { deadline }: { deadline: number }): Transition {
    const { assembly } = on.turn;
    return assembly === undefined ? on.transition : on.change({ assembly: { ...assembly, deadline } });
  },
};

/** Begins a cycle with the context hook of the agent, or with the model call. Returns the members of the turn, and the entry. */
export function beginCycle(
  { turn, record, chain, now }: TurnStep,
  { final, others = [] }: { final: boolean; others?: readonly ActiveTurn[] },
): { members: Pick<Turn, "items" | "call"> & Partial<Turn>; entry: JournalEntry } {
  const { n, items: item, hooks } = turn;
  const { contextAssembly } = chain;
  const items = item + 1;
  const first = { item, attempt: 1, notBefore: now };
  if (contextAssembly === undefined)
    return {
      members: { call: { ...first, final }, items },
      entry: { type: "message.started", turn: n, item },
    };
  const assembly = {
    ...first,
    others,
    ...(final ? { final: true as const } : {}),
    ...dueFor(contextAssembly.task),
  };
  const data = runData(hookRunMember(record, turn, contextAssembly, first));
  return {
    members: {
      ...{ call: null, assembly, items },
      hooks: { ...earlierHooks(hooks, contextAssembly), assembly: item },
    },
    entry: { type: "context_assembly.started", turn: n, item, ...defined({ data }) },
  };
}

/** Returns the hooks of the cycles before a cycle. The trace of a turn contains the runs of all of them. */
function earlierHooks(hooks: HooksOfTurn = {}, { workflow }: Pick<PinnedHook, "workflow">): HooksOfTurn {
  const { assembly, attempt = 1, earlier = [], extraction } = hooks;
  const isRun = workflow !== undefined && assembly !== undefined;
  return defined({ extraction, earlier: isRun ? [...earlier, [assembly, attempt] as const] : undefined });
}

export function assemblyFailure(
  record: ConversationIdentity,
  turn: Turn,
  { code, message }: FailureText,
  final: boolean,
): JournalEntry {
  const { n, assembly } = turn;
  const data = { attempt: assembly?.attempt ?? 1, code, message, final, ...runOf(record, turn) };
  return { type: "context_assembly.failed", turn: n, ...defined({ item: assembly?.item }), data };
}

function runOf(record: ConversationIdentity, turn: Turn): { runId?: string } {
  const { assembly, agentId } = turn;
  return assembly === undefined
    ? {}
    : hookRunMember(record, turn, chainOf(record, agentId).contextAssembly, assembly);
}

/** Returns the data of an entry about a hook; `undefined` without data. */
export function runData(data: { runId?: string }): { runId?: string } | undefined {
  return "runId" in data ? data : undefined;
}

export const contextHookFrames = silent(
  "context_assembly.started",
  "context_assembly.completed",
  "context_assembly.failed",
);
