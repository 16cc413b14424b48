/** The merge of two edited texts by lines. Pure. */
import { diffArrays } from "diff";

/** Edits of lines in one difference. The memory of a difference grows with their square. */
const MAX_EDITS = 1_000;

/** The lines times the edits that a merge may still compare. */
export interface Work {
  left: number;
}

/** The lines of the base from `start` to `end` become `text`. */
interface Edit {
  start: number;
  end: number;
  text: string;
}

/** Returns the text with the edits of both sides; `undefined` if different edits overlap or touch. */
export function mergedText(base: string, ours: string, theirs: string, work: Work): string | undefined {
  const lines = linesOf(base);
  const edits = [ours, theirs].flatMap((side) => editsOf(lines, linesOf(side), work));
  edits.sort((one, other) => one.start - other.start || one.end - other.end);
  let merged = "";
  let last: Edit | undefined;
  for (const edit of edits) {
    const { start, end, text } = edit;
    if (last?.start === start && last.end === end && last.text === text) continue;
    if (last !== undefined && start <= last.end) return undefined;
    merged += lines.slice(last?.end ?? 0, start).join("") + text;
    last = edit;
  }
  return merged + lines.slice(last?.end ?? 0).join("");
}

function linesOf(text: string): string[] {
  return text.split(/(?<=\n)/);
}

/** Returns the edits in order. If the work does not suffice, one edit replaces all lines from the first to the last change. */
function editsOf(base: readonly string[], side: readonly string[], work: Work): Edit[] {
  let start = 0;
  while (start < base.length && base[start] === side[start]) start++;
  let [end, sideEnd] = [base.length, side.length];
  for (; Math.min(end, sideEnd) > start && base[end - 1] === side[sideEnd - 1]; end--) sideEnd--;
  const [before, after] = [base.slice(start, end), side.slice(start, sideEnd)];
  const compared = before.length + after.length;
  if (compared === 0) return [];
  const maxEditLength = Math.min(MAX_EDITS, Math.floor(work.left / compared));
  const changes = diffArrays(before, after, { maxEditLength });
  if (changes === undefined) {
    work.left -= compared * maxEditLength;
    return [{ start, end, text: after.join("") }];
  }
  const edits: Edit[] = [];
  let at = start;
  for (const { added, removed, count, value } of changes) {
    if (added || removed) {
      work.left -= compared * count;
      if (edits.at(-1)?.end !== at) edits.push({ start: at, end: at, text: "" });
    }
    const edit = edits.at(-1);
    if (added && edit !== undefined) edit.text += value.join("");
    if (added) continue;
    at += count;
    if (removed && edit !== undefined) edit.end = at;
  }
  return edits;
}
