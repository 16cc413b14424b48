/**
 * The members that Open Responses 2026-04-24 requires of a response, of its items and of the events of a stream. Written after the
 * specification at openresponses.org. Members that the specification does not know are allowed.
 */
import { z } from "zod";

const count = z.int().min(0);
const text = z.looseObject({
  type: z.literal("output_text"),
  text: z.string(),
  annotations: z.array(z.unknown()),
  logprobs: z.array(z.unknown()).optional(),
});

/** An item of a response. */
export const openItem = z.discriminatedUnion("type", [
  z.looseObject({
    type: z.literal("message"),
    id: z.string(),
    status: z.enum(["in_progress", "completed", "incomplete"]),
    role: z.literal("assistant"),
    content: z.array(text),
    phase: z.enum(["commentary", "final_answer"]).optional(),
  }),
  z.looseObject({
    type: z.literal("function_call"),
    id: z.string(),
    call_id: z.string().min(1).max(64),
    name: z.string(),
    arguments: z.string(),
    status: z.enum(["in_progress", "completed", "incomplete"]),
  }),
]);

const usage = z.looseObject({
  input_tokens: count,
  output_tokens: count,
  total_tokens: count,
  input_tokens_details: z.looseObject({ cached_tokens: count }),
  output_tokens_details: z.looseObject({ reasoning_tokens: count }),
});

export const openResponse = z.looseObject({
  id: z.string(),
  object: z.literal("response"),
  created_at: z.int(),
  completed_at: z.int().nullable(),
  status: z.string(),
  incomplete_details: z.looseObject({ reason: z.string() }).nullable(),
  model: z.string(),
  previous_response_id: z.string().nullable(),
  instructions: z.string().nullable(),
  output: z.array(openItem),
  error: z.looseObject({ code: z.string(), message: z.string() }).nullable(),
  tools: z.array(z.looseObject({ type: z.string() })),
  tool_choice: z.enum(["auto", "none", "required"]),
  truncation: z.enum(["auto", "disabled"]),
  parallel_tool_calls: z.boolean(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }) }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: z.int(),
  temperature: z.number(),
  reasoning: z.looseObject({ effort: z.string().nullable(), summary: z.string().nullable() }).nullable(),
  usage: usage.nullable(),
  max_output_tokens: z.int().nullable(),
  max_tool_calls: z.int().nullable(),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: z.string(),
  metadata: z.record(z.string(), z.string()),
  safety_identifier: z.string().nullable(),
  prompt_cache_key: z.string().nullable(),
});

const event = <Type extends string, Shape extends z.ZodRawShape>(types: readonly Type[], shape: Shape) =>
  z.looseObject({ type: z.enum(types), sequence_number: count, ...shape });

const place = { item_id: z.string(), output_index: count };
const textPlace = { ...place, content_index: count };

/** An event of a stream. */
export const openResponseEvent = z.discriminatedUnion("type", [
  event(
    [
      ...["response.created", "response.in_progress", "response.completed"],
      ...["response.incomplete", "response.failed"],
    ],
    { response: openResponse },
  ),
  event(["response.output_item.added", "response.output_item.done"], { output_index: count, item: openItem }),
  event(["response.content_part.added", "response.content_part.done"], { ...textPlace, part: text }),
  event(["response.output_text.delta"], { ...textPlace, delta: z.string() }),
  event(["response.output_text.done"], { ...textPlace, text: z.string() }),
  event(["response.function_call_arguments.delta"], { ...place, delta: z.string() }),
  event(["response.function_call_arguments.done"], { ...place, arguments: z.string() }),
  event(["error"], {
    error: z.looseObject({
      type: z.string(),
      code: z.string().nullable(),
      message: z.string(),
      param: z.string().nullable(),
    }),
  }),
]);
