/**
 * The content that a user may send in a turn. HTTP, WebSocket and RPC apply the same rules.
 *
 * CONTENT-1  Content is a string, or 1 to 64 parts. It is never trimmed or normalised, and is returned as sent.
 * CONTENT-2  Content is not blank: some text has a visible character, or there is an image or a file.
 * CONTENT-3  Content has at most 1 MiB: the string in UTF-8, or the parts as JSON in UTF-8.
 * CONTENT-4  Every string is well-formed Unicode, without lone surrogates.
 */
import { z } from "zod";
import { type DramatisError, type InputIssue, invalid, tooLarge } from "./errors.ts";
import { UNICODE_RULE } from "./json.ts";
import { fitsUtf8 } from "./utf8.ts";
import { issuesText, validate } from "./validation.ts";

export type TextPart = { type: "text"; text: string };
export type MediaPart = {
  type: "image" | "file";
  url: string;
  mediaType?: string | undefined;
  name?: string | undefined;
};
/** A user's content: text, or parts. */
export type Content = string | (TextPart | MediaPart)[];

const part = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text: z.string() }),
  z.strictObject({
    type: z.enum(["image", "file"]),
    url: z.string().min(1),
    mediaType: z.string().optional(),
    name: z.string().optional(),
  }),
]);

/** The rule of a text, for error messages. */
export const BLANK_RULE = "Must not be blank.";
const FORM_RULE = "Must be a string or a list of parts.";

/** The form of content (CONTENT-1). `parseContent` checks the other rules. */
export const contentSchema = z.union([z.string(), z.array(part).min(1).max(64)], {
  error: ({ input }) => (input === undefined ? undefined : FORM_RULE),
});

/** Maximum size of content, in bytes. */
export const MAX_CONTENT_BYTES = 1024 * 1024;

/** White space, and characters that Unicode defines as invisible (zero-width characters, fillers, selectors). */
const BLANK = /^[\p{White_Space}\p{Default_Ignorable_Code_Point}]*$/u;

/** Reports whether a text has no visible character. */
export function isBlank(text: string): boolean {
  return BLANK.test(text);
}

/** Returns the content, checked. `path` is the JSON pointer for issues. Throws `TOO_LARGE` or `INVALID_INPUT`. */
export function parseContent(value: unknown, path = "/content"): Content {
  if (typeof value !== "string" && !Array.isArray(value))
    throw invalidContent([{ path, message: FORM_RULE }]);
  const content = typeof value === "string" ? value : validate(contentSchema.options[1], value, path);
  const issues = findIssues(content, path);
  if (issues.length > 0) throw invalidContent(issues);
  if (!fitsUtf8(typeof content === "string" ? content : JSON.stringify(content), MAX_CONTENT_BYTES))
    throw tooLarge("Content may have at most 1 MiB; send less, or link to a file.");
  return content;
}

/** Returns the text of content: a string as it is, or the text parts joined by a blank line. */
export function plainText(content: Content): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}

function findIssues(content: Content, path: string): InputIssue[] {
  if (typeof content === "string") {
    if (!content.isWellFormed()) return [{ path, message: UNICODE_RULE }];
    return isBlank(content) ? [{ path, message: BLANK_RULE }] : [];
  }
  const malformed = content.flatMap((part, index) =>
    Object.entries(part)
      .filter(([, text]) => typeof text === "string" && !text.isWellFormed())
      .map(([key]) => ({ path: `${path}/${index}/${key}`, message: UNICODE_RULE })),
  );
  if (malformed.length > 0) return malformed;
  const isVisible = content.some((part) => part.type !== "text" || !isBlank(part.text));
  return isVisible ? [] : [{ path, message: BLANK_RULE }];
}

function invalidContent(errors: InputIssue[]): DramatisError {
  return invalid(`The content is not valid: ${issuesText(errors)}`, { errors });
}
