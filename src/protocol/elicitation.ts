/** Questions of servers to people, which a call has in place of a result. */
import { z } from "zod";
import {
  isJson,
  isJsonObject,
  JSON_RULE,
  type Json,
  type JsonObject,
  type JsonValue,
} from "../shared/json.ts";
import { violations } from "../shared/json-schema/violations.ts";

/** Characters of a message, and bytes of JSON of all questions of a call. */
export const MAX_ELICITATION_TEXT = 2_000;
export const MAX_ELICITATION_BYTES = 8 * 1024;
/** Bytes of JSON of an answer. */
export const MAX_VALUES_BYTES = 64 * 1024;
/** Questions of one call, one after the other. */
export const MAX_ELICITATIONS = 10;

const json = z.custom<JsonObject>(isJsonObject, "Must be an object.");

const host = z
  .string()
  .describe("The server asks the person to open an address on this host. Nothing opens it.")
  .exactOptional();

/** The question as people see it. */
export const elicitationView = z.strictObject({
  message: z.string(),
  // SAFETY: an object is a `JsonValue`. The type of a view must not recurse.
  schema: (json as z.ZodType<unknown> as z.ZodType<JsonValue>)
    .describe("The JSON Schema of the answer's `values`; absent if the answer has none.")
    .exactOptional(),
  host,
  round: z
    .int()
    .min(1)
    .describe(
      "The number of the question in its call. The answer names it, so that an answer counts for one question.",
    ),
});

export type ElicitationView = z.infer<typeof elicitationView>;

export const elicitedSchema = z.strictObject({
  message: z.string(),
  schema: json.exactOptional(),
  host,
  /** The keys of the server's questions. With several forms, `values` has a member for each. */
  forms: z.array(z.string()),
  urls: z.array(z.string()),
  /** The state that goes back to the server. */
  state: z.string().exactOptional(),
});

/** The questions of a call, and the state that goes back to the server. */
export type Elicited = z.infer<typeof elicitedSchema>;

export const elicitedAnswer = z.object({
  responses: z.record(z.string(), z.custom<Json>(isJson, JSON_RULE)),
  state: z.string().exactOptional(),
});

/** The answer of a person, as it goes back to the server. */
export type ElicitedAnswer = z.infer<typeof elicitedAnswer>;

export function viewOfElicited({
  message,
  schema,
  host,
  round,
}: Elicited & { round: number }): ElicitationView {
  return { message, ...(schema && { schema }), ...(host !== undefined && { host }), round };
}

/** Reports whether an approval alone answers a question: the question has no fields and no address. */
export function isConfirmation({
  schema = {},
  host,
}: {
  schema?: unknown;
  host?: string | undefined;
}): boolean {
  if (host !== undefined || !isJsonObject(schema)) return false;
  return Object.keys(Object(schema.properties)).length === 0 && violations(schema, {})?.length === 0;
}

export function answerTo({ forms, urls, state }: Elicited, values: JsonObject): ElicitedAnswer {
  const accepted = (key: string): [string, Json] => [
    key,
    { action: "accept", content: forms.length > 1 ? (values[key] ?? {}) : values },
  ];
  const opened = urls.map((key): [string, Json] => [key, { action: "accept" }]);
  return {
    responses: Object.fromEntries([...forms.map(accepted), ...opened]),
    ...(state !== undefined && { state }),
  };
}
