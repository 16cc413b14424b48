/** The answer of a rule. */

export type OfflineAnswer =
  | {
      kind: "text";
      text: string;
      /** Words per chunk. Default: 3. */
      words?: number;
      /** Wait after each chunk, in milliseconds. */
      pauseMs?: number;
    }
  /** `input` is JSON text as the user wrote it, valid or not. */
  | { kind: "calls"; calls: { tool: string; input: string }[] };

const LABEL = "Offline model: ";

/** Builds an answer in the model's own words, and labels it. */
export function labelled(text: string): OfflineAnswer {
  return { kind: "text", text: `${LABEL}${text}` };
}

export function unlabelled(text: string): string {
  return text.startsWith(LABEL) ? text.slice(LABEL.length) : text;
}

export function call(tool: string, input: unknown): OfflineAnswer {
  return { kind: "calls", calls: [{ tool, input: JSON.stringify(input) }] };
}
