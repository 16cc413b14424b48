/** Differences between two trees as Git writes them. `git apply` reads the result. Pure. */
import { structuredPatch } from "diff";
import { decodeText } from "../../../git/bytes.ts";
import { wholeLength } from "../../../shared/text.ts";
import { type ChangeKind, isEqual, type TreeFile, type WorkingTree } from "./working-tree.ts";

/** Edits of a line in one file. The difference of two files that differ more is all lines. */
const MAX_EDITS = 1_000;

/** Maximum bytes of a side of a file. The lines of larger files are not compared. */
const MAX_COMPARED = 500_000;

export interface DiffOptions {
  /** A file or a folder; by default the whole tree. */
  path?: string;
  /** Characters of the difference. The files after the limit are not read. */
  limit?: number;
}

/** Returns the unified difference of two trees. `cut` says what is left out. */
export async function treeDiff(
  before: WorkingTree,
  after: WorkingTree,
  { path = "", limit = Number.POSITIVE_INFINITY }: DiffOptions = {},
): Promise<{ diff: string; cut?: string }> {
  const fileOf = async (tree: WorkingTree, each: string) =>
    tree.entry(each) === undefined ? null : await tree.file(each);
  let diff = "";
  let hasLarge = false;
  for (const each of differing(before, after, path)) {
    const [old, now] = [await fileOf(before, each), await fileOf(after, each)];
    if (old !== null && old.mode === now?.mode && isEqual(old.content, now.content)) continue;
    hasLarge ||= isLarge(old) || isLarge(now);
    diff += fileDiff(each, old, now);
    if (diff.length > limit) break;
  }
  const cut = [
    ...(hasLarge ? [`The lines of files with more than ${MAX_COMPARED} bytes are left out.`] : []),
    ...(diff.length > limit ? ["The rest is left out. Name a file or a folder."] : []),
  ].join(" ");
  return { diff: diff.slice(0, wholeLength(diff, limit)), ...(cut !== "" && { cut }) };
}

/** Returns the changes from one tree to another, by path. An uncommitted file counts as changed. `folder` may also be a file. */
export function treeChanges(
  before: WorkingTree,
  after: WorkingTree,
  folder: string,
): { path: string; change: ChangeKind }[] {
  return differing(before, after, folder).map((path) => ({
    path,
    change:
      before.entry(path) === undefined ? "added" : after.entry(path) === undefined ? "deleted" : "modified",
  }));
}

/** Returns the paths of files with another content or another mode, in order. The content of an uncommitted file is not compared. */
function differing(before: WorkingTree, after: WorkingTree, folder: string): string[] {
  const paths = [...new Set([...before.paths(), ...after.paths()])].sort();
  return paths.filter((path) => {
    if (folder !== "" && path !== folder && !path.startsWith(`${folder}/`)) return false;
    const [one, other] = [before.entry(path), after.entry(path)];
    return one?.oid === undefined || one.oid !== other?.oid || one.mode !== other.mode;
  });
}

function isLarge(file: TreeFile | null): boolean {
  return (file?.content.byteLength ?? 0) > MAX_COMPARED;
}

/** Returns the difference of one file. `null` means that the file does not exist. */
function fileDiff(path: string, before: TreeFile | null, after: TreeFile | null): string {
  const [old, now] = [named(`a/${path}`), named(`b/${path}`)];
  const header = [
    `diff --git ${old} ${now}`,
    ...(before === null ? [`new file mode ${after?.mode}`] : []),
    ...(after === null ? [`deleted file mode ${before?.mode}`] : []),
    ...(before && after && before.mode !== after.mode
      ? [`old mode ${before.mode}`, `new mode ${after.mode}`]
      : []),
  ];
  if (before && after && isEqual(before.content, after.content)) return `${header.join("\n")}\n`;
  const [oldText, newText] = [textIn(before), textIn(after)];
  if (oldText === undefined || newText === undefined)
    return `${[...header, `Binary files ${before === null ? "/dev/null" : old} and ${after === null ? "/dev/null" : now} differ`].join("\n")}\n`;
  const hunks = hunksOf(oldText, newText);
  if (hunks.length === 0) return `${header.join("\n")}\n`;
  const from = before === null ? "/dev/null" : `${old}${old.includes(" ") ? "\t" : ""}`;
  const to = after === null ? "/dev/null" : `${now}${now.includes(" ") ? "\t" : ""}`;
  return `${[...header, `--- ${from}`, `+++ ${to}`, ...hunks].join("\n")}\n`;
}

function hunksOf(before: string, after: string): string[] {
  const options = { context: 3, maxEditLength: MAX_EDITS };
  const patch = structuredPatch("", "", before, after, undefined, undefined, options);
  if (patch === undefined) return wholeHunk(before, after);
  return patch.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
    // An empty side begins at line 0.
    `@@ -${oldLines === 0 ? oldStart - 1 : oldStart},${oldLines} +${newLines === 0 ? newStart - 1 : newStart},${newLines} @@`,
    ...lines,
  ]);
}

function wholeHunk(before: string, after: string): string[] {
  const side = (text: string, sign: string) => {
    const lines = text.split("\n");
    const isEnded = lines.at(-1) === "";
    if (isEnded) lines.pop();
    return {
      count: lines.length,
      lines: [
        ...lines.map((line) => sign + line),
        ...(isEnded || text === "" ? [] : ["\\ No newline at end of file"]),
      ],
    };
  };
  const [old, now] = [side(before, "-"), side(after, "+")];
  return [
    `@@ -${Math.min(1, old.count)},${old.count} +${Math.min(1, now.count)},${now.count} @@`,
    ...old.lines,
    ...now.lines,
  ];
}

/** Returns the text of a file; `undefined` if the file is shown as a binary file. */
function textIn(file: TreeFile | null): string | undefined {
  if (isLarge(file)) return undefined;
  return file === null ? "" : decodeText(file.content);
}

function named(path: string): string {
  return path.includes('"') ? `"${path.replaceAll('"', '\\"')}"` : path;
}
