/** The context of a conversation: all that its actor gets from the platform, the application and other actors. `wiring.ts` builds it once. */
import type { MediaBudget } from "../../adapters/resilience/media-budget.ts";
import type { MetricsSink } from "../../adapters/resilience/telemetry.ts";
import type { StoredInfo } from "../../attachments/attachment-store.ts";
import type { ResultKeeper } from "../../attachments/result-keeper.ts";
import type { AdapterLookup } from "../../model/format-adapter.ts";
import type { ModelGateway } from "../../model/gateway.ts";
import type { Span } from "../../model/span.ts";
import type { RetentionPolicy } from "../../policy/retention.ts";
import type { TitlePolicy } from "../../policy/titles.ts";
import type { Ids } from "../../ports/ids.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { ByteRange } from "../../ports/object-store.ts";
import type { ActorDatabase } from "../../ports/sql-database.ts";
import type { AgentApi } from "../../protocol/agent-api.ts";
import type { ConversationApi } from "../../protocol/conversation-api.ts";
import type { CoordinatorApi } from "../../protocol/coordinator-api.ts";
import type { VersionChain } from "../../protocol/definitions.ts";
import type { ActorAddress, NewEnvelope } from "../../protocol/envelope.ts";
import type { TaskExecutor } from "../../protocol/executor-api.ts";
import type { Frame } from "../../protocol/frames.ts";
import type { WholeResultApi } from "../../protocol/large-result.ts";
import type { MemoryApi } from "../../protocol/memory.ts";
import type { CancelRemote } from "../../protocol/remote-call.ts";
import type { PostWebhook } from "../../protocol/webhooks.ts";
import type { WorkspaceApi } from "../../protocol/workspace.ts";
import type { RateLimit } from "../../shared/token-bucket.ts";
import type { Application } from "../base/application.ts";
import type { Copy } from "../base/copies/copy.ts";
import type { Withdrawal } from "../base/runtime/actor-core.ts";
import type { WakeupPorts } from "../base/runtime/armed-wakeup.ts";
import type { Client } from "../base/sockets/client.ts";
import type { PlanInput } from "./core/decisions.ts";
import type { Invitation } from "./core/signals.ts";
import type { ConversationIdentity, ConversationState } from "./core/state.ts";
import type { Turn } from "./core/turn.ts";

/** Finds the actor of a tenant by its id. */
export type Find<Api> = (tenant: string, id: string) => Promise<Api>;

/** The attachments of one conversation; `null` for an id that it does not have. */
export interface ConversationMedia {
  head(id: string): Promise<StoredInfo | null>;
  /** Returns bytes of the attachment that `head` described, all or a range; `null` if it is gone or another. */
  read(info: StoredInfo, range?: ByteRange): Promise<Uint8Array | null>;
}

/** The stores of results that are too large for their turns. */
export interface LargeResultStores {
  keeper: Pick<ResultKeeper, "keep">;
  /** Finds the actor that sent an envelope. */
  sender(address: ActorAddress): Promise<WholeResultApi>;
}

export interface StoredConversation {
  readonly exists: boolean;
  /** Throws `NOT_FOUND` before the conversation was created. */
  readonly state: ConversationState;
  /** Returns a turn, active or over; `null` for an unknown number. */
  readonly turn: (n: number) => Turn | null;
}

