/**
 * The messages of git's smart HTTP protocol, version 0. Pure.
 *
 * GITWIRE-1  A message of a server is bounded and checked. Any other bytes are `UNAVAILABLE`.
 */
import type { Reference } from "../d1/repositories.ts";
import { type DramatisError, unavailable } from "../shared/errors.ts";
import { shorten } from "../shared/text.ts";
import { concat, decode, encode } from "./bytes.ts";

export const SERVICES = { fetch: "git-upload-pack", push: "git-receive-pack" } as const;
export type Service = (typeof SERVICES)[keyof typeof SERVICES];

/** The id of no commit. */
const ZERO = "0".repeat(40);
const AGENT = "agent=dramatis";
const REFERENCE = /^(?<oid>[0-9a-f]{40}) (?<name>[^\0\n]+)(?:\0[^\n]*)?\n?$/;
/** The bands of an answer with several streams. */
const [DATA, PROGRESS] = [1, 2];

const FLUSH = encode("0000");
const line = (text: string) => encode(`${(text.length + 4).toString(16).padStart(4, "0")}${text}`);

/** Lines of a message. A server sends a pack in lines of some KiB. */
const MAX_LINES = 200_000;

/** Yields the lines of a message; `null` for a flush. Throws at the first line of another form. */
function* linesOf(bytes: Uint8Array): Generator<Uint8Array | null> {
  let count = 0;
  for (let at = 0; at < bytes.length; ) {
    const digits = decode(bytes.subarray(at, at + 4));
    const length = /^[0-9a-f]{4}$/.test(digits) ? Number.parseInt(digits, 16) : 1;
    if ((length > 0 && length <= 4) || at + length > bytes.length || ++count > MAX_LINES) throw unknownForm();
    const end = at + Math.max(length, 4);
    yield length === 0 ? null : bytes.subarray(at + 4, end);
    at = end;
  }
}

/** Reads the references that a server announces. `HEAD` names its default commit. */
export function readAnnounced(bytes: Uint8Array, service: Service): Reference[] {
  const references: Reference[] = [];
  const lines = linesOf(bytes);
  const first = lines.next().value;
  if (first == null || decode(first).trimEnd() !== `# service=${service}` || lines.next().value !== null)
    throw unknownForm();
  for (const each of lines) {
    if (each === null) break;
    const { oid = "", name = "" } = REFERENCE.exec(decode(each))?.groups ?? {};
    if (name === "") throw unknownForm();
    // A server without commits announces only its capabilities. The commits of tags are in their objects.
    if (oid !== ZERO && !name.endsWith("^{}")) references.push({ oid, name });
  }
  return references;
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
  const lines = linesOf(bytes);
  const first = lines.next().value;
  if (first == null || decode(first) !== "NAK\n") throw unknownForm();
  for (const each of lines) {
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
  let unpack: string | undefined;
  for (const line of linesOf(bytes)) {
    if (line === null) break;
    const text = decode(line).trimEnd();
    unpack ??= /^unpack (?<result>.+)$/.exec(text)?.groups?.result;
    if (unpack === undefined) throw unknownForm();
    if (unpack !== "ok") return shorten(unpack, 300);
    if (text === `ok ${name}`) return undefined;
    if (text.startsWith(`ng ${name} `)) return shorten(text.slice(`ng ${name} `.length), 300);
  }
  throw unknownForm();
}

function unknownForm(): DramatisError {
  return unavailable("The remote did not answer as a git server with smart HTTP. Check its address.");
}
