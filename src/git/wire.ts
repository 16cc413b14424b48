/**
 * The messages of git's smart HTTP protocol, version 0. Pure.
 *
 * GITWIRE-1  A message of a server is bounded and checked. Any other bytes are `UNAVAILABLE`.
 */
import type { Reference } from "../d1/repositories.ts";
import { ByteBuffer } from "../shared/byte-buffer.ts";
import { type DramatisError, tooLarge, unavailable } from "../shared/errors.ts";
import { shorten } from "../shared/text.ts";
import { utf8Length } from "../shared/utf8.ts";
import { concat, decode, encode } from "./bytes.ts";
import { MAX_BUNDLE_BYTES } from "./limits.ts";

export const SERVICES = { fetch: "git-upload-pack", push: "git-receive-pack" } as const;
export type Service = (typeof SERVICES)[keyof typeof SERVICES];

/** The id of no commit. */
const ZERO = "0".repeat(40);
const AGENT = "agent=dramatis";
const REFERENCE = /^(?<oid>[0-9a-f]{40}) (?<name>[^\0\n]+)(?:\0[^\n]*)?\n?$/;
/** The bands of an answer with several streams. */
const [DATA, PROGRESS] = [1, 2];

const FLUSH = encode("0000");
const line = (text: string) => encode(`${(utf8Length(text) + 4).toString(16).padStart(4, "0")}${text}`);

/** Lines of a message. A server sends a pack in lines of some KiB. */
const MAX_LINES = 200_000;
/** Bytes of a line, with the digits of its length. */
const MAX_LINE_BYTES = 0xffff;
const DIGITS = 4;

/** A message, while it arrives. */
export type Parts = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/**
 * Yields the lines of a message after its first lines; `null` for a flush. The next line overwrites a line. Throws at the first line of another form.
 */
async function* linesOf(parts: Parts, ...first: (string | null)[]): AsyncGenerator<Uint8Array | null> {
  const held = new Uint8Array(MAX_LINE_BYTES);
  let [size, length, count] = [0, DIGITS, 0];
  for await (const part of parts) {
    for (let at = 0; at < part.length; ) {
      const piece = part.subarray(at, at + length - size);
      held.set(piece, size);
      [at, size] = [at + piece.length, size + piece.length];
      if (size < length) break;
      if (size === DIGITS) {
        const digits = decode(held.subarray(0, DIGITS));
        length = /^[0-9a-f]{4}$/.test(digits) ? Number.parseInt(digits, 16) : 1;
        if ((length > 0 && length <= DIGITS) || ++count > MAX_LINES) throw unknownForm();
        if (length > 0) continue;
      }
      const line = length === 0 ? null : held.subarray(DIGITS, length);
      const expected = first[count - 1];
      if (expected === undefined) yield line;
      else if ((line && decode(line).trimEnd()) !== expected) throw unknownForm();
      [size, length] = [0, DIGITS];
    }
  }
  if (size > 0 || count < first.length) throw unknownForm();
}

/** Reads the references that a server announces. `HEAD` names its default commit. */
export async function readAnnounced(parts: Parts, service: Service): Promise<Reference[]> {
  const references: Reference[] = [];
  for await (const each of linesOf(parts, `# service=${service}`, null)) {
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
export async function readFetched(parts: Parts): Promise<Uint8Array> {
  const pack = new ByteBuffer(MAX_BUNDLE_BYTES, () =>
    tooLarge(
      `A history has at most ${MAX_BUNDLE_BYTES} bytes. Fetch one branch, or make the history smaller.`,
    ),
  );
  for await (const each of linesOf(parts, "NAK")) {
    if (each === null) break;
    const [band] = each;
    if (band === DATA) pack.push(each.subarray(1));
    else if (band !== PROGRESS)
      throw unavailable(`The remote says: ${shorten(decode(each.subarray(1)), 300)}`);
  }
  return pack.bytes();
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
export async function readPushed(parts: Parts, name: string): Promise<string | undefined> {
  let unpack: string | undefined;
  for await (const line of linesOf(parts)) {
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
