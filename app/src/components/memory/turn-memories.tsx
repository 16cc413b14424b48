/** The memories of a turn: recalled for its model, or learned from it. Renders `null` for a turn without memories. */
import type { ReactNode } from "react";
import { messageOf, titleFrom } from "../../format.ts";
import { type ShownMemories, useTurnMemories } from "../../hooks/use-turn-memories.ts";
import { hasMemories, type Lesson } from "../../memory/turn-memories.ts";
import { memoryPath } from "../../route.ts";
import { ErrorNote } from "../error-note.tsx";
import { Link } from "../link.tsx";

/** Characters of a memory. */
const MAX_TEXT = 160;

export function TurnMemories({ turnId }: { turnId: string }) {
  const { value, error, reload } = useTurnMemories(turnId);
  if (error !== undefined) return <ErrorNote text={messageOf(error)} onRetry={reload} />;
  if (value === undefined || !hasMemories(value)) return null;
  const { recalled, learned } = value;
  return (
    <div data-testid="turn-memories" className="space-y-2 border-t border-line px-2 py-3 text-xs">
      {value.error !== undefined && (
        <p className="text-caution">
          The memory did not answer. The turn continued without memories: {value.error}
        </p>
      )}
      {recalled.length > 0 && (
        <Group title="Remembered for this answer">
          {recalled.map((id) => (
            <li key={id} data-testid="recalled-memory">
              <MemoryLink id={id} memories={value} />
            </li>
          ))}
        </Group>
      )}
      {learned.length > 0 && (
        <Group title="Learned from this turn">
          {learned.map((lesson) => (
            <li key={keyOf(lesson)} data-testid="learned-memory">
              <LessonText lesson={lesson} memories={value} />
            </li>
          ))}
        </Group>
      )}
    </div>
  );
}

function Group({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <h3 className="font-medium text-muted">{title}</h3>
      <ul>{children}</ul>
    </section>
  );
}

function LessonText({ lesson, memories }: { lesson: Lesson; memories: ShownMemories }) {
  if (lesson.status === "refused") return <span className="text-muted">Refused: {lesson.message}</span>;
  return (
    <>
      <MemoryLink id={lesson.memoryId} memories={memories} />
      {lesson.status === "unchanged" && <span className="text-muted"> · known already</span>}
    </>
  );
}

function MemoryLink({ id, memories: { agentId, texts } }: { id: string; memories: ShownMemories }) {
  return (
    <Link
      to={memoryPath(agentId, id)}
      className="inline-block py-0.5 text-accent underline wrap-anywhere pointer-coarse:py-2"
    >
      {titleFrom(texts.get(id) ?? id, MAX_TEXT)}
    </Link>
  );
}

function keyOf(lesson: Lesson): string {
  return lesson.status === "refused" ? lesson.message : lesson.memoryId;
}
