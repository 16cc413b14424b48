/** The body of a response: its schema, and what it asks a conversation for. Pure. */
import { z } from "zod";
import type { StartTurn } from "../../protocol/conversation-api.ts";
import type { Content } from "../../shared/content.ts";
import {
  callArguments,
  contentOf,
  type InputItem,
  invalidInput,
  type TurnInput,
  turnInput,
} from "./input.ts";
import {
  agentModel,
  IGNORED,
  jsonSchema,
  only,
  outputSpec,
  REFUSED,
  toolName,
  toolSpec,
} from "./request-fields.ts";

const MAX_ITEMS = 2_000;
const KNOWN =
  "The conversation knows what was said before; send one message of the user, or results of calls.";

const inputText = z.object({ type: z.literal("input_text"), text: z.string() });
const outputText = z.object({ type: z.literal("output_text"), text: z.string() });
const refusal = z.object({ type: z.literal("refusal"), refusal: z.string() });

const inputPart = z.discriminatedUnion("type", [
  inputText,
  z.object({ type: z.literal("input_image"), image_url: z.string("Give `image_url`.").min(1) }),
  z
    .object({
      type: z.literal("input_file"),
      file_data: z.string().min(1).nullish(),
      file_url: z.string().min(1).nullish(),
      filename: z.string().nullish(),
    })
    .refine(({ file_data, file_url }) => (file_data ?? file_url) != null, "Give `file_data` or `file_url`."),
]);

const message = z.discriminatedUnion("role", [
  z.object({
    type: z.literal("message").optional(),
    role: z.enum(["system", "developer"]),
    content: z.union([z.string(), z.array(inputText)]),
  }),
  z.object({
    type: z.literal("message").optional(),
    role: z.literal("user"),
    content: z.union([z.string(), z.array(inputPart).min(1)]),
  }),
  z.object({
    type: z.literal("message").optional(),
    role: z.literal("assistant"),
    content: z.union([z.string(), z.array(z.discriminatedUnion("type", [inputText, outputText, refusal]))]),
  }),
]);

const item = z.union([
  message,
  z.discriminatedUnion("type", [
    z.object({
      type: z.literal("function_call"),
      call_id: z.string().min(1),
      name: z.string().min(1),
      arguments: z.string(),
    }),
    z.object({
      type: z.literal("function_call_output"),
      call_id: z.string().min(1),
      output: z.union([z.string(), z.array(inputText)]),
    }),
    z.object({ type: z.literal("reasoning") }),
  ]),
]);

type Item = z.infer<typeof item>;

const tool = z.object({
  type: z.literal("function", "Only functions are supported: they are run by the client."),
  name: toolName,
  description: z.string().nullish(),
  parameters: jsonSchema.nullish(),
});

export const responseSchema = z
  .strictObject({
    model: agentModel.nullish(),
    input: z.union([z.string(), z.array(item).min(1).max(MAX_ITEMS)]),
    instructions: z.string().nullish(),
    previous_response_id: z.string().nullish(),
    conversation: z.union([z.string(), z.object({ id: z.string() })]).nullish(),
    stream: z.boolean().nullish(),
    tools: z.array(tool).nullish(),
    tool_choice: z
      .union([
        z.enum(["auto", "none", "required"]),
        z.object({ type: z.literal("function"), name: toolName }),
      ])
      .nullish(),
    text: z
      .object({
        format: z
          .discriminatedUnion("type", [
            z.object({ type: z.literal("text") }),
            z.object({ type: z.literal("json_schema"), name: toolName, schema: jsonSchema }),
          ])
          .nullish(),
      })
      .nullish(),
    background: only(false),
    parallel_tool_calls: only(true),
    top_logprobs: only(0),
    max_tool_calls: REFUSED,
    prompt: REFUSED,
    moderation: REFUSED,
    store: IGNORED,
    include: IGNORED,
    stream_options: IGNORED,
    metadata: IGNORED,
    user: IGNORED,
    safety_identifier: IGNORED,
    reasoning: IGNORED,
    temperature: IGNORED,
    top_p: IGNORED,
    max_output_tokens: IGNORED,
    truncation: IGNORED,
    context_management: IGNORED,
    service_tier: IGNORED,
    prompt_cache_key: IGNORED,
    prompt_cache_retention: IGNORED,
    prompt_cache_options: IGNORED,
  })
  .meta({ example: { model: "assistant", input: "What is 12*(3+4)?" } });

