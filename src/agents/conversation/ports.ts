/** What the classes of conversations are made from. */
import type { MetricsSink } from "../../adapters/resilience/telemetry.ts";
import type { AttachmentStore } from "../../attachments/attachment-store.ts";
import type { DeadLetterDirectory } from "../../d1/dead-letters.ts";
import type { Directory } from "../../d1/directory.ts";
import type { AdapterLookup } from "../../model/format-adapter.ts";
import type { ModelGateway } from "../../model/gateway.ts";
import type { Gate } from "../../policy/gate.ts";
import type { ActorLookup } from "../../protocol/actor-lookup.ts";
import type { RateLimit } from "../../shared/token-bucket.ts";
import type { TaskExecutor } from "../executor/types.ts";

/** What an application gives its conversations, each made from the environment. */
export interface ConversationClassPorts<Env> {
  gateway(env: Env): ModelGateway;
  executor(env: Env): TaskExecutor;
  actors(env: Env): Pick<ActorLookup, "agent">;
  /** `null` where there is no directory: then nothing is listed. */
  directory(env: Env): Directory | null;
  deadLetters(env: Env): DeadLetterDirectory | null;
  /** `null` where attachments are not kept. */
  attachments(env: Env): AttachmentStore | null;
  adapters: AdapterLookup;
  gate: Gate;
  /** Is told of model calls that are over. */
  metrics?: MetricsSink;
  /** How long a client has to run a tool, in milliseconds; ten minutes when absent. */
  clientToolTimeoutMs?: number;
  /** Turns that one conversation accepts; absent = as many as come. */
  turnLimit?: RateLimit;
}
