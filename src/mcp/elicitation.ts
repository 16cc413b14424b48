/**
 * Questions of MCP servers to people. Pure.
 *
 * ELICIT-3  The questions of a result are one request: a form, or a form with a member for each question. A question with an address shows its
 *           host only.
 *           People see no secret of the server's configuration.
 * ELICIT-4  A result that asks for anything else, or with questions beyond the limits, is an error. So is a question with an address that is not
 *           https, except plain http for private hosts.
 * ELICIT-6  A result without questions and with a state repeats the call with this state at once.
 */
import type { InputRequiredResult } from "@modelcontextprotocol/client";
import { z } from "zod";
import { ToolError } from "../library/tools/tool-error.ts";
import { type Elicited, MAX_ELICITATION_BYTES, MAX_ELICITATION_TEXT } from "../protocol/elicitation.ts";
import { isPrivateHost } from "../shared/host-rules.ts";
import { isJsonObject, type JsonObject } from "../shared/json.ts";
import { readSchema } from "../shared/json-schema/read-schema.ts";
import { redactSecrets, withoutValues } from "../shared/redact.ts";
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

type Asking = Pick<InputRequiredResult, "inputRequests" | "requestState">;

/** Returns the questions that are the answer of a server to a call; `undefined` for a result. */
export function askingOf(answer: object): Asking | undefined {
  // SAFETY: the SDK has checked the form of the answer.
  const asked = answer as { resultType?: string } & Asking;
  return asked.resultType === "input_required" ? asked : undefined;
}

/** Returns the state with which a call is repeated at once; `undefined` if a person must answer first (ELICIT-6). */
export function repeatedState(answer: object): string | undefined {
  const { inputRequests = {}, requestState } = askingOf(answer) ?? {};
  return Object.keys(inputRequests).length === 0 ? requestState : undefined;
}

/** Returns the questions of a result. Throws `ToolError` (ELICIT-4). */
export function elicitedBy(
  server: string,
  { inputRequests = {}, requestState: state }: Asking,
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
  if (all.length === 0) throw refuse("but has no question.");
  const addresses = urls.map(({ url }) => new URL(url));
  if (!addresses.every(isSafe)) throw refuse("with an address that is not https.");
  const secret = forms.length > 1 && forms.some(({ key }) => withoutValues(key, secrets) !== key);
  if (secret) throw refuse("and names a question with a secret.");
  const schema = withoutValues(schemaOf(forms) ?? null, secrets) ?? undefined;
  if (schema !== undefined && readSchema(schema).issues.length > 0)
    throw refuse("with a schema that is not valid.");
  const hosts = [...new Set(addresses.map(({ host }) => withoutValues(host, secrets)))];
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

function isSafe({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || (protocol === "http:" && isPrivateHost(hostname));
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
