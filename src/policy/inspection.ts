/**
 * Finds the paths and the hosts in the input of a call. Pure.
 *
 * CALLTEXT-1  Each spelling of a path gives the path: with `./`, `//`, `..` or backslashes, percent-encoded, nested in members, or in JSON text.
 *             Each word of a text counts as a path, except in the contents of files: the members `content`, `before` and `after`.
 * CALLTEXT-2  Each spelling of a host in a URL gives the host as a URL has it.
 * CALLTEXT-3  An input that cannot be read to its end is opaque. It matches each rule that asks or denies by paths or hosts.
 */
import type { JsonObject } from "../shared/json.ts";

export interface Inspection {
  /** Paths from a root, such as `src/a.ts`. */
  paths: readonly string[];
  /** Hosts as in a URL, without the port. */
  hosts: readonly string[];
  isOpaque: boolean;
}

/** Encodings of a text within each other. */
const MAX_LAYERS = 16;
/** Characters that are read of an input with all decoded texts. */
const MAX_READ = 16 * 1024 * 1024;
/** Paths that are read of an input, and hosts. Each is compared with each glob of the rules. */
export const MAX_FOUND = 5_000;
const MAX_PATH_LENGTH = 4_096;
/** The members of the built-in tools with contents of files. */
const CONTENTS: ReadonlySet<string> = new Set(["content", "before", "after"]);

const BREAKS = /[\s"'`;|&<>(){}[\]=,:?#$]+/;
/** The authority of a URL in a text. Browsers accept any number of slashes after these schemes. */
const AUTHORITY = /(?:\b(?:https?|wss?|ftp):[\\/]*|(?<![\\/])[\\/]{2,})([^\s"'`<>\\/?#]+)/gi;

export function inspect(input: JsonObject): Inspection {
  const paths = new Set<string>();
  const hosts = new Set<string>();
  const seen = new Set<string>();
  let left = MAX_READ;
  let isOpaque = false;
  const add = (found: Set<string>, all: Iterable<string>): void => {
    for (const one of all) {
      isOpaque ||= found.size >= MAX_FOUND && !found.has(one);
      if (isOpaque) return;
      found.add(one);
    }
  };
  const read = (text: string, layer: number, isContent: boolean): void => {
    const key = `${isContent} ${text}`;
    if (isOpaque || seen.has(key)) return;
    seen.add(key);
    left -= text.length;
    if (layer > MAX_LAYERS || left < 0) {
      isOpaque = true;
      return;
    }
    if (!isContent) add(paths, pathsOf(text));
    add(hosts, hostsOf(text));
    read(decoded(text), layer + 1, isContent);
    visit(parsed(text), layer + 1, isContent);
  };
  const visit = (value: unknown, layer: number, isContent: boolean): void => {
    if (typeof value === "string") read(value, layer, isContent);
    if (typeof value !== "object" || value === null) return;
    for (const [key, member] of Object.entries(value)) {
      if (!Array.isArray(value)) read(key, layer, isContent);
      visit(member, layer, isContent || (value === input && CONTENTS.has(key)));
    }
  };
  visit(input, 0, false);
  return { paths: [...paths], hosts: [...hosts], isOpaque };
}

/** Reports whether a host is in a list of exact hosts, of `*.example.com`, and of `*`. */
export function matchesHost(listed: readonly string[], host: string): boolean {
  return listed.some((name) => (name.startsWith("*") ? host.endsWith(name.slice(1)) : host === name));
}

/** Returns the host of an authority as a URL has it; `undefined` if it is not valid. */
export function hostOf(authority: string): string | undefined {
  return URL.parse(`https://${authority}`)?.hostname.replace(/\.+$/, "") || undefined;
}

function* pathsOf(text: string): Iterable<string> {
  for (const part of [text, ...text.split(BREAKS)]) {
    const path = normal(part);
    if (path === "" || path.length > MAX_PATH_LENGTH) continue;
    yield path;
    if (path.startsWith("workspace/")) yield path.slice("workspace/".length);
  }
}

function normal(path: string): string {
  const segments: string[] = [];
  for (const segment of path.trim().split(/[\\/]/)) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return segments.join("/");
}

function* hostsOf(text: string): Iterable<string> {
  const authorities = new Set([URL.parse(text)?.host]);
  for (const [, given = ""] of text.matchAll(AUTHORITY)) {
    authorities.add(given);
    authorities.add(given.split(/[,;|(){}]/, 1)[0]);
  }
  for (const authority of authorities) {
    const host = authority && hostOf(authority);
    if (host) yield host;
  }
}

/** Returns a text without its outer percent encoding. */
function decoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => {
    const bytes = run.slice(1).split("%");
    return new TextDecoder().decode(Uint8Array.from(bytes, (byte) => Number.parseInt(byte, 16)));
  });
}

/** Returns the value of JSON text; `undefined` for any other text. */
function parsed(text: string): unknown {
  if (!/^\s*["[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
