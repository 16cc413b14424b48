/** The context of a run: all that its actor gets from the platform, the application and other actors. `wiring.ts` builds it once. */
import type { Ids } from "../../ports/ids.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { ActorDatabase } from "../../ports/sql-database.ts";
import type { ActorAddress, NewEnvelope } from "../../protocol/envelope.ts";
import type { TaskExecutor } from "../../protocol/executor-api.ts";
import type { WholeResultApi } from "../../protocol/large-result.ts";
import type { ChildRun, ChildRunApi } from "../../protocol/run-call.ts";
import type { RunCallerApi } from "../../protocol/workflow-call.ts";
import type { Application } from "../base/application.ts";
import type { Copy } from "../base/copies/copy.ts";
import type { Withdrawal } from "../base/runtime/actor-core.ts";
import type { WakeupPorts } from "../base/runtime/armed-wakeup.ts";
import type { Client } from "../base/sockets/client.ts";
import type { OutboxRoom } from "./core/outbox-reservation.ts";
import type { RunState } from "./core/state.ts";

export interface StoredRun {
  readonly exists: boolean;
  /** Throws `NOT_FOUND` before the run was created. */
  readonly state: RunState;
}

/** The context of the runtime, in a Durable Object and in Node. */
export interface RuntimeContext extends WakeupPorts {
  ids: Ids;
  database: ActorDatabase;
  keyValue: KeyValue;
  executor: TaskExecutor;
  /** Resolves when it is the turn of the run among the runs of its isolate. */
  turn(): Promise<void>;
  /** As `Mailbox.send`. */
  send(envelope: NewEnvelope): Promise<void>;
  /** As `Mailbox.room`. */
  outboxRoom(): OutboxRoom;
  /** As `Mailbox.withdraw`. */
  withdraw(withdrawal: Withdrawal): void;
  /** The run's entry in the directory. */
  listing: Pick<Copy, "note">;
  /** The gates that wait for people, in the directory. */
  approvals: Pick<Copy, "note">;
}

export interface ActorContext
  extends RuntimeContext,
    Pick<CoordinatorApplication, "permitRun">,
    Pick<
      Application,
      "directory" | "eventLog" | "exporter" | "log" | "workflow" | "checkedInput" | "location"
    > {
  name(): string;
  /** Throws `INVALID_INPUT` unless the actor is in the jurisdiction that its id names. */
  checkPlace(): void;
  /** Keeps the actor alive for work. */
  waitUntil(work: Promise<unknown>): void;
  clients(): Iterable<Client>;
  /** The bounds of a run that a principal or a tool call starts. */
  bounds: Pick<ChildRun, "width" | "share">;
  run(tenant: string, runId: string): Promise<ChildRunApi>;
  conversation(tenant: string, id: string): Promise<RunCallerApi>;
  /** Finds the actor that sent an envelope. */
  sender(address: ActorAddress): Promise<WholeResultApi>;
}

export interface CoordinatorApplication extends Application {
  /** Branches above which a fan-out of a new run is spread; a default when absent. */
  fanOutWidth?: number;
  tree: { active: number; tokens: number; total: number };
  /** Reports whether the active runs of a project are limited. Throws `RATE_LIMITED` at the limit (SETTING-2). */
  permitRun(tenant: string, projectId: string): Promise<boolean>;
}
