/** The setup of an agent: its instructions, its model, its tools and the settings of its memory. */
import { useCallback } from "react";
import type { AgentView } from "../../../../src/client/index.ts";
import { callApi } from "../../api.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { SCOPE_TEXT } from "../../memory/memory-texts.ts";
import { type Fact, Facts } from "../facts.tsx";

type OwnPersona = Extract<AgentView["persona"], { identity: unknown }>;

export function AgentSetup({ agent: { persona } }: { agent: AgentView }) {
  const load = useCallback(
    async (signal: AbortSignal) => {
      if ("identity" in persona) return persona;
      const { library, id, version } = persona;
      const path = `libraries/${library}/personas/${id}${version === undefined ? "" : `/versions/${version}`}`;
      return (await callApi<{ definition: OwnPersona }>(path, { signal })).definition;
    },
    [persona],
  );
  // The page also works without it, so errors are ignored.
  const { value } = useResource(load);
  if (value === undefined) return null;
  const { identity, tools, memory, skills = [] } = value;
  const { systemPrompt, instructions = [], modelProfileId } = identity;
  const names = tools?.toolIds ?? [];
  const facts: Fact[] = [
    ["Model", modelProfileId === undefined ? "The default of this server" : nameOf(modelProfileId)],
    ["Tools", names.length === 0 ? "None" : names.map(nameOf).join(", ")],
    ["Skills", skills.length === 0 ? undefined : skills.map(nameOf).join(", ")],
    ["Memory", memory?.scope === undefined ? undefined : SCOPE_TEXT[memory.scope]],
  ];
  return (
    <section aria-labelledby="agent-setup" data-testid="agent-setup" className="space-y-3">
      <h2 id="agent-setup" className="text-sm font-semibold">
        Setup
      </h2>
      <Facts facts={facts} />
      <details open className="rounded-xl border border-line bg-surface">
        <summary className="rounded-xl px-4 py-2.5 text-sm font-medium">Instructions</summary>
        {/* The padding is around the part that scrolls, which shows whole lines. */}
        <div className="border-t border-line px-4 py-3">
          <pre className="max-h-70 overflow-auto font-sans text-sm/5 whitespace-pre-wrap wrap-anywhere">
            {[systemPrompt, ...instructions].join("\n\n")}
          </pre>
        </div>
      </details>
    </section>
  );
}

/** Returns the name of a reference: `library/id`, or an object with these members. */
function nameOf(reference: unknown): string {
  if (typeof reference === "string") return reference;
  const { library, id } = reference as { library?: string; id?: string };
  return [library, id].filter((part) => part !== undefined).join("/");
}
