/** Downloads the file of an agent or of a conversation. */
import { DownloadLink } from "./download-link.tsx";
import { Icon } from "./icon.tsx";

interface ExportLinkProps {
  of: "agents" | "conversations";
  id: string;
}

export function ExportLink({ of, id }: ExportLinkProps) {
  return (
    <DownloadLink
      address={`/api/${of}/${encodeURIComponent(id)}/export`}
      name={`${id}.jsonl`}
      data-testid="export"
      className="inline-flex items-center gap-2 rounded-lg border border-line px-3 py-1.5 text-sm font-medium hover:border-accent"
    >
      <Icon name="down" />
      Export
    </DownloadLink>
  );
}
