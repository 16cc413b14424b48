/**
 * The requests of A2A: their schemas, and the conversion of a message to a turn or to answers. Pure.
 *
 * A2A-6  A message without a task starts a turn. A message with a task answers the requests of the task. The answer is a data part
 *        `{ approved, reason?, values?, id? }` for each request. If there is one request, the texts `approve` and `deny` answer it, too. The same
 *        message again answers the same requests, so a repeat has no further effect. The other answer under the same id is refused.
 */
import { z } from "zod";
import { approvalIn } from "../../protocol/remote-call.ts";
import { type ApprovalAnswer, approvalFields, identifier, type StartTurn } from "../../protocol/requests.ts";
import { anyValue } from "../../protocol/scalars.ts";
import type { TaskFilter } from "../../protocol/turn-records.ts";
import { parseContent } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import { isConversationId } from "../../shared/identifiers.ts";
import { isPlainObject, UNICODE_RULE } from "../../shared/json.ts";
import { DEFAULT_PAGE_SIZE } from "../../shared/page.ts";
import { invalidAt, validate } from "../../shared/validation.ts";
import { userContent } from "../content.ts";
import { type QuestionPlace, questionKey } from "../mcp/questions.ts";
import { sentConfig } from "./push.ts";

const MAX_PARTS = 64;
const MAX_ID = 255;
const PARTS = "/message/parts";

const EXAMPLE = { messageId: "a key of yours", role: "ROLE_USER", parts: [{ text: "What is 12*(3+4)?" }] };

export const rpcSchema = z
  .object({
    jsonrpc: z.literal("2.0"),
    id: z
      .union([z.string().max(MAX_ID), z.int()])
      .nullish()
      .describe("The answer has it, too."),
    method: z.string().describe("`SendMessage`, `GetTask`, `ListTasks` or another method of A2A 1.0."),
    params: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({
    example: {
      jsonrpc: "2.0",
      id: 1,
      method: "SendMessage",
      params: { message: EXAMPLE },
    },
  });

/** The members with JSON of clients. */
const FREE = new Set(["data", "metadata"]);

/**
 * Returns parameters with the names of JSON. ProtoJSON also allows the names of the protocol's definition, such as `task_id`. JSON of
 * clients keeps its names.
 */
export function jsonNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(jsonNames);
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const own = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
      return [own, FREE.has(own) ? member : jsonNames(member)];
    }),
  );
}

export type RpcRequest = z.output<typeof rpcSchema>;

const key = identifier.refine((text) => text.isWellFormed(), UNICODE_RULE);

const media = { mediaType: z.string().optional(), filename: z.string().optional() };
const part = z.union(
  [
    z.object({ text: z.string(), ...media }),
    z.object({ raw: z.base64(), ...media }),
    z.object({ url: z.string().min(1), ...media }),
    z.object({ data: anyValue, ...media }),
  ],
  "Must have `text`, `raw`, `url` or `data`.",
);
type Part = z.output<typeof part>;

const message = z.object({
  messageId: key,
  role: z.literal("ROLE_USER"),
  parts: z.array(part).min(1).max(MAX_PARTS),
  contextId: z.string().max(MAX_ID).optional(),
  taskId: z.string().max(MAX_ID).optional(),
});
export type SentMessage = z.output<typeof message>;

export const sendParams = z
  .object({
    message,
    configuration: z
      .object({
        returnImmediately: z.boolean().optional(),
        historyLength: z.int().min(0).optional(),
        taskPushNotificationConfig: sentConfig.optional(),
      })
      .optional(),
  })
  .meta({ example: { message: EXAMPLE } });

export const taskParams = z.object({ id: z.string().max(MAX_ID), historyLength: z.int().min(0).optional() });

const STATES = [
  ...["UNSPECIFIED", "SUBMITTED", "WORKING", "COMPLETED", "FAILED", "CANCELED"],
  ...["INPUT_REQUIRED", "REJECTED", "AUTH_REQUIRED"],
].map((name) => `TASK_STATE_${name}`);

/** Tasks on a page of a list. */
const MAX_TASKS = 100;

