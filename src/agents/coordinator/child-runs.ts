/**
 * The envelopes between a run and its caller, at both ends. The caller is the parent run, or the conversation of a tool call.
 *
 * SUBRUN-4  A repeated start is a no-op, and also a start that arrives after its cancellation. An end counts only if it comes from the
 *           run that the attempt has started. A cancellation counts only if it comes from the parent run.
 * PARTRUN-2  The result of a part is read from its run before the end of the part is committed. If a part closes before it begins, it
 *            never begins, and ends without a branch.
 * FLOWCALL-1  An attempt of a tool call has one run. Its id derives from the operation and the attempt. The run has the jurisdiction of the
 *             conversation. A start reads the call from its conversation: a call that waits no longer starts no run.
 * SUBRUN-5  A first run admits at most `limits.runs.total` runs below it, over all depths. A run counts once, however often its start
 *           arrives. If a run is not admitted, its node fails.
 */
import { type CallAddress, isCalled } from "../../protocol/call-address.ts";
import type { ActorAddress } from "../../protocol/envelope.ts";
import { stemOf } from "../../protocol/ids.ts";
import {
  type ChildRun,
  PART_CLOSE,
  PART_ENDED,
  PART_PROGRESS,
  type PartClosed,
  type PartStart,
  partEndedSchema,
  partProgressSchema,
  RUN_CANCEL,
  RUN_ENDED,
  RUN_START,
  RUN_WAITS,
  type RunPart,
  runCancelSchema,
  runEndedSchema,
  runStartSchema,
  runWaitsSchema,
} from "../../protocol/run-call.ts";
import { trailOf } from "../../shared/call-trail.ts";
import { defined } from "../../shared/defined.ts";
import { invalid, type Result, unwrap } from "../../shared/errors.ts";
import { isJsonObject } from "../../shared/json.ts";
import type { Copy } from "../base/copies/copy.ts";
import type { Delivery } from "../base/mailbox/handlers.ts";
import type { Mailbox } from "../base/mailbox/mailbox.ts";
import { checkSender } from "./agent-nodes.ts";
import type { ActorContext } from "./context.ts";
import type { RunRecord } from "./core/record.ts";
import { type RunSignal, undelivered } from "./core/signals.ts";
import { usedSignals } from "./core/usage.ts";
import type { RunRuntime } from "./run-runtime.ts";
import { pinnedWorkflow } from "./starts.ts";

interface ChildRunContext
  extends Pick<ActorContext, "clock" | "ids" | "keyValue" | "run" | "conversation" | "bounds">,
    Pick<ActorContext, "checkedInput" | "checkPlace" | "location" | "workflow" | "permitRun"> {
  runtime: RunRuntime;
  listing: Pick<Copy, "publish">;
}

/** The data of a new run. A run that a conversation starts has no parent run. */
type Found = Omit<ChildRun, "rootRunId"> & Partial<Pick<ChildRun, "rootRunId">>;

/** The key that forbids the start of a run. */
const OVER = "run:over";
const NOT_WANTED: Result<never> = {
  ok: false,
  error: {
    code: "NOT_FOUND",
    message: "The run has already begun, or its caller no longer waits for it.",
    retriable: false,
  },
};

