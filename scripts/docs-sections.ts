/** Splits Markdown into the sections that `search_docs` searches. */
import type { DocsSection } from "../examples/demo/search-docs.ts";

/** Splits a document at its headings of levels 1 to 3, outside code fences. Empty sections are skipped. */
export function docsSections(path: string, markdown: string): DocsSection[] {
  const sections: { heading: string; lines: string[] }[] = [{ heading: "", lines: [] }];
  let title: string | undefined;
  let fence: string | undefined;
  for (const line of markdown.split(/\r?\n/)) {
    const mark = /^\s{0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence === undefined) fence = mark;
    else if (mark?.startsWith(fence)) fence = undefined;
    const heading = fence === undefined ? /^(#{1,3})\s+(.+?)\s*#*$/.exec(line) : null;
    if (heading === null) {
      sections.at(-1)?.lines.push(line);
      continue;
    }
    const [, level, text = ""] = heading;
    if (level === "#") title ??= text;
    sections.push({ heading: text, lines: [] });
  }
  return sections.flatMap(({ heading, lines }) => {
    const text = plain(lines.join("\n"));
    return text === "" ? [] : [{ path, title: title ?? path, heading: plain(heading), text }];
  });
}

/** Removes Markdown syntax, so that an excerpt reads as a sentence. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/^\s*(?:[-*]|\|?[-:| ]+\|)\s/gm, "")
    .replaceAll(/[`|*]+/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}
