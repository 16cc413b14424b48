/**
 * Results of tools of MCP servers. Pure.
 *
 * MCPRES-1  A structured result is the result. One text is a text. Other content is a list of its parts, without the data of images and files.
 * MCPRES-2  A result with `isError` is an error with its text.
 * MCPRES-3  A result has no secret of the configuration.
 */
import type { CallToolResult } from "@modelcontextprotocol/client";
import { ToolError } from "../library/tools/tool-error.ts";
import { isJsonObject, type Json, type JsonObject } from "../shared/json.ts";
import { redactSecrets, withoutValues } from "../shared/redact.ts";

/** Members with binary data. */
const DATA = new Set(["data", "blob"]);

/** Returns the result for the model. Throws `ToolError` for a result with `isError`. */
export function resultOf(answer: CallToolResult, secrets: readonly string[]): Json {
  // SAFETY: an answer was parsed from JSON.
  const { content = [], structuredContent, isError } = answer as unknown as JsonObject & { content?: Json[] };
  const texts = content.flatMap((part) =>
    isJsonObject(part) && part.type === "text" && typeof part.text === "string" ? [part.text] : [],
  );
  if (isError === true)
    throw new ToolError(redactSecrets(texts.join("\n"), secrets) || "The tool failed without a message.");
  if (structuredContent !== undefined) return withoutValues(structuredContent, secrets);
  const [only = ""] = texts;
  const isText = content.length === texts.length && texts.length <= 1;
  return withoutValues(isText ? only : content.map(withoutData), secrets);
}

/** Returns a part of a content with the size of its data in place of the data. */
function withoutData(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutData);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      DATA.has(name) && typeof member === "string"
        ? ["omitted", `${Math.floor((member.length * 3) / 4)} bytes`]
        : [name, withoutData(member)],
    ),
  );
}
