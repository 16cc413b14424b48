/** Example messages of an agent's persona. An agent without any has none here. */
import { useExamples } from "../hooks/use-examples.ts";

interface SuggestionsProps {
  agentId: string | undefined;
  onPick: (text: string) => void;
}

export function Suggestions({ agentId, onPick }: SuggestionsProps) {
  const examples = useExamples(agentId);
  if (examples.length === 0) return null;
  return (
    <section aria-label="Examples">
      <h3 className="mb-2 text-sm font-medium text-muted">Try an example</h3>
      <ul className="grid gap-3 sm:grid-cols-2">
        {examples.map((text) => (
          <li key={text}>
            <button
              type="button"
              onClick={() => onPick(text)}
              className="h-full w-full rounded-xl border border-line px-4 py-3 text-left text-sm wrap-anywhere hover:border-accent hover:bg-surface"
            >
              {text}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
