/** Describes an agent of a library, and offers the example messages of its persona. */
import { useAgents } from "../../../src/client/react/index.ts";
import { client } from "../client.ts";

interface SuggestionsProps {
  agentId: string | undefined;
  /** Large screens show the description elsewhere. */
  besidePicker?: boolean;
  onPick: (text: string) => void;
}

export function Suggestions({ agentId, besidePicker, onPick }: SuggestionsProps) {
  const agent = useAgents({ client }).agents.find(({ id }) => id === agentId);
  const { description } = agent ?? {};
  // Every agent can answer this question from its own instructions and tools.
  const examples = agent?.examples.length === 0 ? ["What can you do?"] : (agent?.examples ?? []);
  const about = description !== undefined && <p className={besidePicker ? "sm:hidden" : ""}>{description}</p>;
  if (examples.length === 0) return about;
  return (
    <section aria-label="Examples" className="space-y-3">
      {about}
      <h3 className="text-sm font-medium text-muted">Try an example</h3>
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
