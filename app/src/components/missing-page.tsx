/** A notice that a page or a conversation does not exist, or that the reader has no access. */
import { usePageTitle } from "../hooks/use-page-title.ts";
import { Link } from "./link.tsx";
import { PageHeader } from "./page-header.tsx";

export function MissingPage({
  title,
  detail,
  onMenu,
}: {
  title: string;
  detail: string;
  onMenu: (() => void) | undefined;
}) {
  usePageTitle(title);
  return (
    <>
      <PageHeader title={title} onMenu={onMenu} />
      <div className="flex flex-1 flex-col items-center justify-center gap-4 px-6 text-center">
        <p className="max-w-md wrap-anywhere text-muted">{detail}</p>
        <Link to="/" className="rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent">
          Start a new conversation
        </Link>
      </div>
    </>
  );
}
