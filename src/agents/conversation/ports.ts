/** The application's side of the class `Conversation`. */
import type { AttachmentStore } from "../../attachments/attachment-store.ts";
import type { DeadLetterDirectory } from "../../d1/dead-letters.ts";
import type { Directory } from "../../d1/directory.ts";
import type { ModelGateway } from "../../model/gateway.ts";
import type { Span, SpanExporter } from "../../model/span.ts";
import type { ActorLookup } from "../../protocol/actor-lookup.ts";
import type { VersionChain } from "../../protocol/definitions.ts";
import type { TaskExecutor } from "../../protocol/executor-api.ts";
import type { LocationPolicy } from "../../protocol/location-policy.ts";
import type { OwnedStore } from "../base/removal/owned-stores.ts";
import type { ConversationPorts } from "./runtime.ts";

/** The ports of a conversation that are the same in every environment. */
type CommonPorts = Pick<
  ConversationPorts,
  | "adapters"
  | "mediaBudget"
  | "gate"
  | "calls"
  | "metrics"
  | "turnLimit"
  | "changeLimit"
  | "agentTurns"
  | "clientToolTimeoutMs"
  | "approvalTimeoutMs"
>;

/** Everything that an application provides to its conversations. */
export interface ConversationClassPorts<Env> extends CommonPorts {
  gateway(env: Env): ModelGateway;
  executor(env: Env): TaskExecutor;
  actors(env: Env): Pick<ActorLookup, "agent" | "conversation" | "coordinator">;
  /** Returns `null` where there is no directory: then lists contain no conversation. */
  directory(env: Env): Directory | null;
  deadLetters(env: Env): DeadLetterDirectory | null;
  /** Returns the stores outside of actors that hold data of conversations and agents. */
  stores(env: Env): readonly OwnedStore[];
  /** Returns the versions of an agent as a tenant may import them. Throws as `importedChain` does. */
  importedChain(env: Env, tenant: string, chain: unknown, path: string): Promise<VersionChain>;
  /** Where the conversations of a tenant may live. */
  location(tenant: string): LocationPolicy;
  /** Returns `undefined` where spans are not exported. */
  exporter(env: Env): SpanExporter | undefined;
  /** Returns `undefined` if spans are not logged. */
  log(env: Env): ((spans: readonly Span[]) => void) | undefined;
  /** Returns `null` where attachments are not stored. */
  attachments(env: Env): AttachmentStore | null;
  maxAttachmentBytes: number;
}
