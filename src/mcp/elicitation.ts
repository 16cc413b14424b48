/**
 * Questions of MCP servers to people. Pure.
 *
 * ELICIT-3  The questions of a result are one request: a form, or a form with a member for each question. A question with an address shows its
 *           host only.
 * ELICIT-4  A result that asks for anything else, or with questions beyond the limits, is an error.
 */
import type { InputRequiredResult } from "@modelcontextprotocol/client";
import { z } from "zod";
import { ToolError } from "../library/tools/tool-error.ts";
import { type Elicited, MAX_ELICITATION_BYTES, MAX_ELICITATION_TEXT } from "../protocol/elicitation.ts";
import { isJsonObject, type JsonObject } from "../shared/json.ts";
import { readSchema } from "../shared/json-schema/read-schema.ts";
import { redactSecrets } from "../shared/redact.ts";
import { cut } from "../shared/text.ts";
import { utf8Length } from "../shared/utf8.ts";

const askedSchema = z.record(
  z.string().max(200),
  z.object({
    method: z.literal("elicitation/create"),
    params: z.union([
      z.object({ mode: z.literal("url"), message: z.string(), url: z.url() }),
      z.object({
        mode: z.literal("form").optional(),
        message: z.string(),
        requestedSchema: z.custom<JsonObject>(isJsonObject),
      }),
    ]),
  }),
);

/** Returns the questions of a result. Throws `ToolError` (ELICIT-4). */
export function elicitedBy(
  server: string,
  { inputRequests = {}, requestState: state }: Pick<InputRequiredResult, "inputRequests" | "requestState">,
  secrets: readonly string[],
): Elicited {
  const refuse = (why: string) => new ToolError(`The MCP server "${server}" asks for input, ${why}`);
  const asked = askedSchema.safeParse(inputRequests);
  if (!asked.success) throw refuse("but only questions to a person are possible.");
  const bytes = utf8Length(JSON.stringify({ inputRequests, state }));
  if (bytes > MAX_ELICITATION_BYTES)
    throw refuse(`and its questions have ${bytes} bytes. The maximum is ${MAX_ELICITATION_BYTES}.`);
  const all = Object.entries(asked.data).map(([key, { params }]) => ({ key, ...params }));
  const forms = all.flatMap((one) => ("requestedSchema" in one ? [one] : []));
  const urls = all.flatMap((one) => ("url" in one ? [one] : []));
  const schema = schemaOf(forms);
  if (schema !== undefined && readSchema(schema).issues.length > 0)
    throw refuse("with a schema that is not valid.");
  const hosts = [...new Set(urls.map(({ url }) => new URL(url).host))];
  const message = redactSecrets(all.map((one) => one.message).join("\n\n"), secrets);
  return {
    message: cut(message, MAX_ELICITATION_TEXT),
    forms: forms.map(({ key }) => key),
    urls: urls.map(({ key }) => key),
    ...(schema !== undefined && { schema }),
    ...(hosts.length > 0 && { host: hosts.join(", ") }),
    ...(state !== undefined && { state }),
  };
}

/** Returns the schema of the answer to all forms; `undefined` without a form. */
function schemaOf(
  forms: readonly { key: string; message: string; requestedSchema: JsonObject }[],
): JsonObject | undefined {
  const [only] = forms;
  if (forms.length < 2) return only?.requestedSchema;
  return {
    type: "object",
    properties: Object.fromEntries(
      forms.map(({ key, message, requestedSchema }) => [key, { description: message, ...requestedSchema }]),
    ),
    required: forms.map(({ key }) => key),
    additionalProperties: false,
  };
}