export const listParams = z.object({
  contextId: z.string().max(MAX_ID).optional(),
  status: z.enum(STATES).optional(),
  pageSize: z.int().min(1).max(MAX_TASKS).default(DEFAULT_PAGE_SIZE),
  pageToken: z.string().max(512).optional(),
  historyLength: z.int().min(0).default(0),
  statusTimestampAfter: z.union([z.literal(""), z.iso.datetime({ offset: true })]).optional(),
  includeArtifacts: z.boolean().default(false),
});
export type ListParams = z.output<typeof listParams>;

/** Returns the filter of a list; `null` if no task can match. */
export function taskFilter({
  contextId = "",
  status,
  statusTimestampAfter: after = "",
}: ListParams): TaskFilter | null {
  if (contextId !== "" && !isConversationId(contextId)) return null;
  const own = status === undefined ? "UNSPECIFIED" : status.slice("TASK_STATE_".length);
  const listed = own === "UNSPECIFIED" ? undefined : LISTED[own];
  if (own !== "UNSPECIFIED" && listed === undefined) return null;
  return defined({
    conversation: contextId === "" ? undefined : contextId,
    status: listed,
    since: after === "" ? undefined : new Date(after).toISOString(),
  });
}

const LISTED: Readonly<Record<string, TaskFilter["status"]>> = {
  ...{ WORKING: "active", INPUT_REQUIRED: "active" },
  ...{ COMPLETED: "completed", FAILED: "failed", CANCELED: "stopped" },
};

const approval = z.strictObject({ ...approvalFields, id: z.string().optional() });

/** Returns the turn that a message starts. The same message again has the same turn. */
export function turnOfMessage({ messageId, parts }: SentMessage): StartTurn {
  return { content: parseContent(userContent(parts, toPart), PARTS), idempotencyKey: messageId };
}

type MessageAnswer = ApprovalAnswer & { operationId: string };

/** Returns the answers of a message to requests of its task (A2A-6). Throws `INVALID_INPUT`. */
export function answersOfMessage({ parts }: SentMessage, asked: readonly QuestionPlace[]): MessageAnswer[] {
  const answers = parts.flatMap((given, index) => {
    const read = answerIn(given, `${PARTS}/${index}`);
    return read === undefined ? [] : [{ ...read, path: `${PARTS}/${index}` }];
  });
  if (answers.length === 0)
    throw invalidAt(
      PARTS,
      'Must answer the requests of the task. Send a data part {"approved": true}, or the text "approve" or "deny".',
    );
  const answered = new Set<string>();
  return answers.map(({ id = "", path, ...given }) => {
    const [first, ...others] = asked;
    const [, key, shownRound] = /^(.*?)(?::(\d+))?$/s.exec(id) ?? [];
    const place = id === "" ? first : asked.find((one) => questionKey(one) === key);
    if (place === undefined) throw invalidAt(path, "Must have the id of a request of the task.");
    if (id === "" && others.length > 0)
      throw invalidAt(path, "The task has several requests. Send a data part with the id of each.");
    const { operationId } = place;
    if (answered.has(operationId))
      throw invalidAt(path, "Must answer another request than the parts before it.");
    answered.add(operationId);
    if (shownRound === undefined) return { operationId, ...given };
    return { operationId, round: Number(shownRound), ...(given.approved && { values: {} }), ...given };
  });
}

/** Reads the answer in a part. Other texts are comments. */
function answerIn(given: Part, path: string): z.output<typeof approval> | undefined {
  if ("data" in given) return validate(approval, given.data, `${path}/data`);
  if (!("text" in given)) return undefined;
  const approved = approvalIn(given.text);
  return approved === undefined ? undefined : { approved };
}

function toPart(given: Part) {
  if ("text" in given) return { type: "text" as const, text: given.text };
  if ("data" in given) return { type: "text" as const, text: JSON.stringify(given.data) };
  const { mediaType, filename: name } = given;
  const type = mediaType?.startsWith("image/") === true ? ("image" as const) : ("file" as const);
  const url =
    "raw" in given ? `data:${mediaType ?? "application/octet-stream"};base64,${given.raw}` : given.url;
  return { type, url, ...defined({ mediaType, name }) };
}