/** The context of the runtime, in a Durable Object and in Node. */
export interface RuntimeContext
  extends WakeupPorts,
    Pick<PlanInput, "gate" | "calls" | "agentTurns" | "clientToolTimeoutMs" | "approvalTimeoutMs"> {
  /** Also makes the placeholders of media. */
  ids: Ids;
  database: ActorDatabase;
  keyValue: KeyValue;
  gateway: ModelGateway;
  adapters: AdapterLookup;
  executor: TaskExecutor;
  /** Absent if attachments are not stored. */
  media?: ConversationMedia;
  /** The memory for media; unlimited when absent. */
  mediaBudget?: MediaBudget;
  resultStores: LargeResultStores;
  /** Foreground calls of tools that run at a time; `MAX_RUNNING_CALLS` when absent. */
  toolCalls?: number;
  /** Reports whether the call with an id was erased. Removes its stored results if it was (ERASE-9). */
  isErased(operationId: string): Promise<boolean>;
  /** Rate of accepted turns; absent = no limit. The count is in memory and restarts when the actor wakes. */
  turnLimit?: RateLimit;
  /** As `turnLimit`, of the changes that `ChangeRate` counts. */
  changeLimit?: RateLimit;
  /** Receives the metrics of every model call that is over. */
  metrics?: MetricsSink;
  /** Receives the spans that a commit has ended, of traces that are sampled. */
  spans?: (spans: readonly Span[]) => void;
  /** Receives all spans that a commit has ended. */
  log?: (spans: readonly Span[]) => void;
  agent: Find<Pick<MemoryApi, "offerMemories" | "searchMemories">>;
  /** Returns the note about the artifacts of a project, of types or of all. Without it, requests have no such note. */
  knowledge?(
    place: { tenant: string; project: string },
    types?: readonly string[],
  ): Promise<string | undefined>;
  run: Find<Pick<CoordinatorApi, "start" | "status" | "cancel">>;
  /** Returns the versions and the projects of an agent that joins. Throws `NOT_FOUND`, `FORBIDDEN`, `TOO_LARGE`. */
  invite(record: ConversationIdentity, agentId: string): Promise<Invitation>;
  /** Keeps the actor alive for work. */
  waitUntil(work: Promise<unknown>): void;
  /** As `Mailbox.send`. */
  send(envelope: NewEnvelope): Promise<void>;
  /** As `Mailbox.withdraw`. */
  withdraw(withdrawal: Withdrawal): void;
  /** As `Mailbox.discard`. */
  discard(operationId: string): void;
  /** As `Mailbox.room`. */
  outboxRoom: NonNullable<PlanInput["outboxRoom"]>;
  /** Publishes frames to all readers, in order. */
  publish(frames: Frame[]): void;
  /** Called after a commit that changed the usage and ended no turn. */
  onUsage(): void;
  /** Takes a commit, before its frames are published. */
  onCommit(): void;
  /** The calls that wait for people, in the directory. */
  approvals: Pick<Copy, "note" | "publish">;
  /** The conversation's entry in the directory and in the indexes of its agents. */
  listing: Pick<Copy, "note"> & {
    /** Announces a new conversation, in the transaction that creates it. Returns the wake-ups. */
    announce(record: ConversationIdentity): readonly Promise<void>[];
  };
  /** Without it, only people give titles. */
  titles?: TitlePolicy;
  /** The actors that subscribe. Absent if actors cannot subscribe. */
  subscribers?: { envelopes(seq: number): readonly NewEnvelope[] };
  /** The retention. Without it, the conversation stays. */
  retained?: { arm(record: ConversationIdentity): readonly Promise<void>[] };
}

export interface ActorContext
  extends RuntimeContext,
    Pick<Application, "directory" | "eventLog" | "stores" | "attachments" | "location"> {
  agent: Find<Pick<AgentApi, "persona" | "offerMemories" | "searchMemories">>;
  conversation: Find<
    Pick<ConversationApi, "remove" | "resolveApproval" | "hasApproval" | "view" | "takeFork">
  >;
  /** Absent if workspaces cannot exist. */
  workspace?: Find<Omit<WorkspaceApi, "perform">>;
  name(): string;
  owner(): { tenant: string; conversationId: string };
  clients(): Iterable<Client>;
  retention: RetentionPolicy;
  /** Absent if the deployment sends no notices to webhooks. */
  postWebhook?: PostWebhook;
  /** Cancels the task of a call of a remote agent. Throws `DramatisError`. Absent if there are no remote agents. */
  cancelRemote?: CancelRemote;
  /** Returns the versions of an agent as this tenant may import them. `path` is their place in the record. Throws `INVALID_INPUT`. */
  importedChain(tenant: string, chain: unknown, path: string): Promise<VersionChain>;
  /** As `Mailbox.forget`. */
  forgetMail(): boolean;
  listing: RuntimeContext["listing"] & Pick<Copy, "publish">;
  /** Ends the connections of principals who may no longer read the conversation. */
  expel(): void;
}

export interface ConversationApplication
  extends Application,
    Pick<
      ActorContext,
      | "gateway"
      | "knowledge"
      | "workspace"
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
      | "toolCalls"
      | "retention"
      | "titles"
      | "importedChain"
      | "postWebhook"
      | "cancelRemote"
    > {}
