/** A value as indented JSON, in a box of limited height. `exact` shows characters that could hide or disguise others. */
import { exactJson, prettyJson } from "../format.ts";

interface JsonViewProps {
  label: string;
  value: unknown;
  exact?: boolean;
}

export function JsonView({ label, value, exact = false }: JsonViewProps) {
  return (
    <figure>
      <figcaption className="mb-1 text-xs font-medium text-muted">{label}</figcaption>
      <pre className="max-h-72 overflow-auto rounded-lg bg-sunken p-2.5 font-mono text-xs leading-relaxed wrap-anywhere whitespace-pre-wrap">
        {exact ? exactJson(value) : prettyJson(value)}
      </pre>
    </figure>
  );
}
