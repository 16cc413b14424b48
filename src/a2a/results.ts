/**
 * Remote tasks as results of tool calls. Pure.
 *
 * A2ACALL-6  The artifacts of a completed task are the result, or else the message of its status. Texts are a text. Other content is a list of
 *            its parts: texts, data, and the names of files.
 * A2ACALL-7  A task that needs input is a result with the question and the `task_id`. Another call with this `task_id` answers it.
 * A2ACALL-8  A task that failed, or that was rejected or cancelled, is an error with its text.
 * A2ACALL-12 A task of a Dramatis server that waits for an approval is answered only after a person has approved the call that answers. The
 *            person sees the text of the request. The approval counts for this request only, and the message names the request. Before
 *            such a message, and before each message that approves or denies, the client asks what the task waits for now.
 */
import { z } from "zod";
import { TASK_MEMBER } from "../library/tools/remote-agent.ts";
import { ToolError } from "../library/tools/tool-error.ts";
import { type Elicited, isConfirmation, MAX_ELICITATION_BYTES } from "../protocol/elicitation.ts";
import { approvalIn } from "../protocol/remote-call.ts";
import { defined } from "../shared/defined.ts";
import { isJsonObject, type Json } from "../shared/json.ts";
import { sha256Hex } from "../shared/sha256.ts";
import { utf8Length } from "../shared/utf8.ts";
import type { RemotePart, RemoteTask } from "./wire.ts";

const QUESTIONS: ReadonlyMap<string, string> = new Map([
  ["TASK_STATE_INPUT_REQUIRED", "input_required"],
  ["TASK_STATE_AUTH_REQUIRED", "auth_required"],
]);

const WORKING: ReadonlySet<string> = new Set(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"]);

export function contentOf(groups: readonly (readonly RemotePart[])[]): Json {
  const parts = groups.flat();
  const texts = groups.map((group) => group.map(({ text = "" }) => text).join(""));
  if (parts.every(({ text }) => text !== undefined)) return texts.filter((text) => text !== "").join("\n\n");
  return parts.map(({ text, data, filename, mediaType }): Json => {
    if (text !== undefined) return { text };
    return data === undefined ? { file: filename || "unnamed", ...defined({ mediaType }) } : { data };
  });
}

/** Returns the result of a task; `undefined` while it works. Throws `ToolError` for a task that failed. */
export function taskResult({ id, status, artifacts }: RemoteTask): Json | undefined {
  const { state, message } = status;
  if (WORKING.has(state)) return undefined;
  const said = contentOf([message?.parts ?? []]);
  const question = QUESTIONS.get(state);
  if (question !== undefined)
    return {
      ...{ status: question, [TASK_MEMBER]: id, question: said },
      hint: `Answer with another call of this tool, with this \`${TASK_MEMBER}\`.${approvalForms(status).length > 0 ? ' Send the message "approve" or "deny". A person must approve this call.' : ""}`,
    };
  if (state === "TASK_STATE_COMPLETED") {
    const content = contentOf((artifacts ?? []).map(({ parts }) => parts));
    return content === "" ? said : content;
  }
  const text = typeof said === "string" ? said : JSON.stringify(said);
  const why = text === "" ? "It gave no reason." : text;
  if (state === "TASK_STATE_REJECTED")
    throw new ToolError(`The remote agent declined: ${why}`, { code: "AGENT_DECLINED" });
  const how = state === "TASK_STATE_CANCELED" ? "was cancelled by its server" : "failed";
  throw new ToolError(`The task of the remote agent ${how}: ${why}`);
}

export function isAsking({ status }: RemoteTask): boolean {
  return QUESTIONS.has(status.state);
}

const requestSchema = z.object({
  text: z.string(),
  /** The id of the request at its server. Absent if only the other server takes the answer. */
  id: z.string().exactOptional(),
});

/** A request for approval of a task that waits. */
export type ApprovalRequest = z.infer<typeof requestSchema>;

/** A task that waits for input, as it is stored. */
export const openTaskSchema = z.object({ contextId: z.string(), request: requestSchema.exactOptional() });

export type OpenTask = z.infer<typeof openTaskSchema>;

/** Returns the requests for approval of a task: the parts of its status with the JSON Schema of an answer with `approved` (A2ACALL-12). */
function approvalForms({ message }: RemoteTask["status"]): { id: string; values: unknown }[] {
  const member = (value: unknown, name: string) => (isJsonObject(value) ? value[name] : undefined);
  return (message?.parts ?? []).flatMap(({ data }) => {
    const properties = member(member(data, "answer"), "properties");
    if (member(properties, "approved") === undefined) return [];
    const id = member(data, "id");
    return [{ id: typeof id === "string" ? id : "", values: member(properties, "values") }];
  });
}

/** Returns what is stored of a task that waits for input: its context, and a request for approval. */
export function openTask({ contextId = "", status }: RemoteTask): OpenTask {
  const [form, ...others] = approvalForms(status);
  if (form === undefined) return { contextId };
  const text = (status.message?.parts ?? []).flatMap(({ text }) => text ?? []).join("\n\n");
  const mayAnswer = others.length === 0 && form.id !== "" && isConfirmation({ schema: form.values });
  return { contextId, request: { text, ...(mayAnswer && { id: form.id }) } };
}

/**
 * Returns the question to a person before a call answers a request for approval. Its state names the request, so that an approval counts for
 * this request only. Throws `ToolError` for an answer that neither approves nor denies, and for a request that only its own server can show
 * or answer.
 */
export async function approvalQuestion(
  host: string,
  { text, id }: ApprovalRequest,
  answer: string,
): Promise<Elicited> {
  const approved = approvalIn(answer);
  if (approved === undefined)
    throw new ToolError('The task waits for an approval. Send the message "approve" or "deny".', {
      code: "INVALID_INPUT",
    });
  const message = `The agent of "${host}" waits for an approval:\n\n${text}\n\nThe model answers "${approved ? "approve" : "deny"}". If you approve this call, the answer is sent. If you deny this call, nothing is sent, and the task keeps waiting.`;
  const problem =
    id === undefined
      ? "needs an answer that a message of this tool cannot give."
      : utf8Length(message) > MAX_ELICITATION_BYTES && "its text is too long to show to a person.";
  if (problem !== false)
    throw new ToolError(`The remote agent waits for an approval, and ${problem} Answer at "${host}".`);
  return { message, forms: [], urls: [], state: await sha256Hex(JSON.stringify([id, text])) };
}
