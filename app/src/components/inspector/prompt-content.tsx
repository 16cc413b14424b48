/** The members of a provider's request, such as its messages and tools, each folded. */
import { previewOf, titleFrom } from "../../format.ts";
import { JsonView } from "../json-view.tsx";
import { Panel } from "./panel.tsx";

/** Characters of a folded member. */
const MAX_TEXT = 100;

export function PromptContent({ request }: { request: unknown }) {
  if (typeof request !== "object" || request === null) return null;
  return (
    <Panel title="Content, as the provider gets it">
      <ul className="divide-y divide-line rounded-xl border border-line bg-surface">
        {membersOf(request).map(([name, value]) => (
          <Member key={name} name={name} value={value} />
        ))}
      </ul>
    </Panel>
  );
}

/** Returns the members of a request by their places. Lists, such as messages and tools, are split. */
function membersOf(request: object): [place: string, value: unknown][] {
  return Object.entries(request).flatMap(([name, value]): [string, unknown][] =>
    Array.isArray(value) ? value.map((item, index) => [`${name}.${index}`, item]) : [[name, value]],
  );
}

function Member({ name, value }: { name: string; value: unknown }) {
  const { role, rest } = splitRole(value);
  return (
    <li>
      <details className="group px-3 text-xs">
        <summary className="flex gap-3 py-2">
          <span className="shrink-0 font-mono">{name}</span>
          {role !== "" && <span className="shrink-0 text-accent">{role}</span>}
          <span className="min-w-0 truncate text-muted group-open:invisible">
            {titleFrom(previewOf(rest), MAX_TEXT)}
          </span>
        </summary>
        <div className="pb-3">
          <JsonView label={name} value={value} />
        </div>
      </details>
    </li>
  );
}

/** Returns the role of a message apart from its other members. */
function splitRole(value: unknown): { role: string; rest: unknown } {
  if (typeof value !== "object" || value === null || !("role" in value)) return { role: "", rest: value };
  const { role, ...rest } = value;
  return { role: String(role), rest };
}
