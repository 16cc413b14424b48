/**
 * The extraction of memories from the turn `of`, which is over. Pure.
 *
 * LEARNED-1  The commit that ends an extraction also sends its operations to the agent, which applies them once. It sends no envelope
 *            without operations or if the persona has no memory.
 * LEARNED-2  The agent's answer is noted with the turn: the result of each operation, or the reason for a rejection. The turn stays
 *            completed.
 */
import { memoryScope } from "../../../../library/memory/scope.ts";
import type { PinnedHook, VersionChain } from "../../../../protocol/definitions.ts";
import type { NewEnvelope } from "../../../../protocol/envelope.ts";
import { operationId, turnId } from "../../../../protocol/ids.ts";
import {
  type ExtractedMemories,
  MEMORY_EXTRACTED,
  type MemoryOperation,
} from "../../../../protocol/memory.ts";
import { defined } from "../../../../shared/defined.ts";
import type { Json, JsonObject } from "../../../../shared/json.ts";
import { toIso } from "../../../../shared/time.ts";
import { memorySubject } from "../called-memory.ts";
import { hookRunMember } from "../called-workflow.ts";
import { EXTRACTION_FAILURES, MAX_EXTRACTIONS, MAX_LOST_EXTRACTIONS } from "../conversation-limits.ts";
import { type Extraction, type Extractions, extractionOf, type Learner } from "../hooks.ts";
import type { JournalEntry } from "../journal-entry.ts";
import { reservedAs, type TaskReservation } from "../operation.ts";
import type { MemoriesLearned } from "../signals.ts";
import { type ConversationIdentity, chainOf } from "../state.ts";
import { recalledBy, taintOfTurn } from "../taints.ts";
import { dueFor } from "../task-spending.ts";
import { type Transition, withTurn } from "../transition.ts";
import type { Turn } from "../turn.ts";
import { runData } from "./context-hook.ts";
import { type FailureText, type FrameBody, noted, silent } from "./fact.ts";

const NONE: Extractions = { running: {}, failures: {} };

export const extraction = {
  RETRY_EXTRACTION(
    transition: Transition,
    { of, notBefore, error }: { of: number; notBefore: number; error: FailureText },
  ): Transition {
    const found = runOf(transition, of);
    if (found === undefined) return transition;
    const { run, hook, runMembers } = found;
    const { item, attempt } = run;
    const next = { ...reservedAs(run, dueFor(hook?.task)), attempt: attempt + 1, notBefore };
    const data = { attempt, ...textOf(error), final: false, ...runMembers };
    const entry = { type: "memory_extraction.failed", turn: of, item, data } as const;
    return withExtraction(attempted(transition, of, next), of, next, [entry]);
  },

  /** Runs again after a crash, or waits until `deadline` for the result of the earlier run. */
  RESUME_EXTRACTION(transition: Transition, { of, deadline }: { of: number; deadline?: number }): Transition {
    const found = runOf(transition, of);
    if (found === undefined) return transition;
    const { run, runMembers } = found;
    const next = { ...run, recoveries: (run.recoveries ?? 0) + 1, ...defined({ deadline }) };
    const data = defined({ data: runData(runMembers) });
    return withExtraction(transition, of, next, [
      { type: "memory_extraction.resumed", turn: of, item: run.item, ...data },
    ]);
  },

  /** `now`: when the lost runs of the agent begin once more. */
  EXTRACTED(
    transition: Transition,
    { of, operations, tainted, now }: { of: number; operations: Json; tainted?: true; now: number },
  ): Transition {
    const found = runOf(transition, of);
    if (found === undefined) return transition;
    const { run, runMembers } = found;
    const { item, agentId } = run;
    const ended = withExtraction(transition, of, undefined, [
      { type: "memory_extraction.completed", turn: of, item, data: { operations, ...runMembers } },
      ...(run.again ? [] : [finalized(of, "completed")]),
    ]);
    const given = { operations, ...defined({ tainted }) };
    const envelopes = handedOver(transition.state.record, of, run, given);
    const handed = withFailures({ ...ended, envelopes: [...ended.envelopes, ...envelopes] }, agentId, 0);
    return beginAgain(handed, agentId, now);
  },

  GIVE_UP_EXTRACTION(transition: Transition, { of, error }: { of: number; error: FailureText }): Transition {
    const found = runOf(transition, of);
    if (found === undefined) return transition;
    const { run, hook, runMembers } = found;
    const { item, attempt, agentId } = run;
    const data = { attempt, ...textOf(error), final: true, ...runMembers };
    const final = { type: "memory_extraction.failed", turn: of, item, data } as const;
    if (run.again) return withExtraction(transition, of, undefined, [final]);
    const failures = ((transition.state.extraction ?? NONE).failures[agentId] ?? 0) + 1;
    const isStopped = error.code === "CANCELLED";
    const isReported = !isStopped && failures === EXTRACTION_FAILURES;
    const report = { agentId, failures, message: error.message };
    const ended = withExtraction(transition, of, undefined, [
      final,
      finalized(of, "failed"),
      ...(isReported ? [{ type: "memory_extraction.failing" as const, data: report }] : []),
    ]);
    const counted = isStopped ? failures - 1 : failures;
    const failed = withFailures({ ...ended, unextracted: [...ended.unextracted, of] }, agentId, counted);
    return isStopped || hook?.effect === "once" ? failed : keepLost(failed, of, run);
  },

  /** Notes the answer of the agent (LEARNED-2). If it accepted no operation, the turn gets the issue of a failed extraction. */
  NOTE_LEARNED(transition: Transition, { of, item, answer }: Omit<MemoriesLearned, "type">): Transition {
    if ("error" in answer) {
      const next = { ...transition, unextracted: [...transition.unextracted, of] };
      return noted(next, { type: "memory_extraction.refused", turn: of, item, data: textOf(answer.error) });
    }
    // SAFETY: outcomes are plain data.
    const outcomes = answer.outcomes as unknown as Json;
    return noted(transition, { type: "memory_extraction.applied", turn: of, item, data: { outcomes } });
  },
};

