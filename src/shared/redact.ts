/**
 * Removes secrets from foreign text, such as a provider's error message that quotes the key.
 *
 * REDACT-1  The result of `redactSecrets` contains no given secret, and no beginning of a secret that "…" cut off.
 * REDACT-2  It contains no secret as JSON, percent-encoded or in Base64, and no password of a `Basic` value.
 */
import { fromBase64, toBase64 } from "./base64.ts";
import { isJsonObject, type Json } from "./json.ts";

const REDACTED = "[redacted]";
const encoder = new TextEncoder();

/** A shorter "secret" is a placeholder: replacing it would garble every message. */
const SHORTEST_SECRET = 4;

/** A shorter beginning of a secret reveals too little. */
const SHORTEST_BEGINNING = 6;

/** Keys of well-known services, including keys that the service has partly masked with asterisks. */
const SECRET_SHAPES = [
  /\bBearer\s+[\w.~+/=*-]+/gi,
  /\bsk-[\w*-]{6,}/g,
  /\b(?:[rps]k_(?:live|test)|whsec)_\w{10,}/g,
  /\b(?:gh[oprsu]_|github_pat_)\w{10,}/g,
  /\b(?:AKIA|ASIA)[0-9A-Z]{12,}/g,
  /\bxox[a-z]-[\w-]{8,}/g,
  /\bxapp-[\w-]{20,}/g,
  /\bAIza[\w-]{20,}/g,
  /\b(?:glpat-|xai-|pplx-|nvapi-|hf_|gsk_|npm_|r8_|dop_v1_|lin_api_|shp[a-z]{2}_|ya29\.|SG\.)[\w.-]{20,}/g,
  // JSON Web Tokens, bots of Telegram, webhooks of Slack, and passwords in addresses.
  /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
  /\b\d{8,10}:AA[\w-]{30,}/g,
  /(?<=\bhooks\.slack\.com\/services\/)[\w/]{20,}/g,
  /(?<=\b[a-z][a-z\d+.-]*:\/\/[^\s/:@]*:)[^\s/@]+(?=@)/gi,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----|[\s\S]*)/g,
];

/** Returns `text` without `secrets` and without anything that looks like a key. */
export function redactSecrets(text: string, secrets: readonly string[] = []): string {
  const known = longestFirst(secrets).reduce(
    (rest, secret) => withoutBeginning(rest.replaceAll(secret, REDACTED), secret),
    text,
  );
  return SECRET_SHAPES.reduce((rest, shape) => rest.replace(shape, REDACTED), known);
}

/** Returns the secrets that can be replaced, in all their forms. A secret may contain a shorter one. */
function longestFirst(secrets: readonly string[]): string[] {
  return [...new Set(secrets.flatMap(formsOf))]
    .filter((secret) => secret.length >= SHORTEST_SECRET)
    .sort((one, other) => other.length - one.length);
}

/** Returns a secret, as JSON and percent-encoded, in Base64, and its parts if it is `user:password` in Base64. */
function formsOf(secret: string): string[] {
  const base64 = toBase64(encoder.encode(secret)).replace(/=+$/, "");
  const login = decoded(secret.replace(/^Basic /i, ""));
  const parts = login.includes(":") ? [login, login.slice(login.indexOf(":") + 1)] : [];
  return [secret, ...parts].flatMap((form) => [
    ...[form, JSON.stringify(form).slice(1, -1), encodeURIComponent(form.toWellFormed())],
    ...[base64, base64.replaceAll("+", "-").replaceAll("/", "_")],
  ]);
}

/** Returns the text of Base64; "" for another text. */
function decoded(text: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(fromBase64(text));
  } catch {
    return "";
  }
}

/** A text may have been shortened in the middle of a secret. */
function withoutBeginning(text: string, secret: string): string {
  if (!text.includes("…")) return text;
  let rest = text;
  for (let length = secret.length - 1; length >= SHORTEST_BEGINNING; length--)
    rest = rest.replaceAll(`${secret.slice(0, length)}…`, `${REDACTED}…`);
  return rest;
}

/** Returns a value without `secrets` in its texts and names. Other values stay, so a result keeps its form. */
export function withoutValues<Value extends Json>(value: Value, secrets: readonly string[]): Value;
export function withoutValues(value: Json, secrets: readonly string[]): Json {
  const known = longestFirst(secrets);
  const shown = (text: string) => known.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), text);
  const visit = (inner: Json): Json => {
    if (typeof inner === "string") return shown(inner);
    if (typeof inner === "number") return known.includes(String(inner)) ? REDACTED : inner;
    if (Array.isArray(inner)) return inner.map(visit);
    if (!isJsonObject(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).map(([name, member]) => [shown(name), visit(member)]));
  };
  return visit(value);
}

const SECRET_NAME = /secret|token|passw|api[-_]?key|private[-_]?key|authorization|credential|cookie/i;

/** Returns a value without the members that have names of secrets, and without texts that look like keys. Counts of tokens stay. */
export function withoutSecrets(value: Json): Json {
  if (typeof value === "string") return redactSecrets(value);
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      SECRET_NAME.test(name) && !isCount(name, member) ? REDACTED : withoutSecrets(member),
    ]),
  );
}

function isCount(name: string, value: Json): boolean {
  return typeof value === "number" && /tokens$/i.test(name);
}
