/**
 * Takes secrets out of text that others wrote, such as a provider's error message that quotes the key.
 *
 * REDACT-1  A secret given to `redactSecrets` never stands in its result, nor the beginning of one that was cut off by "…".
 */

const REDACTED = "[redacted]";

/** Below this length a "secret" is a placeholder, and replacing it would garble every message. */
const SHORTEST_SECRET = 4;

/** A beginning of a secret that is shorter tells nobody anything. */
const SHORTEST_BEGINNING = 6;

/** What keys of well-known services look like, also where the service has starred out a part of one. */
const SECRET_SHAPES = [
  /\bBearer\s+[\w.~+/=*-]+/gi,
  /\bsk-[\w*-]{6,}/g,
  /\b(?:gh[opsu]_|github_pat_)\w{10,}/g,
  /\bAKIA[0-9A-Z]{12,}/g,
  /\bxox[a-z]-[\w-]{8,}/g,
  /\bAIza[\w-]{20,}/g,
];

/** `text` without `secrets` and without anything that looks like a key. */
export function redactSecrets(text: string, secrets: readonly string[] = []): string {
  const longestFirst = secrets
    .filter((secret) => secret.length >= SHORTEST_SECRET)
    .sort((one, other) => other.length - one.length);
  const known = longestFirst.reduce(
    (rest, secret) => withoutBeginning(rest.replaceAll(secret, REDACTED), secret),
    text,
  );
  return SECRET_SHAPES.reduce((rest, shape) => rest.replace(shape, REDACTED), known);
}

/** Texts are shortened before anybody looks for the secret in them. */
function withoutBeginning(text: string, secret: string): string {
  if (!text.includes("…")) return text;
  let rest = text;
  for (let length = secret.length - 1; length >= SHORTEST_BEGINNING; length--) {
    rest = rest.replaceAll(`${secret.slice(0, length)}…`, `${REDACTED}…`);
  }
  return rest;
}
