/** The description of an operation. A route is a description with its handler (`route.ts`). */
import type { z } from "zod";
import type { RequestVariables } from "../base/context.ts";
import type { ProblemCode } from "../base/problem.ts";
import { listOf } from "./views.ts";

/** The groups of operations, in the order of the document. */
export const TAGS = {
  agents: "Agents to talk to.",
  memories: "Memories of agents: reading, writing, search and provenance.",
  libraries: "Personas, tools and model profiles, each with all its versions.",
  projects: "Projects and their git repositories.",
  conversations: "Conversations, their messages and their journal.",
  turns: "Sending messages, and reading the results.",
  events: "Following a conversation live, as server-sent events or over a WebSocket.",
  runs: "Runs of workflows, and their journals.",
  approvals: "Calls of tools and gates that wait for you.",
  triggers: "Starts of runs and turns at a time, by cron, or by a signed webhook.",
  openai: "The same for clients of the OpenAI API: a model is an agent. Errors are `{error}` here.",
  channels: "Places outside of Dramatis where people write to agents, such as Slack.",
  agui: "The same for clients of AG-UI, such as CopilotKit.",
  a2a: "The same for clients of A2A, such as agents of other systems.",
  delivery: "Dead letters between actors, for operators and administrators.",
  runtime: "The runtime itself.",
} as const;

export interface ApiOperation {
  /** Unique, in camel case. Generated clients name their functions after it. */
  id: string;
  method: "get" | "post" | "put" | "patch" | "delete";
  /** The route: `/api/agents/:id`. */
  path: string;
  tag: keyof typeof TAGS;
  /** A few words without a full stop. */
  summary: string;
  /** Whole sentences; `code` in backticks. */
  description?: string;
  /** One schema per path parameter. */
  params?: z.ZodObject;
  query?: z.ZodObject;
  headers?: z.ZodObject;
  /** Describes the body, and validates it unless there is `reads`. */
  body?: z.ZodType;
  /** The schema that validates the body, if the handler checks parts of it that `body` describes. */
  reads?: z.ZodType;
  /** The body may be absent. */
  optionalBody?: true;
  /** Maximum size of the body, in bytes, below the configured limit. */
  maxBytes?: number;
  /** Throws `FORBIDDEN` if the principal may not request the operation. */
  permit?(ports: RequestVariables, params: Record<string, string>): void;
  answers: readonly ApiResponse[];
  /** Error codes in addition to the common error codes. `route` adds the codes of the checks. */
  errors?: readonly ProblemCode[];
  /** Format of errors; problem documents when absent. */
  errorFormat?: "openai" | "a2a";
  /** The operation needs no credentials. */
  open?: true;
}

export interface ApiResponse {
  status: 101 | 200 | 201 | 202 | 204 | 304;
  description: string;
  body?: z.ZodType;
  /** Media type of the body; JSON when absent. */
  type?: "application/json" | "text/event-stream" | "application/octet-stream";
  /** Schema of each server-sent event, if the response can also be a stream. */
  stream?: z.ZodType;
  /** The response has the path of the created resource as `Location`. */
  location?: true;
}

export function isList({ method, query }: Pick<ApiOperation, "method" | "query">): boolean {
  return method === "get" && query !== undefined && Object.hasOwn(query.shape, "limit");
}

/** Errors of reading and checking a body. */
export const BODY_ERRORS = ["INVALID_JSON", "TOO_LARGE", "INVALID_INPUT"] as const;

/** The answer of an operation that has one: a body of JSON. */
export const ok = (description: string, body: z.ZodType): [ApiResponse] => [
  { status: 200, description, body },
];

export const onePage = (resource: string, item: z.ZodType) => ok("One page.", listOf(resource, item));
