/** The objects of git: blobs, trees, commits and tags, as bytes and as values. Pure. */
import { type DramatisError, invalid } from "../shared/errors.ts";
import { concat, decode, decodeExactly, encode, fromHex, sha1, toHex } from "./bytes.ts";

export type ObjectType = "commit" | "tree" | "blob" | "tag";

export interface GitObject {
  type: ObjectType;
  content: Uint8Array;
}

/** The mode of a file, of an executable file, or of a symbolic link. */
export type FileMode = "100644" | "100755" | "120000";

/** The modes of a folder, and of a commit of another repository. */
export const FOLDER = "40000";
export const SUBMODULE = "160000";

export interface TreeEntry {
  mode: string;
  name: string;
  oid: string;
}

/** A person or an agent that made a commit. */
export interface Identity {
  name: string;
  email: string;
}

export interface Commit {
  tree: string;
  parents: string[];
  message: string;
  author: Identity;
  /** Milliseconds since the epoch. Git stores seconds. */
  at: number;
}

const OID_BYTES = 20;
/** Characters of a mode that are read. A longer mode is unknown anyway. */
const MAX_MODE_LENGTH = 10;

/** Returns the id of an object: 40 hexadecimal digits. */
export function oidOf({ type, content }: GitObject): string {
  return toHex(sha1(encode(`${type} ${content.length}\0`), content));
}

export function readTree(content: Uint8Array): TreeEntry[] {
  return readRawTree(content).map((entry) => ({ ...entry, oid: toHex(entry.oid) }));
}

/** As `readTree`, with the ids as bytes: an import reads millions of them. */
export function readRawTree(content: Uint8Array): (Omit<TreeEntry, "oid"> & { oid: Uint8Array })[] {
  const entries: ReturnType<typeof readRawTree> = [];
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(0x20, at);
    const end = content.indexOf(0, space);
    if (space < 0 || end < 0 || end + OID_BYTES >= content.length) throw damaged("tree");
    entries.push({
      mode: String.fromCharCode(...content.subarray(at, Math.min(space, at + MAX_MODE_LENGTH))),
      name: decodeExactly(content.subarray(space + 1, end), "The name of a file"),
      oid: content.subarray(end + 1, end + 1 + OID_BYTES),
    });
    at = end + 1 + OID_BYTES;
  }
  return entries;
}

/** Returns the content of a tree, in git's order: by bytes, a folder as if its name ended in "/". */
export function encodeTree(entries: readonly TreeEntry[]): Uint8Array {
  const keyed = entries.map((entry) => ({
    entry,
    key: encode(entry.mode === FOLDER ? `${entry.name}/` : entry.name),
  }));
  keyed.sort((one, other) => compare(one.key, other.key));
  return concat(
    keyed.flatMap(({ entry: { mode, name, oid } }) => [encode(`${mode} ${name}\0`), fromHex(oid)]),
  );
}

/** Reports whether the entries of a tree are in git's order. */
export function isInOrder(entries: readonly Omit<TreeEntry, "oid">[]): boolean {
  const keys = entries.map(({ mode, name }) => (mode === FOLDER ? `${name}/` : name));
  return keys.every((key, index) => index === 0 || isBefore(keys[index - 1] ?? "", key));
}

const SURROGATE = /[\ud800-\udfff]/;

/** Compares texts by their bytes in UTF-8. JavaScript compares code units, whose order differs only with surrogates. */
function isBefore(one: string, other: string): boolean {
  return SURROGATE.test(one + other) ? compare(encode(one), encode(other)) < 0 : one < other;
}

function compare(one: Uint8Array, other: Uint8Array): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at++) {
    const difference = (one[at] ?? 0) - (other[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}

const IDENTITY = /^(?<name>[^<>]*?) ?<(?<email>[^<>]*)> (?<seconds>\d+) [+-]\d{4}$/;

export function readCommit(content: Uint8Array): Commit {
  const text = decode(content);
  const end = text.indexOf("\n\n");
  const lines = text.slice(0, end < 0 ? text.length : end).split("\n");
  const values = (name: string) =>
    lines.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1));
  const [tree] = values("tree");
  const author = IDENTITY.exec(values("author")[0] ?? "")?.groups;
  const committer = IDENTITY.exec(values("committer")[0] ?? "")?.groups;
  if (tree === undefined || author === undefined || committer === undefined) throw damaged("commit");
  return {
    tree,
    parents: values("parent"),
    message: end < 0 ? "" : text.slice(end + 2),
    author: { name: author.name ?? "", email: author.email ?? "" },
    at: Number(committer.seconds) * 1_000,
  };
}

/** Returns the content of a commit. Its author is also its committer. The message ends in one line break. */
export function encodeCommit({ tree, parents, message, author, at }: Commit): Uint8Array {
  const name = identityText(author.name) || "unknown";
  const who = `${name} <${identityText(author.email)}> ${Math.floor(at / 1_000)} +0000`;
  const headers = [
    `tree ${tree}`,
    ...parents.map((parent) => `parent ${parent}`),
    `author ${who}`,
    `committer ${who}`,
  ];
  return encode(`${headers.join("\n")}\n\n${message.replaceAll("\0", "").trimEnd()}\n`);
}

/** Removes the signs that separate the parts of an identity. */
function identityText(text: string): string {
  return text.replace(/[<>\p{Cc}]/gu, "").trim();
}

const TAGGED = /^object (?<oid>[0-9a-f]{40})\ntype (?<type>commit|tree|blob|tag)\n/;

export function taggedObject(content: Uint8Array): { oid: string; type: ObjectType } {
  const { oid, type } = TAGGED.exec(decode(content))?.groups ?? {};
  if (oid === undefined) throw damaged("tag");
  // SAFETY: the expression matches types only.
  return { oid, type: type as ObjectType };
}

function damaged(type: ObjectType): DramatisError {
  return invalid(`A ${type} is damaged. Repair the repository with \`git fsck\`.`);
}
