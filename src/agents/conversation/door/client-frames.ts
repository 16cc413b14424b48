/**
 * Frames from clients, checked: what is wrong with one is an error that says so, and names the frame where it can.
 *
 * CFRAME-1  A frame of another version or an unknown type is refused by name, with what is spoken here.
 * CFRAME-2  Nothing walks a frame before its depth and its text were checked.
 */
import type { WSMessage } from "agents";
import { PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import { CLIENT_FRAME_TYPES, type ClientFrame, clientFrameSchema } from "../../../protocol/requests.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { checkJson, isJsonObject, parseJsonText } from "../../../shared/json.ts";
import { validate } from "../../../shared/validation.ts";
import { MAX_FRAME_LENGTH } from "../core/limits.ts";
import { MAX_KEY_LENGTH } from "../core/signals.ts";

/** A message as it came, as JSON. Throws `INVALID_JSON` or `TOO_LARGE`. */
export function parseMessage(message: WSMessage): unknown {
  if (lengthOf(message) > MAX_FRAME_LENGTH)
    throw new DramatisError("TOO_LARGE", "A frame may have at most 2 MiB.");
  if (typeof message !== "string") throw new DramatisError("INVALID_JSON", "Send frames as JSON text.");
  return parseJsonText(message, "The frame");
}

/** UTF-16 units of a text, bytes of anything else. */
export function lengthOf(message: WSMessage): number {
  return typeof message === "string" ? message.length : message.byteLength;
}

/** The id of a frame, or of the operation it is about, if it is one that an answer can repeat. */
export function refOf(value: unknown): string | undefined {
  if (!isJsonObject(value)) return undefined;
  const id = value.id ?? value.operationId;
  if (typeof id !== "string") return undefined;
  return id !== "" && id.length <= MAX_KEY_LENGTH && id.isWellFormed() ? id : undefined;
}

/** The value as a frame of the protocol. Throws `UNSUPPORTED`, `INVALID_SIGNAL`, `INVALID_JSON` or `INVALID_INPUT`. */
export function parseClientFrame(value: unknown): ClientFrame {
  checkJson(value, "The frame");
  if (isJsonObject(value)) checkKind(value);
  try {
    return validate(clientFrameSchema, value);
  } catch (error) {
    const first = error instanceof DramatisError ? error.options.errors?.[0] : undefined;
    const detail =
      first === undefined ? "it does not fit the protocol" : `${first.path || "/"}: ${first.message}`;
    throw new DramatisError("INVALID_SIGNAL", `The frame was refused: ${detail}`);
  }
}

function checkKind({ v = PROTOCOL_VERSION, type }: { v?: unknown; type?: unknown }): void {
  if (v !== PROTOCOL_VERSION) {
    throw new DramatisError(
      "UNSUPPORTED",
      `Frames are of version ${PROTOCOL_VERSION} here: send "v": ${PROTOCOL_VERSION}.`,
    );
  }
  if (typeof type === "string" && (CLIENT_FRAME_TYPES as readonly string[]).includes(type)) return;
  throw new DramatisError(
    "INVALID_SIGNAL",
    `The type of a frame must be one of ${CLIENT_FRAME_TYPES.join(", ")}.`,
  );
}
