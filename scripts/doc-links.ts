/** Links and headings of Markdown pages. */

/** Returns the targets of the links of a page, outside code. */
export function linksOf(markdown: string): string[] {
  return [...withoutCode(markdown).matchAll(/\]\(([^()\s]+)\)/g)].map(([, target = ""]) => target);
}

/** Returns the anchors of a page's headings, as GitHub and the site name them. */
export function anchorsOf(markdown: string): Set<string> {
  const seen = new Map<string, number>();
  const headings = markdown.replaceAll(/^\s*```[\s\S]*?^\s*```/gm, "").matchAll(/^#{1,6} (.+?)\s*#*$/gm);
  return new Set(
    [...headings].map(([, heading = ""]) => {
      const slug = slugOf(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"));
      const count = seen.get(slug) ?? 0;
      seen.set(slug, count + 1);
      return count === 0 ? slug : `${slug}-${count}`;
    }),
  );
}

/** Returns the anchor of a heading. */
export function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-");
}

function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^\s*```[\s\S]*?^\s*```/gm, "").replaceAll(/`[^`\n]*`/g, "``");
}