export type ResponseRequest = z.output<typeof responseSchema>;

/**
 * The turn that a request asks for. What continues a conversation says one thing: a message of the user, or results.
 * Throws `INVALID_INPUT`.
 */
export function responseInput(request: ResponseRequest, isContinued: boolean): TurnInput {
  const { input, instructions } = request;
  const items = typeof input === "string" ? [userItem(input)] : input.flatMap(toItem);
  const first: InputItem[] = instructions == null ? [] : [{ type: "system", text: instructions }];
  if (isContinued) checkNews(items);
  const turn = turnInput([...first, ...items], "/input");
  if (!isContinued || turn.type === "results" || turn.history.length === 0) return turn;
  throw instructions == null
    ? invalidInput("/input", KNOWN)
    : invalidInput(
        "/instructions",
        "Instructions stand from a conversation's beginning on; leave them out of what continues it.",
      );
}

/** Results and a message would be two turns: none of them may be passed over. */
function checkNews(items: readonly InputItem[]): void {
  const has = (type: InputItem["type"]) => items.some((item) => item.type === type);
  if (!has("user") || !has("result")) return;
  throw invalidInput(
    "/input",
    "Send results of calls first, and the message of the user when they are answered.",
  );
}

/** What is asked of the turn beside its content. */
export function responseOptions(
  request: ResponseRequest,
): Pick<StartTurn, "tools" | "toolChoice" | "output"> {
  const { tools, tool_choice: choice, text } = request;
  const format = text?.format;
  return {
    ...(tools == null || tools.length === 0 ? {} : { tools: tools.map(toolSpec) }),
    ...(choice == null ? {} : { toolChoice: typeof choice === "string" ? choice : { name: choice.name } }),
    ...(format?.type === "json_schema"
      ? { output: outputSpec(format.name, format.schema, "/text/format/schema") }
      : {}),
  };
}

function userItem(content: Content): InputItem {
  return { type: "user", content };
}

function toItem(item: Item, index: number): InputItem[] {
  if ("role" in item) return [messageItem(item)];
  switch (item.type) {
    case "function_call": {
      const { call_id: id, name } = item;
      const path = `/input/${index}/arguments`;
      return [
        {
          type: "assistant",
          text: "",
          calls: [{ id, name, arguments: callArguments(item.arguments, path) }],
        },
      ];
    }
    case "function_call_output":
      return [{ type: "result", callId: item.call_id, output: textOf(item.output) }];
    case "reasoning":
      return [];
    default:
      return item satisfies never;
  }
}

function messageItem(item: z.infer<typeof message>): InputItem {
  switch (item.role) {
    case "system":
    case "developer":
      return { type: "system", text: textOf(item.content) };
    case "user":
      return userItem(userContent(item.content));
    case "assistant":
      return { type: "assistant", text: textOf(item.content), calls: [] };
    default:
      return item satisfies never;
  }
}

type Said = string | readonly ({ type: string; text: string } | { type: "refusal"; refusal: string })[];

function textOf(content: Said): string {
  if (typeof content === "string") return content;
  return content.map((part) => ("text" in part ? part.text : part.refusal)).join("\n\n");
}

function userContent(content: string | readonly z.infer<typeof inputPart>[]): Content {
  if (typeof content === "string") return content;
  return contentOf(
    content.map((part) => {
      switch (part.type) {
        case "input_text":
          return { type: "text", text: part.text };
        case "input_image":
          return { type: "image", url: part.image_url };
        case "input_file": {
          const { file_data, file_url, filename } = part;
          return {
            type: "file",
            url: file_data ?? file_url ?? "",
            ...(filename == null ? {} : { name: filename }),
          };
        }
        default:
          return part satisfies never;
      }
    }),
  );
}