/** The run of an extraction, its hook, and the member of a workflow's run. */
interface Found {
  run: Extraction;
  hook: PinnedHook | undefined;
  runMembers: { runId?: string };
}

function runOf({ state }: Transition, of: number): Found | undefined {
  const run = extractionOf(state, of);
  if (run === undefined) return undefined;
  const { memoryExtraction: hook } = chainOf(state.record, run.agentId);
  return { run, hook, runMembers: hookRunMember(state.record, { n: of, stem: run.stem }, hook, run) };
}

function textOf({ code, message }: FailureText): FailureText {
  return { code, message };
}

function finalized(turn: number, memoryExtractionStatus: "completed" | "failed"): JournalEntry {
  return { type: "turn.finalized", turn, data: { memoryExtractionStatus } };
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
      ...defined({
        data: runData(hookRunMember(record, turn, chain.memoryExtraction, { item, attempt: 1 })),
      }),
    },
  ]);
  const due = dueFor(chain.memoryExtraction.task);
  const first = { item, attempt: 1, notBefore: now, stem, agentId, startedAt: now, ...due };
  const run = { ...first, ...learnerOf(record, turn) };
  const { running } = ended.state.extraction ?? NONE;
  const begun = withExtraction(ended, n, run, []);
  if (Object.keys(running).length < MAX_EXTRACTIONS) return begun;
  const message = "Too many memory extractions of this conversation are running.";
  return extraction.GIVE_UP_EXTRACTION(begun, { of: n, error: { code: "UNAVAILABLE", message } });
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

export function reserveExtraction(
  transition: Transition,
  of: number,
  reservation: TaskReservation,
): Transition {
  const run = extractionOf(transition.state, of);
  return run === undefined ? transition : withExtraction(transition, of, reservedAs(run, reservation), []);
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

/** Returns the user and the sources of a turn's extraction, as a member; `{}` for an agent without memory. */
function learnerOf(record: ConversationIdentity, turn: Turn): { learner?: Learner } {
  const scope = memoryScope(chainOf(record, turn.agentId).persona.definition);
  if (scope === undefined) return {};
  const { recalled, recalledBefore = [], operations, createdAt } = turn;
  const used = [...recalledBefore, ...(recalled?.used ?? []), ...operations.flatMap(recalledBy)];
  const ids = [...new Set(used.map(({ id }) => id))];
  const tainted = taintOfTurn(turn).length > 0 ? true : undefined;
  return {
    learner: {
      scope,
      subject: memorySubject(record, turn),
      time: createdAt,
      used: ids,
      ...defined({ tainted }),
    },
  };
}

/** Returns the envelope of an extraction's operations; an empty list without operations (LEARNED-1). */
function handedOver(
  { id: conversationId, tenant }: ConversationIdentity,
  of: number,
  { stem, item, agentId, learner }: { stem: string; item: number; agentId: string; learner?: Learner },
  { operations, tainted }: { operations: Json; tainted?: true },
): NewEnvelope[] {
  if (learner === undefined || !Array.isArray(operations) || operations.length === 0) return [];
  const turn = { n: of, stem };
  const { time, used, ...rest } = learner;
  const body: ExtractedMemories = {
    ...rest,
    operationId: operationId(turn, item),
    source: { conversationId, turnId: turnId(turn) },
    time: toIso(time),
    used: [...used],
    ...defined({ tainted: tainted ?? rest.tainted }),
    // SAFETY: planning has checked the operations.
    operations: operations as unknown as MemoryOperation[],
  };
  return [
    {
      operationId: operationId(turn, item),
      to: { kind: "agent", tenant, id: agentId },
      type: MEMORY_EXTRACTED,
      // SAFETY: the body is plain data.
      body: body as unknown as Json,
    },
  ];
}

/** The outcome of the extraction of a turn. Entries without data are of agents without an extraction hook. */
export interface Finalized {
  memoryExtractionStatus: "completed" | "failed";
}

export const extractionFrames = {
  ...silent("memory_extraction.started", "memory_extraction.resumed", "memory_extraction.completed"),
  ...silent("memory_extraction.failed", "memory_extraction.applied", "memory_extraction.refused"),
  "turn.finalized": (data: Finalized | undefined): FrameBody => ({
    type: "turn.finalized",
    data: { memoryExtractionStatus: data?.memoryExtractionStatus ?? "skipped" },
  }),
  "memory_extraction.failing": ({ message: why }: { message: string }): FrameBody => {
    const message = `No memories are saved: the extraction failed for several turns in a row. ${why}`;
    return { type: "error", data: { code: "MEMORY_EXTRACTION_FAILING", message, retriable: false } };
  },
};
