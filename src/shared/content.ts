/**
 * What a user may send as the content of a turn. Every entrance (HTTP, WebSocket, RPC) asks these rules.
 *
 * CONTENT-1  Content is a string, or 1 to 64 parts; nothing is trimmed or normalised, it comes back as sent.
 * CONTENT-2  It is not blank: some text has a visible character, or there is an image or a file.
 * CONTENT-3  It is at most 1 MiB: the string in UTF-8, or the parts as JSON in UTF-8.
 * CONTENT-4  Every string is well-formed Unicode: no lone surrogates.
 */
import { type Content, contentSchema } from "./content-schema.ts";
import { DramatisError, type InputIssue } from "./errors.ts";
import { validate } from "./validation.ts";

/** The most bytes that content may have. */
export const MAX_CONTENT_BYTES = 1024 * 1024;

/** White space, and what Unicode says is drawn as nothing (zero-width characters, fillers, selectors). */
const BLANK = /^[\p{White_Space}\p{Default_Ignorable_Code_Point}]*$/u;

/** Whether a text shows nothing. */
export function isBlank(text: string): boolean {
  return BLANK.test(text);
}

/**
 * The content, checked. `path` is the JSON pointer that issues are reported under.
 * Throws `TOO_LARGE` or `INVALID_INPUT`.
 */
export function parseContent(value: unknown, path = "/content"): Content {
  if (typeof value !== "string" && !Array.isArray(value)) {
    throw invalid([{ path, message: "Must be a string or a list of parts." }]);
  }
  const content = typeof value === "string" ? value : validate(contentSchema.options[1], value, path);
  const issues = findIssues(content, path);
  if (issues.length > 0) throw invalid(issues);
  if (exceedsLimit(content)) {
    throw new DramatisError("TOO_LARGE", "Content may have at most 1 MiB; send less, or link to a file.");
  }
  return content;
}

/** The text of content: a string as it is, the text parts joined by a blank line. */
export function plainText(content: Content): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}

function findIssues(content: Content, path: string): InputIssue[] {
  if (typeof content === "string") {
    if (!content.isWellFormed()) return [{ path, message: "Must be well-formed Unicode." }];
    return isBlank(content) ? [{ path, message: "Must not be empty or blank." }] : [];
  }
  const malformed = content.flatMap((part, index) =>
    Object.entries(part)
      .filter(([, text]) => typeof text === "string" && !text.isWellFormed())
      .map(([key]) => ({ path: `${path}/${index}/${key}`, message: "Must be well-formed Unicode." })),
  );
  if (malformed.length > 0) return malformed;
  const shows = content.some((part) => part.type !== "text" || !isBlank(part.text));
  return shows ? [] : [{ path, message: "Must not be empty or blank." }];
}

function exceedsLimit(content: Content): boolean {
  const text = typeof content === "string" ? content : JSON.stringify(content);
  // A UTF-16 unit is one to three bytes of UTF-8, so most lengths decide without encoding.
  if (text.length > MAX_CONTENT_BYTES) return true;
  if (text.length * 3 <= MAX_CONTENT_BYTES) return false;
  return new TextEncoder().encode(text).byteLength > MAX_CONTENT_BYTES;
}

function invalid(errors: InputIssue[]): DramatisError {
  return new DramatisError("INVALID_INPUT", "The content is not acceptable.", { errors });
}
