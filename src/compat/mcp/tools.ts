/**
 * The tools of the MCP server: their names, their inputs and their results. Pure.
 *
 * MCP-1  The name of a tool names its agent or its workflow, so a call needs no list.
 * MCP-2  The result of a call is the answer once, with the ids that continue it. A failure is a result with `isError`, so that the
 *        calling model can react.
 */
import type { CallToolResult, StandardSchemaWithJSON } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { MemorySearchResult } from "../../protocol/memory-schemas.ts";
import type { RunView } from "../../protocol/run-schemas.ts";
import type { DramatisError, ErrorData } from "../../shared/errors.ts";
import { agentIdSchema } from "../../shared/id-schemas.ts";
import { isAgentId } from "../../shared/identifiers.ts";
import type { JsonObject } from "../../shared/json.ts";
import type { TurnAnswer } from "../answer.ts";
import type { Question, QuestionPlace } from "./questions.ts";

const ASK = "ask_";
const RUN = "run_";
const SEPARATOR = "__";

interface WorkflowKey {
  library: string;
  id: string;
}

export const askToolName = (agentId: string) => `${ASK}${agentId}`;

export function agentOfTool(name: string): string | undefined {
  const id = name.startsWith(ASK) ? name.slice(ASK.length) : "";
  return isAgentId(id) ? id : undefined;
}

export const runToolName = ({ library, id }: WorkflowKey) => `${RUN}${library}${SEPARATOR}${id}`;

/** Returns the workflow of a tool; `undefined` for other tools. A library with `__` in its id has no tools. */
export function workflowOfTool(name: string): WorkflowKey | undefined {
  if (!name.startsWith(RUN)) return undefined;
  const [library = "", ...rest] = name.slice(RUN.length).split(SEPARATOR);
  const id = rest.join(SEPARATOR);
  return library === "" || id === "" ? undefined : { library, id };
}

export const askInput = z.object({
  message: z.string().min(1).describe("The message to the agent."),
  conversation: z
    .string()
    .optional()
    .describe("The `conversationId` of an earlier result. The agent then knows the earlier messages."),
});

export const askOutput = z.object({
  answer: z.string(),
  conversationId: z.string(),
  turnId: z.string(),
  waiting: z.array(z.string()).optional().describe("Questions that wait for a person."),
});

export const SEARCH_MEMORY = "search_memory";

export const searchInput = z.object({
  agent: agentIdSchema.describe("The id of the agent."),
  query: z.string().min(1).max(2_000).describe("The question, or words of it."),
  limit: z.int().min(1).max(50).optional().describe("Memories at most; 10 when absent."),
});

/** Returns a schema that describes values and accepts all values: the actor checks them. */
export function describing(schema: JsonObject): StandardSchemaWithJSON<JsonObject> {
  const described = () => ({ type: "object", ...schema });
  return {
    "~standard": {
      version: 1,
      vendor: "dramatis",
      // SAFETY: the arguments of a call are an object of JSON.
      validate: (value) => ({ value: value as JsonObject }),
      jsonSchema: { input: described, output: described },
    },
  };
}

export function structured(
  { conversationId, turnId }: { conversationId: string; turnId: string },
  answer: string,
): z.output<typeof askOutput> {
  return { answer, conversationId, turnId };
}

export function turnResult(
  { conversationId, turnId }: { conversationId: string; turnId: string },
  { messages, error }: TurnAnswer,
): CallToolResult {
  const finished = messages.filter(({ isInterim }) => !isInterim);
  const answer = finished.map(({ content }) => content).join("\n\n");
  const structuredContent = structured({ conversationId, turnId }, answer);
  const next = `Conversation: ${conversationId}`;
  if (error === undefined) return { content: texts(answer, next), structuredContent };
  const { code, message } = error;
  return {
    content: texts(answer, `${code}: ${message}`, next),
    structuredContent: { ...structuredContent, error: { code, message } },
    isError: true,
  };
}

export function runResult({ id, status, output = {}, error }: RunView): CallToolResult {
  const runId = id;
  if (status === "completed")
    return {
      content: texts(JSON.stringify(output), `Run: ${runId}`),
      structuredContent: { runId, status, output },
    };
  const { code, message } = error ?? { code: "CANCELLED", message: "The run was cancelled." };
  return {
    content: texts(`${code}: ${message}`, `Run: ${runId}`),
    structuredContent: { runId, status, error: { code, message } },
    isError: true,
  };
}

/** Returns the result of a turn or a run that waits for a person, if the client cannot ask the person. */
export function waitingResult(
  structuredContent: Record<string, unknown>,
  questions: readonly Question[],
): CallToolResult {
  const waiting = questions.map(({ message }) => message);
  const places = questions.map(({ place }) => `Answer in the console, or with ${addressOf(place)}.`);
  const next = "Then ask again.";
  return {
    content: texts("It waits for a person.", ...waiting, ...places, next),
    structuredContent: { ...structuredContent, waiting },
  };
}

function addressOf(place: QuestionPlace): string {
  if ("runId" in place) return `POST /api/runs/${place.runId}/gates/${place.operationId}`;
  return `POST /api/conversations/${place.conversationId}/operations/${place.operationId}/approval`;
}

export function memoriesResult(matches: MemorySearchResult["matches"]): CallToolResult {
  const memories = matches.map(({ memory: { id, type, content } }) => ({ id, type, content }));
  const lines = memories.map(({ content }) => `- ${content}`);
  return {
    content: texts(lines.length === 0 ? "No memory matches." : lines.join("\n")),
    structuredContent: { memories },
  };
}

export function failure({ code, message }: DramatisError | ErrorData): CallToolResult {
  return { content: texts(`${code}: ${message}`), isError: true };
}

function texts(...parts: string[]): CallToolResult["content"] {
  return parts.filter((text) => text !== "").map((text) => ({ type: "text" as const, text }));
}
