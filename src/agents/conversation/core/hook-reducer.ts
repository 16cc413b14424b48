/** Applies decisions about hooks to the state. Pure. */
import type { PinnedHook, VersionChain } from "../../../protocol/definitions.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { hookRunMark } from "./called-workflow.ts";
import { EXTRACTION_FAILURES, MAX_EXTRACTIONS, MAX_LOST_EXTRACTIONS } from "./conversation-limits.ts";
import type { AssemblyDecision, CycleNotes, ExtractionDecision, FailureText } from "./decisions.ts";
import { handedOver, learnedEntry, learnerOf } from "./hand-over.ts";
import { type Assembly, type Extraction, type Extractions, extractionOf } from "./hooks.ts";
import { withOutcome } from "./isolation.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { reservedAs, type TaskReservation } from "./operation.ts";
import { keptTold, toldEntries } from "./planning/recalled.ts";
import type { MemoriesLearned } from "./signals.ts";
import { type ConversationIdentity, chainOf } from "./state.ts";
import { dueFor } from "./task-spending.ts";
import { type Transition, withTurn } from "./transition.ts";
import type { HooksOfTurn, ModelCall, Turn } from "./turn.ts";

const NONE: Extractions = { running: {}, failures: {} };

/** The beginning of a cycle: its members of the turn, and the entry. */
interface CycleStart {
  members: Pick<Turn, "items" | "call"> & Partial<Pick<Turn, "assembly" | "hooks">>;
  entry: JournalEntry;
}

/** Returns the data of an entry about a hook; `{}` without data. */
function runData(data: { runId?: string }): Pick<JournalEntry, "data"> {
  return "runId" in data ? { data } : {};
}

/** Begins a cycle with the context hook of the agent, or with the model call. */
export function beginCycle(
  record: ConversationIdentity,
  turn: Pick<Turn, "n" | "stem" | "agentId" | "items" | "hooks">,
  { final, others = [] }: Pick<CycleNotes, "others"> & { final: boolean },
  now: number,
): CycleStart {
  const { n, items, hooks } = turn;
  const { contextAssembly } = chainOf(record, turn.agentId);
  const first = { item: items, attempt: 1, notBefore: now };
  if (contextAssembly === undefined) {
    const call: ModelCall = { ...first, final };
    return { members: { call, items: items + 1 }, entry: { type: "message.started", turn: n, item: items } };
  }
  const assembly: Assembly = {
    ...first,
    others,
    ...(final ? { final } : {}),
    ...dueFor(contextAssembly.task),
  };
  return {
    members: {
      ...{ call: null, assembly, items: items + 1 },
      hooks: { ...earlierHooks(hooks, contextAssembly), assembly: items },
    },
    entry: {
      ...{ type: "context_assembly.started", turn: n, item: items },
      ...runData(hookRunMark(record, turn, contextAssembly, first)),
    },
  };
}

/** Returns the hooks of the cycles before a cycle. The trace of a turn contains the runs of all of them. */
function earlierHooks(hooks: HooksOfTurn = {}, { workflow }: Pick<PinnedHook, "workflow">): HooksOfTurn {
  const { assembly, attempt = 1, earlier = [], extraction } = hooks;
  const isRun = workflow !== undefined && assembly !== undefined;
  return defined({ extraction, earlier: isRun ? [...earlier, [assembly, attempt] as const] : undefined });
}

export function reduceAssembly(
  transition: Transition,
  turn: Turn,
  decision: AssemblyDecision,
  now: number,
): Transition {
  const { assembly, ...others } = turn;
  if (assembly === undefined) return transition;
  const { n, items } = turn;
  const { item } = assembly;
  const { record } = transition.state;
  const { contextAssembly } = chainOf(record, turn.agentId);
  const run = hookRunMark(record, turn, contextAssembly, assembly);
  switch (decision.type) {
    case "ASSEMBLED": {
      const call = { item: items, attempt: 1, notBefore: now, final: assembly.final ?? false };
      const { request, mark: requestMark, told } = decision;
      const asked = told === undefined ? {} : keptTold({ told });
      const called = {
        ...others,
        ...withOutcome(turn),
        ...asked,
        request,
        requestMark,
        call,
        items: items + 1,
      };
      return withTurn(transition, called, [
        { type: "context_assembly.completed", turn: n, item, ...runData(run) },
        ...toldEntries(n, told),
        { type: "message.started", turn: n, item: items },
      ]);
    }
    case "RETRY_ASSEMBLY": {
      const due = dueFor(contextAssembly?.task);
      const { attempt } = assembly;
      const next = { ...reservedAs(assembly, due), attempt: attempt + 1, notBefore: decision.notBefore };
      const hooks = { ...turn.hooks, attempt: next.attempt };
      return withTurn(transition, { ...turn, ...withOutcome(turn), assembly: next, hooks }, [
        assemblyFailure(record, turn, decision.error, false),
      ]);
    }
    case "INTERRUPT_ASSEMBLY":
      return withTurn(transition, { ...turn, assembly: { ...assembly, deadline: decision.deadline } }, []);
    default:
      return decision satisfies never;
  }
}

