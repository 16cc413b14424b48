/** The projections of a conversation's journal. */
import { useCallback, useState } from "react";
import type { ProjectionName } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { messageOf } from "../../format.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { ErrorNote } from "../error-note.tsx";
import { FIELD, Field } from "../field.tsx";
import { JsonView } from "../json-view.tsx";
import { Loading } from "../loading.tsx";

const TEXT: Record<ProjectionName, string> = {
  diagnostics: "Diagnostics",
  llm_context: "Context of the model",
  pending_tool_calls: "Pending tool calls",
  subagent_status: "Sub-agents",
  timeline: "Timeline",
  canonical_timeline: "Canonical timeline",
  canonical_llm_context: "Canonical context of the model",
};

/** Entries of a timeline, the newest first. */
const PAGE = { limit: 50, order: "desc" } as const;

export function ProjectionsView({ conversationId }: { conversationId: string }) {
  const [name, setName] = useState<ProjectionName>("diagnostics");
  return (
    <section aria-label="Projections" data-testid="projections" className="space-y-3">
      <div className="max-w-xs">
        <Field label="Projection of the conversation">
          {(control) => (
            <select
              {...control}
              value={name}
              onChange={({ target }) => {
                // SAFETY: the options are the names.
                setName(target.value as ProjectionName);
              }}
              className={FIELD}
            >
              {Object.entries(TEXT).map(([value, text]) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <Projection key={name} conversationId={conversationId} name={name} />
    </section>
  );
}

function Projection({ conversationId, name }: { conversationId: string; name: ProjectionName }) {
  const load = useCallback(
    (signal: AbortSignal) =>
      client.conversations.projection(conversationId, name, {
        ...(name.endsWith("timeline") ? PAGE : {}),
        signal,
      }),
    [conversationId, name],
  );
  const { value, error, reload } = useResource(load);
  if (error !== undefined) return <ErrorNote text={messageOf(error)} onRetry={reload} />;
  if (value === undefined) return <Loading label="Loading the projection" />;
  const isCut = "nextCursor" in value && value.nextCursor !== undefined;
  return (
    <>
      {isCut && <p className="text-xs text-muted">The newest {PAGE.limit} are shown.</p>}
      <JsonView label={`${name}, up to entry ${value.seq}`} value={value} />
    </>
  );
}
