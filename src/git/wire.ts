/**
 * The messages of git's smart HTTP protocol, version 0. Pure.
 *
 * GITWIRE-1  A message of a server is bounded and checked. Any other bytes are `UNAVAILABLE`.
 */
import type { Reference } from "../d1/repositories.ts";
import { type DramatisError, tooLarge, unavailable } from "../shared/errors.ts";
import { shorten } from "../shared/text.ts";
import { concat, decode, encode } from "./bytes.ts";
import { MAX_REFERENCES } from "./limits.ts";

export const SERVICES = { fetch: "git-upload-pack", push: "git-receive-pack" } as const;
export type Service = (typeof SERVICES)[keyof typeof SERVICES];

/** The id of no commit. */
const ZERO = "0".repeat(40);
const AGENT = "agent=dramatis";
const REFERENCE = /^(?<oid>[0-9a-f]{40}) (?<name>[^\0\n]+)(?:\0(?<capabilities>[^\n]*))?\n?$/;
/** The bands of an answer with several streams. */
const [DATA, PROGRESS] = [1, 2];

const FLUSH = encode("0000");
const line = (text: string) => encode(`${(text.length + 4).toString(16).padStart(4, "0")}${text}`);

/** Yields the lines of a message; `null` for a flush. What follows the lines is not read. */
function* linesOf(bytes: Uint8Array): Generator<{ line: Uint8Array | null; end: number }> {
  for (let at = 0; at < bytes.length; ) {
    const digits = decode(bytes.subarray(at, at + 4));
    const length = /^[0-9a-f]{4}$/.test(digits) ? Number.parseInt(digits, 16) : 1;
    if ((length > 0 && length < 4) || at + length > bytes.length) throw unknownForm();
    const end = at + Math.max(length, 4);
    yield { line: length === 0 ? null : bytes.subarray(at + 4, end), end };
    at = end;
  }
}

/** Reads the branches and tags that a server announces. A reference `HEAD` names its default commit. */
export function readAnnounced(
  bytes: Uint8Array,
  service: Service,
): { references: Reference[]; capabilities: Set<string> } {
  const references: Reference[] = [];
  let capabilities = new Set<string>();
  const [first, flush, ...rest] = [...linesOf(bytes)].map((each) => each.line);
  if (first == null || flush !== null || decode(first).trimEnd() !== `# service=${service}`)
    throw unknownForm();
  for (const each of rest) {
    if (each === null) break;
    const { oid = "", name = "", capabilities: given } = REFERENCE.exec(decode(each))?.groups ?? {};
    if (name === "") throw unknownForm();
    if (given !== undefined) capabilities = new Set(given.split(" "));
    // A server without commits announces only its capabilities. The commits of tags are in their objects.
    if (oid === ZERO || name.endsWith("^{}")) continue;
    if (references.push({ oid, name }) > MAX_REFERENCES)
      throw tooLarge(`The remote has more than ${MAX_REFERENCES} branches and tags. Name a branch.`);
  }
  return { references, capabilities };
}

/** Returns the body that asks for the whole history of commits. */
export function fetchBody(oids: readonly string[]): Uint8Array {
  const [first, ...others] = [...new Set(oids)];
  return concat([
    line(`want ${first} side-band-64k ofs-delta no-progress ${AGENT}\n`),
    ...others.map((oid) => line(`want ${oid}\n`)),
    FLUSH,
    line("done\n"),
  ]);
}

/** Returns the pack of the answer to `fetchBody`. */
export function readFetched(bytes: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  const [first, ...rest] = [...linesOf(bytes)].map((each) => each.line);
  if (first == null || decode(first) !== "NAK\n") throw unknownForm();
  for (const each of rest) {
    if (each === null) break;
    const [band] = each;
    if (band === DATA) parts.push(each.subarray(1));
    else if (band !== PROGRESS)
      throw unavailable(`The remote says: ${shorten(decode(each.subarray(1)), 300)}`);
  }
  return concat(parts);
}

/** A move of a branch of a remote. `from` is `null` for a new branch. */
export interface RemoteMove {
  name: string;
  from: string | null;
  to: string;
}

/** Returns the body that moves a branch, with a pack of new objects. */
export function pushBody({ name, from, to }: RemoteMove, pack: Uint8Array): Uint8Array {
  return concat([line(`${from ?? ZERO} ${to} ${name}\0report-status ${AGENT}\n`), FLUSH, pack]);
}

/** Reads the answer to `pushBody`. Returns the reason why the remote refuses; `undefined` if the branch has moved. */
export function readPushed(bytes: Uint8Array, name: string): string | undefined {
  const lines = [...linesOf(bytes)].flatMap((each) =>
    each.line === null ? [] : [decode(each.line).trimEnd()],
  );
  const unpack = /^unpack (?<result>.+)$/.exec(lines[0] ?? "")?.groups?.result;
  if (unpack === undefined) throw unknownForm();
  if (unpack !== "ok") return shorten(unpack, 300);
  if (lines.includes(`ok ${name}`)) return undefined;
  return shorten(
    lines.find((each) => each.startsWith(`ng ${name}`))?.slice(`ng ${name} `.length) ?? "no answer",
    300,
  );
}

function unknownForm(): DramatisError {
  return unavailable("The remote did not answer as a git server with smart HTTP. Check its address.");
}