/** Returns the entry of a failed attempt of a turn's context hook. */
export function assemblyFailure(
  record: ConversationIdentity,
  turn: Turn,
  { code, message }: FailureText,
  final: boolean,
): JournalEntry {
  const { n, assembly, agentId } = turn;
  const run = assembly && hookRunMark(record, turn, chainOf(record, agentId).contextAssembly, assembly);
  const data = { attempt: assembly?.attempt ?? 1, code, message, final, ...run };
  return { type: "context_assembly.failed", turn: n, ...defined({ item: assembly?.item }), data };
}

/** Completes a turn, with its extraction if its agent has an extraction hook. `data` belongs to the entry of the end. */
export function completed(
  transition: Transition,
  turn: Turn,
  chain: Pick<VersionChain, "memoryExtraction">,
  now: number,
  data?: JsonObject,
): Transition {
  const { n, stem, agentId, items: item, hooks } = turn;
  const { record } = transition.state;
  if (chain.memoryExtraction === undefined)
    return withTurn(transition, turn, [
      { type: "turn.completed", turn: n, ...defined({ data }) },
      { type: "turn.finalized", turn: n },
    ]);
  const extracted = { ...turn, items: item + 1, hooks: { ...hooks, extraction: item } };
  const ended = withTurn(transition, extracted, [
    { type: "turn.completed", turn: n, ...defined({ data }) },
    {
      ...{ type: "memory_extraction.started", turn: n, item },
      ...runData(hookRunMark(record, turn, chain.memoryExtraction, { item, attempt: 1 })),
    },
  ]);
  const due = dueFor(chain.memoryExtraction.task);
  const first = { item, attempt: 1, notBefore: now, stem, agentId, startedAt: now, ...due };
  const run = { ...first, ...learnerOf(record, turn) };
  const { running } = ended.state.extraction ?? NONE;
  const begun = withExtraction(ended, n, run, []);
  if (Object.keys(running).length < MAX_EXTRACTIONS) return begun;
  const message = "Too many extractions of the conversation run.";
  return reduceExtraction(begun, {
    type: "GIVE_UP_EXTRACTION",
    of: n,
    error: { code: "UNAVAILABLE", message },
  });
}

export function reduceExtraction(transition: Transition, decision: ExtractionDecision): Transition {
  const { of } = decision;
  if (decision.type === "NOTE_LEARNED") return noteLearned(transition, decision);
  const run = extractionOf(transition.state, of);
  if (run === undefined) return transition;
  const { item, attempt, recoveries = 0, agentId } = run;
  const address = { turn: of, item };
  const { record } = transition.state;
  const { memoryExtraction } = chainOf(record, agentId);
  const mark = hookRunMark(record, { n: of, stem: run.stem }, memoryExtraction, run);
  switch (decision.type) {
    case "RETRY_EXTRACTION": {
      const { code, message } = decision.error;
      const due = dueFor(memoryExtraction?.task);
      const next = { ...reservedAs(run, due), attempt: attempt + 1, notBefore: decision.notBefore };
      const data = { attempt, code, message, final: false, ...mark };
      const failed = { type: "memory_extraction.failed", ...address, data } as const;
      return withExtraction(attempted(transition, of, next), of, next, [failed]);
    }
    case "RESUME_EXTRACTION": {
      const next = { ...run, recoveries: recoveries + 1, ...defined({ deadline: decision.deadline }) };
      return withExtraction(transition, of, next, [
        { type: "memory_extraction.resumed", ...address, ...runData(mark) },
      ]);
    }
    case "EXTRACTED": {
      const data = { operations: decision.operations, ...mark };
      const ended = withExtraction(transition, of, undefined, [
        { type: "memory_extraction.completed", ...address, data },
        ...(run.again
          ? []
          : [{ type: "turn.finalized", turn: of, data: { memoryExtractionStatus: "completed" } } as const]),
      ]);
      const envelopes = handedOver(record, of, run, decision);
      const handed = withFailures({ ...ended, envelopes: [...ended.envelopes, ...envelopes] }, agentId, 0);
      return beginAgain(handed, agentId, decision.now);
    }
    case "GIVE_UP_EXTRACTION": {
      const { code, message } = decision.error;
      const final = {
        type: "memory_extraction.failed",
        ...address,
        data: { attempt, code, message, final: true, ...mark },
      } as const;
      if (run.again) return withExtraction(transition, of, undefined, [final]);
      const failures = ((transition.state.extraction ?? NONE).failures[agentId] ?? 0) + 1;
      const isStopped = code === "CANCELLED";
      const isReported = !isStopped && failures === EXTRACTION_FAILURES;
      const ended = withExtraction(transition, of, undefined, [
        final,
        { type: "turn.finalized", turn: of, data: { memoryExtractionStatus: "failed" } },
        ...(isReported ? [failing(agentId, failures, message)] : []),
      ]);
      const failed = withFailures(
        { ...ended, unextracted: [...ended.unextracted, of] },
        agentId,
        isStopped ? failures - 1 : failures,
      );
      return isStopped || memoryExtraction?.effect === "once" ? failed : keepLost(failed, of, run);
    }
    default:
      return decision satisfies never;
  }
}

