/**
 * Questions of turns and runs to the person at the client: approvals of calls, and gates. Pure.
 *
 * MCP-7  The key of a question names its turn or run and its operation. So any isolate takes the answer, and a retried call continues its
 *        turn or run instead of beginning another.
 * MCP-8  The answer counts as an answer of the client's principal: it needs the same rights as over HTTP. A client is asked only what its
 *        principal may answer.
 */
import type { ElicitRequestFormParams } from "@modelcontextprotocol/server";
import { type AnsweredBy, mayAnswer } from "../../protocol/approval.ts";
import type { TurnView } from "../../protocol/conversation-schemas.ts";
import type { ElicitationView } from "../../protocol/elicitation.ts";
import type { ApprovalAnswer } from "../../protocol/requests.ts";
import type { GateView, RunView } from "../../protocol/run-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { isConversationId, RUN_ID } from "../../shared/identifiers.ts";
import { isJson, isJsonObject, isPlainObject, type Json } from "../../shared/json.ts";
import type { Principal } from "../../shared/principal.ts";

/** The place of a question: an operation of a turn, or a gate of a run. */
export type QuestionPlace =
  | { conversationId: string; turnId: string; operationId: string }
  | { runId: string; operationId: string };

export interface Question<Place extends QuestionPlace = QuestionPlace> {
  place: Place;
  /** A form for the client; `undefined` if its forms cannot ask it. */
  form: ElicitRequestFormParams | undefined;
  message: string;
  /** The question of an MCP server during the call. */
  elicitation?: ElicitationView;
}

export interface GivenAnswer {
  place: QuestionPlace;
  action: "accept" | "decline" | "cancel";
  content: Record<string, unknown>;
}

const PREFIX = "dramatis";
const SEPARATOR = ":";

export function questionKey(place: QuestionPlace): string {
  const ids = "runId" in place ? [place.runId] : [place.conversationId, place.turnId];
  return [PREFIX, ...ids, place.operationId].join(SEPARATOR);
}

/** Reads an answer under its key. Returns `undefined` for questions of other origin. */
export function givenAnswer(key: unknown, result: unknown): GivenAnswer | undefined {
  const [prefix, first = "", ...rest] = typeof key === "string" ? key.split(SEPARATOR) : [];
  const [turnId = "", operationId = ""] = rest;
  if (prefix !== PREFIX || !isPlainObject(result)) return undefined;
  const { action, content } = result;
  if (action !== "accept" && action !== "decline" && action !== "cancel") return undefined;
  const answer = { action, content: isPlainObject(content) ? content : {} } as const;
  if (RUN_ID.test(first)) return { place: { runId: first, operationId: rest.join(SEPARATOR) }, ...answer };
  if (!isConversationId(first)) return undefined;
  return { place: { conversationId: first, turnId, operationId }, ...answer };
}

/** Returns the answer for the conversation; `undefined` if the person closed the form. */
export function approvalOf({ action, content }: GivenAnswer): ApprovalAnswer | undefined {
  if (action === "cancel") return undefined;
  const reason = typeof content.reason === "string" && content.reason !== "" ? content.reason : undefined;
  return { approved: action === "accept" && content.approved === true, ...defined({ reason }) };
}

/** Returns the answer for the gate; `undefined` if the person gave no answer. */
export function gateAnswerOf({ action, content }: GivenAnswer): Json | undefined {
  return action === "accept" && isJson(content) ? content : undefined;
}

export function questionsOfTurn(
  { conversationId, turnId }: { conversationId: string; turnId: string },
  { moves, agentId }: TurnView,
  principal: Principal,
): Question[] {
  const waiting = moves.flatMap(({ toolCall, toolResult }) => {
    if (toolCall === undefined || toolResult !== undefined) return [];
    const { approval, agent } = toolCall;
    const own = approval !== undefined && approval.outcome === undefined;
    return [...(own ? [{ ...toolCall, ...approval, agentId }] : []), ...(agent?.asks ?? [])];
  });
  return waiting
    .filter((asked) => mayAnswer(asked, principal, true))
    .map(({ operationId, name, input, agentId: agent, elicitation }) => {
      const place = { conversationId, turnId, operationId };
      const message = approvalText(agent, name, input, elicitation);
      // A form cannot have the values of another server's question beside the approval.
      const form = elicitation === undefined ? { message, requestedSchema: APPROVAL_FORM } : undefined;
      return { place, message, form, ...defined({ elicitation }) };
    });
}

/** Returns the text of a request for approval, with the question of an MCP server if the call has one. */
export function approvalText(
  agentId: string,
  name: string,
  input: unknown,
  elicitation?: ElicitationView,
): string {
  const text = `The agent "${agentId}" wants to call ${name} with ${JSON.stringify(input ?? {})}.`;
  return elicitation === undefined ? text : `${text} The server of the tool asks: ${elicitation.message}`;
}

/** The JSON Schema of an answer to a request for approval. */
const APPROVAL_FORM: ElicitRequestFormParams["requestedSchema"] = {
  type: "object",
  properties: {
    approved: { type: "boolean", title: "Approve", description: "The call runs as shown." },
    reason: { type: "string", title: "Reason", description: "The agent gets the reason of a denial." },
  },
  required: ["approved"],
};

/** Returns the JSON Schema of an answer, with the values for the question of an MCP server if the call has one. */
export function answerForm(elicitation?: ElicitationView): Record<string, unknown> {
  if (elicitation === undefined) return APPROVAL_FORM;
  const { schema = { type: "object" } } = elicitation;
  return { ...APPROVAL_FORM, properties: { ...APPROVAL_FORM.properties, values: schema } };
}

export function questionsOfRun({ id, gates }: RunView, principal: Principal): Question[] {
  return gates
    .filter((gate: GateView & AnsweredBy) => mayAnswer(gate, principal, true))
    .map(({ operationId, prompt, schema }) => {
      const place = { runId: id, operationId };
      return { place, message: prompt, form: isForm(schema) ? formOf(prompt, schema) : undefined };
    });
}

const FORM_TYPES = ["string", "number", "integer", "boolean"];

/** Reports whether a form of a client can ask for a value of a schema: an object of plain members. */
function isForm({ type, properties = {} }: Record<string, unknown>): boolean {
  if (type !== "object" || !isJsonObject(properties)) return false;
  return Object.values(properties).every(
    (member) => isJsonObject(member) && FORM_TYPES.includes(String(member.type)),
  );
}

function formOf(message: string, { properties, required }: Record<string, unknown>): ElicitRequestFormParams {
  // SAFETY: `isForm` has checked the members.
  const requestedSchema = { type: "object", properties: properties ?? {}, ...defined({ required }) } as never;
  return { message, requestedSchema };
}
