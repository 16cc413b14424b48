/**
 * The body that `useChat` sends: its schema, and its conversion to a turn or to answers to requests for approval. Pure.
 *
 * UIAPPROVE-1  Only the last message answers requests for approval, and only by their ids. Other data in it, such as another input or
 *              another tool, is ignored. The call runs with the server's input.
 */
import { z } from "zod";
import type { ApprovalAnswer, StartTurn } from "../../protocol/requests.ts";
import { approvalFields, MAX_APPROVALS } from "../../protocol/requests.ts";
import { parseContent } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import { isOperationId, isTurnId } from "../../shared/identifiers.ts";
import { validate } from "../../shared/validation.ts";
import { userContent } from "../content.ts";

const message = z
  .looseObject({ id: z.string(), role: z.enum(["system", "user", "assistant"]), parts: z.array(z.unknown()) })
  .describe("A `UIMessage`.");

export const chatSchema = z
  .strictObject({
    id: z.string().describe("The chat's id on the page. Ignored.").exactOptional(),
    messages: z.array(message).min(1),
    trigger: z.enum(["submit-message", "regenerate-message"]).exactOptional(),
    messageId: z.string().exactOptional(),
  })
  .meta({
    example: {
      messages: [
        { id: "a key of yours", role: "user", parts: [{ type: "text", text: "What is 12*(3+4)?" }] },
      ],
      trigger: "submit-message",
    },
  });

const userMessage = z.looseObject({
  id: z.string().min(1).max(200),
  role: z.literal("user", "The last message must be the user's."),
  parts: z
    .array(
      z.discriminatedUnion("type", [
        z.looseObject({ type: z.literal("text"), text: z.string() }),
        z.looseObject({
          type: z.literal("file"),
          mediaType: z.string().min(1),
          url: z.string().min(1),
          filename: z.string().nullish(),
        }),
      ]),
    )
    .min(1),
});

const answeredMessage = z.looseObject({
  id: z.string().refine(isTurnId, "Must be the id that the stream of the message began with."),
  parts: z.array(z.unknown()).max(10_000),
});

const shownCall = z.looseObject({ toolCallId: z.string() });

const answeredPart = z.looseObject({ state: z.literal("approval-responded") });

const answer = z.looseObject({
  approval: z.looseObject({
    id: z.string().refine(isOperationId, "Must be the id of a request for approval."),
    ...approvalFields,
  }),
});

/** Answers of a page to the requests for approval of a turn. */
export interface ChatAnswers {
  turnId: string;
  shown: string[];
  answers: { operationId: string; answer: ApprovalAnswer }[];
}

/** Returns the answers in the last message, if any (UIAPPROVE-1). Throws `INVALID_INPUT`. */
export function chatAnswers({ messages }: z.output<typeof chatSchema>): ChatAnswers | undefined {
  const last = messages.length - 1;
  const message = messages[last];
  const answered = (message?.role === "assistant" ? message.parts : []).flatMap((part, index) =>
    answeredPart.safeParse(part).success ? [{ part, index }] : [],
  );
  if (answered.length === 0) return undefined;
  const { id: turnId, parts } = validate(answeredMessage, message, `/messages/${last}`);
  const shown = parts.flatMap((part) => shownCall.safeParse(part).data?.toolCallId ?? []);
  if (answered.length > MAX_APPROVALS)
    throw invalid(
      `/messages/${last}/parts: Answers ${answered.length} approvals. Answer at most ${MAX_APPROVALS} in one message.`,
    );
  const answers = answered.map(({ part, index }) => {
    const { approval } = validate(answer, part, `/messages/${last}/parts/${index}`);
    const { id: operationId, approved, reason } = approval;
    return [operationId, { operationId, answer: { approved, ...defined({ reason }) } }] as const;
  });
  // A request is answered once; the last answer to it counts.
  return { turnId, shown, answers: [...new Map(answers).values()] };
}

/** The message to answer again: the turn of its answer, if the page has it, and the id of the user's message. */
export interface ChatRegeneration {
  turnId: string | undefined;
  userMessageId: string;
}

/** Returns the message to answer again; `undefined` for other requests. Throws `INVALID_INPUT`. */
export function chatRegeneration({
  messages,
  trigger,
  messageId,
}: z.output<typeof chatSchema>): ChatRegeneration | undefined {
  if (trigger !== "regenerate-message") return undefined;
  const last = messages.length - 1;
  const { id } = validate(userMessage, messages[last], `/messages/${last}`);
  return {
    turnId: messageId !== undefined && isTurnId(messageId) ? messageId : undefined,
    userMessageId: id,
  };
}

/** Returns the turn that the last message starts. Earlier messages are ignored. Throws `INVALID_INPUT` or `UNSUPPORTED`. */
export function chatTurn({ messages }: z.output<typeof chatSchema>): StartTurn {
  const last = messages.length - 1;
  const { id, parts } = validate(userMessage, messages[last], `/messages/${last}`);
  const content = parseContent(userContent(parts, toPart), `/messages/${last}/parts`);
  return { content, idempotencyKey: id };
}

function toPart(part: z.output<typeof userMessage>["parts"][number]) {
  if (part.type === "text") return { type: "text" as const, text: part.text };
  const { url, mediaType, filename } = part;
  const type = mediaType.startsWith("image/") ? ("image" as const) : ("file" as const);
  return { type, url, mediaType, ...defined({ name: filename ?? undefined }) };
}
