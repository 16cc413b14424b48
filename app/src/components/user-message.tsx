/** A message of a user. */
import type { ReactNode } from "react";
import type { Content } from "../../../src/client/index.ts";
import { ContentParts } from "./content-parts.tsx";

interface UserMessageProps {
  content: Content;
  createdAt: string;
  /** Shows the message as not recorded. */
  faint?: boolean;
  /** The author; "You" for the reader. */
  author?: string | undefined;
  children?: ReactNode;
}

export function UserMessage({
  content,
  createdAt,
  faint = false,
  author = "You",
  children,
}: UserMessageProps) {
  return (
    <article
      aria-label={author}
      title={new Date(createdAt).toLocaleString()}
      data-testid="message-user"
      className="flex flex-col items-end gap-1"
    >
      {author !== "You" && <p className="text-xs font-medium text-muted">{author}</p>}
      <div
        className={`max-w-[85%] rounded-2xl rounded-br-md bg-tint px-4 py-2.5 leading-relaxed wrap-anywhere whitespace-pre-wrap ${faint ? "opacity-60" : ""}`}
      >
        <ContentParts content={content} />
      </div>
      {children}
    </article>
  );
}
