/** Makes the form of a question to a person from the JSON Schema of its answer, and the answer from the typed texts. Pure. */
import type { GateView } from "../../../src/client/index.ts";
import type { InputIssue } from "../../../src/shared/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../src/shared/json.ts";
import { jsonPointer } from "../../../src/shared/validation.ts";
import { messageOf, wordsOf } from "../format.ts";
import { isoOf, localInput } from "../memory/local-time.ts";

/** `json` takes any value as JSON. */
export type FieldKind = "line" | "text" | "date" | "time" | "number" | "boolean" | "choice" | "json";

export interface GateField {
  /** The members that lead to the value in the answer; empty for the answer itself. */
  path: readonly string[];
  /** `path` as JSON pointer. */
  pointer: string;
  label: string;
  description?: string;
  kind: FieldKind;
  /** The values of a `choice`, as JSON. */
  options: readonly string[];
  isRequired: boolean;
  /** The initial text. */
  initial: string;
  maxLength?: number;
}

/** Texts of fields, by pointer. */
export type GateTexts = Readonly<Record<string, string>>;

/** Messages by the pointer of their field; messages of the whole form have the key `FORM`. */
export type GateErrors = ReadonlyMap<string, string>;

/** The key of errors of the whole form. Pointers begin with a slash, so no pointer equals it. */
export const FORM = "form";

/** Maximum length of a text in a field of one line. */
const MAX_LINE = 200;

/** Returns the fields of a question. Buttons, not a field, give the verdict. */
export function fieldsOf({ kind, schema }: Pick<GateView, "kind" | "schema">): GateField[] {
  if (kind === "human.input") return fieldsAt(schema, [], true);
  const { comment, changes } = membersOf(schema.properties);
  const fields = comment === undefined ? [] : [fieldAt(comment, ["comment"], false)];
  return kind === "human.review" ? [...fields, ...fieldsAt(changes, ["changes"], false)] : fields;
}

/** Returns the fields of an object with this schema: one field per member. */
export function inputFields(schema: JsonObject): GateField[] {
  return fieldsAt(schema, [], true);
}

/** Returns the answer that the texts of the fields mean, or their problems. */
export function answerOf(
  fields: readonly GateField[],
  texts: GateTexts,
  start: JsonObject = {},
): { answer: Json } | { errors: GateErrors } {
  const errors = new Map<string, string>();
  let answer: Json = start;
  for (const field of fields) {
    const { path, pointer, isRequired } = field;
    const text = texts[pointer] ?? field.initial;
    if (text.trim() === "") {
      if (isRequired) errors.set(pointer, "Enter a value.");
      continue;
    }
    try {
      answer = withValue(answer, path, fieldValue(field, text));
    } catch (error) {
      errors.set(pointer, messageOf(error));
    }
  }
  return errors.size > 0 ? { errors } : { answer };
}

/** Returns the problems that the server found, each at its field. `root` is the path of the value in the request. */
export function errorsAt(
  fields: readonly GateField[],
  issues: readonly InputIssue[],
  root = "/answer",
): GateErrors {
  const errors = new Map<string, string>();
  for (const { path, message } of issues) {
    const place = path.startsWith(root) ? path.slice(root.length) : path;
    const holders = fields.filter(({ pointer }) => place === pointer || place.startsWith(`${pointer}/`));
    const holder = holders.toSorted((one, other) => other.path.length - one.path.length)[0];
    const rest = place.slice(holder?.pointer.length ?? 0);
    const text = rest === "" ? message : `${rest}: ${message}`;
    const key = holder?.pointer ?? FORM;
    const before = errors.get(key);
    errors.set(key, before === undefined ? text : `${before}\n${text}`);
  }
  return errors;
}

/** Returns the fields of a value: one field per member of an object, or one field for the value. */
function fieldsAt(schema: Json | undefined, path: readonly string[], isRequired: boolean): GateField[] {
  const { type, properties, required } = membersOf(schema);
  const members = Object.entries(membersOf(properties));
  if (type !== "object" || members.length === 0) return [fieldAt(schema, path, isRequired)];
  const needed = Array.isArray(required) && isRequired ? required : [];
  return members.map(([name, member]) => fieldAt(member, [...path, name], needed.includes(name)));
}

function fieldAt(given: Json | undefined, path: readonly string[], isRequired: boolean): GateField {
  const schema = membersOf(given);
  const { title, description, default: initial, maxLength } = schema;
  const options = choicesOf(schema);
  const kind = options.length > 0 ? "choice" : kindOf(schema);
  return {
    path,
    pointer: jsonPointer(path),
    label: typeof title === "string" ? title : wordsOf(path.at(-1) ?? "answer"),
    ...(typeof description === "string" ? { description } : {}),
    kind,
    options,
    isRequired,
    initial: initial === undefined ? "" : textOf(kind, initial),
    ...(typeof maxLength === "number" ? { maxLength } : {}),
  };
}

function choicesOf({ enum: values }: JsonObject): string[] {
  return Array.isArray(values) ? values.map((value) => JSON.stringify(value)) : [];
}

function kindOf({ type, format, pattern, maxLength, $ref, anyOf, oneOf, allOf }: JsonObject): FieldKind {
  if ([$ref, anyOf, oneOf, allOf].some((part) => part !== undefined)) return "json";
  switch (type) {
    case "string":
      if (format === "date") return "date";
      if (format === "date-time") return "time";
      return [format, pattern].some((part) => part !== undefined) ||
        (typeof maxLength === "number" && maxLength <= MAX_LINE)
        ? "line"
        : "text";
    case "number":
    case "integer":
      return "number";
    case "boolean":
      return "boolean";
    default:
      return "json";
  }
}

function textOf(kind: FieldKind, value: Json): string {
  if (kind === "json") return JSON.stringify(value, null, 2);
  if (kind === "time" && typeof value === "string" && isoOf(value) !== undefined) return localInput(value);
  return typeof value === "string" && kind !== "choice" ? value : JSON.stringify(value);
}

/** Parses the text of a field. The message of an error names the expected value. */
function fieldValue({ kind }: GateField, text: string): Json {
  switch (kind) {
    case "line":
    case "text":
    case "date":
      return text;
    case "time": {
      const time = isoOf(text);
      if (time === undefined) throw new Error("Enter a date and a time.");
      return time;
    }
    case "number": {
      const value = Number(text);
      if (!Number.isFinite(value)) throw new Error("Enter a number, such as 12.5.");
      return value;
    }
    case "boolean":
    case "choice":
    case "json":
      return parsed(text);
    default:
      return kind satisfies never;
  }
}

function parsed(text: string): Json {
  try {
    // SAFETY: parsed JSON.
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new Error(`This is not JSON: ${messageOf(error)}`);
  }
}

/** Returns a value with a replacement at a path. */
function withValue(whole: Json, path: readonly string[], value: Json): Json {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  const members = membersOf(whole);
  return { ...members, [name]: withValue(members[name] ?? {}, rest, value) };
}

function membersOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
