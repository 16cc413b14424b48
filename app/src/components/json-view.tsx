/** A value as indented JSON, in a box of limited height. */
import { prettyJson } from "../format.ts";

export function JsonView({ label, value }: { label: string; value: unknown }) {
  return (
    <figure>
      <figcaption className="mb-1 text-xs font-medium text-muted">{label}</figcaption>
      <pre className="max-h-72 overflow-auto rounded-lg bg-sunken p-2.5 font-mono text-xs leading-relaxed wrap-anywhere whitespace-pre-wrap">
        {prettyJson(value)}
      </pre>
    </figure>
  );
}
