/** Frames from text. The server's frames are trusted in their content; only what is no frame at all is kept out. */
import { type Frame, PROTOCOL_VERSION } from "./frames.ts";

/** The frame in a message's text, or `null` for anything else, such as the SDK's own messages. */
export function parseFrame(data: unknown): Frame | null {
  if (typeof data !== "string") return null;
  const value = parseJson(data);
  return isFrame(value) ? value : null;
}

/** Whether a message's text is a frame, but not of this version. */
export function isOfOtherVersion(data: unknown): boolean {
  const value = typeof data === "string" ? parseJson(data) : undefined;
  if (typeof value !== "object" || value === null || !("v" in value) || !("type" in value)) return false;
  return typeof value.v === "number" && value.v !== PROTOCOL_VERSION && typeof value.type === "string";
}

/**
 * A value with the envelope of a frame. Its type may be one this version does not know: a newer server may say more,
 * and the reducer passes over it.
 */
function isFrame(value: unknown): value is Frame {
  if (typeof value !== "object" || value === null) return false;
  // SAFETY: widens an object to optional unknown members, each of which is checked here.
  const { v, type, time, data, seq } = value as Partial<Record<string, unknown>>;
  return (
    v === PROTOCOL_VERSION &&
    typeof type === "string" &&
    typeof time === "string" &&
    typeof data === "object" &&
    data !== null &&
    (seq === undefined || typeof seq === "number")
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
