/**
 * Consolidates memories into summaries: the text for a model with the check of its answer, and an extract without a model. Pure.
 *
 * CONSOLIDATE-5  A summary lists its source memories. The sources must be in the input, and each source belongs to one summary only.
 * CONSOLIDATE-6  The extract only quotes memories, in the order of their times.
 */
import { z } from "zod";
import type { MemoryOperation } from "../../protocol/memory.ts";
import type { JsonObject } from "../../shared/json.ts";
import { cut, shorten } from "../../shared/text.ts";
import { utf8Length } from "../../shared/utf8.ts";
import { dataSchemaOf } from "../definitions/json-schema-of.ts";
import { ToolError } from "../tools/tool-error.ts";

/** The type of the memories that a consolidation writes. */
const SUMMARY = "summary";
/** Maximum bytes of a summary. The stores keep this number of bytes in a row. */
const MAX_SUMMARY_BYTES = 4_000;
/** Maximum characters of one memory in an extract. */
const MAX_QUOTE = 400;

const memory = z.looseObject({
  id: z.string(),
  content: z.string(),
  significance: z.number().optional(),
  time: z.string().optional(),
  validFrom: z.string(),
});

/** The input of a consolidation: memories of one subject and type, the oldest first. */
export const consolidationSchema = z.looseObject({
  memories: z.array(memory),
  type: z.string(),
  subject: z.looseObject({}),
});

export type ConsolidationInput = z.output<typeof consolidationSchema>;
type Joined = ConsolidationInput["memories"][number];

/** The answer of the model. */
export const summariesSchema = z.object({
  summaries: z.array(
    z.object({
      content: z.string().describe("A few sentences that are understood alone."),
      of: z.array(z.string()).describe("The ids of the memories that it joins, at least two."),
      significance: z.number().describe("From 0 to 1."),
    }),
  ),
});

export const SUMMARIES_SCHEMA: JsonObject = dataSchemaOf("The answer of a consolidation", summariesSchema);

export function consolidationText({ memories }: ConsolidationInput): string {
  return memories
    .map((each) => JSON.stringify({ id: each.id, time: timeOf(each), text: each.content }))
    .join("\n");
}

/** Returns the operations of a model's answer. Throws a retriable `ToolError` for an invalid source (CONSOLIDATE-5). */
export function checkedSummaries(
  { memories }: ConsolidationInput,
  { summaries }: z.output<typeof summariesSchema>,
): MemoryOperation[] {
  const open = new Map(memories.map((each) => [each.id, each]));
  return summaries.flatMap(({ content, of, significance }): MemoryOperation[] => {
    const parts = [...new Set(of)].map((id) => {
      const part = open.get(id);
      if (part === undefined)
        throw new ToolError(`The answer uses the unknown memory "${id}", or uses it twice.`, {
          retriable: true,
        });
      open.delete(id);
      return part;
    });
    const text = content.trim().toWellFormed();
    if (text === "" || parts.length === 0) return [];
    return [summary(shortenBytes(text), parts, Math.min(1, Math.max(0, significance)))];
  });
}

/** Returns summaries that quote the memories (CONSOLIDATE-6). */
export function extractedSummaries({ memories, type }: ConsolidationInput): MemoryOperation[] {
  const ordered = [...memories].sort((one, other) => (timeOf(one) < timeOf(other) ? -1 : 1));
  const operations: MemoryOperation[] = [];
  let [parts, lines]: [Joined[], string[]] = [[], []];
  const end = () => {
    if (parts.length === 0) return;
    const significance = Math.max(...parts.map((part) => part.significance ?? 0.5));
    operations.push(summary([title(type, parts), ...lines].join("\n"), parts, significance));
    [parts, lines] = [[], []];
  };
  for (const each of ordered) {
    const line = `- ${timeOf(each).slice(0, 10)}: ${shorten(each.content.replace(/\s+/g, " ").trim(), MAX_QUOTE)}`;
    if (utf8Length([title(type, parts), ...lines, line].join("\n")) > MAX_SUMMARY_BYTES) end();
    parts.push(each);
    lines.push(line);
  }
  end();
  return operations;
}

function title(type: string, parts: readonly Joined[]): string {
  return `Extract of ${parts.length} memories of the type ${JSON.stringify(cut(type, 50))}:`;
}

function summary(content: string, parts: readonly Joined[], significance: number): MemoryOperation {
  const time = parts.map(timeOf).toSorted().at(-1) ?? "";
  return { op: "write", content, type: SUMMARY, significance, time, derivedFrom: parts.map(({ id }) => id) };
}

function timeOf({ time, validFrom }: Joined): string {
  return time ?? validFrom;
}

function shortenBytes(text: string): string {
  let kept = shorten(text, MAX_SUMMARY_BYTES);
  while (utf8Length(kept) > MAX_SUMMARY_BYTES) kept = shorten(text, Math.floor(kept.length * 0.9));
  return kept;
}
