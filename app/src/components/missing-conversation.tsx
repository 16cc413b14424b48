/** A notice that the conversation does not exist or that the reader has no access. */
import { Link } from "./link.tsx";
import { PageHeader } from "./page-header.tsx";

export function MissingConversation({
  detail,
  onMenu,
}: {
  detail: string;
  onMenu: (() => void) | undefined;
}) {
  return (
    <>
      <PageHeader title="Conversation not found" onMenu={onMenu} />
      <div className="flex flex-1 flex-col items-center justify-center gap-4 px-6 text-center">
        <p className="max-w-md text-muted">{detail}</p>
        <Link to="/" className="rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent">
          Start a new conversation
        </Link>
      </div>
    </>
  );
}
