/**
 * Schemas of the answers.
 *
 * API-1  Every answer fits its schema strictly: no field is missing, and no field is unknown to the schema.
 */
import { z } from "zod";
import { OPENAI_ERROR_TYPES } from "../../compat/openai/errors.ts";
import { referenceSchema } from "../../library/definitions/reference.ts";
import { personaSchema } from "../../library/personas/persona-schema.ts";
import {
  agentIdentity,
  agentSummary as agentSummarySchema,
  agentView as agentViewSchema,
} from "../../protocol/agent-api.ts";
import { inputIssues } from "../../protocol/conversation-schemas.ts";
import { clientFrameSchema } from "../../protocol/requests.ts";
import { definitionIdSchema } from "../../shared/id-schemas.ts";
import { PROBLEM_CODES } from "../base/problem.ts";

export const persona = personaSchema.meta({
  id: "Persona",
  description:
    "Prompt, memory and tools of an agent. A hook in `memory` names a task or a workflow: `contextAssembly` makes the provider's request of each cycle, `memoryExtraction` gets each completed turn. An agent that remembers without `memory.scope` shares what it learned among all of its users: set `user` where it has several.",
});
/** The input of `parsePersonaSource`. */
export const personaSource = z
  .union([referenceSchema, persona])
  .describe(
    'A persona, or a reference to one: `library/id`, `library/id@version`, or an object. `{libraryId: "library/id", version: "1"}` is accepted, too.',
  );
const shownPersona = z.union([
  z.strictObject({
    library: definitionIdSchema,
    id: definitionIdSchema,
    version: z.int().exactOptional(),
  }),
  persona,
]);

export const agent = agentIdentity.extend({ persona: shownPersona }).meta({ id: "Agent" });

export const agentSummary = agentSummarySchema.extend({ persona: shownPersona }).meta({ id: "AgentSummary" });

export const agentView = agentViewSchema.extend({ persona: shownPersona }).meta({ id: "AgentView" });

export const clientFrame = clientFrameSchema.meta({
  id: "ClientFrame",
  description: "A message of a client on a WebSocket. `id` is its idempotency key.",
  example: { type: "turn.start", id: "a key of yours", content: "Hello" },
});

export const problemDocument = z
  .strictObject({
    type: z.literal("about:blank"),
    title: z.string().describe("The status as text."),
    status: z.int(),
    detail: z.string().describe("The problem, and how to solve it."),
    code: z.enum(PROBLEM_CODES).describe("Stable code of the error."),
    errors: inputIssues.describe("Problems and their places; `path` is a JSON pointer.").exactOptional(),
    incident: z
      .string()
      .describe("Only with `INTERNAL_ERROR`: quote it when you report the error.")
      .exactOptional(),
  })
  .meta({
    id: "Problem",
    description: "The body of every error (RFC 9457).",
    example: {
      type: "about:blank",
      title: "Unprocessable Content",
      status: 422,
      detail: "The input is not valid: /title: Must have at least 1 character",
      code: "INVALID_INPUT",
      errors: [{ path: "/title", message: "Must have at least 1 character." }],
    },
  });

export const openAiErrorDocument = z
  .strictObject({
    error: z.strictObject({
      message: z.string().describe("The problem, and how to solve it."),
      type: z.enum(OPENAI_ERROR_TYPES),
      param: z.string().nullable().describe("The invalid field."),
      code: z.string().describe("Stable code of the error."),
    }),
  })
  .meta({ id: "OpenAiError", description: "The body of every error of `/v1`." });

export const a2aErrorDocument = z
  .looseObject({
    error: z.looseObject({
      code: z.int().describe("The status of HTTP for REST, the code of the error for JSON-RPC."),
      message: z.string().describe("The problem, and how to solve it."),
    }),
  })
  .meta({
    id: "A2aError",
    description:
      "The body of every error of `/a2a`: a `google.rpc.Status` for REST, an answer of JSON-RPC for JSON-RPC.",
  });

export function listOf(resource: string, item: z.ZodType): z.ZodObject {
  return z.strictObject({
    [resource]: z.array(item),
    nextCursor: z
      .string()
      .describe("The `cursor` of the next page; absent on the last page.")
      .exactOptional(),
  });
}
