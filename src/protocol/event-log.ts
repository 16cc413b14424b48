/** The log of a tenant: the journal entries of its conversations and runs, and the texts of messages for the search. */
import { z } from "zod";
import type { Result } from "../shared/errors.ts";
import { inJurisdiction, type Jurisdiction } from "../shared/location.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import { journalEntry } from "./conversation-schemas.ts";
import { ENTRY_TYPES } from "./journal.ts";
import { ids, runId, time } from "./scalars.ts";
import { RUN_ENTRY_TYPES } from "./workflow-run.ts";

export const LOGGED_TYPES = [...new Set([...ENTRY_TYPES, ...RUN_ENTRY_TYPES])];
export type LoggedType = (typeof LOGGED_TYPES)[number];

/** Length of an entry's data in the log, as JSON. Longer data are omitted. */
export const MAX_LOGGED_DATA = 2_000;
/** Length of a message's text in the search, in UTF-16 units. A longer text is cut. */
export const MAX_SEARCHED_TEXT = 8_000;
/** Answers of a turn in the search: the last. */
export const MAX_SEARCHED_ANSWERS = 8;
/** Length of a query of the search. */
export const MAX_QUERY = 500;

const { seq: _seq, ...entryFields } = journalEntry.shape;

export const loggedEvent = z
  .strictObject({
    seq: z.int().min(1).describe("Its number in the log. Ascends; numbers may be skipped."),
    conversationId: ids.conversation
      .describe("Its conversation. An entry of a run has `runId` instead.")
      .exactOptional(),
    runId: runId.exactOptional(),
    parentRunId: runId.describe("The run that started the run.").exactOptional(),
    projectId: z.string(),
    agentId: ids.agent.describe("The agent of its turn.").exactOptional(),
    entry: z.int().min(1).describe("Its `seq` in the journal of its conversation or run."),
    ...entryFields,
    // SAFETY: a client may get a type of a later release.
    type: z.enum(LOGGED_TYPES) as z.ZodType<string>,
    token: z.int().min(0).describe("The token of a run.").exactOptional(),
    node: z.string().describe("The `ref` of the node of a run.").exactOptional(),
    code: z
      .string()
      .meta({ description: "The code of the error, if the entry is an incident.", example: "TIMEOUT" })
      .exactOptional(),
    dataOmitted: z
      .literal(true)
      .describe(`Its data have more than ${MAX_LOGGED_DATA} characters. Read them in the journal.`)
      .exactOptional(),
  })
  .meta({
    id: "LoggedEvent",
    description: "A journal entry of a conversation or a run, in the log of its tenant.",
  });

export type LoggedEvent = z.infer<typeof loggedEvent>;

export const MESSAGE_ROLES = ["user", "agent"] as const;

export const foundMessage = z
  .strictObject({
    conversationId: ids.conversation,
    title: z
      .string()
      .describe("The title of its conversation. Absent if the conversation has none.")
      .exactOptional(),
    turnId: ids.turn,
    messageId: ids.message,
    agentId: ids.agent,
    userId: z.string().describe("The person with the message that led to the turn.").exactOptional(),
    role: z.enum(MESSAGE_ROLES),
    time,
    snippet: z.string().describe("A part of the text. An ellipsis marks a cut."),
    marks: z.array(z.array(z.int().min(0)).length(2)).meta({
      description: "The begin and the end of each found word in `snippet`, in UTF-16 units.",
      example: [[5, 11]],
    }),
  })
  .meta({ id: "FoundMessage", description: "A message that contains the words of a search." });

export type FoundMessage = z.infer<typeof foundMessage>;

/** Selects events. Absent members do not filter. Times are in milliseconds since the epoch. */
export interface EventFilter {
  types?: readonly LoggedType[];
  conversation?: string;
  run?: string;
  agent?: string;
  correlation?: string;
  since?: number;
  until?: number;
  /** Events with a higher number. */
  after?: number;
}

export type EventsRequest = PageOptions & EventFilter;

/** The words of a search, and filters as in `EventFilter`. */
export interface SearchRequest extends Pick<PageOptions, "limit" | "cursor"> {
  q: string;
  agent?: string;
  /** The person with the message that led to the turn. */
  user?: string;
  /** Who wrote the message. */
  role?: FoundMessage["role"];
  since?: number;
  until?: number;
}

/** The text of a message. `at` is in milliseconds since the epoch. */
export interface PublishedText
  extends Omit<FoundMessage, "conversationId" | "title" | "time" | "snippet" | "marks"> {
  at: number;
  text: string;
}

export interface PublishedEntry
  extends Omit<LoggedEvent, "seq" | "entry" | "time" | "conversationId" | "runId" | "projectId"> {
  at: number;
  texts?: readonly PublishedText[];
}

export type LoggedJournal = { conversationId: string } | { runId: string };

export function loggedId(journal: LoggedJournal): string {
  return "runId" in journal ? journal.runId : journal.conversationId;
}

/** Entries of one journal, in order and without gaps. */
export type Publication = LoggedJournal & {
  projectId: string;
  /** The people who find the messages of the entries. */
  readers: readonly string[];
  /** The number of the journal's newest entry. */
  newest: number;
  /** The number of the first entry. */
  from: number;
  entries: readonly PublishedEntry[];
};

/** The RPC interface of the actor `EventLog`. */
export interface EventLogApi {
  /** Returns the last entry of a conversation or a run in the log; 0 if there is none. */
  published(id: string): Promise<Result<number>>;
  /** Appends entries that follow the last entry of their journal. Otherwise it changes nothing. Returns the last entry. */
  publish(publication: Publication): Promise<Result<number>>;
  /** Replaces entries that the log has. An older state never replaces a newer state. */
  replace(publication: Publication): Promise<Result<null>>;
  /** Removes entries and messages of a conversation. Returns true if more are left. */
  empty(conversationId: string): Promise<Result<boolean>>;
  /** Returns a page of events. Throws `FORBIDDEN` unless the principal is an operator. */
  events(principal: Principal, request: EventsRequest): Promise<Result<Page<LoggedEvent>>>;
  /** Returns the events after `after`, and then each new event, as server-sent events. Throws as `events`, and `RATE_LIMITED`. */
  follow(principal: Principal, filter: EventFilter): Promise<Result<ReadableStream<Uint8Array>>>;
  /** Returns messages that the principal may read, the newest first, without the titles of their conversations. */
  search(principal: Principal, request: SearchRequest): Promise<Result<Page<FoundMessage>>>;
}

/** Returns the id of the log of a tenant's conversations and runs in a jurisdiction. */
export function eventLogId(jurisdiction: Jurisdiction | undefined): string {
  return inJurisdiction("events", jurisdiction);
}
