/**
 * The envelope of a signal from outside. Pure.
 *
 * SIGNAL-1  Only the external types are accepted from outside.
 * SIGNAL-2  The payload is `data` alone. A payload outside of `data` is refused, even if `data` exists.
 * SIGNAL-3  A correlation id is kept as it was sent, without space around it. `meta` wins over `extensions`.
 */
import { MAX_KEY_LENGTH } from "../../../protocol/requests.ts";
import { EXTERNAL_TYPES } from "../../../protocol/signal-schemas.ts";
import {
  type EnvelopeProblem,
  type ExternalType,
  INTERNAL_TYPES,
  RESERVED_TYPES,
} from "../../../protocol/signals.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { cut } from "../../../shared/text.ts";

/** A signal with a valid envelope. Its data are not checked yet. */
export interface OpenedSignal {
  type: ExternalType;
  id?: string;
  /** As supplied; absent if it was missing or blank. */
  correlationId?: string;
  data: Record<string, unknown>;
}

const MEMBERS = new Set(["id", "type", "source", "time", "data", "meta", "extensions", "specversion"]);

/** Opens an envelope. Throws `INVALID_SIGNAL`, with an `EnvelopeProblem` as the message of its one error. */
export function openSignal(envelope: unknown): OpenedSignal {
  if (!isMap(envelope)) throw refused("invalid_data", "A signal must be an object with `type` and `data`.");
  const type = typeOf(envelope);
  const flat = Object.keys(envelope).find((name) => !MEMBERS.has(name));
  if (flat !== undefined) {
    const member = JSON.stringify(cut(flat, MAX_KEY_LENGTH));
    throw refused(
      "missing_data_envelope",
      `The signal has the member ${member}. Put the payload under \`data\`.`,
    );
  }
  const id = textOf(envelope, "id", "invalid_id");
  textOf(envelope, "source", "invalid_source");
  textOf(envelope, "time", "invalid_time");
  textOf(envelope, "specversion", "invalid_specversion");
  const extensions = mapOf(envelope, "extensions", "invalid_extensions");
  const meta = mapOf(envelope, "meta", "invalid_meta");
  const problem = Object.hasOwn(meta, "correlation_id") ? "invalid_meta" : "invalid_extensions";
  const correlationId = correlationOf({ ...extensions, ...meta }, problem);
  return { type, ...defined({ id, correlationId }), data: dataOf(envelope, type) };
}

export function refused(problem: EnvelopeProblem, message: string): DramatisError {
  return new DramatisError("INVALID_SIGNAL", message, { errors: [{ path: "", message: problem }] });
}

function typeOf({ type }: Record<string, unknown>): ExternalType {
  if (typeof type !== "string" || type.trim() === "")
    throw refused("missing_type", `The signal has no \`type\`. Set it to ${EXTERNAL_LIST}.`);
  if (isOneOf(EXTERNAL_TYPES, type)) return type;
  const named = JSON.stringify(cut(type, MAX_KEY_LENGTH));
  if (isOneOf(RESERVED_TYPES, type)) {
    throw refused(
      "reserved_type",
      `Only the conversation itself may send signals of type ${named}. Send ${EXTERNAL_LIST}.`,
    );
  }
  if (isOneOf(INTERNAL_TYPES, type)) {
    const message = `Signals of type ${named} are not accepted from outside. Send ${EXTERNAL_LIST}.`;
    throw refused("external_type_not_allowed", message);
  }
  throw refused("invalid_type", `There is no signal of type ${named}. Send ${EXTERNAL_LIST}.`);
}

const EXTERNAL_LIST = EXTERNAL_TYPES.map((type) => `"${type}"`).join(" or ");

/** Returns the payload. It is optional for stops and resumes. */
function dataOf(envelope: Record<string, unknown>, type: ExternalType): Record<string, unknown> {
  const { data } = envelope;
  if (data === undefined) {
    if (type !== "conversation.user.message") return {};
    throw refused("missing_data_envelope", "The signal has no `data`. Put the payload under `data`.");
  }
  if (isMap(data)) return data;
  throw refused("invalid_data", "`data` must be an object.");
}

function textOf(
  envelope: Record<string, unknown>,
  name: string,
  problem: EnvelopeProblem,
): string | undefined {
  const value = envelope[name];
  if (value === undefined) return undefined;
  if (isKey(value)) return value;
  throw refused(problem, `\`${name}\` must be a string of 1 to ${MAX_KEY_LENGTH} characters.`);
}

/** Returns a map of an envelope, which may be missing or null. */
function mapOf(
  envelope: Record<string, unknown>,
  name: "meta" | "extensions",
  problem: EnvelopeProblem,
): Record<string, unknown> {
  const value = envelope[name] ?? {};
  if (isMap(value)) return value;
  throw refused(problem, `\`${name}\` must be an object or null.`);
}

function correlationOf(members: Record<string, unknown>, problem: EnvelopeProblem): string | undefined {
  const { correlation_id: value } = members;
  if (value === undefined || value === null) return undefined;
  const trimmed = typeof value === "string" ? value.trim() : value;
  if (trimmed === "") return undefined;
  if (isKey(trimmed)) return trimmed;
  throw refused(problem, `\`correlation_id\` must be a string of at most ${MAX_KEY_LENGTH} characters.`);
}

function isKey(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= MAX_KEY_LENGTH && value.isWellFormed();
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isOneOf<Value extends string>(values: readonly Value[], value: string): value is Value {
  return (values as readonly string[]).includes(value);
}
