/** The application's parts for each of its actors, in one environment. */
import type { AttachmentStore } from "../../attachments/attachment-store.ts";
import type { Directory } from "../../d1/directory.ts";
import type { Span, SpanExporter } from "../../model/span.ts";
import type { ActorLookup } from "../../protocol/actor-lookup.ts";
import type { TaskExecutor } from "../../protocol/executor-api.ts";
import type { LocationPolicy } from "../../protocol/location-policy.ts";
import type { PinnedWorkflow } from "../../protocol/pinned-workflow.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import type { JsonObject } from "../../shared/json.ts";
import type { EventLogWriter } from "./lookup/event-logs.ts";
import type { OwnedStore } from "./removal/owned-stores.ts";

export interface Application {
  actors: ActorLookup;
  executor: TaskExecutor;
  /** Returns `null` if there is no directory. */
  directory(): Directory | null;
  /** Returns `null` if there is no log of events. */
  eventLog(): EventLogWriter | null;
  /** Returns the stores outside of actors with data of conversations and agents. */
  stores(): readonly OwnedStore[];
  /** `null` if attachments are not stored. */
  attachments: AttachmentStore | null;
  maxAttachmentBytes: number;
  /** `undefined` if spans are not exported. */
  exporter: SpanExporter | undefined;
  /** `undefined` if spans are not logged. */
  log: ((spans: readonly Span[]) => void) | undefined;
  /** The permitted places of a tenant's actors. */
  location(tenant: string): LocationPolicy;
  /** Resolves a workflow of a tenant with all that it runs. Throws `NOT_FOUND` or `INVALID_INPUT`. */
  workflow(tenant: string, reference: DefinitionReference): Promise<PinnedWorkflow>;
  /** Returns an input as the workflow takes it. `path` is its place in the request. Throws `INVALID_INPUT`. */
  checkedInput(workflow: PinnedWorkflow, input: JsonObject, path?: string): JsonObject;
}
