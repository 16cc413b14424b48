/** The inputs and options of the functions of the client. */
import type { ConversationListOptions } from "../protocol/conversation-api.ts";
import type { NewConversation } from "../protocol/conversation-requests.ts";
import type { NewRun } from "../protocol/coordinator-api.ts";
import type { EventFilter, SearchRequest } from "../protocol/event-log.ts";
import type { StopOptions } from "../protocol/requests.ts";
import type { TurnFilter } from "../protocol/turn-records.ts";
import type { ApprovalFilter } from "../protocol/waiting-approvals.ts";
import type { RunStatus } from "../protocol/workflow-run.ts";
import type { Jurisdiction } from "../shared/location.ts";
import type { PageOptions } from "../shared/page.ts";
import type { Token } from "./requests.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface ClientOptions {
  /** Address of the server with its scheme, without a path; the address of the page by default. */
  baseUrl?: string;
  /** The runtime's `fetch` by default. */
  fetch?: Fetch;
  /** A function is called for each request. */
  token?: Token;
}

export interface RequestOptions {
  signal?: AbortSignal;
}

/** Options of a request to stop or to resume. `reason` is kept in the journal, at most 500 characters. */
export type StopRequest = StopOptions & RequestOptions;

export type PageRequest = PageOptions & RequestOptions;

/** `sort: "activity"` lists the latest first. `pinned` and `archived` filter by your pins and your archive. */
export type ConversationsRequest = ConversationListOptions & RequestOptions;

/** The request for a conversation with an agent. */
export type ConversationInput = NewConversation & { agentId: string };

/** The request that starts a run. */
export type RunInput = NewRun;

/** The members filter. `workflow` is `library/id`, or `library/id@version`. `text` is a part of the name, or of the name of the workflow. */
export type RunsRequest = PageRequest & { status?: RunStatus; workflow?: string; text?: string };

/** The members filter. `since` is a month, a day or a time in ISO 8601. */
export type WaitingRequest = PageRequest & Omit<ApprovalFilter, "since"> & { since?: string };

/** The members filter. `since` and `until` are a month, a day or a time in ISO 8601: `until` includes a month or a day. */
export type TurnsListRequest = PageRequest &
  Omit<TurnFilter, "since" | "until"> & { since?: string; until?: string };

/**
 * The members filter. `since` and `until` are a month, a day or a time in ISO 8601: `until` includes a month or a day. `type` has names of
 * entries, separated by commas.
 */
export type EventsRequest = PageRequest & FollowRequest;

/** As `EventsRequest`, for events to come. */
export type FollowRequest = RequestOptions &
  Omit<EventFilter, "types" | "since" | "until"> & {
    type?: string;
    since?: string;
    until?: string;
    jurisdiction?: Jurisdiction;
  };

/** The members filter. `since` and `until` are a month, a day or a time in ISO 8601: `until` includes a month or a day. */
export type MessageSearch = RequestOptions &
  Omit<SearchRequest, "since" | "until"> & { since?: string; until?: string; jurisdiction?: Jurisdiction };

/** The members filter. `path` is a folder. */
export type ArtifactsRequest = RequestOptions & Pick<PageOptions, "limit"> & { path?: string; type?: string };

export interface UploadOptions extends RequestOptions {
  /** Name of the file; the name of a `File` by default. */
  name?: string;
}
