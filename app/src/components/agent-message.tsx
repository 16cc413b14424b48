/** A message of an agent, complete or streaming. */
import { useDeferredValue } from "react";
import { type Content, textOf } from "../../../src/client/index.ts";
import { Markdown } from "./markdown.tsx";

interface AgentMessageProps {
  content: Content;
  agentName: string;
  /** Shows the name above the message. */
  isNamed: boolean;
  createdAt: string;
  streaming?: boolean;
}

export function AgentMessage({
  content,
  agentName,
  isNamed,
  createdAt,
  streaming = false,
}: AgentMessageProps) {
  const text = useDeferredValue(textOf(content));
  return (
    <article
      aria-label={agentName}
      aria-busy={streaming}
      title={new Date(createdAt).toLocaleString()}
      data-testid="message-agent"
      data-streaming={streaming}
    >
      {isNamed && <p className="mb-1 text-xs font-medium text-muted">{agentName}</p>}
      <Markdown text={text} isGrowing={streaming} />
    </article>
  );
}
