/** The body of a response request: its schema, and its conversion to a turn. Pure. */
import { z } from "zod";
import { defined } from "../../shared/defined.ts";
import { joinedText, userContent } from "../content.ts";
import {
  callArguments,
  contentText,
  type InputItem,
  invalidInput,
  type MessageInput,
  type ResultsInput,
  turnInput,
} from "./input.ts";
import {
  agentModel,
  COMMON_FIELDS,
  clientTools,
  IGNORED,
  isFunction,
  jsonSchema,
  OUTPUT_TOKENS,
  only,
  outputSpec,
  REFUSED,
  type TurnOptions,
  toolName,
  turnOptions,
} from "./request-fields.ts";

const MAX_ITEMS = 2_000;
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

const outputItem = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("function_call"),
    call_id: z.string().min(1),
    name: z.string().min(1),
    arguments: z.string(),
  }),
  z.object({
    type: z.literal("function_call_output"),
    call_id: z.string().min(1),
    output: z.union([z.string(), z.array(inputPart)]),
  }),
  z.object({ type: z.literal("reasoning") }),
]);

const item = z.union(
  [message, outputItem],
  'Must be a message with a known role, or have the type "function_call", "function_call_output" or "reasoning".',
);

type Item = z.infer<typeof item>;

const tools = clientTools({
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
    tools,
    tool_choice: z
      .union([
        z.enum(["auto", "none", "required"]),
        z.object({ type: z.literal("function"), name: toolName }),
      ])
      .nullish(),
    text: z
      .strictObject({
        verbosity: IGNORED,
        format: z
          .discriminatedUnion("type", [
            z.object({ type: z.literal("text") }),
            z.object({ type: z.literal("json_schema"), name: toolName, schema: jsonSchema }),
          ])
          .nullish(),
      })
      .nullish(),
    background: only(false),
    max_tool_calls: REFUSED,
    prompt: REFUSED,
    include: IGNORED,
    stream_options: IGNORED,
    reasoning: IGNORED,
    max_output_tokens: OUTPUT_TOKENS,
    access_programs: IGNORED,
    image: REFUSED,
    truncation: IGNORED,
    context_management: IGNORED,
    ...COMMON_FIELDS,
  })
  .meta({ example: { model: "assistant", input: "What is 12*(3+4)?" } });

export type ResponseRequest = z.output<typeof responseSchema>;

/**
 * Returns the turn that a request starts or continues. A request that continues a conversation contains one message of the user, or
 * results. Throws `INVALID_INPUT`.
 */
export function responseInput(
  { input, instructions }: ResponseRequest,
  isContinued: boolean,
): MessageInput | ResultsInput {
  const items: InputItem[] =
    typeof input === "string" ? [{ type: "user", content: input }] : input.flatMap(toItem);
  const first: InputItem[] = instructions == null ? [] : [{ type: "system", text: instructions }];
  if (isContinued) refuseMixedInput(items);
  const turn = turnInput([...first, ...items], "/input");
  if (!isContinued || turn.type === "results" || turn.history.length === 0) return turn;
  throw instructions == null
    ? invalidInput(
        "/input",
        "The conversation contains the earlier messages. Send one message of the user, or results of calls.",
      )
    : invalidInput(
        "/instructions",
        "The instructions of a conversation are set by its first request. Omit them here.",
      );
}

/** Results and a message are two turns: one of them would be lost. */
function refuseMixedInput(items: readonly InputItem[]): void {
  const types = new Set(items.map(({ type }) => type));
  if (!types.has("user") || !types.has("result")) return;
  throw invalidInput(
    "/input",
    "Send the results of calls first, and the message of the user after their answer.",
  );
}

export function responseOptions({
  tools,
  tool_choice: choice,
  text,
  max_output_tokens: maxOutputTokens,
  parallel_tool_calls: parallel,
}: ResponseRequest): TurnOptions {
  const format = text?.format;
  return turnOptions({
    tools: tools?.filter(isFunction),
    choice,
    output:
      format?.type === "json_schema"
        ? outputSpec(format.name, format.schema, "/text/format/schema")
        : undefined,
    maxOutputTokens,
    parallel,
  });
}

function toItem(item: Item, index: number): InputItem[] {
  if ("role" in item) return [messageItem(item)];
  switch (item.type) {
    case "function_call": {
      const { call_id: id, name } = item;
      const calls = [{ id, name, arguments: callArguments(item.arguments, `/input/${index}/arguments`) }];
      return [{ type: "assistant", text: "", calls }];
    }
    case "function_call_output":
      return [
        {
          type: "result",
          callId: item.call_id,
          output: contentText(userContent(item.output, toPart)),
          path: `/input/${index}/call_id`,
        },
      ];
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
      return { type: "system", text: joinedText(item.content) };
    case "user":
      return { type: "user", content: userContent(item.content, toPart) };
    case "assistant":
      return { type: "assistant", text: joinedText(item.content), calls: [] };
    default:
      return item satisfies never;
  }
}

function toPart(part: z.infer<typeof inputPart>) {
  switch (part.type) {
    case "input_text":
      return { type: "text" as const, text: part.text };
    case "input_image":
      return { type: "image" as const, url: part.image_url };
    case "input_file": {
      const { file_data, file_url, filename } = part;
      const name = filename ?? undefined;
      return { type: "file" as const, url: file_data ?? file_url ?? "", ...defined({ name }) };
    }
    default:
      return part satisfies never;
  }
}
