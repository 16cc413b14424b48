/** A message of an agent, complete or streaming. */
import { useDeferredValue } from "react";
import { type Content, textOf } from "../../../src/client/index.ts";
import { Markdown } from "./markdown.tsx";

interface AgentMessageProps {
  content: Content;
  agentName: string;
  createdAt: string;
  streaming?: boolean;
}

export function AgentMessage({ content, agentName, createdAt, streaming = false }: AgentMessageProps) {
  const text = useDeferredValue(textOf(content));
  return (
    <article
      aria-label={agentName}
      aria-busy={streaming}
      title={new Date(createdAt).toLocaleString()}
      data-testid="message-agent"
      data-streaming={streaming}
    >
      <Markdown text={text} />
    </article>
  );
}
