/**
 * Parses frames from clients.
 *
 * CFRAME-1  A frame of another version or an unknown type is refused by name, with the versions and types that are
 *           supported.
 * CFRAME-2  Check a frame's shape before it is parsed (JSON-1), and its text before any other code walks it.
 */
import type { WSMessage } from "agents";
import { PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import {
  CLIENT_FRAME_TYPES,
  type ClientFrame,
  clientFrameSchema,
  MAX_KEY_LENGTH,
} from "../../../protocol/requests.ts";
import { DramatisError, tooLarge } from "../../../shared/errors.ts";
import { checkJson, isJsonObject, MAX_DEPTH, parseJsonText } from "../../../shared/json.ts";
import { shapeProblem } from "../../../shared/json-shape.ts";
import { validate } from "../../../shared/validation.ts";
import { messageLength } from "../../base/sockets/admission.ts";
import { MAX_FRAME_LENGTH } from "./socket-limits.ts";

/** Parses a message as JSON. Throws `INVALID_JSON` or `TOO_LARGE`. */
export function parseMessage(message: WSMessage): unknown {
  if (messageLength(message) > MAX_FRAME_LENGTH) throw tooLarge("A frame may have at most 2 MiB.");
  if (typeof message !== "string") throw new DramatisError("INVALID_JSON", "Send frames as JSON text.");
  return parseJsonText(message, "The frame");
}

/** Reports whether a message is small enough to be parsed. */
export function isReadable(message: WSMessage): boolean {
  return (
    messageLength(message) <= MAX_FRAME_LENGTH &&
    (typeof message !== "string" || shapeProblem(message, MAX_DEPTH) === null)
  );
}

/** The id of a frame, its operation or its turn. Only the version and the type may precede it. */
const HEAD =
  /^\s*\{(?:\s*"(?:v|type)"\s*:\s*(?:"[^"\\]*"|\d+)\s*,)*\s*"(?:id|operationId|turnId)"\s*:\s*"([^"\\]*)"/;
/** Length of the searched beginning of a frame. */
const HEAD_LENGTH = 1_000;

/** Returns the id for the error of a frame that is too large to parse; `undefined` if the id is not at the beginning. */
export function refInHead(message: WSMessage): string | undefined {
  if (typeof message !== "string") return undefined;
  const [, id] = HEAD.exec(message.slice(0, HEAD_LENGTH)) ?? [];
  return refOf({ id });
}

/** Returns the id of a frame, or of its operation or turn, for the error to name; `undefined` if it is not valid. */
export function refOf(value: unknown): string | undefined {
  if (!isJsonObject(value)) return undefined;
  const id = value.id ?? value.operationId ?? value.turnId;
  if (typeof id !== "string") return undefined;
  return id !== "" && id.length <= MAX_KEY_LENGTH && id.isWellFormed() ? id : undefined;
}

/** Checks a frame of the protocol. Throws `UNSUPPORTED`, `INVALID_SIGNAL`, `INVALID_JSON` or `INVALID_INPUT`. */
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
    const message = `This version of frames is not supported: send "v": ${PROTOCOL_VERSION}.`;
    throw new DramatisError("UNSUPPORTED", message);
  }
  if (typeof type === "string" && (CLIENT_FRAME_TYPES as readonly string[]).includes(type)) return;
  const message = `The type of a frame must be one of ${CLIENT_FRAME_TYPES.join(", ")}.`;
  throw new DramatisError("INVALID_SIGNAL", message);
}
