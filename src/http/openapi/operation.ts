/** How a route is described. Each file of routes exports the descriptions of its own, beside their handlers. */
import type { z } from "zod";
import type { ProblemCode } from "../base/problem.ts";

/** The groups that operations are shown in, in this order. */
export const TAGS = {
  agents: "Who can be talked to.",
  libraries: "Personas, tools and model profiles, each with all its versions.",
  conversations: "Conversations, their messages and their journal.",
  turns: "Saying something, and reading what came of it.",
  events: "Following a conversation live, as server-sent events or over a WebSocket.",
  openai: "The same for clients of the OpenAI API: a model is an agent. Errors are `{error}` here.",
  delivery: "What could not be delivered between actors; for operators and administrators.",
  runtime: "The runtime itself.",
} as const;

export interface ApiOperation {
  /** Unique, in camel case: generated clients name their functions after it. */
  id: string;
  method: "get" | "post" | "put" | "patch" | "delete";
  /** As it is routed: `/api/agents/:id`. */
  path: string;
  tag: keyof typeof TAGS;
  /** A few words without a full stop. */
  summary: string;
  /** Whole sentences; `code` in backticks. */
  description?: string;
  /** One schema for each parameter of the path. */
  params?: z.ZodObject;
  query?: z.ZodObject;
  headers?: z.ZodObject;
  /** What validates the body. */
  body?: z.ZodObject;
  answers: readonly ApiResponse[];
  /** Codes that this operation may answer with beside those that every operation may. */
  errors?: readonly ProblemCode[];
  /** How errors look; problem documents when absent. */
  errorFormat?: "openai";
  /** Asks nobody who they are. */
  open?: true;
}

/** An answer that is no error. */
export interface ApiResponse {
  status: 101 | 200 | 201 | 202 | 204 | 304;
  description: string;
  body?: z.ZodType;
  /** What the body is; JSON when absent. */
  type?: "application/json" | "text/event-stream" | "application/octet-stream";
  /** What each server-sent event holds, where the same may be answered as a stream. */
  stream?: z.ZodType;
  /** Whether `Location` is the path of what was created. */
  location?: true;
}

/** What reading a body, and checking it, may end with. */
export const BODY_ERRORS = ["INVALID_JSON", "TOO_LARGE", "INVALID_INPUT"] as const;
