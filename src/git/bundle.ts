/** Bundles: files with a pack and its references, which `git clone` and `git fetch` read. Pure. */
import type { Reference } from "../d1/repositories.ts";
import { DramatisError, invalid, tooLarge } from "../shared/errors.ts";
import { concat, decode, encode } from "./bytes.ts";
import { MAX_REFERENCES } from "./limits.ts";

const SIGNATURE = /^# v[23] git bundle$/;
const REFERENCE = /^(?<oid>[0-9a-f]{40}) (?<name>\S.*)$/;
const LINE_BREAK = 0x0a;

/** The content of a bundle. A reference `HEAD` names the commit that a clone checks out. */
export interface Bundle {
  references: Reference[];
  pack: Uint8Array;
}

export function encodeBundle({ references, pack }: Bundle): Uint8Array {
  const lines = references.map(({ oid, name }) => `${oid} ${name}\n`);
  return concat([encode(`# v2 git bundle\n${lines.join("")}\n`), pack]);
}

/** Throws `INVALID_INPUT` for bytes without a bundle of a whole history, and for a reference with two commits. Throws `TOO_LARGE`. */
export function readBundle(bytes: Uint8Array): Bundle {
  const references: Reference[] = [];
  const names = new Set<string>();
  let at = 0;
  for (let number = 0; ; number++) {
    const end = bytes.indexOf(LINE_BREAK, at);
    if (end < 0) throw notABundle();
    const line = decode(bytes.subarray(at, end));
    at = end + 1;
    if (number === 0 && !SIGNATURE.test(line)) throw notABundle();
    if (number === 0 || line === "@object-format=sha1") continue;
    if (line === "") return { references, pack: bytes.subarray(at) };
    if (line.startsWith("@")) {
      throw new DramatisError(
        "UNSUPPORTED",
        `Bundles with "${line}" are not supported. Make one without it.`,
      );
    }
    const { oid, name } = REFERENCE.exec(line)?.groups ?? {};
    if (oid === undefined || name === undefined) {
      const message =
        "The bundle has a part of a history only. Make a bundle of the whole history: git bundle create all.bundle --all";
      throw line.startsWith("-") ? invalid(message) : notABundle();
    }
    if (names.has(name)) throw invalid(`The bundle names ${JSON.stringify(name)} twice. Name it once.`);
    if (names.add(name).size > MAX_REFERENCES)
      throw tooLarge(`A bundle has at most ${MAX_REFERENCES} branches and tags. Leave out some.`);
    references.push({ oid, name });
  }
}

function notABundle(): DramatisError {
  return invalid("These bytes are no git bundle. Make one: git bundle create all.bundle --all");
}
