/** The application's side of the class `Conversation`. */
import type { MetricsSink } from "../../adapters/resilience/metrics.ts";
import type { AttachmentStore } from "../../attachments/attachment-store.ts";
import type { DeadLetterDirectory } from "../../d1/dead-letters.ts";
import type { Directory } from "../../d1/directory.ts";
import type { AdapterLookup } from "../../model/format-adapter.ts";
import type { ModelGateway } from "../../model/gateway.ts";
import type { Gate } from "../../policy/gate.ts";
import type { ActorLookup } from "../../protocol/actor-lookup.ts";
import type { RateLimit } from "../../shared/token-bucket.ts";
import type { TaskExecutor } from "../executor/types.ts";

/** Everything that an application provides to its conversations. */
export interface ConversationClassPorts<Env> {
  gateway(env: Env): ModelGateway;
  executor(env: Env): TaskExecutor;
  actors(env: Env): Pick<ActorLookup, "agent">;
  /** Returns `null` where there is no directory: then lists contain no conversation. */
  directory(env: Env): Directory | null;
  deadLetters(env: Env): DeadLetterDirectory | null;
  /** Returns `null` where attachments are not stored. */
  attachments(env: Env): AttachmentStore | null;
  adapters: AdapterLookup;
  gate: Gate;
  /** Receives the metrics of every model call that is over. */
  metrics?: MetricsSink;
  /** Time limit of a tool that a client runs, in milliseconds; ten minutes when absent. */
  clientToolTimeoutMs?: number;
  /** Rate of turns that one conversation accepts; absent = no limit. */
  turnLimit?: RateLimit;
}
