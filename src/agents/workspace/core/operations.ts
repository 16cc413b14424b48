/** The operations on the files of a workspace, with results that a model can read. Pure. */
import type { z } from "zod";
import { decodeText } from "../../../git/bytes.ts";
import type { WORKSPACE_INPUTS, WorkspaceKind } from "../../../protocol/workspace.ts";
import { invalid, notFound } from "../../../shared/errors.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { wholeLength } from "../../../shared/text.ts";
import { treeChanges, treeDiff } from "./diff.ts";
import { searchTree } from "./search.ts";
import { treePath } from "./tree-path.ts";
import type { WorkingTree } from "./working-tree.ts";

/** The operations on files. A shell and a repository run the others. */
export type FileOperation = {
  [Kind in Exclude<WorkspaceKind, "repo.commit" | "repo.merge" | `shell.${string}`>]: {
    kind: Kind;
    input: z.output<(typeof WORKSPACE_INPUTS)[Kind]>;
  };
}[Exclude<WorkspaceKind, "repo.commit" | "repo.merge" | `shell.${string}`>];

/** Paths in a result for a model, and for a person. */
const MAX_LISTED = { model: 1_000, person: 50_000 };
const MAX_LINES = 2_000;
/** Characters of a file in a result. */
const MAX_TEXT = 100_000;
/** Characters of a difference in a result for a model, and for a person. */
const MAX_DIFF = { model: MAX_TEXT, person: 1_000_000 };
const DEFAULT_MATCHES = 100;

/** Characters of all paths in a stored result. A row of SQLite holds 2 MB. */
const MAX_PATHS = 150_000;

/** Returns the beginning of a list of changed files as a result stores it, and a note about the rest. */
export function listed<Item>(
  items: readonly Item[],
  pathOf: (item: Item) => string,
): { items: Item[]; cut?: string } {
  let size = 0;
  const kept: Item[] = [];
  for (const item of items.slice(0, MAX_LISTED.model)) {
    size += pathOf(item).length;
    if (size > MAX_PATHS) break;
    kept.push(item);
  }
  const more = items.length - kept.length;
  return { items: kept, ...(more > 0 && { cut: `${more} more files are left out.` }) };
}

/** Runs an operation on `tree`, and changes it. `base` returns the files at the start of the branch, `head` the files of the newest commit. */
export async function operate(
  { kind, input }: FileOperation,
  tree: WorkingTree,
  { base, head, isForPerson }: { base(): Promise<WorkingTree>; head: WorkingTree; isForPerson: boolean },
): Promise<JsonObject> {
  const reader = isForPerson ? "person" : "model";
  switch (kind) {
    case "repo.tree": {
      const folder = treePath(input.path ?? "");
      const files = tree.paths(folder);
      if (files.length === 0 && folder !== "") throw notFound(`There is no folder "${folder}" with files.`);
      const changes = isForPerson ? treeChanges(await base(), tree, folder) : [];
      const most = MAX_LISTED[reader];
      const more = Math.max(files.length, changes.length) - most;
      return {
        files: files.slice(0, most),
        ...(isForPerson && { changes: changes.slice(0, most) }),
        ...(more > 0 && { cut: `${more} more files are left out. Name a folder.` }),
      };
    }
    case "repo.read":
      return readLines(tree, input);
    case "repo.write":
      return { path: await tree.write(input.path, new TextEncoder().encode(input.content)) };
    case "repo.edit":
      return tree.edit(input.path, { before: input.before, after: input.after, all: input.all ?? false });
    case "repo.search": {
      const { query, regex = false, ignoreCase = false, path = "", limit = DEFAULT_MATCHES } = input;
      tree.checkAllowed(treePath(path));
      const found = await searchTree(tree, {
        query,
        isRegex: regex,
        ignoreCase,
        path: treePath(path),
        limit,
      });
      return { ...found, matches: found.matches.map((match) => ({ ...match })) };
    }
    case "repo.diff": {
      const before = input.against === "base" ? await base() : head;
      const path = treePath(input.path ?? "");
      tree.checkAllowed(path);
      return treeDiff(before, tree, { path, limit: MAX_DIFF[reader] });
    }
    default:
      return kind satisfies never;
  }
}

async function readLines(
  tree: WorkingTree,
  { path, from = 1, lines = MAX_LINES }: z.output<(typeof WORKSPACE_INPUTS)["repo.read"]>,
): Promise<JsonObject> {
  const content = await tree.read(path);
  const text = decodeText(content);
  if (text === undefined) throw invalid(`"${path}" is not UTF-8 text: it has ${content.byteLength} bytes.`);
  const all = text.split("\n");
  const total = all.at(-1) === "" ? all.length - 1 : all.length;
  if (from > Math.max(1, total)) throw invalid(`"${path}" has ${total} lines. Read from an earlier line.`);
  const part = all.slice(from - 1, from - 1 + lines).join("\n");
  const shown = part.slice(0, wholeLength(part, MAX_TEXT));
  const to = Math.min(total, from - 1 + shown.split("\n").length);
  return {
    ...{ path: treePath(path), content: shown, from, to, total },
    ...((to < total || shown.length < part.length) && { cut: `Read on with \`from\`: ${to + 1}.` }),
  };
}