/** Keeps a run that failed, so that it begins once more. The oldest runs are dropped beyond the limit. */
function keepLost(transition: Transition, of: number, run: Extraction): Transition {
  const { extraction = NONE } = transition.state;
  const kept = Object.entries<Extraction>({ ...extraction.lost, [of]: run }).slice(-MAX_LOST_EXTRACTIONS);
  const lost = Object.fromEntries(kept);
  return { ...transition, state: { ...transition.state, extraction: { ...extraction, lost } } };
}

/** Begins the lost runs of an agent once more, after an extraction of the agent has succeeded (HOOK-7). */
function beginAgain(transition: Transition, agentId: string, now: number): Transition {
  const { lost = {} } = transition.state.extraction ?? NONE;
  const { memoryExtraction } = chainOf(transition.state.record, agentId);
  let next = transition;
  for (const [n, { deadline: _, recoveries: __, ...run }] of Object.entries(lost)) {
    const { running, ...others } = next.state.extraction ?? NONE;
    if (run.agentId !== agentId || Object.keys(running).length >= MAX_EXTRACTIONS) continue;
    const { [n]: ___, ...left } = others.lost ?? {};
    const { lost: ____, ...rest } = others;
    const extraction = { ...rest, running, ...(Object.keys(left).length === 0 ? {} : { lost: left }) };
    const again = {
      ...reservedAs(run, dueFor(memoryExtraction?.task)),
      ...{ attempt: run.attempt + 1, notBefore: now, startedAt: now, again: true as const },
    };
    const entry = { type: "memory_extraction.resumed", turn: Number(n), item: run.item } as const;
    const begun = attempted({ ...next, state: { ...next.state, extraction } }, Number(n), again);
    next = withExtraction(begun, Number(n), again, [entry]);
  }
  return next;
}

/** Notes a further attempt of an extraction. Its turn is over, and names the run of the newest attempt. */
function attempted(transition: Transition, n: number, { attempt }: Pick<Extraction, "attempt">): Transition {
  return { ...transition, extractions: [...transition.extractions, { n, attempt }] };
}

/** Notes the agent's answer. If it accepted no operation, the turn gets the issue of a failed extraction. */
function noteLearned(transition: Transition, learned: Omit<MemoriesLearned, "type">): Transition {
  const { entries, unextracted } = transition;
  const { of, answer } = learned;
  return {
    ...transition,
    entries: [...entries, learnedEntry(learned)],
    ...("error" in answer ? { unextracted: [...unextracted, of] } : {}),
  };
}

/** Changes the reservation of an extraction. */
export function reserveExtraction(
  transition: Transition,
  of: number,
  reservation: TaskReservation,
): Transition {
  const run = extractionOf(transition.state, of);
  return run === undefined ? transition : withExtraction(transition, of, reservedAs(run, reservation), []);
}

function failing(agentId: string, failures: number, message: string): JournalEntry {
  return { type: "memory_extraction.failing", data: { agentId, failures, message } };
}

function withExtraction(
  transition: Transition,
  of: number,
  run: Extraction | undefined,
  entries: JournalEntry[],
): Transition {
  const { running, ...rest } = transition.state.extraction ?? NONE;
  const { [of]: _before, ...others } = running;
  const next = run === undefined ? others : { ...others, [of]: run };
  return {
    ...transition,
    state: { ...transition.state, extraction: { ...rest, running: next } },
    entries: [...transition.entries, ...entries],
  };
}

/** Counts consecutive failures of an agent. Zero is not stored. */
function withFailures(transition: Transition, agentId: string, count: number): Transition {
  const { extraction, ...state } = transition.state;
  const { running, failures, lost } = extraction ?? NONE;
  const { [agentId]: _before, ...others } = failures;
  const next = count === 0 ? others : { ...others, [agentId]: count };
  const isEmpty = Object.keys(running).length + Object.keys(next).length === 0 && lost === undefined;
  const kept = { running, failures: next, ...defined({ lost }) };
  return { ...transition, state: isEmpty ? state : { ...state, extraction: kept } };
}