/** Registers the handlers of starts, ends and cancellations. Each stages its change in the transaction of the receipt. */
export function takeChildRuns(
  mailbox: Pick<Mailbox, "receives" | "receivesAfter" | "outcomes">,
  context: ChildRunContext,
): void {
  const { clock, ids, keyValue, runtime, run, conversation, bounds } = context;
  takeParts(mailbox, { keyValue, runtime, run });
  /** Reports whether the run has begun, or must no longer begin. */
  const isBeyond = () => runtime.exists || keyValue.get<boolean>(OVER) === true;
  mailbox.receivesAfter(
    RUN_START,
    runStartSchema,
    async (address, { from, to }): Promise<Result<Found>> => {
      checkChild(address, from, to);
      if (isBeyond()) return NOT_WANTED;
      if (from.kind === "conversation") {
        const called = await (await conversation(from.tenant, from.id)).calledRun(address);
        return called.ok
          ? {
              ok: true,
              value: {
                ...called.value,
                ...bounds,
                workflow: await pinnedWorkflow(context, to, called.value),
              },
            }
          : called;
      }
      const above = await run(from.tenant, from.id);
      const found = await above.childRun(address);
      if (!found.ok) return found;
      const { rootRunId } = found.value;
      const root = rootRunId === from.id ? above : await run(from.tenant, rootRunId);
      const admitted = await root.admitRun(to.id);
      return admitted.ok ? found : admitted;
    },
    (address, { envelope: { from, to }, afterCommit }, found) => {
      if (isBeyond()) return null;
      if (!found.ok && found.error.code === "NOT_FOUND") return null;
      const child = unwrap(found);
      const { projectId, startedBy, rootRunId, workflow, path, origin, width, share, part } = child;
      const { operationId, attempt } = address;
      const record: RunRecord = {
        id: to.id,
        tenant: to.tenant,
        projectId,
        stem: stemOf(ids.ulid()),
        workflow,
        // The input of a part was checked when the parent run began. A part has only the members that it reads.
        input: part === undefined ? context.checkedInput(workflow, child.input) : child.input,
        startedBy,
        request: "",
        ...(rootRunId !== undefined && { parent: { runId: from.id, rootRunId, operationId, attempt } }),
        ...trailOf(child),
        ...defined({ path, origin, width, share, part: part && placeOf(part) }),
        createdAt: clock.now(),
      };
      const unit = runtime.stageStart(record, part);
      afterCommit(() => {
        const released = unit.release();
        // The wake-up lists a part if it does not end before.
        if (part === undefined) void context.listing.publish();
        return released;
      });
      return null;
    },
  );
  mailbox.outcomes(RUN_START, ({ envelope: { body }, outcome, afterCommit }) => {
    if (outcome.status === "delivered") return;
    const { operationId, attempt } = runStartSchema.parse(body);
    const unit = runtime.begin();
    unit.stage(runtime.endSignals({ operationId, attempt }, { error: undelivered(outcome) }));
    afterCommit(() => unit.release());
  });
  mailbox.receives(
    RUN_ENDED,
    runEndedSchema,
    ({ outcome, spent, tainted, ...address }, { envelope: { from, to }, afterCommit }) => {
      checkChild(address, to, from);
      const unit = runtime.begin();
      unit.stage([...usedSignals(spent), ...runtime.endSignals(address, outcome, tainted)]);
      afterCommit(() => unit.release());
      return null;
    },
  );
  mailbox.receives(RUN_WAITS, runWaitsSchema, (body, { envelope: { from, to }, afterCommit }) => {
    checkWorker(body, to, from, runtime.state.record);
    // A resting run gives its share back. A conversation has no share.
    if (body.isAtRest === true && from.kind !== "coordinator")
      throw invalid("Only a run can rest. Send `isHeld` alone.");
    const unit = runtime.begin();
    unit.stage(runtime.waitSignals(body));
    afterCommit(() => unit.release());
    return null;
  });
  mailbox.receives(
    RUN_CANCEL,
    runCancelSchema,
    ({ reason, ...address }, { envelope: { from, to }, afterCommit }) => {
      checkChild(address, from, to);
      keyValue.put(OVER, true);
      if (!runtime.exists) return null;
      const unit = runtime.begin();
      unit.stage([{ type: "run.cancel", by: from.id, reason }]);
      afterCommit(() => unit.release());
      return null;
    },
  );
}

/** Registers the handlers of envelopes between a run and the runs of its parts. */
function takeParts(
  mailbox: Pick<Mailbox, "receives" | "receivesAfter" | "outcomes">,
  { keyValue, runtime, run }: Pick<ChildRunContext, "keyValue" | "runtime" | "run">,
): void {
  const stage = (signals: readonly RunSignal[], afterCommit: Delivery["afterCommit"]) => {
    const unit = runtime.begin();
    unit.stage(signals);
    afterCommit(() => unit.release());
  };
  mailbox.receivesAfter(
    PART_ENDED,
    partEndedSchema,
    async (address, { from, to }) => {
      checkChild(address, to, from);
      return (await run(from.tenant, from.id)).partResult(address);
    },
    ({ spent, tainted, ...address }, { afterCommit }, found) => {
      stage([...usedSignals(spent), ...runtime.partEnd(address, unwrap(found), tainted)], afterCommit);
      return null;
    },
  );
  mailbox.receives(PART_PROGRESS, partProgressSchema, (progress, { envelope, afterCommit }) => {
    checkChild(progress, envelope.to, envelope.from);
    stage(runtime.partProgress(progress), afterCommit);
    return null;
  });
  mailbox.receives(PART_CLOSE, runStartSchema, (address, { envelope, afterCommit }) => {
    checkChild(address, envelope.from, envelope.to);
    const closed: PartClosed = { hasBegun: runtime.exists };
    if (closed.hasBegun) stage([{ type: "part.close" }], afterCommit);
    else keyValue.put(OVER, true);
    return { ...closed };
  });
  mailbox.outcomes(PART_CLOSE, ({ envelope: { body }, outcome, afterCommit }) => {
    const address = runStartSchema.parse(body);
    if (outcome.status !== "delivered")
      stage(runtime.endSignals(address, { error: undelivered(outcome) }), afterCommit);
    else if (isJsonObject(outcome.result) && outcome.result.hasBegun === false)
      stage(runtime.partEnd(address, { completed: [], outputs: [], failed: [] }), afterCommit);
  });
}

function placeOf({ group, origin, path, counts, first, total }: PartStart): RunPart {
  return { group, origin, path, counts, first, total };
}

/** Throws `INVALID_INPUT` unless `child` is the run that an attempt of an operation of `above` starts (RUNCALL-1). */
function checkChild(address: CallAddress, above: ActorAddress, child: ActorAddress): void {
  const isCaller = above.kind === "coordinator" || above.kind === "conversation";
  if (isCaller && child.kind === "coordinator" && isCalled(address, above, child)) return;
  throw invalid("Only a run or a conversation can start, cancel or end the run of its operation.");
}

/** Throws unless `worker` is the run or the conversation that works for an operation of `above`. */
function checkWorker(
  address: CallAddress,
  above: ActorAddress,
  worker: ActorAddress,
  record: RunRecord,
): void {
  if (worker.kind === "conversation") checkSender(address, { from: worker, to: above }, record);
  else checkChild(address, above, worker);
}
