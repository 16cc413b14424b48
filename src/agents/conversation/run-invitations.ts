/**
 * The invitations of runs, as they reach the conversation that has started them.
 *
 * RUNINVITE-5  An invitation that is acknowledged has started its turn, or the run gets the reason. A run that takes its invitation back stops
 *              the turn; where the invitation comes later, nothing of it runs. Whatever arrives twice changes nothing.
 * RUNINVITE-6  An invitation counts only if its first run has an id that derives from the operation of its origin.
 */

import { NOTHING } from "../../model/spending.ts";
import type { Ids } from "../../ports/ids.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { CallAddress } from "../../protocol/call-address.ts";
import type { Envelope, NewEnvelope } from "../../protocol/envelope.ts";
import type { ToolErrorCode } from "../../protocol/executor-api.ts";
import { calledRunId } from "../../protocol/ids.ts";
import {
  AGENT_INVITE,
  AGENT_UNINVITE,
  type AgentInviteBody,
  agentInviteSchema,
  agentUninviteSchema,
} from "../../protocol/run-invitation.ts";
import { defined } from "../../shared/defined.ts";
import { asResult, DramatisError, type Result, toErrorData, unwrap } from "../../shared/errors.ts";
import { jurisdictionOf } from "../../shared/location.ts";
import type { Mailbox } from "../base/mailbox/mailbox.ts";
import { resultEnvelope } from "./core/call-envelopes.ts";
import type { Invitation, RunInvited } from "./core/signals.ts";
import type { ConversationIdentity } from "./core/state.ts";
import type { Turn } from "./core/turn.ts";
import { invitation } from "./effects/join.ts";
import { operationAt } from "./inbound/message-checks.ts";
import type { ConversationRuntime } from "./runtime.ts";

export interface RunInvitationPorts {
  ids: Ids;
  keyValue: KeyValue;
  runtime: Pick<ConversationRuntime, "state" | "turn" | "begin">;
  transaction<Value>(body: () => Value): Value;
  /** Returns what an agent brings that joins. Throws `NOT_FOUND` for an unknown one, `FORBIDDEN` for one of other projects. */
  invite(record: ConversationIdentity, agentId: string): Promise<Invitation>;
  /** Notes for the directory that the participants change. Resolves when the wake-up is armed. */
  relist(): Promise<void>;
  /** As `Mailbox.send`. */
  send(envelope: NewEnvelope): Promise<void>;
}

/** The errors of tools for errors of an invitation. */
const CODES: Readonly<Record<string, ToolErrorCode>> = {
  NOT_FOUND: "NOT_FOUND",
  FORBIDDEN: "PERMISSION_DENIED",
  INVALID_INPUT: "INVALID_INPUT",
  TOO_MANY_TURNS: "BUDGET_EXCEEDED",
};

/** Registers the handlers of invitations, and of those that are taken back. Each stages its change in the transaction of the receipt. */
export function takeRunInvitations(
  mailbox: Pick<Mailbox, "receives" | "receivesAfter">,
  ports: RunInvitationPorts,
): void {
  const { ids, keyValue, runtime, transaction, invite, relist, send } = ports;
  mailbox.receivesAfter(
    AGENT_INVITE,
    agentInviteSchema,
    async (body, envelope): Promise<Result<Invitation>> => {
      checkOrigin(body, envelope);
      const { record } = runtime.state;
      return asResult(() => invitation({ invite }, record, body.agentId));
    },
    (body, { envelope: { from, to }, afterCommit }, found) => {
      const mark = markOf(body);
      if (keyValue.get<boolean>(mark) === true) return null;
      try {
        const unit = transaction(() => {
          const staged = runtime.begin();
          staged.stage([signalOf(body, from.id, found, (n) => runtime.turn(n))]);
          return staged;
        });
        const isListed = runtime.state.record.listed !== false;
        const noted = isListed ? relist() : undefined;
        afterCommit(async () => {
          await unit.release();
          await noted;
        });
      } catch (error) {
        const { code, message, retriable } = toErrorData(error);
        if (retriable) throw error;
        const refusal = { code: CODES[code] ?? "EXECUTION_FAILED", message, retriable };
        const caller = { ...body, from: from.id, caller: { runId: from.id } };
        const result = resultEnvelope(to.tenant, caller, { outcome: { error: refusal }, spent: NOTHING });
        const sent = send({ operationId: `op_${ids.ulid()}`, ...result });
        afterCommit(() => sent);
      }
      return null;
    },
  );
  mailbox.receives(AGENT_UNINVITE, agentUninviteSchema, (body, { envelope: { from }, afterCommit }) => {
    const turn = [...runtime.state.active.values()].find(
      ({ invited, caller }) =>
        caller.type === "workflow" &&
        caller.runId === from.id &&
        invited?.operationId === body.operationId &&
        invited.attempt === body.attempt,
    );
    if (turn === undefined) {
      keyValue.put(markOf(body), true);
      return null;
    }
    const unit = runtime.begin();
    const { n, caller } = turn;
    unit.stage([{ type: "conversation.cancel", turn: n, caller, ...defined({ reason: body.reason }) }]);
    afterCommit(() => unit.release());
    return null;
  });
}

/** The key of the mark that an invitation starts no turn any more. */
function markOf({ operationId, attempt }: CallAddress): string {
  return `uninvited:${operationId}:${attempt}`;
}

/** Throws `FORBIDDEN` unless a run invites which an operation of the conversation has started, or one below it (RUNINVITE-6). */
function checkOrigin({ origin, rootRunId }: AgentInviteBody, { from, to }: Envelope): void {
  const started = calledRunId(origin.operationId, origin.attempt, jurisdictionOf(to.id));
  if (from.kind === "coordinator" && rootRunId === started) return;
  throw new DramatisError("FORBIDDEN", "Only a run that the conversation has started may invite an agent.");
}

/** Returns the signal of an invitation. Throws why there is none. */
function signalOf(
  { agentId, node, content, operationId, attempt, path, origin, traceparent }: AgentInviteBody,
  runId: string,
  found: Result<Invitation>,
  turnAt: (n: number) => Turn | null,
): RunInvited {
  const brought = unwrap(found);
  const { turn, operation } = operationAt(origin.operationId, turnAt);
  return {
    type: "conversation.run.invited",
    by: { type: "workflow", runId, node },
    ...{ agentId, content },
    invited: { operationId, attempt, path },
    origin: { turn: turn.n, item: operation.item, attempt: origin.attempt },
    ...brought,
    ...defined({ traceparent }),
  };
}
