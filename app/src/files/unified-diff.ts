/**
 * Unified differences, as Git writes them, as files with numbered lines. Pure.
 *
 * DIFFVIEW-1  A file has each line of its difference once, in order. An added line has the number of the new file, a removed line the number
 *             of the old file, and any other line both.
 * DIFFVIEW-2  The beginning of a difference that was cut gives the lines before the cut.
 */

export type ChangeKind = "added" | "modified" | "deleted";

/** A line of a difference. A `note` is text of Git, such as the lack of a line break at the end. */
export interface DiffLine {
  kind: "same" | "added" | "removed" | "note";
  text: string;
  old?: number;
  now?: number;
}

/** A part of a file with a change. `from` is the first line in the new file. */
export interface DiffHunk {
  from: number;
  lines: DiffLine[];
}

export interface DiffFile {
  path: string;
  change: ChangeKind;
  /** The file is not text, so there are no lines. */
  isBinary: boolean;
  /** The old and the new mode of a file, if they differ. */
  modes?: string;
  added: number;
  removed: number;
  hunks: DiffHunk[];
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

export function parseDiff(diff: string): DiffFile[] {
  const files: DiffFile[] = [];
  const lines = diff.split("\n");
  if (lines.at(-1) === "") lines.pop();
  let file: DiffFile | undefined;
  let hunk: DiffHunk | undefined;
  let [old, now, oldLeft, nowLeft] = [0, 0, 0, 0];
  for (const line of lines) {
    const text = line.slice(1);
    // Only the counts of a hunk tell its lines from headers: a removed line "-- a" looks like one.
    if (hunk !== undefined && file !== undefined && (oldLeft > 0 || nowLeft > 0)) {
      if (line.startsWith("+")) {
        hunk.lines.push({ kind: "added", text, now: now++ });
        file.added++;
        nowLeft--;
      } else if (line.startsWith("-")) {
        hunk.lines.push({ kind: "removed", text, old: old++ });
        file.removed++;
        oldLeft--;
      } else if (line.startsWith("\\")) {
        hunk.lines.push({ kind: "note", text: text.trim() });
      } else {
        hunk.lines.push({ kind: "same", text, old: old++, now: now++ });
        oldLeft--;
        nowLeft--;
      }
      continue;
    }
    if (hunk !== undefined && line.startsWith("\\")) hunk.lines.push({ kind: "note", text: text.trim() });
    else if (line.startsWith("diff --git ")) {
      file = { path: pathOf(line), change: "modified", isBinary: false, added: 0, removed: 0, hunks: [] };
      files.push(file);
      hunk = undefined;
    } else if (file === undefined) continue;
    else if (line.startsWith("new file")) file.change = "added";
    else if (line.startsWith("deleted file")) file.change = "deleted";
    else if (line.startsWith("old mode ")) file.modes = line.slice(9);
    else if (line.startsWith("new mode ")) file.modes = `${file.modes} → ${line.slice(9)}`;
    else if (line.startsWith("Binary files ")) file.isBinary = true;
    else {
      const [, oldFrom, oldLines = "1", nowFrom, nowLines = "1"] = HUNK.exec(line) ?? [];
      if (oldFrom === undefined || nowFrom === undefined) continue;
      [old, oldLeft, now, nowLeft] = [Number(oldFrom), Number(oldLines), Number(nowFrom), Number(nowLines)];
      hunk = { from: now, lines: [] };
      file.hunks.push(hunk);
    }
  }
  return files;
}

/** Returns the path of a header. Both of its names have one path, and the same length. */
function pathOf(header: string): string {
  const names = header.slice("diff --git ".length);
  const name = names.slice((names.length + 1) / 2);
  return name.startsWith('"') ? name.slice(3, -1).replaceAll(/\\(["\\])/g, "$1") : name.slice(2);
}

/** Returns the difference of a replaced text in a file. `line` is the first line of the text, if it is known. */
export function replacedText(path: string, before: string, after: string, line?: number): DiffFile {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let [start, end] = [0, 0];
  while (start < Math.min(old.length, now.length) && old[start] === now[start]) start++;
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end++;
  const number = (index: number, side: "old" | "now") => (line === undefined ? {} : { [side]: line + index });
  const same = (from: number, count: number, shift: number): DiffLine[] =>
    old.slice(from, from + count).map((text, index) => ({
      ...{ kind: "same" as const, text },
      ...number(from + index, "old"),
      ...number(from + index + shift, "now"),
    }));
  const changed = (lines: string[], kind: "added" | "removed", side: "old" | "now"): DiffLine[] =>
    lines
      .slice(start, lines.length - end)
      .map((text, index) => ({ kind, text, ...number(start + index, side) }));
  const [removed, added] = [changed(old, "removed", "old"), changed(now, "added", "now")];
  const lines = [
    ...same(0, start, 0),
    ...removed,
    ...added,
    ...same(old.length - end, end, now.length - old.length),
  ];
  const hunks = [{ from: line ?? 1, lines }];
  return {
    ...{ path, change: "modified", isBinary: false, hunks },
    ...{ added: added.length, removed: removed.length },
  };
}
