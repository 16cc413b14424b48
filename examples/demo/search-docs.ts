/** The tool `search_docs`: full-text search over documentation that is part of the deployment. */
import MiniSearch from "minisearch";
import { z } from "zod";
import { defineTool, type Tool } from "../../src/library/define/define.ts";

/** A section of a document, as `scripts/build-docs-index.ts` extracts it. */
export interface DocsSection {
  /** Path in the repository. */
  path: string;
  /** Title of the document. */
  title: string;
  heading: string;
  text: string;
}

const EXCERPT_LENGTH = 600;

/**
 * Creates the tool over these sections. It builds its index at the first search, to keep the start of the Worker fast.
 */
export function defineDocsSearch(sections: readonly DocsSection[]): Tool {
  let built: MiniSearch | undefined;
  const index = () => {
    built ??= buildIndex(sections);
    return built;
  };
  return defineTool({
    name: "search_docs",
    description:
      "Searches the documentation of this project. Returns the best sections, each with its file and an excerpt.",
    input: z.object({
      query: z.string().trim().min(1).max(500).describe("A few words to look for"),
      limit: z.int().min(1).max(10).default(3).describe("Maximum number of sections"),
    }),
    effect: "pure",
    execute({ query, limit }) {
      const found = index().search(query, { boost: { heading: 3, title: 2 }, prefix: true, fuzzy: 0.2 });
      return {
        results: found.slice(0, limit).flatMap(({ id, terms }) => {
          const section = sections[id];
          if (section === undefined) return [];
          const { path, title, heading, text } = section;
          return [{ path, title, heading, excerpt: excerpt(text, terms) }];
        }),
      };
    },
  });
}

function buildIndex(sections: readonly DocsSection[]): MiniSearch {
  const index = new MiniSearch({ fields: ["title", "heading", "text"] });
  index.addAll(sections.map((section, id) => ({ id, ...section })));
  return index;
}

/** Returns the part of `text` around the first of `terms`, cut between words. */
function excerpt(text: string, terms: readonly string[]): string {
  if (text.length <= EXCERPT_LENGTH) return text;
  const lower = text.toLowerCase();
  const first = terms.map((term) => lower.indexOf(term)).filter((at) => at >= 0);
  const middle = first.length === 0 ? 0 : Math.min(...first);
  const from = Math.max(0, Math.min(middle - EXCERPT_LENGTH / 4, text.length - EXCERPT_LENGTH));
  const begin = from === 0 ? 0 : text.indexOf(" ", from) + 1;
  const limit = begin + EXCERPT_LENGTH;
  const end = limit >= text.length ? text.length : Math.max(text.lastIndexOf(" ", limit), begin);
  return `${begin === 0 ? "" : "… "}${text.slice(begin, end)}${end === text.length ? "" : " …"}`;
}
